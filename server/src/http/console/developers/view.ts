import type { Event, Scope, WebhookEndpoint } from '@farthing/sdk'
import type { LookedBack } from '../../../events/read.ts'
import type { Backlog, RecentDelivery } from '../../../events/webhooks/recent.ts'
import { mayMakeKeys } from '../../../members/rights.ts'
import { scopes, subjects } from '../../../stores/scopes.ts'
import type { Key } from '../../../stores/store.ts'
import { eventTypes } from '../../api/event-types.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showShort } from '../formats.ts'
import {
  renderApiLine,
  renderChip,
  renderChoice,
  renderField,
  renderHidden,
  renderOptions,
  renderSelect,
  renderTable,
} from '../parts.ts'
import { type Screen, withQuery } from '../screen.ts'
import { nameActor } from '../wallets/news.ts'
import { at, backOf, exactly, renderFurther, renderSubhead, renderTabs, renderText } from './tabs.ts'
import { renderDeliveries, renderEndpoints } from './webhooks/view.ts'

/** As many as a store can have in use. Revoked ones are on further pages. */
export const keysPerPage = 50
/** A screen's worth, and less than the API's largest page. */
export const eventsPerPage = 50

export type Index = {
  readonly keys: readonly Key[]
  /** Where this page of keys and the next one begin; null for the first page, and if there is no next one. */
  readonly cursor: string | null
  readonly next: string | null
  readonly endpoints: readonly WebhookEndpoint[]
  readonly backlogs: readonly Backlog[]
  /** The latest few. */
  readonly deliveries: readonly RecentDelivery[]
}

/** The first tab: keys, endpoints, and what was delivered last. */
export function renderIndex(screen: Screen, index: Index): Html {
  const { base, may } = screen
  const texts = screen.texts.developers
  const { keys, cursor, next, endpoints, backlogs, deliveries } = index
  const newKey = html`<a class="button" href="${base}/developers/keys/new">${texts.newKey}</a>`
  const owners = may('keys:write') && !mayMake(screen) && html` ${texts.ownersMake}`
  const add = html`<a class="button quiet" href="${base}/developers/endpoints/new">${texts.addEndpoint}</a>`
  const latest = html`<section class="pane row apart"><h2>${texts.latest}</h2>
<a href="${base}/developers/deliveries">${texts.tabs.deliveries}</a></section>`
  return html`${renderTabs(screen, 'keys')}
<section class="pane" id="keys"><div class="row apart"><div><h2>${texts.keys}</h2>
<p class="soft">${texts.keysAbout}${owners}</p></div>${mayMake(screen) && newKey}</div></section>
${renderKeys(screen, keys)}
${renderFurther(
  cursor === null ? null : { href: `${base}/developers`, text: texts.newest },
  next === null ? null : { href: withQuery(`${base}/developers`, { keys: next }), text: texts.older },
)}
${renderApiLine(screen, { path: withQuery('/keys', { limit: `${keysPerPage}`, cursor }) }, 'keys')}
<section class="pane" id="endpoints"><div class="row apart"><div><h2>${texts.endpoints}</h2>
<p class="soft">${texts.endpointsAbout}</p></div>${may('webhooks:write') && add}</div>
${renderEndpoints(screen, endpoints, backlogs)}</section>
${renderApiLine(screen, { path: '/webhook-endpoints?limit=100' }, 'endpoints')}
${deliveries.length > 0 && html`${latest}${renderDeliveries(screen, deliveries, endpoints)}`}`
}

export function mayMake({ store: { role, mode } }: Screen): boolean {
  return mayMakeKeys(role, mode)
}

export function renderNewKey(screen: Screen): Html {
  const texts = screen.texts.developers
  const body = { label: texts.labelExample, preset: 'create' }
  return html`${renderSubhead(texts.newKey, backOf(screen))}
<section class="pane">${renderKeyForm(screen)}</section>
${renderApiLine(screen, { method: 'POST', path: '/keys', body })}`
}

function renderKeyForm({ base, formFields, texts: { developers: texts } }: Screen): Html {
  const presets = (['create', 'read', 'full', 'scopes'] as const).map((preset) => {
    const { name: title, about: text } = texts.presets[preset]
    return renderChoice('preset', preset, preset === 'create', { title, text })
  })
  const levels = (['none', 'read', 'write'] as const).map((level) => [level, texts.levels[level]] as const)
  const subject = (each: (typeof subjects)[number]) =>
    html`<label><span>${texts.subjects[each]}</span>
<select name="${each}">${renderOptions('', levels)}</select></label>`
  const label = { maxlength: 100, placeholder: texts.labelExample, autocomplete: 'off' }
  const addresses = { maxlength: 1_000, autocomplete: 'off', spellcheck: 'false' }
  return html`<form method="post" action="${base}/developers/keys" data-confirm="key.create" class="fields">
${formFields}${renderField(texts.label, 'label', label)}
<fieldset><legend>${texts.may}</legend>${presets}</fieldset>
<fieldset class="scopes"><legend>${texts.presets.scopes.name}</legend>${subjects.map(subject)}</fieldset>
${renderField(texts.addresses, 'addresses', addresses, texts.addressesAbout)}
<div class="buttons"><button>${texts.makeKey}</button>
<a class="button quiet" href="${base}/developers">${texts.cancel}</a></div>
</form>`
}

/** The store's keys, with a way to revoke each. */
function renderKeys(screen: Screen, keys: readonly Key[]): Html {
  const texts = screen.texts.developers
  if (keys.length === 0) return html`<div class="pane"><p class="empty">${texts.noKeys}</p></div>`
  const action = html`<span class="unseen">${texts.action}</span>`
  const rows = keys.map((key) => renderKey(screen, key))
  return renderTable([texts.key, texts.may, texts.lastUsed, action], rows, texts.keys)
}

function renderKey(screen: Screen, key: Key): Html {
  const { base, formFields, store, now } = screen
  const texts = screen.texts.developers
  const { id, label, addresses, lastUsedAt, expiresAt, revokedAt } = key
  const isOver = revokedAt !== null || (expiresAt !== null && expiresAt <= now)
  const state = revokedAt
    ? fill(texts.revoked, { time: at(screen, revokedAt) })
    : expiresAt && fill(isOver ? texts.expired : texts.expires, { time: at(screen, expiresAt) })
  const name = label ?? texts.unnamed
  const shown = html`<code class="soft" title="${id}">sk_${store.mode}_${id.slice(0, 8)}…</code>`
  const from = addresses.length > 0 && fill(texts.from, { addresses: addresses.join(', ') })
  const revoke = html`<form method="post" action="${base}/developers/keys/revoke" data-confirm="key.revoke">
${formFields}${renderHidden('keyId', id)}
<button class="quiet tiny">${texts.revoke}<span class="unseen"> ${name}</span></button></form>`
  return html`<tr><td class="c1"><b>${name}</b> ${shown}${
    state && html` ${renderChip(state, isOver ? 'bad' : '')}`
  }</td>
<td class="c3 wraps">${renderScopes(screen, key)}${from && html` <span class="soft">${from}</span>`}</td>
<td class="c4 soft">${lastUsedAt ? at(screen, lastUsedAt) : texts.neverUsed}</td>
<td class="c2 num">${screen.may('keys:write') && !isOver && revoke}</td></tr>`
}

/** By the name of a preset if it equals one. If a key may change something it may also read it, so that is left out. */
function renderScopes({ texts: { developers: texts } }: Screen, { scopes: granted }: Key): Html {
  if (granted === null) return renderChip(texts.everything)
  const shown = granted.filter(
    (each) => !granted.includes(each.replace(':read', ':write') as Scope) || each.endsWith(':write'),
  )
  const reads = scopes.filter((each) => each.endsWith(':read'))
  if (shown.length === reads.length && shown.every((each) => reads.includes(each)))
    return renderChip(texts.presets.read.name)
  if (shown.length === 1 && shown[0] === 'checkouts:write') return renderChip(texts.presets.create.name)
  return html`${shown.map((each) => html`${renderChip(each)} `)}`
}

/** All types of one kind, then each. */
export const typeChoices = [
  ...new Set(eventTypes.map((type) => `${type.slice(0, type.indexOf('.'))}.*`)),
  ...eventTypes,
].sort()

export type Events = {
  readonly type: string
  /** The id of a checkout or payment, as it was typed. */
  readonly about: string
  readonly checkoutId: string | null
  /** The number of the newest event of this page; null for the first page. */
  readonly to: bigint | null
  /** Null if there is no such checkout. */
  readonly looked: LookedBack | null
}

export function renderEvents(screen: Screen, { type, about, checkoutId, to, looked }: Events): Html {
  const { base } = screen
  const texts = screen.texts.developers
  const path = `${base}/developers/events`
  const filter = { type, about }
  const isFiltered = type !== '' || about !== '' || to !== null
  const types = [['', texts.allTypes], ...typeChoices.map((each) => [each, each] as const)] as const
  const events = looked?.events ?? []
  const next = looked?.next ?? null
  const nothing = looked === null ? texts.noSuchPayment : isFiltered ? texts.noneFound : texts.noEvents
  const further = events.length === 0 ? texts.lookFurther : texts.older
  return html`${renderTabs(screen, 'events')}
<section class="pane"><p class="soft">${texts.eventsAbout}</p><form class="find" action="${path}">
<input type="search" name="about" value="${about}" placeholder="${texts.aboutWhat}"
aria-label="${texts.aboutWhat}" maxlength="100" autocomplete="off" spellcheck="false">
${renderSelect('type', texts.event, type, types)}
<button class="quiet">${texts.show}</button></form></section>
${
  events.length > 0
    ? renderEventTable(screen, events)
    : html`<div class="pane"><p class="empty">${nothing}</p></div>`
}
${renderFurther(
  to === null ? null : { href: withQuery(path, filter), text: texts.newest },
  next === null ? null : { href: withQuery(path, { ...filter, to: `${next}` }), text: further },
)}
${looked && renderEventsLine(screen, looked, { type, checkoutId })}`
}

/** The API reads the log forwards: the same events, oldest first. */
function renderEventsLine(
  screen: Screen,
  { epoch, from, events }: LookedBack,
  filter: Readonly<Record<string, string | null>>,
): Html | null {
  const limit = `${events.length || eventsPerPage}`
  return renderApiLine(screen, {
    path: withQuery('/events', { after: `${epoch}-${from - 1n}`, limit, ...filter }),
  })
}

function renderEventTable(screen: Screen, events: readonly Event[]): Html {
  const { base } = screen
  const texts = screen.texts.developers
  const row = ({ id, type, checkoutId, actor, createdAt, sequence }: Event) =>
    html`<tr><td class="c1"><a class="whole" href="${base}/developers/events/${id}"><code>${type}</code></a></td>
<td class="c3">${checkoutId !== null && showShort(checkoutId)}</td>
<td class="soft wraps">${actor && nameActor(actor, screen.texts)}</td><td class="num soft">${sequence}</td>
<td class="c2 num soft">${at(screen, createdAt)}</td></tr>`
  return renderTable(
    [texts.event, texts.about, texts.by, { number: '#' }, { number: texts.time }],
    events.map(row),
    texts.events,
  )
}

export function renderEvent(screen: Screen, event: Event, epoch: number): Html {
  const texts = screen.texts.developers
  const back = { href: `${screen.base}/developers/events`, text: texts.events }
  const number = fill(texts.number, { number: `${event.sequence}` })
  const who = event.actor && html` · ${nameActor(event.actor, screen.texts)}`
  const same = withQuery('/events', { after: `${epoch}-${event.sequence - 1}`, limit: '1' })
  return html`${renderSubhead(html`<code>${event.type}</code>`, back)}
<section class="pane"><p>${exactly(screen, event.createdAt)}
<span class="soft">· ${number}${who}</span></p>
<h2>${texts.raw}</h2>${renderText(JSON.stringify(event, null, 2))}</section>
${renderApiLine(screen, { path: same })}`
}
