import type { Hex } from '../chains/hex.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { RefundOrder, Transfer } from './rail.ts'
import {
  type AuthorizationKey,
  type AuthorizationRow,
  type Authorized,
  contractRest,
  toAuthorized,
} from './rows.ts'

/**
 * SQL for refunds as authorizations, in which the store's wallet pays the recipient. A row is `prepared` before
 * anything is handed out to be signed, because from then on a signature may exist that we never see.
 */

/** The authorization to sign, and until when it can move money, by the chain's own clock. */
export type HandOut = {
  readonly nonce: string
  readonly validBefore: bigint
  /** If less than this is left of a window that was handed out before, a new one is opened. */
  readonly renewedBefore: bigint
  readonly isContract: boolean
  readonly settler?: string | null
}

export type WrittenHandOut = {
  readonly nonce: string
  readonly validBefore: bigint
  /** Whether nothing was handed out with this nonce before. */
  readonly isNew: boolean
}

/**
 * Writes the authorization that is about to be handed out, under the refund's lock. If one was handed out for the same
 * refund before, it stays or gets a later end, never an earlier one, because a wallet may have signed it. A nonce that
 * expired unused may be handed out again, for this refund or, if the refund that had it has ended, for another. Null if
 * the nonce is not free.
 */
export async function writeHandOut(
  tx: Transaction,
  network: string,
  order: RefundOrder,
  { nonce, validBefore, renewedBefore, isContract, settler = null }: HandOut,
): Promise<WrittenHandOut | null> {
  const [row] = await tx.query<{ nonce: string; valid_before: string; is_new: boolean }>(
    `insert into authorizations as a (network, asset, payer, nonce, store_id, refund_id, state, pay_to, amount,
       valid_after, valid_before, signature, is_contract, settler, claimed_at)
     select $1, $2, $3, $4, $5, $6, 'prepared', $7, $8::numeric, 0, $9::numeric, '', $10, $11, clock()
     where not exists (select 1 from credits k where k.network = $1 and k.asset = $2 and k.payer = $3 and k.nonce = $4
       and k.orphaned_at is null)
     on conflict (payer, nonce, asset, network) do update set state = 'prepared', store_id = excluded.store_id,
       refund_id = excluded.refund_id, pay_to = excluded.pay_to, amount = excluded.amount,
       valid_before = case when a.valid_before > $12::numeric then a.valid_before
         else greatest(a.valid_before, excluded.valid_before) end,
       is_contract = excluded.is_contract, settler = excluded.settler, signature = '', reason = null,
       resolved_at = null, sends = 0, failed_at = null, spent_block_number = null, spent_block_hash = null,
       spent_reason = null, claimed_at = case when a.state = 'prepared' then a.claimed_at else clock() end
       where (a.state = 'prepared' and a.refund_id = $6 and a.spent_block_number is null)
         or (a.state = 'dead' and a.reason = 'authorization_expired' and a.refund_id = any($13::text[]))
     returning a.nonce, a.valid_before, a.xmax = 0 as is_new`,
    [
      network,
      order.asset,
      order.wallet,
      nonce,
      order.storeId,
      order.refundId,
      order.recipient,
      order.amount.toString(),
      validBefore.toString(),
      isContract,
      settler,
      renewedBefore.toString(),
      [order.refundId, ...order.endedIds],
    ],
  )
  return row ? { nonce: row.nonce, validBefore: BigInt(row.valid_before), isNew: row.is_new } : null
}

/** Gives up nonces that were chosen for a refund and turned out to be spent before they were handed out. */
export async function giveUpSpent(
  tx: Transaction,
  network: string,
  { asset, wallet, refundId }: RefundOrder,
  nonces: readonly string[],
): Promise<void> {
  await tx.query(
    `update authorizations set state = 'dead', reason = 'nonce_spent_elsewhere', resolved_at = clock()
     where network = $1 and asset = $2 and payer = $3 and nonce = any($4::text[]) and refund_id = $5
       and state = 'prepared'`,
    [network, asset, wallet, nonces, refundId],
  )
}

/** The authorization that was handed out for a refund with this nonce. */
export async function readHandOut<Address extends string = Hex>(
  db: Database | Transaction,
  network: string,
  { asset, wallet, refundId }: Pick<RefundOrder, 'asset' | 'wallet' | 'refundId'>,
  nonce: string,
): Promise<Authorized<Address> | null> {
  const [row] = await db.query<AuthorizationRow<Address>>(
    `select * from authorizations
     where network = $1 and asset = $2 and payer = $3 and nonce = $4 and refund_id = $5`,
    [network, asset, wallet, nonce, refundId],
  )
  return row ? toAuthorized(row) : null
}

/**
 * Records the wallet's signature, so that a lane may send it. False if a different window was handed out since it was
 * verified, or if it is already signed or dead.
 */
export async function claimHandOut(
  tx: Transaction,
  network: string,
  refundId: string,
  { asset, authorization, signature, isContract, settler }: Transfer,
): Promise<boolean> {
  const rows = await tx.query(
    `update authorizations set state = 'claimed', signature = decode($5, 'hex'), is_contract = $6, settler = $9
     where network = $1 and asset = $2 and payer = $3 and nonce = $4 and refund_id = $7 and state = 'prepared'
       and valid_before = $8::numeric
     returning nonce`,
    [
      network,
      asset,
      authorization.from,
      authorization.nonce,
      signature.slice(2),
      isContract,
      refundId,
      authorization.validBefore.toString(),
      settler ?? null,
    ],
  )
  return rows.length > 0
}

/** Records why signed refunds wait, for the store to read. */
export async function noteWaiting(
  db: Database,
  network: string,
  waiting: readonly (AuthorizationKey & { readonly reason: string })[],
): Promise<void> {
  await db.query(
    `update authorizations a set reason = i.reason
     from json_to_recordset($2) as i (asset text, payer text, nonce text, reason text)
     where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce and a.state = 'claimed'
       and a.refund_id is not null and a.reason is distinct from i.reason`,
    [network, JSON.stringify(waiting)],
  )
}

/** Whether a contract wallet's transfer was lately mined without effect. If so, lanes send nothing for that wallet. */
export async function hasFailedLately(db: Database, network: string, wallet: string): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from authorizations where network = $1 and payer = $2 and is_contract
       and failed_at > clock() - ${contractRest} limit 1`,
    [network, wallet],
  )
  return rows.length > 0
}

/** Assigns an authorization that was found on the chain after a restore to the refund that it paid. */
export async function ownRecovered(
  tx: Transaction,
  refund: {
    readonly storeId: string
    readonly network: string
    readonly asset: string
    readonly wallet: string
  },
  refundId: string,
  nonce: string,
): Promise<void> {
  await tx.query(
    `update authorizations set refund_id = $5, store_id = $6 where network = $1 and asset = $2 and payer = $3 and nonce = $4
       and refund_id is null and checkout_id is null`,
    [refund.network, refund.asset, refund.wallet, nonce, refundId, refund.storeId],
  )
}
