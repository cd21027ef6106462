import type { Actor, UpdateLink, Link as Wire } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { isId, type StoreId } from '../../ids.ts'
import { checkFields, checkPrice, readPrice } from '../../links/check.ts'
import { type Link, linkToWire } from '../../links/link.ts'
import { lockLink, writeLink } from '../../links/rows.ts'
import { tellOfLink } from '../../links/tell.ts'
import { invalid, type Mistake, Problem } from '../../problems.ts'
import { cancelOpenOf } from './cancel-open.ts'

/** Only these fields of an invoice may change. */
const mayChange = new Set(['until', 'metadata', 'status'])

/**
 * Changes a link, or closes it. A change of the terms cancels the checkouts whose payment has not begun, so that buyers
 * who open the link again see the new terms.
 */
export async function updateLink(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  { linkId, input }: { readonly linkId: string; readonly input: UpdateLink },
  now: Date,
): Promise<Wire> {
  return await ctx.db.transaction(async (tx) => {
    const link = isId('lnk', linkId) ? await lockLink(tx, storeId, linkId) : null
    if (!link) throw new Problem('not_found', 'No such link.')
    const changed = change(link, input, now)
    if (isSame(link, changed)) return linkToWire(ctx, link)
    await writeLink(tx, changed)
    const isClosing = link.closedAt === null && changed.closedAt !== null
    if (isClosing || link.revision !== changed.revision) await cancelOpenOf(ctx, tx, [link.id], actor, now)
    const type = isClosing ? 'link.closed' : 'link.updated'
    await tellOfLink(ctx, tx, changed, { type, actor, now })
    return linkToWire(ctx, changed)
  })
}

function change(link: Link, input: UpdateLink, now: Date): Link {
  const hasPrice = [input.priceAmount, input.minAmount, input.maxAmount].some((each) => each !== undefined)
  const mistakes: Mistake[] = [
    ...checkFields(input, now),
    ...(hasPrice ? checkPrice(input) : []),
    ...(link.invoice ? refuseFixed(input) : []),
  ]
  if (mistakes.length > 0) throw invalid(...mistakes)
  const { title, description, until, metadata, status } = input
  const shown = {
    title: title ?? link.title,
    description: description === undefined ? link.description : description,
    price: hasPrice ? readPrice(input, link.priceCurrency) : link.price,
  }
  const untilAt = until === undefined ? link.until : new Date(until)
  return {
    ...link,
    ...shown,
    until: untilAt,
    isOver: until === undefined ? link.isOver : untilAt <= now,
    metadata: metadata === undefined ? link.metadata : Object.keys(metadata).length > 0 ? metadata : null,
    closedAt: status === 'CLOSED' ? (link.closedAt ?? now) : link.closedAt,
    revision: link.revision + (isSame({ ...link, ...shown }, link) ? 0 : 1),
  }
}

function isSame(one: Link, other: Link): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function refuseFixed(input: UpdateLink): Mistake[] {
  return Object.keys(input)
    .filter((name) => !mayChange.has(name))
    .map((name) => ({
      pointer: `/${name}`,
      code: 'fixed',
      detail: 'An invoice never changes. Close the link, and create one with the next number.',
    }))
}
