import { lockFollower } from '../chains/rows.ts'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { RefundId, StoreId } from '../ids.ts'
import type { Rail, SentRefusal } from '../payments/rail.ts'
import { changeRefund } from './change.ts'
import type { Refund } from './refund.ts'
import { lockRefund } from './rows.ts'

/** Looks every two blocks or so at first and every minute later, because a transfer must be final to prove a refund. */
const again = { secondsMin: 3, secondsMax: 60 }
const lookedForPerRun = 20
/** Gives up on a transaction that no node knows after an hour: it was never sent, or its hash is mistyped. */
const unknownSeconds = 60 * 60
/** Gives up on a transaction that is not final after a day. */
const waitingSeconds = 24 * 60 * 60

/**
 * Looks up the transactions with which stores say they paid refunds by themselves. A refund is proven by a plain transfer
 * of exactly its amount, to its recipient, from a wallet that this store has proven, in a final block that is not older
 * than the refund. The transfer must not be a payment to a store, or the proof of another refund. If a transaction does
 * not prove its refund, the refund says why, and the store can name another. Returns whether more are due.
 */
export async function proveSent(ctx: Context, rail: Rail): Promise<boolean> {
  const { sent } = rail
  if (!sent) return false
  const named = await takeNamed(ctx.db, rail.network.caip2, again, lookedForPerRun)
  for (const each of named) await prove(ctx, sent, each)
  return named.length === lookedForPerRun
}

async function prove(ctx: Context, sent: NonNullable<Rail['sent']>, named: Named): Promise<void> {
  const { transaction, asset, recipient, amount, createdAt, storeId, ageSeconds } = named
  const proven = await ctx.db.query<{ pay_to: string }>(
    'select distinct pay_to from wallets where store_id = $1 and proven_at is not null',
    [storeId],
  )
  const wallets = proven.map(({ pay_to }) => pay_to)
  const found = await sent.find({ transaction, asset, recipient, amount, wallets, notBefore: createdAt })
  if (found.outcome === 'waiting' && ageSeconds > waitingSeconds) return await refute(ctx, named, 'not_final')
  if (found.outcome === 'unknown' && ageSeconds > unknownSeconds) return await refute(ctx, named, 'unknown')
  if (found.outcome === 'refused') return await refute(ctx, named, found.why)
  if (found.outcome !== 'found') return
  const isProven = await ctx.db.transaction(async (tx) => {
    await lockFollower(tx, named.network)
    let why: Why = 'taken'
    for (const { place, from } of found.transfers) {
      const transfer = { block: found.block, place, from, at: found.at, logIndex: found.creditedAs ?? place }
      const outcome = await proveBy(ctx, tx, named, transfer)
      // The store named another transaction meanwhile.
      if (outcome === 'changed') return false
      if (outcome === 'proven') return true
      why = outcome
    }
    await forget(ctx, tx, named, why)
    return false
  })
  if (isProven) ctx.db.wakeUps.send('outcomes')
}

/** A transfer in the named transaction. */
type Place = {
  readonly block: string
  readonly place: number
  readonly from: string
  readonly at: Date
  readonly logIndex: number
}

/**
 * Records that a transfer proves the refund, unless it is a payment to a store or proves another refund. The caller holds
 * the follower's lock, under which credits are written, so no credit for the transfer can appear meanwhile.
 */
export async function proveBy(
  ctx: Context,
  tx: Transaction,
  named: Named,
  transfer: Place,
): Promise<'proven' | 'credited' | 'taken' | 'changed'> {
  const refund = await lockNamed(tx, named)
  if (!refund) return 'changed'
  const use = await findUse(tx, named, transfer)
  if (use) return use
  await changeRefund(ctx, tx, refund, { transfer }, { actor: null, now: ctx.now() })
  return 'proven'
}

/** Records why a transaction does not prove its refund. The store can name another. */
export async function refute(ctx: Context, named: Named, why: Why): Promise<void> {
  if (!(await ctx.db.transaction((tx) => forget(ctx, tx, named, why)))) return
  ctx.log.info(
    { refundId: named.id, txHash: named.transaction, why },
    'named transaction does not prove its refund; the store can name another',
  )
}

async function forget(ctx: Context, tx: Transaction, named: Named, why: Why): Promise<boolean> {
  const refund = await lockNamed(tx, named)
  if (!refund) return false
  const facts = { named: null, failure: reasons[why] }
  await changeRefund(ctx, tx, refund, facts, { actor: null, now: ctx.now() })
  return true
}

/** Locks the refund; null if it no longer waits for this transaction. */
async function lockNamed(tx: Transaction, { storeId, id, transaction }: Named): Promise<Refund | null> {
  const refund = await lockRefund(tx, storeId, id)
  const isWaiting = refund?.status === 'SENT' && refund.way === 'self-sent' && refund.position === null
  return isWaiting && refund.transaction === transaction ? refund : null
}

type Why = SentRefusal | 'unknown' | 'not_final' | 'taken'

/** The store reads these. */
const reasons: Readonly<Record<Why, string>> = {
  unknown: 'An hour after the transaction was named, no node of the network has it. Check its hash.',
  not_final: 'The transaction was not final a day after it was named. Name it again once it is.',
  no_transfer: 'The transaction moved none of this token.',
  authorized:
    'The transaction moved the token by a signed authorization. Only a plain transfer proves a refund that the store sends itself.',
  other_recipient: 'The transaction did not pay the refund’s recipient.',
  other_amount: 'The transaction paid the recipient, but not the refund’s amount.',
  other_wallet:
    'The money came from a wallet that the store has not proven. Prove that wallet, then name the transaction again.',
  too_old: 'The transfer is older than the refund, so it was for something else.',
  credited: 'The transfer is recorded as a payment to a store.',
  taken: 'The transfer proves another refund already.',
}

type Named = {
  readonly id: RefundId
  readonly storeId: StoreId
  readonly network: string
  readonly asset: string
  readonly recipient: string
  readonly amount: bigint
  readonly transaction: string
  readonly createdAt: Date
  /** How long ago the store named it. */
  readonly ageSeconds: number
}

/**
 * Takes the named transactions that are due, least recently looked up first. The time until the next look equals the time
 * since the transaction was named, within bounds.
 */
export async function takeNamed(
  db: Database,
  network: string,
  again: { readonly secondsMin: number; readonly secondsMax: number },
  limit: number,
): Promise<Named[]> {
  const rows = await db.query<Omit<Named, 'amount'> & { amount: string }>(
    `update refunds r set looked_at = clock()
     from (select id from refunds where network = $1 and status = 'SENT' and way = 'self-sent' and position is null
             and transaction_hash is not null and recipient is not null
             and (looked_at is null or looked_at + least(make_interval(secs => $3),
               greatest(make_interval(secs => $2), looked_at - named_at)) <= clock())
           order by looked_at nulls first limit $4 for update skip locked) due
     where r.id = due.id
     returning r.id, r.store_id as "storeId", r.network, r.asset, r.recipient, r.amount::text as amount,
       r.transaction_hash as transaction, r.created_at as "createdAt",
       extract(epoch from clock() - r.named_at)::float8 as "ageSeconds"`,
    [network, again.secondsMin, again.secondsMax, limit],
  )
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }))
}

/** No wallet sends more equal transfers in one transaction. */
const equalsMax = 9

/** Whether a transfer is a payment to a store (`credited`) or proves another refund (`taken`); null if neither. */
async function findUse(
  tx: Transaction,
  { network, asset, transaction, storeId, recipient, amount }: Named,
  { block, place, logIndex }: Place,
): Promise<'credited' | 'taken' | null> {
  const [row] = await tx.query<{ use: 'credited' | 'taken' | null }>(
    `select case
       when exists (select 1 from credits k where k.network = $1 and k.block_hash = $4 and k.log_index = $6
         and k.orphaned_at is null) then 'credited'
       -- Only what a deleted payment moved is kept, so an equal transfer in the same transaction counts as that payment.
       when exists (select 1 from wallets w cross join generate_series(0, ${equalsMax}) as p join kept_credits x
         on x.key = credit_key($1, $3, $2, w.pay_to, $8, $9::numeric, p) where w.store_id = $7) then 'credited'
       when exists (select 1 from refunds o where o.transaction_hash = $3 and o.network = $1 and o.asset = $2
         and o.position = $5) then 'taken' end as use`,
    [network, asset, transaction, block, place, logIndex, storeId, recipient, amount.toString()],
  )
  return row?.use ?? null
}
