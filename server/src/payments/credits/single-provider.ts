import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { Network } from '../../networks.ts'
import { erasedPosition, placeOutside, type SeenPlain } from './rows.ts'

/**
 * What one provider alone may complete on a network, in units of each token. Every token is worth a US dollar, so one
 * setting serves all.
 */
export function limitsAlone({ config }: Context, { assets }: Network): Map<string, bigint> {
  return new Map(
    assets.map(({ address, decimals }) => [
      address.toLowerCase(),
      BigInt(config.singleNodeUpTo) * 10n ** BigInt(decimals),
    ]),
  )
}

/** SQL for credits that too few providers have reported, or that one made up. */

/**
 * The part of the limits that is used by credits that count although only one provider reported them. Withdrawn
 * credits, which such a provider made up, use their part for a day, so that it can't keep making up new ones.
 */
const usedAlone = `
  select coalesce(sum(k.amount / l.units), 0) as share from credits k join limits l on l.asset = k.asset and l.units > 0
  where k.network = $1 and k.counts and k.checkout_id is not null
    and ((k.witnessed_at is null and k.orphaned_at is null)
      or (k.log_index < 0 and k.orphaned_at > clock() - interval '1 day'))`

/**
 * Counts credits that only one provider has reported, oldest first, as long as all such credits of the network together
 * stay within the limits. A limit is per asset, in units; each credit uses up its share of it. The caller holds the
 * network's lock.
 */
export async function allowAlone(
  tx: Transaction,
  network: string,
  blockHash: string,
  limits: ReadonlyMap<string, bigint>,
): Promise<void> {
  const input = [...limits].map(([asset, units]) => ({ asset, units: units.toString() }))
  await tx.query(
    `with limits as (
       select * from json_to_recordset($3) as i (asset text, units numeric) where units > 0
     ), used as (${usedAlone}), asked as (
       select k.log_index, sum(k.amount / l.units) over (order by k.log_index) as share
       from credits k join limits l on l.asset = k.asset
       where k.network = $1 and k.block_hash = $2 and k.witnessed_at is null and k.orphaned_at is null and not k.counts
         and k.checkout_id is not null
     )
     update credits k set counts = true from asked a, used u
     where k.network = $1 and k.block_hash = $2 and k.log_index = a.log_index and a.share + u.share <= 1`,
    [network, blockHash, JSON.stringify(input)],
  )
}

/** The part of each limit that is left for new payments, after what claimed payments will need. */
export async function readAloneLeft(
  db: Database,
  network: string,
  limits: ReadonlyMap<string, bigint>,
): Promise<Map<string, bigint>> {
  const input = [...limits].map(([asset, units]) => ({ asset, units: units.toString() }))
  const rows = await db.query<{ asset: string; units_left: string }>(
    `with limits as (
       select * from json_to_recordset($2) as i (asset text, units numeric)
     ), used as (${usedAlone}), claimed as (
       select coalesce(sum(a.amount / l.units), 0) as share
       from authorizations a join limits l on l.asset = a.asset and l.units > 0
       where a.network = $1 and a.state in ('claimed', 'sent') and not a.is_credited and a.refund_id is null
     )
     select asset, greatest(0, floor(units * (1 - used.share - claimed.share)))::text as units_left
     from limits, used, claimed`,
    [network, JSON.stringify(input)],
  )
  return new Map(rows.map(({ asset, units_left }) => [asset, BigInt(units_left)]))
}

/**
 * Withdraws credits of a block that a witnessed read of it does not contain, because a provider made them up. They give
 * up their place on the chain to the real transfer. Credits whose payer was erased are left out: they no longer match
 * what was read, and they are final. Returns the checkouts affected.
 */
export async function withdrawUntold(
  tx: Transaction,
  network: string,
  blockHash: string,
  reported: readonly (SeenPlain & { readonly nonce: string | null })[],
): Promise<string[]> {
  const input = reported.map(({ logIndex, transactionHash, asset, payer, nonce, to, value }) => ({
    log_index: logIndex,
    transaction_hash: transactionHash,
    asset,
    payer,
    nonce,
    pay_to: to,
    amount: value.toString(),
  }))
  const rows = await tx.query<{ checkout_id: string | null }>(
    `with untold as (
       select k.log_index, ${placeOutside('k')} as place
       from credits k where k.network = $1 and k.block_hash = $2 and k.log_index >= 0 and k.position < ${erasedPosition} and not exists (
         select 1 from json_to_recordset($3) as i (log_index integer, transaction_hash text, asset text, payer text,
           nonce text, pay_to text, amount numeric)
         where i.log_index = k.log_index and i.transaction_hash = k.transaction_hash and i.asset = k.asset
           and i.payer = k.payer and i.nonce is not distinct from k.nonce and i.pay_to = k.pay_to and i.amount = k.amount)
     )
     update credits k set orphaned_at = coalesce(k.orphaned_at, clock()), safe_at = null, finalized_at = null,
       log_index = u.place
     from untold u where k.network = $1 and k.block_hash = $2 and k.log_index = u.log_index
     returning k.checkout_id`,
    [network, blockHash, JSON.stringify(input)],
  )
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}

/** Whether a credit of the network is not final yet, or an authorization not resolved. */
export async function isAnyNotFinal(db: Database, network: string): Promise<boolean> {
  const rows = await db.query(
    `(select 1 as one from credits where network = $1 and orphaned_at is null and finalized_at is null limit 1)
     union all
     (select 1 as one from authorizations where network = $1 and state in ('claimed', 'sent') and not is_credited limit 1)
     union all
     (select 1 as one from refunds where network = $1 and way = 'self-sent' and status = 'SENT' limit 1)`,
    [network],
  )
  return rows.length > 0
}
