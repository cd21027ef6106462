import type { Event, EventType } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { lookBack } from '../../../events/look-back.ts'
import type { StoreId } from '../../../ids.ts'
import { listStoreMembers } from '../../../members/rows.ts'
import { pageKeys } from '../../../stores/api-keys.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { readNumber } from '../developers/events.ts'
import { at } from '../developers/parts.ts'
import { showCount } from '../formats.ts'
import { renderApiLine, renderHead } from '../parts.ts'
import { openScreen, type Screen, withQuery } from '../screen.ts'
import { nameActor } from '../wallet-news.ts'

const kinds = [
  'checkout',
  'payment',
  'refund',
  'store',
  'wallet',
  'key',
  'member',
  'webhook_endpoint',
] as const
const perPage = 25
/** The API's largest page. */
const eventsPerCall = 100
/** As many as a store can have in use. Older ones can be asked for by their id in the address. */
const keysShown = 100

/**
 * The audit log: what somebody caused, in words. It is the event log, of which most is about checkouts; a page looks
 * through a bounded stretch of it (see look-back.ts) and says how to go on.
 */
export function mountActivity(scope: FastifyInstance, ctx: Context): void {
  scope.get('/stores/:storeId/activity', { config: { right: 'activity:read' } }, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { storeId } = screen
    const texts = screen.texts.activity
    const path = `/stores/${storeId}/activity`
    const actor = screen.asked('actor').replaceAll('\0', '')
    const kind = kinds.find((each) => each === screen.asked('kind')) ?? ''
    const to = readNumber(screen.asked('to'))
    const type = kind === '' ? null : `${kind}.*`
    const [people, looked] = await Promise.all([
      listPeople(ctx, screen, storeId),
      lookBack(
        screen.ctx,
        storeId,
        { type, actor: actor || null, checkoutId: null, isByActor: true },
        { to, limit: perPage },
      ),
    ])
    const { events, epoch, from, next } = looked
    const filter = { actor, kind }
    const span = { from: showCount(screen.locale, from), to: showCount(screen.locale, looked.to) }
    const count = looked.to - from + 1n
    const limit = `${count > eventsPerCall ? eventsPerCall : count > 0n ? count : 1n}`
    return screen.send({
      screen: 'activity',
      title: texts.title,
      isLive: to === null,
      main: html`${renderHead(texts.title, { about: texts.about })}
<section class="pane"><form class="find" action="${path}">
<select name="actor" aria-label="${texts.who}"><option value="">${texts.anybody}</option>${renderPeople(
        people,
        actor,
      )}</select>
<select name="kind" aria-label="${texts.what}"><option value="">${texts.anything}</option>${kinds.map(
        (each) =>
          html`<option value="${each}"${each === kind && html` selected`}>${texts.kinds[each]}</option>`,
      )}</select>
<button class="quiet">${texts.show}</button></form></section>
${
  events.length > 0
    ? html`<section class="pane"><ul class="things">${events.map((event) => renderEvent(screen, event))}</ul></section>`
    : html`<div class="pane"><p class="empty">${looked.to === 0n ? texts.empty : texts.none}</p></div>`
}
${
  (next !== null || to !== null) &&
  html`<section class="pane">
<p class="soft">${fill(texts.looked, span)}</p>
<div class="row">${
    to !== null && html`<a class="filter" href="${withQuery(path, filter)}">${texts.newest}</a>`
  }${
    next !== null &&
    html`<a class="filter" href="${withQuery(path, { ...filter, to: `${next}` })}">${
      events.length < perPage ? texts.lookFurther : texts.older
    }</a>`
  }</div></section>`
}
${renderApiLine(screen, { path: withQuery('/events', { after: `${epoch}-${from - 1n}`, limit, type, actor }) })}`,
    })
  })
}

type Group = {
  readonly label: string
  readonly people: readonly { readonly id: string; readonly name: string }[]
}

async function listPeople(ctx: Context, screen: Screen, storeId: StoreId): Promise<Group[]> {
  const texts = screen.texts.activity
  const [members, keys] = await Promise.all([
    listStoreMembers(ctx.db, storeId),
    pageKeys(screen.ctx.db, storeId, { cursor: null, limit: keysShown }),
  ])
  return [
    { label: texts.members, people: members.map(({ id, name }) => ({ id, name })) },
    { label: texts.keys, people: keys.map(({ id, label }) => ({ id, name: label ?? id })) },
  ]
}

/** Whoever is in the address but left long ago is named by their id. */
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
  const { base } = screen
  const texts = screen.texts.activity
  const sentences: Readonly<Partial<Record<EventType, string>>> = texts.sentences
  const sentence = fill(sentences[type] ?? texts.other, {
    who: actor ? html`<b>${nameActor(actor, screen.texts)}</b>` : '',
    what: html`<bdi>${nameSubject(data)}</bdi>`,
    role: 'member' in data ? screen.texts.frame.roles[data.member.role] : '',
    type,
  })
  return html`<li><p>${sentence}<small>${at(screen, createdAt)}</small></p><a class="button quiet tiny" href="${
    base
  }/developers/events/${id}">${texts.details}<span class="unseen"> ${type} ${createdAt}</span></a></li>`
}

/** What an event is about, as its owner calls it. */
function nameSubject(data: Event['data']): string {
  if ('payment' in data) return data.payment.id
  if ('checkout' in data) return data.checkout.orderId
  if ('refund' in data) return data.refund.orderId ?? data.refund.id
  if ('wallet' in data) return data.wallet.walletAddress
  if ('key' in data) return data.key.label ?? data.key.id
  if ('member' in data) return data.member.name
  if ('webhookEndpoint' in data) return data.webhookEndpoint.url
  return 'store' in data ? data.store.name : ''
}
