import type { CheckoutStatus } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { CheckoutId, LinkId, StoreId } from '../ids.ts'
import type { Link } from './link.ts'

type Reader = Database | Transaction

export type LinkRow = {
  id: LinkId
  store_id: StoreId
  kind: Link['kind']
  title: string
  description: string | null
  price_amount: string | null
  min_amount: string | null
  max_amount: string | null
  price_currency: string
  invoice: Link['invoice']
  metadata: Record<string, string> | null
  until: Date
  is_over: boolean
  closed_at: Date | null
  paid_at: Date | null
  checkout_id: CheckoutId | null
  made: number
  revision: number
  created_at: Date
}

export type OpenedLink = Link & {
  readonly quoteKey: Buffer
  /** Null if it has no such checkout. */
  readonly sharedStatus: CheckoutStatus | null
}

/** SQL: a LinkRow from `l`. */
export const linkColumns = `l.id, l.store_id, l.kind, l.title, l.description, l.price_amount, l.min_amount, l.max_amount,
  l.price_currency, l.invoice, l.metadata, l.until, l.until <= clock() as is_over, l.closed_at, l.paid_at, l.checkout_id,
  l.made, l.revision, l.created_at`

export async function findLink(db: Reader, storeId: StoreId, linkId: string): Promise<Link | null> {
  const [row] = await db.query<LinkRow>(
    `select ${linkColumns} from links l where l.id = $2 and l.store_id = $1`,
    [storeId, linkId],
  )
  return row ? toLink(row) : null
}

/** Locks a link: no checkout is made for it, and it does not change, until the transaction ends. */
export async function lockLink(tx: Transaction, storeId: StoreId, linkId: string): Promise<Link | null> {
  const [row] = await tx.query<LinkRow>(
    `select ${linkColumns} from links l where l.id = $2 and l.store_id = $1 for no key update`,
    [storeId, linkId],
  )
  return row ? toLink(row) : null
}

/** A link by its id alone, for who opens it, with the status of the checkout that its buyers share. */
export async function readOpened(db: Reader, linkId: string): Promise<OpenedLink | null> {
  const [row] = await db.query<LinkRow & { quote_key: Buffer; shared_status: CheckoutStatus | null }>(
    `select ${linkColumns}, l.quote_key,
       (select c.status from checkouts c where c.id = l.checkout_id) as shared_status
     from links l where l.id = $1`,
    [linkId],
  )
  return row ? { ...toLink(row), quoteKey: row.quote_key, sharedStatus: row.shared_status } : null
}

/** Locks a link for a checkout about to be made. Made and changed only under this lock. */
export async function lockOpened(tx: Transaction, linkId: LinkId): Promise<OpenedLink | null> {
  await holdLink(tx, linkId)
  return await readOpened(tx, linkId)
}

export async function holdLink(tx: Transaction, linkId: LinkId): Promise<void> {
  await tx.query('select 1 as held from links where id = $1 for no key update', [linkId])
}

/** Records that a checkout was made. */
export async function noteMade(tx: Transaction, { id, kind }: Link, checkoutId: CheckoutId): Promise<void> {
  const shared = kind === 'once' ? checkoutId : null
  await tx.query('update links set made = made + 1, checkout_id = $2 where id = $1', [id, shared])
}

/** Records that an event is about the link, so that it is deleted with the link. */
export async function noteEvent(tx: Transaction, linkId: LinkId, eventId: string): Promise<void> {
  await tx.query('update links set event_ids = array_append(event_ids, $2) where id = $1', [linkId, eventId])
}

export function toLink(row: LinkRow): Link {
  return {
    id: row.id,
    storeId: row.store_id,
    kind: row.kind,
    title: row.title,
    description: row.description,
    price:
      row.price_amount === null
        ? { min: row.min_amount ?? '', max: row.max_amount ?? '' }
        : { amount: row.price_amount },
    priceCurrency: row.price_currency,
    invoice: row.invoice,
    metadata: row.metadata,
    until: row.until,
    isOver: row.is_over,
    closedAt: row.closed_at,
    paidAt: row.paid_at,
    checkoutId: row.checkout_id,
    made: row.made,
    revision: row.revision,
    createdAt: row.created_at,
  }
}

/** Writes what a store may change. */
export async function writeLink(
  tx: Transaction,
  { id, title, description, price, metadata, until, closedAt, revision }: Link,
): Promise<void> {
  await tx.query(
    `update links set title = $2, description = $3, price_amount = $4, min_amount = $5, max_amount = $6, metadata = $7,
       until = $8, closed_at = $9, revision = $10
     where id = $1`,
    [
      ...[id, title, description],
      'amount' in price ? price.amount : null,
      'min' in price ? price.min : null,
      'max' in price ? price.max : null,
      metadata && JSON.stringify(metadata),
      ...[until, closedAt, revision],
    ],
  )
}
