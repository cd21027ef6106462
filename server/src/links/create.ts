import { randomBytes } from 'node:crypto'
import type { Actor, CreateLink, Link as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { type Database, isLockTimeout, type Transaction } from '../database/db.ts'
import { newId, type StoreId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { checkNewLink, readPrice } from './check.ts'
import { type Link, linkToWire } from './link.ts'
import { type LinkRow, linkColumns, toLink } from './rows.ts'
import { tellOfLink } from './tell.ts'

/** SHA-256. */
const quoteKeyBytes = 32

type Idempotency = { readonly key: string; readonly bodyHash: string }

/** Creates a link. The same Idempotency-Key returns the same link in its current state. */
export async function createLink(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  { input, idempotency }: { readonly input: CreateLink; readonly idempotency: Idempotency | null },
  now: Date,
): Promise<{ readonly link: Wire; readonly isReplay: boolean }> {
  const known = await findReplayed(ctx.db, storeId, idempotency)
  if (known) return { link: linkToWire(ctx, known), isReplay: true }
  const priceCurrency = checkNewLink(input, now)
  const { title, description = null, invoice = null, kind = 'once' } = input
  const metadata = input.metadata && Object.keys(input.metadata).length > 0 ? input.metadata : null
  const link: Link = {
    id: newId('lnk', ctx.config.cell, now),
    ...{ storeId, kind, title, description, priceCurrency, invoice, metadata },
    price: readPrice(input, priceCurrency),
    until: new Date(input.until),
    isOver: false,
    closedAt: null,
    paidAt: null,
    checkoutId: null,
    made: 0,
    revision: 1,
    createdAt: now,
  }
  return await ctx.db
    .transaction(async (tx) => {
      if (await insertLink(tx, link, actor, idempotency)) {
        await tellOfLink(ctx, tx, link, { type: 'link.created', actor, now })
        return { link: linkToWire(ctx, link), isReplay: false }
      }
      const replayed = await findReplayed(tx, storeId, idempotency)
      if (replayed) return { link: linkToWire(ctx, replayed), isReplay: true }
      throw new Problem('invoice_number_taken', `The store has an invoice ${invoice?.number} already.`)
    })
    .catch((error) => {
      if (!isLockTimeout(error)) throw error
      throw new Problem(
        'idempotency_in_progress',
        'Another request with this Idempotency-Key or this invoice number is still running.',
        { retryAfterSeconds: 1 },
      )
    })
}

async function findReplayed(
  db: Database | Transaction,
  storeId: StoreId,
  idempotency: Idempotency | null,
): Promise<Link | null> {
  if (!idempotency) return null
  const [row] = await db.query<LinkRow & { body_hash: string }>(
    `select ${linkColumns}, encode(l.body_hash, 'base64') as body_hash from links l
     where l.store_id = $1 and l.idempotency_key = $2`,
    [storeId, idempotency.key],
  )
  if (!row) return null
  if (row.body_hash !== idempotency.bodyHash)
    throw new Problem(
      'idempotency_key_reused',
      'This Idempotency-Key belongs to a request with a different body.',
    )
  return toLink(row)
}

/** False if the Idempotency-Key or the invoice's number is taken. */
async function insertLink(
  tx: Transaction,
  link: Link,
  actor: Actor,
  idempotency: Idempotency | null,
): Promise<boolean> {
  const { price, invoice, metadata } = link
  const rows = await tx.query(
    `insert into links (id, store_id, kind, title, description, price_amount, min_amount, max_amount, price_currency,
       invoice, invoice_number, metadata, until, created_at, actor, quote_key, idempotency_key, body_hash)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, decode($18, 'base64'))
     on conflict do nothing returning id`,
    [
      ...[link.id, link.storeId, link.kind, link.title, link.description],
      'amount' in price ? price.amount : null,
      'min' in price ? price.min : null,
      'max' in price ? price.max : null,
      link.priceCurrency,
      invoice && JSON.stringify(invoice),
      invoice?.number ?? null,
      metadata && JSON.stringify(metadata),
      ...[link.until, link.createdAt, JSON.stringify(actor), randomBytes(quoteKeyBytes)],
      ...[idempotency?.key ?? null, idempotency?.bodyHash ?? null],
    ],
  )
  return rows.length > 0
}
