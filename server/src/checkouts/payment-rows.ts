import type { Disposition } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { CheckoutId } from '../ids.ts'
import { type CreditRow, creditFromJson, type RawCredit, toCreditRow } from '../payments/credits/credit.ts'
import type { Payment } from '../payments/payload.ts'
import type { Checkout } from './checkout.ts'
import { type CheckoutRow, isRestoring, toCheckout } from './rows.ts'

/** SQL of what the payments of a checkout say about it. */
export type Facts = {
  readonly credits: readonly CreditRow[]
  readonly unresolved: ReadonlySet<string>
  /** Of checkouts with reserved amounts: how far their chains were read. */
  readonly readUntil: ReadonlyMap<string, Date>
}

export async function lockCheckouts(tx: Transaction, ids: readonly string[]): Promise<Checkout[]> {
  const rows = await tx.query<CheckoutRow>(
    'select * from checkouts where id = any($1) order by id for no key update',
    [ids],
  )
  return rows.map(toCheckout)
}

/** Read after the checkouts are locked: whoever changes these facts holds that lock too. */
export async function readFacts(tx: Transaction, ids: readonly string[]): Promise<Facts> {
  const credits = await tx.query<RawCredit>(
    `select k.*, k.orphaned_at is not null and exists (select 1 from credits o where o.payment_id = k.payment_id
       and o.checkout_id = k.checkout_id and o.orphaned_at is null) as is_included_again,
       exists (select 1 from authorizations a where a.network = k.network and a.asset = k.asset and a.payer = k.payer
         and a.nonce = k.nonce and a.checkout_id = k.checkout_id and a.state in ('claimed', 'sent')) as is_claimed,
       exists (select 1 from reserved_amounts r where r.checkout_id = k.checkout_id and r.network = k.network
         and r.asset = k.asset and r.pay_to = k.pay_to and r.amount = k.amount) as is_reserved
     from credits k where k.checkout_id = any($1)`,
    [ids],
  )
  const unresolved = await tx.query<{ checkout_id: string }>(
    `select a.checkout_id from authorizations a
     where a.checkout_id = any($1) and a.state in ('claimed', 'sent')
       and not exists (select 1 from credits k where k.network = a.network and k.asset = a.asset
         and k.payer = a.payer and k.nonce = a.nonce and k.orphaned_at is null and k.checkout_id = a.checkout_id)
     union
     select k.checkout_id from credits k
     where k.checkout_id = any($1) and k.disposition = 'exact' and k.orphaned_at is not null and k.reversed_at is null
       and (k.nonce is null or exists (select 1 from authorizations a where a.network = k.network and a.asset = k.asset
         and a.payer = k.payer and a.nonce = k.nonce and a.checkout_id = k.checkout_id
         and a.state in ('rejected', 'dead')))
       and not exists (select 1 from credits o where o.payment_id = k.payment_id
         and o.checkout_id = k.checkout_id and o.orphaned_at is null)`,
    [ids],
  )
  const reserved = await tx.query<{ checkout_id: string; read_until: Date }>(
    `select r.checkout_id, min(coalesce(f.head_time, 'epoch')) as read_until
     from reserved_amounts r left join followers f on f.network = r.network
     where r.checkout_id = any($1) group by r.checkout_id`,
    [ids],
  )
  return {
    readUntil: new Map(reserved.map(({ checkout_id, read_until }) => [checkout_id, read_until])),
    unresolved: new Set(unresolved.map(({ checkout_id }) => checkout_id)),
    credits: credits.map(toCreditRow),
  }
}

/** An exact credit that stops being one is written before the one that takes its place. */
export async function writeDispositions(
  tx: Transaction,
  changed: readonly { key: string; disposition: Disposition }[],
): Promise<void> {
  const input = changed.map(({ key, disposition }) => ({ ...parseKey(key), disposition }))
  for (const group of [
    input.filter((row) => row.disposition !== 'exact'),
    input.filter((row) => row.disposition === 'exact'),
  ]) {
    if (group.length === 0) continue
    await tx.query(
      `update credits k set disposition = i.disposition
       from json_to_recordset($1) as i (network text, block_hash text, log_index integer, disposition text)
       where k.network = i.network and k.block_hash = i.block_hash and k.log_index = i.log_index`,
      [JSON.stringify(group)],
    )
  }
}

export type Announcement = {
  readonly key: string
  readonly announcement: string
  readonly event_id: string
  readonly store_id: string
  readonly type: string
  readonly checkout_id: string
  readonly checkout_version: number
  readonly data: object
  readonly created_at: Date
}

export async function writeAnnouncements(tx: Transaction, told: readonly Announcement[]): Promise<void> {
  await tx.query(
    `with input as (
       select * from json_to_recordset($1) as i (network text, block_hash text, log_index integer, announcement text,
         event_id text, store_id text, type text, checkout_id text, checkout_version integer, data json,
         created_at timestamptz)
     ), marked as (
       update credits k set announced = i.announcement from input i
       where k.network = i.network and k.block_hash = i.block_hash and k.log_index = i.log_index
     )
     insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
     select event_id, store_id, type, checkout_id, checkout_version, data, created_at from input`,
    [JSON.stringify(told.map(({ key, ...row }) => ({ ...parseKey(key), ...row })))],
  )
}

/** Tells pages that there is something new to show. */
export async function notePagesChanged(tx: Transaction, checkoutIds: readonly string[]): Promise<void> {
  if (checkoutIds.length === 0) return
  await tx.query('update checkouts set page_version = page_version + 1 where id = any($1)', [checkoutIds])
}

export async function rejectUnsent(tx: Transaction, checkoutIds: readonly string[]): Promise<void> {
  if (checkoutIds.length === 0) return
  await tx.query(
    `update authorizations a set state = 'rejected', reason = 'paid_otherwise', resolved_at = clock()
     where a.checkout_id = any($1) and a.state = 'claimed'
       and not exists (select 1 from credits k where k.network = a.network and k.asset = a.asset
         and k.payer = a.payer and k.nonce = a.nonce and k.orphaned_at is null)`,
    [checkoutIds],
  )
}

function parseKey(key: string): { network: string; block_hash: string; log_index: number } {
  const [network = '', block_hash = '', log_index = ''] = key.split(' ')
  return { network, block_hash, log_index: Number.parseInt(log_index, 10) }
}

/** Everything that decides the answer to a payer, in one read. */
export type PayView = {
  readonly checkout: Checkout
  readonly isPastExpiry: boolean
  readonly isRestoring: boolean
  /** The live exact credit. */
  readonly payment: CreditRow | null
  /** What is known of the authorization that was presented. */
  readonly known: {
    readonly checkoutId: string | null
    readonly state: 'claimed' | 'sent' | 'rejected' | 'dead'
    readonly reason: string | null
    readonly credit: CreditRow | null
    /** Hash of the transaction that was last signed for it. */
    readonly transaction: string | null
  } | null
  /** The payment-identifier names another authorization of this store. */
  readonly isIdentifierTaken: boolean
}

export async function readPayView(
  db: Database,
  checkoutId: CheckoutId,
  payment: Payment | null,
): Promise<PayView | null> {
  const [row] = await db.query<
    CheckoutRow & {
      is_past_expiry: boolean
      is_restoring: boolean
      exact: RawCredit | null
      known_state: 'claimed' | 'sent' | 'rejected' | 'dead' | null
      known_checkout_id: string | null
      known_reason: string | null
      known_credit: RawCredit | null
      known_transaction: string | null
      is_identifier_taken: boolean
    }
  >(
    `select c.*, c.expires_at <= clock() as is_past_expiry, to_json(e) as exact,
       ${isRestoring} as is_restoring,
       a.state as known_state, a.checkout_id as known_checkout_id, a.reason as known_reason, to_json(k) as known_credit,
       (select b.hash from transaction_calls tc join broadcasts b on b.network = tc.network and b.settler = tc.settler
          and b.nonce = tc.settler_nonce
        where tc.network = a.network and tc.asset = a.asset and tc.payer = a.payer and tc.nonce = a.nonce
        order by b.created_at desc limit 1) as known_transaction,
       $6::text is not null and exists (select 1 from authorizations o where o.store_id = c.store_id
         and o.payment_identifier = $6 and (o.network, o.asset, o.payer, o.nonce, o.checkout_id)
           is distinct from ($2, $3, $4, $5, c.id)) as is_identifier_taken
     from checkouts c
     left join credits e on e.checkout_id = c.id and e.disposition = 'exact' and e.orphaned_at is null
     left join authorizations a on a.network = $2 and a.asset = $3 and a.payer = $4 and a.nonce = $5
     left join credits k on k.network = a.network and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce
       and k.orphaned_at is null and k.checkout_id = c.id
     where c.id = $1`,
    [
      checkoutId,
      payment?.network ?? null,
      payment?.asset ?? null,
      payment?.payer ?? null,
      payment?.nonce ?? null,
      payment?.identifier ?? null,
    ],
  )
  if (!row) return null
  return {
    checkout: toCheckout(row),
    isPastExpiry: row.is_past_expiry,
    isRestoring: row.is_restoring,
    payment: row.exact && creditFromJson(row.exact),
    isIdentifierTaken: row.is_identifier_taken,
    known: row.known_state && {
      checkoutId: row.known_checkout_id,
      state: row.known_state,
      reason: row.known_reason,
      credit: row.known_credit && creditFromJson(row.known_credit),
      transaction: row.known_transaction,
    },
  }
}

export async function listProcessing(db: Database, after: string, limit: number): Promise<CheckoutId[]> {
  const rows = await db.query<{ id: CheckoutId }>(
    "select id from checkouts where status = 'PROCESSING' and id > $1 order by id limit $2",
    [after, limit],
  )
  return rows.map(({ id }) => id)
}

/**
 * Which of these checkouts have something new for their pages, and the stamps to compare with next time. A stamp holds
 * what changes whenever a page would: the versions, whether the time has passed, and whether something was sent.
 */
export async function findChangedPages(
  db: Database,
  watched: readonly { readonly checkoutId: string; readonly stamp: string }[],
): Promise<{ checkoutId: string; stamp: string }[]> {
  return await db.query<{ checkoutId: string; stamp: string }>(
    `select id as "checkoutId", stamp from (
       select c.id, i.stamp as before, concat_ws('.', c.version, c.page_version, case c.status
         when 'OPEN' then c.expires_at <= clock()
         when 'PROCESSING' then exists (select 1 from authorizations a where a.checkout_id = c.id and a.state = 'sent')
         end) as stamp
       from unnest($1::text[], $2::text[]) as i (id, stamp) join checkouts c on c.id = i.id
     ) now where stamp <> before`,
    [watched.map(({ checkoutId }) => checkoutId), watched.map(({ stamp }) => stamp)],
  )
}
