import type { Delivery, DeliveryAttempt, Event, EventType, WebhookEndpoint } from '@farthing/sdk'
import { chatBody } from '../../../../events/webhooks/chat.ts'
import { bodyOf, webhookHeaders } from '../../../../events/webhooks/client.ts'
import type { Backlog, RecentDelivery } from '../../../../events/webhooks/recent.ts'
import { eventTypes } from '../../../api/event-types.ts'
import { fill, type Html, html } from '../../../page/html.ts'
import { showCount } from '../../formats.ts'
import {
  renderApiLine,
  renderCheck,
  renderChip,
  renderChoice,
  renderFact,
  renderField,
  renderHidden,
  renderSelect,
  renderTable,
} from '../../parts.ts'
import { type Screen, withQuery } from '../../screen.ts'
import {
  at,
  backOf,
  exactly,
  renderFurther,
  renderSubhead,
  renderTabs,
  renderText,
  showUrl,
} from '../tabs.ts'

/** A store has fewer endpoints. */
export const endpointsMax = 100
/** Waiting events are counted up to here: beyond it the number says nothing that "more" would not. */
export const waitingMax = 1_000
/** A screen's worth. */
export const deliveriesPerPage = 25
export const states = ['pending', 'delivered', 'undeliverable'] as const
export const resendHours = ['1', '6', '24', '72', '168', '720'] as const

export const formats = ['json', 'slack', 'discord'] as const

/** One box per type, so that the form works without a script and the passkey confirms each choice. */
export const boxOf = (type: EventType) => `type.${type}`

export function renderEndpoints(
  screen: Screen,
  endpoints: readonly WebhookEndpoint[],
  backlogs: readonly Backlog[],
): Html {
  const { noEndpoints } = screen.texts.developers
  if (endpoints.length === 0) return html`<p class="empty">${noEndpoints}</p>`
  const byId = new Map<string, Backlog>(backlogs.map((each) => [each.endpointId, each]))
  return html`<ul class="things">${endpoints.map((each) => renderListed(screen, each, byId.get(each.id)))}</ul>`
}

function renderListed(screen: Screen, endpoint: WebhookEndpoint, backlog: Backlog | undefined): Html {
  const texts = screen.texts.developers
  const { id, url, format, types, ordered } = endpoint
  const some = types.length <= 3 ? types.join(', ') : fill(texts.someEvents, { count: `${types.length}` })
  const parts = [
    ...(format === 'json' ? [] : [texts.formats[format]]),
    types.length === 0 ? texts.everyEvent : some,
    ...(ordered ? [texts.inOrder] : []),
    ...describeBacklog(screen, endpoint, backlog),
  ]
  const link = html`<a href="${screen.base}/developers/endpoints/${id}"><b>${showUrl(url)}</b></a>`
  const about = parts.map((part, i) => html`${i > 0 && ' · '}${part}`)
  return html`<li><p>${link}<small>${about}</small></p>
<div class="acts">${renderEndpointState(screen, endpoint)}${renderTest(
    screen,
    endpoint,
    html`<span class="unseen"> ${url}</span>`,
  )}</div></li>`
}

function describeBacklog(
  screen: Screen,
  { failingSince }: WebhookEndpoint,
  backlog: Backlog | undefined,
): (Html | string)[] {
  if (!backlog || backlog.waiting === 0) return []
  const { locale, now } = screen
  const texts = screen.texts.developers
  const { waiting, nextTryAt, status, error } = backlog
  const count = showCount(locale, Math.min(waiting, waitingMax)) + (waiting > waitingMax ? '+' : '')
  const answer = status === null ? (error ?? texts.noAnswer) : `${status}`
  return [
    waiting === 1 ? texts.waitingOne : fill(texts.waiting, { count }),
    ...(failingSince === null ? [] : [fill(texts.lastAnswer, { answer })]),
    ...(nextTryAt && nextTryAt > now ? [fill(texts.nextTry, { time: at(screen, nextTryAt) })] : []),
  ]
}

function renderEndpointState(
  screen: Screen,
  { status, failingSince, disabledReason }: WebhookEndpoint,
): Html {
  const texts = screen.texts.developers
  if (status === 'disabled')
    return html`${renderChip(texts.disabledChip)}
<span class="soft">${texts.disabled[disabledReason ?? 'store']}</span>`
  if (failingSince === null) return renderChip(texts.delivering, 'good')
  return html`${renderChip(texts.failing, 'bad')}
<span class="soft">${fill(texts.failingSince, { time: at(screen, failingSince) })}</span>`
}

/** The button that sends a test event. Its hidden name tells it from the others in a list. */
function renderTest(screen: Screen, { id, status }: WebhookEndpoint, name: Html | null): Html | null {
  const { base, formFields } = screen
  if (!screen.may('webhooks:write') || status !== 'enabled') return null
  return html`<form method="post" action="${base}/developers/endpoints/test">${formFields}
${renderHidden('endpointId', id)}
<button class="quiet tiny">${screen.texts.developers.sendTest}${name}</button></form>`
}

export function renderNewEndpoint(screen: Screen): Html {
  const { base, formFields } = screen
  const texts = screen.texts.developers
  const body = { url: 'https://shop.example/webhooks', types: ['checkout.completed'] }
  return html`${renderSubhead(texts.addEndpoint, backOf(screen))}
<section class="pane">
<form method="post" action="${base}/developers/endpoints" data-confirm="webhook.create" class="fields">
${formFields}${renderFormats(screen)}
${renderFields(screen, { url: '', format: 'json', types: [], ordered: false })}
<div class="buttons"><button>${texts.add}</button>
<a class="button quiet" href="${base}/developers">${texts.cancel}</a></div></form></section>
${renderApiLine(screen, { method: 'POST', path: '/webhook-endpoints', body })}`
}

/** Whether events go to a program or into a channel. An endpoint keeps what is chosen here. */
function renderFormats({ texts: { developers: texts } }: Screen): Html {
  const choices = formats.map((each) =>
    renderChoice('format', each, each === 'json', {
      title: texts.formats[each],
      text: texts.formatsAbout[each],
    }),
  )
  return html`<fieldset><legend>${texts.format}</legend>${choices}</fieldset>`
}

/** The fields of an endpoint that is made or changed. */
function renderFields(
  { texts: { developers: texts } }: Screen,
  { url, format, types, ordered }: Pick<WebhookEndpoint, 'url' | 'format' | 'types' | 'ordered'>,
): Html {
  const kinds = [...new Set(eventTypes.map(kindOf))]
  const renderKind = (kind: string) => {
    const own = eventTypes.filter((type) => kindOf(type) === kind)
    const chosen = own.filter((type) => types.includes(type)).length
    const boxes = own.map((type) =>
      renderCheck(boxOf(type), html`<code>${type}</code>`, types.includes(type)),
    )
    return html`<details id="types-${kind}"${chosen > 0 && html` open`}><summary><code>${kind}</code> ${
      chosen > 0 && renderChip(`${chosen}`)
    }</summary><div class="stack">${boxes}</div></details>`
  }
  const address = { type: 'url', maxlength: 2_048, autocomplete: 'off' }
  const shown = { ...address, required: true, value: url, placeholder: 'https://shop.example/webhooks' }
  const field =
    format === 'json'
      ? renderField(texts.url, 'url', shown, texts.urlAbout)
      : renderField(texts.newUrl, 'url', { ...address, placeholder: url }, texts.newUrlAbout)
  return html`${field}
<fieldset><legend>${texts.types}. ${texts.typesAbout}</legend>${kinds.map(renderKind)}</fieldset>
${renderCheck('ordered', texts.ordered, ordered)}`
}

function kindOf(type: EventType): string {
  return type.slice(0, type.indexOf('.'))
}

export function renderEndpoint(screen: Screen, endpoint: WebhookEndpoint): Html {
  const { base, formFields, may } = screen
  const texts = screen.texts.developers
  const { id, url, format, types, status } = endpoint
  const deliveries = withQuery(`${base}/developers/deliveries`, { endpoint: id })
  const action = `${base}/developers/endpoints/update`
  const form = html`<form method="post" action="${action}" data-confirm="webhook.update" class="fields">
${formFields}${renderHidden('endpointId', id)}
${renderFields(screen, endpoint)}
<div><button>${texts.save}</button></div></form>`
  const facts = html`<dl class="list">${renderFact(texts.url, url)}
${renderFact(texts.types, types.join(', ') || texts.everyEvent)}</dl>`
  return html`${renderSubhead(showUrl(url), backOf(screen))}
<section class="pane"><div class="row apart"><p>${
    format !== 'json' && html`${texts.formats[format]} `
  }${renderEndpointState(screen, endpoint)}</p><div class="row">
${renderTest(screen, endpoint, null)}
<a class="button quiet tiny" href="${deliveries}">${texts.seeDeliveries}</a></div></div></section>
<section class="pane">${may('webhooks:write') ? form : facts}</section>
${may('webhooks:resend') && status === 'enabled' && renderResend(screen, id)}
${may('webhooks:write') && renderEndpointActs(screen, endpoint)}
${renderApiLine(screen, { path: `/webhook-endpoints/${id}` })}`
}

/** Everything else that can be done with an endpoint. */
function renderEndpointActs(screen: Screen, { id, status, format }: WebhookEndpoint): Html {
  const { base, formFields } = screen
  const texts = screen.texts.developers
  const fields = html`${formFields}${renderHidden('endpointId', id)}`
  const overlaps = (['86400', '3600', '0'] as const).map((each) => [each, texts.overlaps[each]] as const)
  const [next, turn, about] =
    status === 'enabled'
      ? (['disabled', texts.disable, texts.disableAbout] as const)
      : (['enabled', texts.enable, texts.enableAbout] as const)
  const secret = html`<section class="pane"><h2>${texts.secret}</h2><p class="soft">${texts.secretAbout}</p>
<form method="post" action="${base}/developers/endpoints/roll" data-confirm="webhook.roll" class="fields">${fields}
<label>${texts.overlap}${renderSelect('overlapSeconds', texts.overlap, '86400', overlaps)}</label>
<div><button class="quiet">${texts.roll}</button></div></form></section>`
  return html`${format === 'json' && secret}
<section class="pane"><ul class="things">
<li><p>${turn}<small>${about}</small></p>
<form method="post" action="${base}/developers/endpoints/switch" data-confirm="webhook.switch">${fields}
${renderHidden('status', next)}
<button class="quiet">${turn}</button></form></li>
<li><p>${texts.remove}<small>${texts.removeAbout}</small></p>
<form method="post" action="${base}/developers/endpoints/delete" data-confirm="webhook.delete">${fields}
<button class="quiet">${texts.remove}</button></form></li>
</ul></section>`
}

function renderResend({ base, formFields, texts: { developers: texts } }: Screen, endpointId: string): Html {
  const hours = resendHours.map((each) => [each, texts.hours[each]] as const)
  const includes = (['undelivered', 'all'] as const).map((each) => [each, texts.includes[each]] as const)
  return html`<section class="pane"><h2>${texts.resendAll}</h2><p class="soft">${texts.resendAllAbout}</p>
<form method="post" action="${base}/developers/endpoints/resend" class="find">${formFields}
${renderHidden('endpointId', endpointId)}
${renderSelect('hours', texts.since, '24', hours)}
${renderSelect('include', texts.include, 'undelivered', includes)}
<button class="quiet">${texts.resend}</button></form></section>`
}

export type Resent = {
  readonly endpointId: string
  readonly include: string
  readonly count: number
  /** Where to go on, if there are more than one request sends again. */
  readonly cursor: string
  readonly hasMore: boolean
}

export function renderResent(screen: Screen, { endpointId, include, count, cursor, hasMore }: Resent): Html {
  const { base, formFields, locale } = screen
  const texts = screen.texts.developers
  const title = count === 0 ? texts.onTheWayNone : fill(texts.onTheWay, { count: showCount(locale, count) })
  const goOn = html`<p>${texts.moreToSend}</p>
<form method="post" action="${base}/developers/endpoints/resend">${formFields}
${renderHidden('endpointId', endpointId)}${renderHidden('include', include)}
${renderHidden('after', cursor)}<button>${texts.goOn}</button></form>`
  const deliveries = withQuery(`${base}/developers/deliveries`, { endpoint: endpointId })
  return html`<h1>${title}</h1>
${hasMore && goOn}
<p><a href="${deliveries}">${texts.seeDeliveries}</a></p>`
}

export type DeliveryList = {
  readonly filter: { readonly endpoint: string; readonly state: string; readonly type: string }
  /** Where this page begins and the next one does; null for the first and the last. */
  readonly before: string | null
  readonly next: string | null
  /** The endpoints whose deliveries are listed. */
  readonly ids: readonly string[]
  readonly endpoints: readonly WebhookEndpoint[]
  readonly deliveries: readonly RecentDelivery[]
}

export function renderDeliveryList(screen: Screen, list: DeliveryList): Html {
  const texts = screen.texts.developers
  const { filter, before, next, ids, endpoints, deliveries } = list
  const { endpoint, state, type } = filter
  const path = `${screen.base}/developers/deliveries`
  const choices = {
    endpoint: [['', texts.allEndpoints], ...endpoints.map(({ id, url }) => [id, url] as const)],
    state: [['', texts.allStates], ...states.map((each) => [each, texts.states[each]] as const)],
    type: [['', texts.allTypes], ...eventTypes.map((each) => [each, each] as const)],
  } as const
  const isFiltered = state !== '' || type !== '' || before !== null
  const nothing = isFiltered ? texts.noneFound : texts.noDeliveries
  const further = deliveries.length === 0 ? texts.lookFurther : texts.older
  return html`${renderTabs(screen, 'deliveries')}
<section class="pane"><form class="find" action="${path}">
${renderSelect('endpoint', texts.endpoint, endpoint, choices.endpoint)}
${renderSelect('state', texts.answer, state, choices.state)}
${renderSelect('type', texts.event, type, choices.type)}
<button class="quiet">${texts.show}</button></form></section>
${
  deliveries.length > 0
    ? renderDeliveries(screen, deliveries, endpoints)
    : html`<div class="pane"><p class="empty">${nothing}</p></div>`
}
${renderFurther(
  before === null ? null : { href: withQuery(path, filter), text: texts.newest },
  next === null ? null : { href: withQuery(path, { ...filter, before: next }), text: further },
)}
${ids.length > 0 && renderDeliveriesLine(screen, ids, { state, type, cursor: before })}`
}

/** For several endpoints by curl's own list in braces. */
function renderDeliveriesLine(
  screen: Screen,
  endpointIds: readonly string[],
  query: Readonly<Record<string, string | null>>,
): Html | null {
  const ids = endpointIds.length === 1 ? endpointIds[0] : `{${endpointIds.join(',')}}`
  const path = withQuery(`/webhook-endpoints/${ids}/deliveries`, { limit: `${deliveriesPerPage}`, ...query })
  return renderApiLine(screen, { path })
}

/** Deliveries in a table, each with its last answer and a way to send it again. */
export function renderDeliveries(
  screen: Screen,
  deliveries: readonly RecentDelivery[],
  endpoints: readonly WebhookEndpoint[],
): Html {
  const texts = screen.texts.developers
  const byId = new Map(endpoints.map((each) => [each.id, each]))
  const rows = deliveries.map((each) => renderRow(screen, each, byId.get(each.endpointId) ?? null))
  const action = html`<span class="unseen">${texts.action}</span>`
  const columns = [texts.event, texts.endpoint, texts.answer, { number: texts.time }, action]
  return renderTable(columns, rows, texts.deliveries)
}

function renderRow(screen: Screen, delivery: RecentDelivery, endpoint: WebhookEndpoint | null): Html {
  const { base } = screen
  const texts = screen.texts.developers
  const { id, type, createdAt, state, tries } = delivery
  const button = html`<button class="quiet tiny">${texts.resend}<span class="unseen"> ${type} ${id}</span></button>`
  return html`<tr><td class="c1"><a href="${base}/developers/deliveries/${id}"><code>${type}</code></a></td>
<td class="soft wraps">${endpoint ? showUrl(endpoint.url) : texts.deletedEndpoint}</td>
<td class="c3">${renderState(screen, state, tries > 0)} ${renderAnswer(screen, delivery)}</td>
<td class="c4 num soft">${at(screen, createdAt)}</td>
<td class="c2 num">${mayResend(screen, endpoint) && renderAgain(screen, id, button)}</td></tr>`
}

function mayResend({ may }: Screen, endpoint: WebhookEndpoint | null): boolean {
  return may('webhooks:resend') && endpoint?.status === 'enabled'
}

/** Sends one delivery again. */
function renderAgain({ base, formFields }: Screen, deliveryId: string, button: Html): Html {
  return html`<form method="post" action="${base}/developers/deliveries/resend">${formFields}
${renderHidden('deliveryId', deliveryId)}${button}</form>`
}

/** One that waits after a try is failing. */
function renderState({ texts }: Screen, state: Delivery['state'], isTried: boolean): Html {
  if (state === 'pending' && isTried) return renderChip(texts.developers.failing, 'bad')
  const tones = { pending: 'busy', delivered: 'good', undeliverable: 'bad' } as const
  return renderChip(texts.developers.states[state], tones[state])
}

type Answer = Pick<DeliveryAttempt, 'status' | 'error' | 'durationMs'> & { readonly tries?: number }

/** What the endpoint answered: its status, or why there is none. */
function renderAnswer(screen: Screen, { status, error, durationMs, tries = 0 }: Answer): Html {
  const { locale } = screen
  const texts = screen.texts.developers
  if (status === null && error === null) return html`<span class="soft">${texts.notTried}</span>`
  const what = status === null ? (error === 'interrupted' ? texts.interrupted : error) : `${status}`
  const count = tries > 1 && fill(texts.tries, { count: showCount(locale, tries) })
  const took = durationMs !== null && fill(texts.milliseconds, { count: showCount(locale, durationMs) })
  return html`<bdi>${what}</bdi> <span class="soft">${count || took}</span>`
}

export type OneDelivery = {
  readonly delivery: Delivery
  readonly event: Event
  /** Null once it was deleted. */
  readonly endpoint: WebhookEndpoint | null
}

export function renderDelivery(screen: Screen, { delivery, event, endpoint }: OneDelivery): Html {
  const { base, now } = screen
  const texts = screen.texts.developers
  const { id, attempts, nextTryAt } = delivery
  const back = { href: `${base}/developers/deliveries`, text: texts.deliveries }
  const where = endpoint
    ? html`<a href="${base}/developers/endpoints/${endpoint.id}">${showUrl(endpoint.url)}</a>`
    : texts.deletedEndpoint
  const isToCome = nextTryAt !== null && new Date(nextTryAt) > now
  const next = isToCome && fill(texts.nextTry, { time: exactly(screen, nextTryAt) })
  const state = html`${renderState(screen, delivery.state, delivery.tries > 0)} ${where}`
  const isResendable = mayResend(screen, endpoint)
  const line = isResendable
    ? { method: 'POST', path: `/deliveries/${id}/redeliver` }
    : { path: `/deliveries/${id}` }
  return html`${renderSubhead(html`<code>${delivery.eventType}</code>`, back)}
<section class="pane"><div class="row apart"><p>${state}${next && html` <span class="soft">${next}</span>`}</p>
${isResendable && renderAgain(screen, id, html`<button>${texts.resend}</button>`)}</div></section>
<section class="pane"><h2>${texts.attempts}</h2>
${attempts.length === 0 && html`<p class="soft">${texts.notTried}</p>`}
<ul class="list tall">${attempts.map((attempt) => renderAttempt(screen, attempt))}</ul></section>
<section class="pane"><h2>${texts.request}</h2>
<p class="soft">${texts.requestAbout}</p>${renderRequest(screen, event, endpoint, attempts[0]?.startedAt)}
<p><a href="${base}/developers/events/${delivery.eventId}">${texts.event}</a></p></section>
${renderApiLine(screen, line)}`
}

function renderAttempt(screen: Screen, attempt: DeliveryAttempt): Html {
  const number = fill(screen.texts.developers.attempt, { number: `${attempt.attempt}` })
  const said = html`<span><b>${number}</b> ${renderAnswer(screen, attempt)}</span>`
  const answer = attempt.answer ?? ''
  return html`<li><p class="row apart">${said}${exactly(screen, attempt.startedAt)}</p>${
    answer !== '' && renderText(answer)
  }</li>`
}

/** The request as it was sent, except for its signature. */
function renderRequest(
  { store: { mode }, texts: { developers: texts } }: Screen,
  event: Event,
  endpoint: WebhookEndpoint | null,
  sentAt: string | undefined,
): Html {
  const format = endpoint?.format ?? 'json'
  const body = format === 'json' ? bodyOf(event) : chatBody(format, event, mode)
  const url = endpoint ? new URL(endpoint.url) : null
  const headers = {
    ...(url && { host: url.host }),
    ...webhookHeaders,
    'content-length': `${Buffer.byteLength(body)}`,
    ...(format === 'json' && {
      'webhook-id': event.id,
      ...(sentAt !== undefined && { 'webhook-timestamp': `${Math.floor(Date.parse(sentAt) / 1_000)}` }),
      'webhook-signature': texts.signature,
    }),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return renderText([`POST ${url ? url.pathname + url.search : '/'}`, ...lines, '', body].join('\n'))
}
