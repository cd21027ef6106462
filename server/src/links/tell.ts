import type { Actor, EventType } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import { type Link, linkToWire } from './link.ts'
import { noteEvent } from './rows.ts'

type LinkEvent = Extract<EventType, `link.${string}`>

/** Writes an event about a link, as it is now, in the transaction that changed it. */
export async function tellOfLink(
  ctx: Context,
  tx: Transaction,
  link: Link,
  { type, actor, now }: { readonly type: LinkEvent; readonly actor: Actor | null; readonly now: Date },
): Promise<void> {
  const event = newEvent(ctx, link.storeId, actor, { type, data: { link: linkToWire(ctx, link) } }, now)
  await appendEvent(tx, event)
  await noteEvent(tx, link.id, event.event_id)
}
