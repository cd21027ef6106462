import type { Event } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { type LookedBack, lookBack } from '../../../events/look-back.ts'
import { eventToWire } from '../../../events/read.ts'
import { readEvent, readLogEnd } from '../../../events/rows.ts'
import { isId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import { findCheckoutOf } from '../../../payments/credits/store-rows.ts'
import { eventTypes } from '../../events/schemas.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { showShort } from '../formats.ts'
import { renderApiLine } from '../frame/api-line.ts'
import { languageOf } from '../texts/choose.ts'
import { nameActor } from '../wallet-news.ts'
import {
  asked,
  at,
  exactly,
  openScreen,
  renderHead,
  renderSelect,
  renderSubhead,
  renderText,
  type Screen,
  withQuery,
} from './screen.ts'

const path = '/stores/:storeId/developers/events'
const read = { config: { right: 'developers:read' } } as const
/** A screen's worth, and less than the API's largest page. */
const perPage = 50

/** All types of one kind, then each. */
const typeChoices = [
  ...new Set(eventTypes.map((type) => `${type.slice(0, type.indexOf('.'))}.*`)),
  ...eventTypes,
].sort()

/** The event log, newest first. */
export function mountEvents(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, read, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { texts, base } = screen
    const type = typeChoices.find((each) => each === asked(screen, 'type')) ?? ''
    const about = asked(screen, 'about')
    const checkoutId = await findCheckout(screen, about)
    const to = readNumber(asked(screen, 'to'))
    const looked =
      checkoutId === null && about !== ''
        ? null
        : await lookBack(
            screen.ctx,
            screen.store.storeId,
            { type: type || null, checkoutId, actor: null, isByActor: false },
            { to, limit: perPage },
          )
    const filter = { type, about }
    const isFiltered = type !== '' || about !== '' || to !== null
    return sendPage(ctx, request, reply, {
      screen: 'developers',
      title: texts.events,
      isLive: to === null,
      main: html`${renderHead(screen, 'events')}
<section class="pane"><p class="soft">${texts.eventsAbout}</p><form class="find" action="${base}/events">
<input type="search" name="about" value="${about}" placeholder="${texts.aboutWhat}" aria-label="${texts.aboutWhat}" maxlength="100" autocomplete="off" spellcheck="false">
${renderSelect('type', texts.event, type, [['', texts.allTypes], ...typeChoices.map((each) => [each, each] as const)])}
<button class="quiet">${texts.show}</button></form></section>
${looked && looked.events.length > 0 ? renderEvents(screen, looked.events) : html`<div class="pane"><p class="empty">${looked === null ? texts.noSuchPayment : isFiltered ? texts.noneFound : texts.noEvents}</p></div>`}
${((looked?.next ?? null) !== null || to !== null) && html`<section class="pane row">${to !== null && html`<a class="filter" href="${withQuery(`${base}/events`, filter)}">${texts.newest}</a>`}${looked !== null && looked.next !== null && html`<a class="filter" href="${withQuery(`${base}/events`, { ...filter, to: `${looked.next}` })}">${looked.events.length === 0 ? texts.lookFurther : texts.older}</a>`}</section>`}
${looked && renderEventsLine(screen, looked, { type, checkoutId })}`,
    })
  })

  scope.get(`${path}/:eventId`, read, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { texts, base, store } = screen
    const { eventId } = request.params as { eventId: string }
    const [row, { epoch }] = await Promise.all([
      isId('evt', eventId) ? readEvent(screen.ctx.db, store.storeId, eventId) : null,
      readLogEnd(screen.ctx.db, store.storeId),
    ])
    if (!row) throw new Refusal('not_found')
    const event = eventToWire(row)
    return sendPage(ctx, request, reply, {
      screen: 'developers',
      title: texts.event,
      main: html`${renderSubhead(screen, html`<code>${event.type}</code>`, `${base}/events`, texts.events)}
<section class="pane"><p>${exactly(screen, event.createdAt)} <span class="soft">· ${fill(texts.number, { number: `${event.sequence}` })}${event.actor && html` · ${nameActor(event.actor, languageOf(request))}`}</span></p>
<h2>${texts.raw}</h2>${renderText(JSON.stringify(event, null, 2))}</section>
${renderApiLine(request, ctx.config.baseUrl, {
  path: withQuery('/events', { after: `${epoch}-${event.sequence - 1}`, limit: '1' }),
})}`,
    })
  })
}

/** The checkout that was asked for, by its id or by a payment's. */
async function findCheckout({ ctx, store }: Screen, about: string): Promise<string | null> {
  if (isId('ch', about)) return about
  return isId('pay', about) ? await findCheckoutOf(ctx.db, store.storeId, about) : null
}

/** A sequence from the address; null if it is none. */
export function readNumber(text: string): bigint | null {
  return /^[1-9]\d{0,17}$/.test(text) ? BigInt(text) : null
}

/** The API reads the log forwards: the same events, oldest first. */
function renderEventsLine(
  { request, ctx }: Pick<Screen, 'request' | 'ctx'>,
  { epoch, from, events }: LookedBack,
  filter: Readonly<Record<string, string | null>>,
): Html {
  const path = withQuery('/events', {
    after: `${epoch}-${from - 1n}`,
    limit: `${events.length || perPage}`,
    ...filter,
  })
  return renderApiLine(request, ctx.config.baseUrl, { path })
}

function renderEvents(screen: Screen, events: readonly Event[]): Html {
  const { texts, base, request } = screen
  const row = ({ id, type, checkoutId, actor, createdAt, sequence }: Event) =>
    html`<tr><td class="c1"><a class="whole" href="${base}/events/${id}"><code>${type}</code></a></td><td class="c3">${checkoutId !== null && showShort(checkoutId)}</td><td class="soft">${actor && nameActor(actor, languageOf(request))}</td><td class="num soft">${sequence}</td><td class="c2 num soft">${at(screen, createdAt)}</td></tr>`
  return html`<div class="table" role="region" aria-label="${texts.events}" tabindex="0"><table class="cards">
<thead><tr><th scope="col">${texts.event}</th><th scope="col">${texts.about}</th><th scope="col">${texts.by}</th><th scope="col" class="num">#</th><th scope="col" class="num">${texts.time}</th></tr></thead>
<tbody>${events.map(row)}</tbody></table></div>`
}
