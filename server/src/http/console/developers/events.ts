import type { Event } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { type LookedBack, lookBack } from '../../../events/look-back.ts'
import { eventToWire } from '../../../events/read.ts'
import { readEvent, readLogEnd } from '../../../events/rows.ts'
import { isId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import { findCheckoutOf } from '../../../payments/credits/store-rows.ts'
import { eventTypes } from '../../api/event-types.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showShort } from '../formats.ts'
import { renderApiLine, renderSelect } from '../parts.ts'
import { openScreen, type Screen, withQuery } from '../screen.ts'
import { nameActor } from '../wallet-news.ts'
import { at, exactly, renderSubhead, renderTabs, renderText } from './parts.ts'

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
    const { base } = screen
    const texts = screen.texts.developers
    const type = typeChoices.find((each) => each === screen.asked('type')) ?? ''
    const about = screen.asked('about')
    const checkoutId = await findCheckout(screen, about)
    const to = readNumber(screen.asked('to'))
    const looked =
      checkoutId === null && about !== ''
        ? null
        : await lookBack(
            screen.ctx,
            screen.storeId,
            { type: type || null, checkoutId, actor: null, isByActor: false },
            { to, limit: perPage },
          )
    const filter = { type, about }
    const isFiltered = type !== '' || about !== '' || to !== null
    return screen.send({
      screen: 'developers',
      title: texts.events,
      isLive: to === null,
      main: html`${renderTabs(screen, 'events')}
<section class="pane"><p class="soft">${texts.eventsAbout}</p><form class="find" action="${base}/developers/events">
<input type="search" name="about" value="${about}" placeholder="${texts.aboutWhat}" aria-label="${
        texts.aboutWhat
      }" maxlength="100" autocomplete="off" spellcheck="false">
${renderSelect('type', texts.event, type, [['', texts.allTypes], ...typeChoices.map((each) => [each, each] as const)])}
<button class="quiet">${texts.show}</button></form></section>
${
  looked && looked.events.length > 0
    ? renderEvents(screen, looked.events)
    : html`<div class="pane">
<p class="empty">${looked === null ? texts.noSuchPayment : isFiltered ? texts.noneFound : texts.noEvents}</p></div>`
}
${
  ((looked?.next ?? null) !== null || to !== null) &&
  html`<section class="pane row">${
    to !== null &&
    html`<a class="filter" href="${withQuery(`${base}/developers/events`, filter)}">${texts.newest}</a>`
  }${
    looked !== null &&
    looked.next !== null &&
    html`<a class="filter" href="${withQuery(`${base}/developers/events`, {
      ...filter,
      to: `${looked.next}`,
    })}">${looked.events.length === 0 ? texts.lookFurther : texts.older}</a>`
  }</section>`
}
${looked && renderEventsLine(screen, looked, { type, checkoutId })}`,
    })
  })

  scope.get(`${path}/:eventId`, read, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { base, storeId } = screen
    const texts = screen.texts.developers
    const eventId = screen.part('eventId')
    const [row, { epoch }] = await Promise.all([
      isId('evt', eventId) ? readEvent(screen.ctx.db, storeId, eventId) : null,
      readLogEnd(screen.ctx.db, storeId),
    ])
    if (!row) throw new Refusal('not_found')
    const event = eventToWire(row)
    return screen.send({
      screen: 'developers',
      title: texts.event,
      main: html`${renderSubhead(html`<code>${event.type}</code>`, {
        href: `${base}/developers/events`,
        text: texts.events,
      })}
<section class="pane"><p>${exactly(screen, event.createdAt)}
<span class="soft">· ${fill(texts.number, { number: `${event.sequence}` })}${
        event.actor && html` · ${nameActor(event.actor, screen.texts)}`
      }</span></p>
<h2>${texts.raw}</h2>${renderText(JSON.stringify(event, null, 2))}</section>
${renderApiLine(screen, {
  path: withQuery('/events', { after: `${epoch}-${event.sequence - 1}`, limit: '1' }),
})}`,
    })
  })
}

/** The checkout that was asked for, by its id or by a payment's. */
async function findCheckout({ ctx, storeId }: Screen, about: string): Promise<string | null> {
  if (isId('ch', about)) return about
  return isId('pay', about) ? await findCheckoutOf(ctx.db, storeId, about) : null
}

/** A sequence from the address; null if it is none. */
export function readNumber(text: string): bigint | null {
  return /^[1-9]\d{0,17}$/.test(text) ? BigInt(text) : null
}

/** The API reads the log forwards: the same events, oldest first. */
function renderEventsLine(
  screen: Screen,
  { epoch, from, events }: LookedBack,
  filter: Readonly<Record<string, string | null>>,
): Html {
  const path = withQuery('/events', {
    after: `${epoch}-${from - 1n}`,
    limit: `${events.length || perPage}`,
    ...filter,
  })
  return renderApiLine(screen, { path })
}

function renderEvents(screen: Screen, events: readonly Event[]): Html {
  const { base } = screen
  const texts = screen.texts.developers
  const row = ({ id, type, checkoutId, actor, createdAt, sequence }: Event) =>
    html`<tr><td class="c1"><a class="whole" href="${base}/developers/events/${id}"><code>${type}</code></a></td>
<td class="c3">${checkoutId !== null && showShort(checkoutId)}</td>
<td class="soft">${actor && nameActor(actor, screen.texts)}</td><td class="num soft">${sequence}</td>
<td class="c2 num soft">${at(screen, createdAt)}</td></tr>`
  return html`<div class="table" role="region" aria-label="${texts.events}" tabindex="0"><table class="cards">
<thead><tr><th scope="col">${texts.event}</th><th scope="col">${texts.about}</th><th scope="col">${texts.by}</th>
<th scope="col" class="num">#</th><th scope="col" class="num">${texts.time}</th></tr></thead>
<tbody>${events.map(row)}</tbody></table></div>`
}
