import type { Event, EventType } from '@farthing/sdk'
import { nameOf } from '../../../checkouts/checkout.ts'
import type { LookedBack } from '../../../events/read.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { at, renderFurther } from '../developers/tabs.ts'
import { showCount } from '../formats.ts'
import { renderApiLine, renderHead, renderSelect } from '../parts.ts'
import { type Screen, withQuery } from '../screen.ts'
import { nameActor } from '../wallets/news.ts'

export const kinds = [
  ...(['checkout', 'payment', 'refund', 'store', 'wallet', 'key'] as const),
  ...(['member', 'webhook_endpoint'] as const),
]
export const perPage = 25
/** The API's largest page. */
const eventsPerCall = 100

/** Members or keys that may have done something. */
export type Group = {
  readonly label: string
  readonly people: readonly { readonly id: string; readonly name: string }[]
}

export type Activity = {
  readonly actor: string
  readonly kind: (typeof kinds)[number] | ''
  /** The number of the newest event of this page; null for the first page. */
  readonly to: bigint | null
  readonly people: readonly Group[]
  readonly looked: LookedBack
}

export function renderActivity(screen: Screen, activity: Activity): Html {
  const { actor, kind, people, looked } = activity
  const { events } = looked
  const texts = screen.texts.activity
  const path = `${screen.base}/activity`
  const options = [['', texts.anything], ...kinds.map((each) => [each, texts.kinds[each]] as const)] as const
  const none = html`<div class="pane"><p class="empty">${looked.to === 0n ? texts.empty : texts.none}</p></div>`
  const list = html`<section class="pane"><ul class="things">
${events.map((event) => renderEvent(screen, event))}</ul></section>`
  return html`${renderHead(texts.title, { about: texts.about })}
<section class="pane"><form class="find" action="${path}">
<select name="actor" aria-label="${texts.who}"><option value="">${texts.anybody}</option>
${renderPeople(people, actor)}</select>
${renderSelect('kind', texts.what, kind, options)}
<button class="quiet">${texts.show}</button></form></section>
${events.length > 0 ? list : none}
${renderRest(screen, activity, path)}
${renderActivityLine(screen, activity)}`
}

/** The part of the log that this page searched, and links to go on. */
function renderRest({ texts, locale }: Screen, activity: Activity, path: string): Html | null {
  const { actor, kind, to, looked } = activity
  const { looked: about, newest, lookFurther, older } = texts.activity
  const { next } = looked
  if (next === null && to === null) return null
  const span = { from: showCount(locale, looked.from), to: showCount(locale, looked.to) }
  const further = looked.events.length < perPage ? lookFurther : older
  return html`<section class="pane"><p class="soft">${fill(about, span)}</p></section>
${renderFurther(
  to === null ? null : { href: withQuery(path, { actor, kind }), text: newest },
  next === null ? null : { href: withQuery(path, { actor, kind, to: `${next}` }), text: further },
)}`
}

function renderActivityLine(
  screen: Screen,
  { actor, kind, looked: { epoch, from, to } }: Activity,
): Html | null {
  const count = to - from + 1n
  const limit = `${count > eventsPerCall ? eventsPerCall : count > 0n ? count : 1n}`
  const type = kind === '' ? null : `${kind}.*`
  return renderApiLine(screen, {
    path: withQuery('/events', { after: `${epoch}-${from - 1n}`, limit, type, actor }),
  })
}

/** An actor that is in the address but left long ago is named by their id. */
function renderPeople(groups: readonly Group[], actor: string): Html {
  const option = ({ id, name }: Group['people'][number]) =>
    html`<option value="${id}"${id === actor && html` selected`}>${name}</option>`
  const isListed = actor === '' || groups.some(({ people }) => people.some(({ id }) => id === actor))
  return html`${!isListed && option({ id: actor, name: actor })}${groups.map(
    ({ label, people }) =>
      people.length > 0 && html`<optgroup label="${label}">${people.map(option)}</optgroup>`,
  )}`
}

function renderEvent(screen: Screen, { id, type, actor, data, createdAt }: Event): Html {
  const texts = screen.texts.activity
  const sentences: Readonly<Partial<Record<EventType, string>>> = texts.sentences
  const sentence = fill(sentences[type] ?? texts.other, {
    who: actor ? html`<b>${nameActor(actor, screen.texts)}</b>` : '',
    what: html`<bdi>${nameSubject(data)}</bdi>`,
    role: 'member' in data ? screen.texts.frame.roles[data.member.role] : '',
    type,
  })
  const details = html`${texts.details}<span class="unseen"> ${type} ${createdAt}</span>`
  return html`<li><p>${sentence}<small>${at(screen, createdAt)}</small></p>
<a class="button quiet tiny" href="${screen.base}/developers/events/${id}">${details}</a></li>`
}

/** The name of an event's subject. */
function nameSubject(data: Event['data']): string {
  if ('payment' in data) return data.payment.id
  if ('checkout' in data) return nameOf(data.checkout)
  if ('refund' in data) return data.refund.orderId ?? data.refund.id
  if ('wallet' in data) return data.wallet.walletAddress
  if ('key' in data) return data.key.label ?? data.key.id
  if ('member' in data) return data.member.name
  if ('webhookEndpoint' in data) return data.webhookEndpoint.url
  return 'store' in data ? data.store.name : ''
}
