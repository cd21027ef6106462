import type { Hex } from '../../chains/hex.ts'
import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { remember } from '../../remember.ts'
import { authorizationOf, liveCreditOf } from '../rows.ts'

/** SQL that only Solana needs. */
type FeePayer = { readonly address: string; readonly isAlive: boolean }

/** Settlers that accept new payments, and whether a lane of theirs was active recently. */
async function listFeePayers(db: Database, network: string): Promise<FeePayer[]> {
  return await db.query<FeePayer>(
    `select address, coalesce(alive_at > clock() - interval '15 seconds', false) as "isAlive"
     from settlers where network = $1 and state = 'active' and not elsewhere order by address`,
    [network],
  )
}

/** A transaction whose outcome is not final, with the single authorization that it carries. */
export type Watched = {
  readonly settler: string
  readonly settlerNonce: string
  readonly hash: string
  readonly asset: string
  readonly payer: string
  readonly nonce: Hex
  readonly payTo: string
  readonly amount: string
  readonly validBefore: string
  /** Null for a refund. */
  readonly checkoutId: string | null
  /** The hash of the message that we signed. */
  readonly messageHash: Hex
  /** The place of its credit, if it has one that is not orphaned. */
  readonly place: string | null
  readonly slot: string | null
}

/**
 * SQL: the hash of the message of `a` and `b`. A payment's nonce is that hash. A refund's nonce stands for anything
 * signed for its slot, so its message is read from our bytes: a count, two signatures, the message.
 */
const messageHash = `case when a.checkout_id is not null then a.nonce
  else '0x' || encode(sha256(substring(b.bytes from 130)), 'hex') end`

/** All of them, or only those that have not been seen to pay. */
export async function listWatched(
  db: Database,
  network: string,
  limit: number,
  which: 'all' | 'uncredited' = 'all',
): Promise<Watched[]> {
  return await db.query<Watched>(
    `select t.settler, t.nonce as "settlerNonce", b.hash, a.asset, a.payer, a.nonce, a.pay_to as "payTo",
       a.amount::text, a.valid_before::text as "validBefore", a.checkout_id as "checkoutId", ${messageHash} as "messageHash",
       k.block_hash as place, k.block_number as slot
     from transactions t
     join broadcasts b on b.network = t.network and b.settler = t.settler and b.nonce = t.nonce
     join transaction_calls c on c.network = t.network and c.settler = t.settler and c.settler_nonce = t.nonce
     cross join ${authorizationOf('c')}
     left join ${liveCreditOf('a')} on true
     where t.network = $1 and t.mined_at is null and (not $3 or k.block_hash is null)
     order by t.created_at limit $2`,
    [network, limit, which === 'uncredited'],
  )
}

/** Summary of the transactions to watch. */
export type Pending = {
  /** The age of the youngest transaction that has not been seen to pay; null if there is none. */
  readonly youngestSentMs: number | null
  /** The age of the oldest transaction whose outcome is not final. */
  readonly oldestMs: number | null
  readonly isRestoring: boolean
}

export async function readPending(db: Database, network: string): Promise<Pending> {
  const [row] = await db.query<Pending>(
    `select extract(epoch from clock() - max(t.created_at) filter (where not a.is_credited))::float8 * 1000 as "youngestSentMs",
       extract(epoch from clock() - min(t.created_at))::float8 * 1000 as "oldestMs",
       exists (select 1 from restores r where r.network = $1 and r.finished_at is null) as "isRestoring"
     from transactions t
     join transaction_calls c on c.network = t.network and c.settler = t.settler and c.settler_nonce = t.nonce
     cross join ${authorizationOf('c')}
     where t.network = $1 and t.mined_at is null`,
    [network],
  )
  return row ?? { youngestSentMs: null, oldestMs: null, isRestoring: false }
}

/** Whether an expired checkout with a reference stays open until the chain was watched up to its expiry. */
export async function isExpiryWaiting(db: Database, network: string): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from reserved_amounts r join checkouts c on c.id = r.checkout_id
     where r.network = $1 and r.reference is not null and r.freed_at is null
       and c.status = 'OPEN' and c.expires_at <= clock() limit 1`,
    [network],
  )
  return rows.length > 0
}

/** Stops watching transactions whose outcome is final. */
export async function finishWatched(
  tx: Transaction,
  network: string,
  finished: readonly Pick<Watched, 'settler' | 'settlerNonce'>[],
): Promise<void> {
  await tx.query(
    `update transactions t set mined_at = clock()
     from json_to_recordset($2) as i (settler text, "settlerNonce" bigint)
     where t.network = $1 and t.settler = i.settler and t.nonce = i."settlerNonce" and t.mined_at is null`,
    [network, JSON.stringify(finished.map(({ settler, settlerNonce }) => ({ settler, settlerNonce })))],
  )
}

/** Retires draining settlers that have nothing left to watch or to send. */
export async function retireDrained(db: Database, network: string): Promise<void> {
  await db.query(
    `update settlers s set state = 'retired' where s.network = $1 and s.state = 'draining'
       and not exists (select 1 from transactions t where t.network = s.network and t.settler = s.address
         and t.mined_at is null)
       and not exists (select 1 from authorizations a where a.network = s.network and a.settler = s.address
         and a.state = 'claimed')`,
    [network],
  )
}

/**
 * Claims that were never sent, and messages handed out for refunds, that no block can include any more. While a restore
 * is reconciled, messages handed out are left alone: they may have been signed and sent since.
 */
export async function listUnsentExpired(
  db: Database,
  network: string,
  height: number,
  limit: number,
): Promise<{ asset: string; payer: string; nonce: string; reason: string | null; validBefore: string }[]> {
  return await db.query(
    `select asset, payer, nonce, reason, valid_before::text as "validBefore" from (
       select a.asset, a.payer, a.nonce, a.reason, a.valid_before from authorizations a
       where a.network = $1 and a.state = 'claimed' and not a.is_credited and a.valid_before < $2
       union all
       select a.asset, a.payer, a.nonce, null, a.valid_before from authorizations a
       where a.network = $1 and a.state = 'prepared' and a.valid_before < $2
         and not exists (select 1 from restores r where r.network = $1 and r.finished_at is null)
     ) a order by a.valid_before limit $3`,
    [network, height, limit],
  )
}

/** Transactions that were sent but not seen on the chain, and are due to be sent again. */
export async function listToSendAgain(
  db: Database,
  network: string,
  settler: string,
  seconds: number,
  limit: number,
): Promise<{ hash: string; bytes: Buffer }[]> {
  return await db.query(
    `select b.hash, b.bytes from transactions t
     join broadcasts b on b.network = t.network and b.settler = t.settler and b.nonce = t.nonce
     join transaction_calls c on c.network = t.network and c.settler = t.settler and c.settler_nonce = t.nonce
     cross join ${authorizationOf('c')}
     where t.network = $1 and t.settler = $2 and t.mined_at is null and a.state = 'sent' and a.sends < 2
       and not a.is_credited and (b.last_sent_at is null or b.last_sent_at <= clock() - make_interval(secs => $3))
     order by t.nonce limit $4`,
    [network, settler, seconds, limit],
  )
}

/** Claims that were unsent when the database was restored. This settler may have sent them since. */
export async function listUnrecorded(
  db: Database,
  network: string,
  settler: string,
  limit: number,
): Promise<{ asset: string; payer: string; nonce: string; signature: Buffer }[]> {
  return await db.query(
    `select a.asset, a.payer, a.nonce, a.signature from authorizations a
     where a.network = $1 and a.settler = $2 and a.state = 'sent' and a.sends >= 2 and not a.is_credited
       and not exists (select 1 from transaction_calls c where c.network = a.network and c.asset = a.asset
         and c.payer = a.payer and c.nonce = a.nonce)
     limit $3`,
    [network, settler, limit],
  )
}

/** Which of these transactions we have no record of sending. */
export async function listNotBroadcast(db: Database, hashes: readonly string[]): Promise<Set<string>> {
  const rows = await db.query<{ hash: string }>(
    'select hash from unnest($1::text[]) as i (hash) where not exists (select 1 from broadcasts b where b.hash = i.hash)',
    [hashes],
  )
  return new Set(rows.map(({ hash }) => hash))
}

/** Records a settler's transaction as if it had just been committed for sending, so that it is watched. */
export async function recordSend(
  tx: Transaction,
  send: {
    readonly network: string
    readonly settler: string
    readonly hash: string
    readonly bytes: Uint8Array
    readonly key: { readonly asset: string; readonly payer: string; readonly nonce: string }
  },
): Promise<void> {
  await tx.query(
    `with taken as (
       update settlers set next_nonce = next_nonce + 1 where network = $1 and address = $2
       returning network, address, next_nonce - 1 as nonce
     ), made as (
       insert into transactions (network, settler, nonce, created_at)
       select network, address, nonce, clock() from taken returning network, settler, nonce
     ), calls as (
       insert into transaction_calls (network, settler, settler_nonce, place, asset, payer, nonce)
       select network, settler, nonce, 0, $5, $6, $7 from made
     )
     insert into broadcasts (hash, network, settler, nonce, bytes, created_at, first_sent_at, last_sent_at)
     select $3, network, settler, nonce, $4, clock(), clock(), clock() from made`,
    [send.network, send.settler, send.hash, send.bytes, send.key.asset, send.key.payer, send.key.nonce],
  )
}

/**
 * Records a refund that a settler has sent and the database has forgotten. If a refund has this slot, amount and
 * recipient, it belongs to that one. Otherwise it counts once that payment is refunded again. It replaces anything
 * handed out for the slot before. False if it is recorded already.
 */
export async function recoverRefund(
  tx: Transaction,
  found: {
    readonly network: string
    readonly asset: string
    readonly payer: string
    readonly nonce: string
    readonly settler: string
    readonly bytes: Uint8Array
    readonly recipient: string
    readonly amount: bigint
  },
): Promise<boolean> {
  const rows = await tx.query(
    `insert into authorizations as a (network, asset, payer, nonce, refund_id, store_id, state, pay_to, amount, valid_after,
       valid_before, signature, claimed_at, sends, settler)
     select $1, $2, $3, $4, r.id, r.store_id, 'sent', $5, $6::numeric, 0, 0, $7, clock(), 1, $8
     from (select 1) one left join lateral (select id, store_id from refunds where nonce = $4 and network = $1 and asset = $2
       and wallet = $3 and recipient = $5 and amount = $6::numeric and ended_at is null order by id desc limit 1) r on true
     on conflict (payer, nonce, asset, network) do update set state = 'sent', sends = greatest(a.sends, 1),
       refund_id = coalesce(excluded.refund_id, a.refund_id), store_id = coalesce(excluded.store_id, a.store_id),
       pay_to = excluded.pay_to, amount = excluded.amount, signature = excluded.signature, settler = excluded.settler,
       reason = null, resolved_at = null
     where not exists (select 1 from transaction_calls c where c.network = a.network and c.asset = a.asset
       and c.payer = a.payer and c.nonce = a.nonce)
     returning a.nonce`,
    [
      found.network,
      found.asset,
      found.payer,
      found.nonce,
      found.recipient,
      found.amount.toString(),
      found.bytes,
      found.settler,
    ],
  )
  return rows.length > 0
}

/** The addresses at which a checkout asked to be paid. */
export async function listPayTo(
  db: Database,
  checkoutId: string,
  network: string,
  asset: string,
): Promise<string[]> {
  const rows = await db.query<{ payTo: string }>(
    `select o."payTo" from checkouts c, json_to_recordset(c.options) as o (network text, asset text, "payTo" text)
     where c.id = $1 and o.network = $2 and o.asset = $3`,
    [checkoutId, network, asset],
  )
  return rows.map(({ payTo }) => payTo)
}

/**
 * One hour before the point up to which the chain had been watched at the restore; null if no restore is being
 * reconciled.
 */
export async function readRestorePoint(db: Database, network: string): Promise<Date | null> {
  const [row] = await db.query<{ since: Date }>(
    `select coalesce(r.since, r.started_at - interval '1 day') as since from restores r
     where r.network = $1 and r.finished_at is null`,
    [network],
  )
  return row?.since ?? null
}

/** The settlers of a network that accept new payments. */
export type FeePayers = (network: string) => Promise<readonly FeePayer[]>

/** Every payment needs this list. A running lane updates its row every few hundred milliseconds. */
const rememberedMs = 1_000
const networksMax = 100

export function openFeePayers(ctx: Context): FeePayers {
  const { get } = remember((network: string) => listFeePayers(ctx.db, network), {
    forMs: rememberedMs,
    entriesMax: networksMax,
    now: ctx.now,
  })
  return get
}
