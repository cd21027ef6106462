import type { DeliveryAttempt, Event, WebhookEndpoint } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { eventToWire } from '../../../events/read.ts'
import { readEvent } from '../../../events/rows.ts'
import { readDelivery, redeliver } from '../../../events/webhooks/deliveries.ts'
import { listEndpoints } from '../../../events/webhooks/endpoints.ts'
import { readRecent } from '../../../events/webhooks/recent.ts'
import { bodyOf, webhookHeaders } from '../../../events/webhooks/request.ts'
import { isId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import { eventTypes } from '../../api/event-types.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { renderApiLine, renderSelect } from '../parts.ts'
import { inWords, openScreen, type Screen, withQuery } from '../screen.ts'
import { renderAnswer, renderDeliveries, renderState } from './delivery-list.ts'
import { exactly, renderSubhead, renderTabs, renderText, showUrl } from './parts.ts'

const path = '/stores/:storeId/developers/deliveries'
const read = { config: { right: 'developers:read' } } as const
const resend = { config: { right: 'webhooks:resend' } } as const
/** A screen's worth. */
const perPage = 25
/** A store has fewer endpoints. */
const endpointsMax = 100
const states = ['pending', 'delivered', 'undeliverable'] as const

export async function listAllEndpoints({ ctx, storeId }: Screen): Promise<WebhookEndpoint[]> {
  return (await listEndpoints(ctx, storeId, { cursor: null, limit: endpointsMax })).data
}

/** What was sent where, and what came back. */
export function mountDeliveries(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, read, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { base } = screen
    const texts = screen.texts.developers
    const endpoints = await listAllEndpoints(screen)
    const endpoint = endpoints.find(({ id }) => id === screen.asked('endpoint'))?.id ?? ''
    const state = states.find((each) => each === screen.asked('state')) ?? ''
    const type = eventTypes.find((each) => each === screen.asked('type')) ?? ''
    const before = isId('evt', screen.asked('before')) ? screen.asked('before') : null
    const ids = endpoint === '' ? endpoints.map(({ id }) => id) : [endpoint]
    const { deliveries, next } = await readRecent(screen.ctx, screen.storeId, ids, {
      ...{ state: state || null, type: type || null, before, limit: perPage },
    })
    const filter = { endpoint, state, type }
    const choices = {
      endpoint: [['', texts.allEndpoints], ...endpoints.map(({ id, url }) => [id, url] as const)],
      state: [['', texts.allStates], ...states.map((each) => [each, texts.states[each]] as const)],
      type: [['', texts.allTypes], ...eventTypes.map((each) => [each, each] as const)],
    } as const
    const isFiltered = state !== '' || type !== '' || before !== null
    return screen.send({
      screen: 'developers',
      title: texts.deliveries,
      isLive: before === null,
      main: html`${renderTabs(screen, 'deliveries')}
<section class="pane"><form class="find" action="${base}/developers/deliveries">
${renderSelect('endpoint', texts.endpoint, endpoint, choices.endpoint)}
${renderSelect('state', texts.answer, state, choices.state)}
${renderSelect('type', texts.event, type, choices.type)}
<button class="quiet">${texts.show}</button></form></section>
${
  deliveries.length > 0
    ? renderDeliveries(screen, deliveries, endpoints)
    : html`<div class="pane"><p class="empty">${isFiltered ? texts.noneFound : texts.noDeliveries}</p></div>`
}
${
  (next ?? before) !== null &&
  html`<section class="pane row">${
    before !== null &&
    html`<a class="filter" href="${withQuery(`${base}/developers/deliveries`, filter)}">${texts.newest}</a>`
  }${
    next !== null &&
    html`<a class="filter" href="${withQuery(`${base}/developers/deliveries`, {
      ...filter,
      before: next,
    })}">${deliveries.length === 0 ? texts.lookFurther : texts.older}</a>`
  }</section>`
}
${ids.length > 0 && renderDeliveriesLine(screen, ids, { state, type, cursor: before })}`,
    })
  })

  scope.get(`${path}/:deliveryId`, read, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { base, storeFields: form, may } = screen
    const texts = screen.texts.developers
    const deliveryId = screen.part('deliveryId')
    const delivery = await inWords(screen.texts.developers.problems, () =>
      readDelivery(screen.ctx, screen.storeId, deliveryId),
    )
    const [row, endpoints] = await Promise.all([
      readEvent(screen.ctx.db, screen.storeId, delivery.eventId),
      listAllEndpoints(screen),
    ])
    if (!row) throw new Refusal('not_found')
    const endpoint = endpoints.find(({ id }) => id === delivery.endpointId)
    const isResendable = may('webhooks:resend') && endpoint?.status === 'enabled'
    return screen.send({
      screen: 'developers',
      title: texts.delivery,
      isLive: true,
      main: html`${renderSubhead(html`<code>${delivery.eventType}</code>`, {
        href: `${base}/developers/deliveries`,
        text: texts.deliveries,
      })}
<section class="pane"><div class="row apart"><p>${renderState(screen, delivery.state, delivery.tries > 0)} ${
        endpoint
          ? html`<a href="${base}/developers/endpoints/${endpoint.id}">${showUrl(endpoint.url)}</a>`
          : texts.deletedEndpoint
      }${
        delivery.nextTryAt !== null &&
        new Date(delivery.nextTryAt) > ctx.now() &&
        html` <span class="soft">${fill(texts.nextTry, { time: exactly(screen, delivery.nextTryAt) })}</span>`
      }</p>
${
  isResendable &&
  html`<form method="post" action="${base}/developers/deliveries/resend">${form}
<input type="hidden" name="deliveryId" value="${delivery.id}"><button>${texts.resend}</button></form>`
}</div></section>
<section class="pane"><h2>${texts.attempts}</h2>${
        delivery.attempts.length === 0 && html`<p class="soft">${texts.notTried}</p>`
      }<ul class="list tall">${delivery.attempts.map((attempt) => renderAttempt(screen, attempt))}</ul></section>
<section class="pane"><h2>${texts.request}</h2>
<p class="soft">${texts.requestAbout}</p>${renderRequest(
        screen,
        eventToWire(row),
        endpoint,
        delivery.attempts[0]?.startedAt,
      )}
<p><a href="${base}/developers/events/${delivery.eventId}">${texts.event}</a></p></section>
${
  isResendable
    ? renderApiLine(screen, {
        method: 'POST',
        path: `/deliveries/${delivery.id}/redeliver`,
      })
    : renderApiLine(screen, { path: `/deliveries/${delivery.id}` })
}`,
    })
  })

  scope.post(`${path}/resend`, resend, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { act, storeId } = screen
    const deliveryId = screen.field('deliveryId')
    await inWords(screen.texts.developers.problems, () =>
      act((acting) => redeliver(acting.ctx, storeId, deliveryId)),
    )
    return screen.go(`/developers/deliveries/${deliveryId}`)
  })
}

function renderAttempt(screen: Screen, attempt: DeliveryAttempt): Html {
  const number = fill(screen.texts.developers.attempt, { number: `${attempt.attempt}` })
  const said = html`<span><b>${number}</b> ${renderAnswer(screen, attempt)}</span>`
  return html`<li><p class="row apart">${said}${exactly(screen, attempt.startedAt)}</p>${
    attempt.answer !== null && attempt.answer !== '' && renderText(attempt.answer)
  }</li>`
}

/** For several endpoints by curl's own list in braces. */
function renderDeliveriesLine(
  screen: Screen,
  endpointIds: readonly string[],
  query: Readonly<Record<string, string | null>>,
): Html {
  const ids = endpointIds.length === 1 ? endpointIds[0] : `{${endpointIds.join(',')}}`
  const path = withQuery(`/webhook-endpoints/${ids}/deliveries`, { limit: `${perPage}`, ...query })
  return renderApiLine(screen, { path })
}

function renderRequest(
  { texts: { developers: texts } }: Screen,
  event: Event,
  endpoint: WebhookEndpoint | undefined,
  sentAt: string | undefined,
): Html {
  const body = bodyOf(event)
  const url = endpoint ? new URL(endpoint.url) : null
  const headers = {
    ...(url && { host: url.host }),
    ...webhookHeaders,
    'content-length': `${Buffer.byteLength(body)}`,
    'webhook-id': event.id,
    ...(sentAt !== undefined && { 'webhook-timestamp': `${Math.floor(Date.parse(sentAt) / 1_000)}` }),
    'webhook-signature': texts.signature,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return renderText([`POST ${url ? url.pathname + url.search : '/'}`, ...lines, '', body].join('\n'))
}
