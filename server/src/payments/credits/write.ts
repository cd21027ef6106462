import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { newId } from '../../ids.ts'
import { isRefundNonce } from '../nonces.ts'
import type { Match } from '../transfers/match.ts'
import { type Concern, isKept, type Seen, type SeenPlain } from './rows.ts'

/** Where the money was seen. */
type Place = { readonly hash: string; readonly number: number; readonly time: Date }

type Landed = {
  readonly concerns?: readonly Concern[]
  readonly matches?: readonly (Match & Pick<NewCredit, 'sender'>)[]
  readonly isWitnessed?: boolean
}

/**
 * Writes the credits for one place on a chain: plain transfers, and transfers by authorization except those that differ
 * from their claim. A transfer with a refund's nonce is always written: money was refunded, and a restored database may
 * have other terms for that nonce. Returns the checkouts whose facts changed.
 */
export async function writeCredits(
  ctx: Context,
  tx: Transaction,
  network: string,
  place: Place,
  { concerns = [], matches = [], isWitnessed = true }: Landed,
): Promise<string[]> {
  const now = ctx.now()
  const paymentId = () => newId('pay', ctx.config.cell, now)
  const credits: NewCredit[] = [
    ...concerns
      .filter(({ seen, claim }) => claim === null || claim.isMatch || isOfRefund({ seen, claim }))
      .map(({ seen, claim }) => ({
        seen,
        paymentId: paymentId(),
        checkoutId: claim?.isMatch && !claim.isForeign ? claim.checkoutId : null,
        // A refund's transfer pays no checkout. It belongs to a store only if that store owns the receiving wallet.
        storeId: claim?.isMatch && !claim.isForeign && claim.checkoutId ? claim.storeId : null,
        isExpected: claim?.isExpected === true && !claim.isForeign,
        sender: null,
      })),
    ...matches.map(({ seen, checkoutId, storeId, sender }) => ({
      seen: { ...seen, nonce: null },
      paymentId: paymentId(),
      checkoutId,
      storeId,
      isExpected: false,
      sender,
    })),
  ]
  return credits.length === 0 ? [] : await upsertCredits(tx, network, place, credits, isWitnessed)
}

/** No checkout has claimed it: payers choose the nonces of payments, and one may look like a refund's. */
function isOfRefund({ seen, claim }: Concern): boolean {
  return claim?.checkoutId === null && isRefundNonce(seen.nonce)
}

export type NewCredit = {
  readonly seen: Seen | (SeenPlain & { readonly nonce: null })
  readonly paymentId: string
  readonly checkoutId: string | null
  /** The checkout's store. */
  readonly storeId: string | null
  /**
   * Whether it is written as exact at once, if it is new and its checkout has had no exact credit. (A removed credit
   * may come back in the same block.) The caller has locked the checkout.
   */
  readonly isExpected: boolean
  /** The sender of a plain transfer's transaction, if known. */
  readonly sender: { readonly address: string; readonly nonce: number } | null
}

/**
 * Writes the credits found in a block. A new inclusion of the same transfer orphans the old credit and keeps the
 * store's decisions about it. (Of equal transfers it is the one whose number the old credit had last.) When a block becomes canonical again, its credits are live again, but an exact one
 * becomes overpaid if another credit is exact by then. An unmatched credit is assigned to its claim if that has turned
 * up. The disposition is decided under the checkout's lock when its status is updated, in the same transaction; until
 * then, a credit with a checkout counts as overpaid, or as exact if that is expected, so that it need not be written
 * twice. If an earlier read of the block reported another transfer at the same place, that one stays: a witnessed read
 * withdraws false ones before it writes. A transfer that counted long ago, and whose credit was deleted, is never
 * written again. Returns only the checkouts of new or changed credits, because blocks are read again.
 */
export async function upsertCredits(
  tx: Transaction,
  network: string,
  block: Place,
  credits: readonly NewCredit[],
  isWitnessed: boolean,
): Promise<string[]> {
  const input = JSON.stringify(
    credits.map(({ seen, paymentId, checkoutId, storeId, isExpected, sender }) => ({
      log_index: seen.logIndex,
      payment_id: paymentId,
      transaction_hash: seen.transactionHash,
      position: seen.position,
      asset: seen.asset,
      payer: seen.payer,
      nonce: seen.nonce,
      pay_to: seen.to,
      amount: seen.value.toString(),
      store_id: storeId,
      checkout_id: checkoutId,
      is_expected: isExpected,
      sender: sender?.address ?? null,
      sender_nonce: sender?.nonce ?? null,
    })),
  )
  const isAnyLeft = await makeRoom(tx, network, block.hash, input)
  const rows = await tx.query<{ checkout_id: string | null }>(
    `insert into credits as k (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, nonce, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time,
       included_at, accepted_at, dismissed_at, sender, sender_nonce, witnessed_at, counts)
     select $1, $3, i.log_index, coalesce(e.payment_id, i.payment_id), $4, $5, i.transaction_hash,
       i.position, i.asset, i.payer, i.nonce, i.pay_to, i.amount,
       case when e.checkout_id is null then i.store_id else e.store_id end, coalesce(e.checkout_id, i.checkout_id),
       case when coalesce(e.checkout_id, i.checkout_id) is null then 'unmatched'
         when i.is_expected and e.checkout_id is null and not exists (select 1 from credits o
           where o.checkout_id = i.checkout_id and o.disposition = 'exact') then 'exact'
         else 'overpaid' end,
       coalesce(e.first_seen_block_time, $5), clock(), e.accepted_at, e.dismissed_at,
       coalesce(e.sender, i.sender), coalesce(e.sender_nonce, i.sender_nonce), case when $6 then clock() end, $6
     from json_to_recordset($2) as i (log_index integer, payment_id text, transaction_hash text, position integer,
       asset text, payer text, nonce text, pay_to text, amount numeric, store_id text, checkout_id text,
       is_expected boolean, sender text, sender_nonce bigint)
     cross join lateral (select min(o.payment_id) as payment_id, min(o.first_seen_block_time) as first_seen_block_time,
         max(o.checkout_id) as checkout_id, max(o.store_id) as store_id, max(o.accepted_at) as accepted_at,
         max(o.dismissed_at) as dismissed_at, max(o.sender) as sender, max(o.sender_nonce) as sender_nonce
       from (
         ${creditsOfTransfer('orphaned_at is null')} union all ${creditsOfTransfer('orphaned_at is not null')}
       ) o where not exists (select 1 from credits l where l.network = $1 and l.payment_id = o.payment_id
         and l.position <> o.position and (l.orphaned_at is null
           or (l.orphaned_at, l.block_hash, l.log_index) > (o.orphaned_at, o.block_hash, o.log_index)))) e
     where not ${isKept('i')}
     on conflict (network, block_hash, log_index) do update set
       orphaned_at = null,
       reversed_at = null,
       position = excluded.position,
       witnessed_at = coalesce(k.witnessed_at, excluded.witnessed_at),
       counts = k.counts or excluded.counts,
       announced = case when k.announced in ('reorged', 'reversed') then null else k.announced end,
       checkout_id = coalesce(k.checkout_id, excluded.checkout_id),
       store_id = case when k.checkout_id is null then excluded.store_id else k.store_id end,
       disposition = case
         when k.checkout_id is null then case when excluded.checkout_id is null then 'unmatched' else 'overpaid' end
         when k.disposition = 'exact' and k.orphaned_at is not null and exists (select 1 from credits o
           where o.checkout_id = k.checkout_id and o.disposition = 'exact' and o.orphaned_at is null) then 'overpaid'
         else k.disposition end
     where (k.orphaned_at is not null or (k.witnessed_at is null and $6) or k.position <> excluded.position
         or (k.checkout_id is null and excluded.checkout_id is not null))
       and k.transaction_hash = excluded.transaction_hash and k.asset = excluded.asset and k.payer = excluded.payer
       and k.nonce is not distinct from excluded.nonce and k.pay_to = excluded.pay_to and k.amount = excluded.amount
     returning checkout_id`,
    [network, input, block.hash, block.number, block.time, isWitnessed],
  )
  if (isAnyLeft) await numberLeftOut(tx, network, block.hash)
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}

/** SQL: the credits of the transfer `i`. Live and orphaned ones have different indexes. */
function creditsOfTransfer(liveness: string): string {
  return `select * from credits where network = $1 and asset = i.asset and payer = i.payer and nonce = i.nonce
      and ${liveness}
    union all
    select * from credits where network = $1 and transaction_hash = i.transaction_hash and asset = i.asset
      and payer = i.payer and pay_to = i.pay_to and amount = i.amount and position = i.position
      and nonce is null and i.nonce is null and ${liveness}`
}

/**
 * Each transfer is kept in one place: live in one block only, and numbered among its equals.
 *
 * Equal transfers are those of one transaction with the same token, payer, recipient and amount. `position` numbers
 * them, so that they are found again when the transaction is included in another block. A node may report only part of
 * a block, so a read numbers only the transfers it has, and another read of the same block may number them differently.
 * The last read's numbers count. Transfers that it left out get numbers after those, until a witnessed read decides
 * whether they exist. It does not matter which of several equal transfers has which number.
 */

/** Above every position. Numbers are moved through here, because the unique index checks each row by itself. */
const parkedFrom = 1_000_000_000

/**
 * Prepares for writing a read of a block. Orphans the credits of the same transfers in other blocks, or of the same
 * nonces elsewhere in this block, and frees the numbers of equal transfers that have other numbers now. Returns whether
 * this read left some out. `input` is the read, as JSON.
 */
async function makeRoom(
  tx: Transaction,
  network: string,
  blockHash: string,
  input: string,
): Promise<boolean> {
  const rows = await tx.query<{ is_left_out: boolean }>(
    `with input as (
       select * from json_to_recordset($2) as i (log_index integer, transaction_hash text, position integer, asset text,
         payer text, nonce text, pay_to text, amount numeric)
       where not ${isKept('i')}
     ), found as (
       select k.block_hash, k.log_index, k.block_hash <> $3 as is_replaced
       from (select distinct transaction_hash, asset, payer, pay_to, amount from input) i
       cross join lateral (select * from credits k where k.network = $1 and k.orphaned_at is null
         and k.transaction_hash = i.transaction_hash and k.asset = i.asset and k.payer = i.payer
         and k.pay_to = i.pay_to and k.amount = i.amount offset 0) k
       left join input s on s.log_index = k.log_index and k.block_hash = $3
       where s.position is distinct from k.position
       union all
       select k.block_hash, k.log_index, true from input i
       cross join lateral (select * from credits k where k.network = $1 and k.orphaned_at is null
         and k.asset = i.asset and k.payer = i.payer and k.nonce = i.nonce offset 0) k
       where k.block_hash <> $3 or k.log_index <> i.log_index
     ), moved as (
       select block_hash, log_index, bool_or(is_replaced) as is_replaced from found group by block_hash, log_index
     )
     update credits k set orphaned_at = case when m.is_replaced then clock() end,
       position = case when m.is_replaced then k.position else $4 + k.log_index end
     from moved m
     where k.network = $1 and k.block_hash = m.block_hash and k.log_index = m.log_index
     returning not m.is_replaced and not exists (select 1 from input i where i.log_index = k.log_index) as is_left_out`,
    [network, input, blockHash, parkedFrom],
  )
  return rows.some(({ is_left_out }) => is_left_out)
}

/** After a read was written, gives the transfers that it left out numbers after its own. */
async function numberLeftOut(tx: Transaction, network: string, blockHash: string): Promise<void> {
  await tx.query(
    `with left_out as (
       select k.log_index, row_number() over (partition by k.transaction_hash, k.asset, k.payer, k.pay_to, k.amount
         order by k.log_index) - 1 + (select coalesce(max(o.position) + 1, 0) from credits o
           where o.network = $1 and o.block_hash = $2 and o.orphaned_at is null and o.position < $3
             and o.transaction_hash = k.transaction_hash and o.asset = k.asset and o.payer = k.payer
             and o.pay_to = k.pay_to and o.amount = k.amount) as position
       from credits k
       where k.network = $1 and k.block_hash = $2 and k.orphaned_at is null and k.position >= $3
     )
     update credits k set position = l.position from left_out l
     where k.network = $1 and k.block_hash = $2 and k.log_index = l.log_index`,
    [network, blockHash, parkedFrom],
  )
}
