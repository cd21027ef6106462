import type { Chain, ChainLog } from '../../chains/evm/chain.ts'
import { type NonceEvent, readTransfers } from '../../chains/evm/eip3009.ts'
import { type Concerns, concernsMax } from '../../chains/evm/search.ts'
import type { Listener } from '../../chains/evm/take.ts'
import { readTransactions, type SentTransaction } from '../../chains/evm/transactions.ts'
import type { Hex } from '../../chains/hex.ts'
import { RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { idOfNetwork } from '../../networks.ts'
import { announceUnmatched } from '../credits/announce.ts'
import * as credits from '../credits/rows.ts'
import {
  advanceCredits,
  type Concern,
  findReach,
  mayMatchAt,
  modeOf,
  reportSafe,
  type Seen,
  type SeenPlain,
} from '../credits/rows.ts'
import { allowAlone, isAnyNotFinal, limitsAlone, withdrawUntold } from '../credits/single-provider.ts'
import { type NewCredit, writeCredits } from '../credits/write.ts'
import { readDemand } from '../looks.ts'
import { boundPattern, refundPattern } from '../nonces.ts'
import type { UpdateStatus } from '../rail.ts'
import { authorizationOf, liveCreditOf } from '../rows.ts'
import { reportForeign } from '../settlers/foreign-nonces.ts'
import { listSettlerAddresses, noteMined } from '../settlers/rows.ts'
import { claimByAmount, type Match } from '../transfers/match.ts'
import { recoverClaims } from './recover-claims.ts'

/**
 * Base finalizes the blocks of several minutes at once. Their payments in one transaction would exceed a statement's
 * time limit, and new blocks would wait meanwhile. So finality advances in steps of whole blocks.
 */
const creditsPerStep = 1_000

/** A busy address is busy in every block, so it is reported only this often. */
const unrecordedRestMs = 60 * 60 * 1_000

/**
 * Turns what the follower reads into credits. The only proof of a signed payment is AuthorizationUsed(payer, nonce)
 * directly followed by the Transfer it names: same token, same transaction, in a canonical block, no matter who sent
 * it. Receipts, return values and authorizationState prove nothing: our transaction may have failed because another one
 * had already paid, and a used nonce may have been canceled or spent on something else.
 *
 * Any other Transfer is a plain one. If its amount is reserved at that address, it belongs to that checkout, otherwise
 * to none. A Transfer by authorization waits for its claim: it is matched by amount only once it is safe, and only if
 * nobody has claimed it by then.
 */
export function openListener(ctx: Context, chain: Chain, updateStatus: UpdateStatus): Listener {
  const network = chain.network.caip2
  let notedAt = 0
  const noteUnrecorded = (transfers: number) => {
    if (transfers === 0 || ctx.now().getTime() - notedAt < unrecordedRestMs) return
    notedAt = ctx.now().getTime()
    ctx.log.warn(
      { network: chain.network.id, transfers },
      'a block has too many transfers to unproven wallets, so some that match no checkout are not recorded; if a wallet really belongs to a store, the store should prove it',
    )
  }
  return {
    concerns: (db) => listConcerns(db, network),
    async onBlock(tx, block, logs, { isWitnessed, isDoubted, isAgain }) {
      const seen = readByAsset(logs)
      const withdrawn = isWitnessed && isAgain ? await withdraw(ctx, tx, network, block.hash, seen) : []
      const { found, ...signed } = await findConcerns(tx, network, block.time, seen.authorized)
      const recovered = await recoverClaims(ctx, tx, chain, found)
      const { found: matches, ...plain } = await findMatches(tx, network, block.number, seen.plain)
      noteUnrecorded(signed.unrecorded + plain.unrecorded)
      const sent = await readSenders(chain, matches)
      // This locks checkouts, so it comes after all questions to nodes.
      const concerns = await expect(tx, recovered)
      const paid = await writeCredits(ctx, tx, network, block, { concerns, matches: sent, isWitnessed })
      if (!isWitnessed && !isDoubted && paid.length > 0)
        await allowAlone(tx, network, block.hash, limitsAlone(ctx, chain.network))
      const changed = new Set([...withdrawn, ...paid])
      const spent = listSpent(concerns, seen)
      if (spent.length > 0) await noteSpent(tx, network, block, spent)
      if (concerns.some(({ claim }) => claim?.isForeign)) await hintForeign(tx, network, block.hash)
      const adopted = await adoptUnmatched(tx, network)
      for (const id of adopted) changed.add(id)
      if (changed.size > 0) await updateStatus(tx, [...changed], ctx.now())
      if (adopted.length > 0) crashPoint(ctx, 'adopt-before-commit')
    },
    async onOrphaned(tx, hashes, number) {
      const changed = await credits.orphanCredits(tx, network, hashes)
      await forgetSpentAbove(tx, network, number)
      if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
    },
    accounts: (isComplete) => listSettlerAddresses(ctx.db, network, !isComplete),
    async onNonces(tx, accounts) {
      const foreign = await noteMined(tx, network, accounts)
      tx.afterCommit(() => {
        for (const found of foreign) reportForeign(ctx, { network, ...found })
      })
    },
    readDemand: () => readDemand(ctx.db, network),
    awaitsFinality: () => isAnyNotFinal(ctx.db, network),
    async reach(from, to) {
      const find = (above: number, upTo: number) =>
        findReach(ctx.db, network, { above, upTo }, creditsPerStep)
      const safe = await find(from.safe, to.safe)
      if (safe < to.safe) return { safe, finalized: from.finalized }
      const finalized = await find(from.finalized, to.finalized)
      if (finalized === to.finalized) return to
      return from.safe < to.safe ? { safe, finalized: from.finalized } : { safe, finalized }
    },
    async onFinality(tx, from, to, isLast) {
      // A credit may have been found in a block that was already safe, so the last step covers all of them.
      const isSafety = from.safe < to.safe
      const range = {
        above: isLast || !isSafety ? -1 : from.safe,
        upTo: isLast || isSafety ? to.safe : to.finalized,
      }
      const advanced = await advanceCredits(tx, network, to, range)
      const claimed = await claimByAmount(tx, network, boundPattern)
      const changed = new Set([...advanced.checkoutIds, ...claimed])
      if (changed.size > 0) await updateStatus(tx, [...changed], ctx.now())
      await announceUnmatched(ctx, tx, chain.network)
      reportSafe(ctx, tx, network, advanced.safe)
      return changed.size > 0 || advanced.safe.length > 0
    },
    onCommit() {
      ctx.db.wakeUps.send('outcomes')
      // A new block makes room in the lanes.
      ctx.db.wakeUps.send('claims')
    },
  }
}

/** Marks the first transfer for each checkout that waits for one, and locks the checkout. */
async function expect(tx: Transaction, concerns: readonly credits.Concern[]): Promise<credits.Concern[]> {
  const ids = concerns.flatMap(({ claim }) => (claim?.isMatch && claim.checkoutId) || [])
  const waiting = ids.length === 0 ? new Set() : await credits.lockWaiting(tx, ids)
  return concerns.map(({ seen, claim }) => ({
    seen,
    claim: claim && { ...claim, isExpected: claim.isMatch && waiting.delete(claim.checkoutId) },
  }))
}

/** Removes what an earlier read of the block reported and a witnessed read does not. */
async function withdraw(
  ctx: Context,
  tx: Transaction,
  network: string,
  blockHash: Hex,
  seen: ByAsset,
): Promise<string[]> {
  await forgetSpentIn(tx, network, blockHash)
  const told = [...seen.authorized, ...seen.plain.map((transfer) => ({ ...transfer, nonce: null }))]
  const checkoutIds = await withdrawUntold(tx, network, blockHash, told)
  if (checkoutIds.length > 0)
    ctx.log.error(
      { network: idOfNetwork(network), blockHash, checkoutIds },
      'payments that only one provider had reported are not on the chain, so their checkouts are unpaid again; replace that provider',
    )
  return checkoutIds
}

/**
 * Plain transfers, with sender and account nonce for those that pay a checkout, read while the chain still has the
 * transactions. A credit does not wait for this. Without it, a transfer that the chain removes is given up only after
 * half an hour.
 */
async function readSenders(
  chain: Chain,
  matches: readonly Match[],
): Promise<(Match & Pick<NewCredit, 'sender'>)[]> {
  const hashes = matches.flatMap(({ seen, checkoutId }) => (checkoutId ? seen.transactionHash : []))
  const sent = await readTransactions(chain, hashes).catch((error) => {
    if (!(error instanceof RpcUnavailableError)) throw error
    return new Map<string, SentTransaction>()
  })
  return matches.map((match) => {
    const found = sent.get(match.seen.transactionHash)
    return { ...match, sender: found ? { address: found.from, nonce: found.nonce } : null }
  })
}

/** Nonces that were used up without paying what they were signed for, each with the reason. */
function listSpent(concerns: readonly credits.Concern[], { usedOnly, canceled }: ByAsset) {
  return [
    ...concerns
      .filter(({ claim }) => claim !== null && (!claim.isMatch || claim.isForeign))
      .map(({ seen, claim }) => ({
        asset: seen.asset,
        payer: seen.payer,
        nonce: seen.nonce,
        reason: claim?.isMatch ? 'landed_by_another' : 'nonce_spent_elsewhere',
      })),
    ...usedOnly.map((event) => ({ ...keyOf(event), reason: 'nonce_spent_elsewhere' })),
    ...canceled.map((event) => ({ ...keyOf(event), reason: 'authorization_canceled' })),
  ]
}

type ByAsset = {
  authorized: credits.Seen[]
  plain: credits.SeenPlain[]
  usedOnly: (NonceEvent & { asset: Hex })[]
  canceled: (NonceEvent & { asset: Hex })[]
}

function readByAsset(logs: readonly ChainLog[]): ByAsset {
  const result: ByAsset = { authorized: [], plain: [], usedOnly: [], canceled: [] }
  for (const [asset, group] of Map.groupBy(logs, ({ address }) => address)) {
    const { authorized, plain, usedOnly, canceled } = readTransfers(group)
    // Tokens let anyone transfer zero units from any account. That is not money, but it spends a nonce.
    const isMoney = ({ value }: { value: bigint }) => value > 0n
    const spent = [...usedOnly, ...authorized.filter((transfer) => !isMoney(transfer))]
    result.authorized.push(...authorized.filter(isMoney).map((transfer) => ({ ...transfer, asset })))
    result.plain.push(...plain.filter(isMoney).map((transfer) => ({ ...transfer, asset })))
    result.usedOnly.push(...spent.map((event) => ({ ...event, asset })))
    result.canceled.push(...canceled.map((event) => ({ ...event, asset })))
  }
  return result
}

function keyOf({ asset, payer, nonce }: NonceEvent & { asset: Hex }) {
  return { asset, payer, nonce }
}

/**
 * Gives unmatched money to checkouts whose claim could not be seen when the money was recorded. A nonce bound to the
 * checkout can't have paid for anything else, so its money belongs to the claim. So does money whose authorization was
 * claimed before it landed, as when a block is read later. Any other authorization may have been copied from the chain
 * by somebody who did not pay: its claim is marked as landed by another, and the store gets a hint. Returns the
 * checkouts that got a credit.
 */
export async function adoptUnmatched(tx: Transaction, network: string): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string }>(
    `with waiting as (
       select a.checkout_id, a.store_id, a.network, a.asset, a.payer, a.nonce, 
         a.nonce like $2 or (k.first_seen_block_time + ${blockSecond} > a.claimed_at and not exists (select 1 from wallets w
           where w.store_id = a.store_id and w.pay_to = a.pay_to and w.shared_elsewhere)) as is_own,
         k.payment_id, k.block_number, k.block_hash
       from authorizations a cross join ${liveCreditOf('a')}
       where k.checkout_id is null and k.pay_to = a.pay_to and k.amount = a.amount and a.network = $1
         and a.state in ('claimed', 'sent') and not a.is_credited and a.checkout_id is not null
         and a.spent_reason is distinct from 'landed_by_another'
     ), foreign_landed as (
       update authorizations a set spent_block_number = w.block_number, spent_block_hash = w.block_hash,
         spent_reason = 'landed_by_another'
       from waiting w where not w.is_own and a.network = w.network and a.asset = w.asset and a.payer = w.payer
         and a.nonce = w.nonce
     ), hinted as (
       insert into payment_hints (payment_id, checkout_id, disposition, created_at)
       select payment_id, checkout_id, 'unmatched', clock() from waiting where not is_own
       on conflict do nothing
     ), locked as (
       select id from checkouts where id in (select checkout_id from waiting where is_own)
       order by id for no key update
     )
     update credits k set checkout_id = w.checkout_id, store_id = w.store_id, disposition = 'overpaid'
     from waiting w join locked l on l.id = w.checkout_id
     where w.is_own and k.network = w.network and k.asset = w.asset and k.payer = w.payer and k.nonce = w.nonce
       and k.orphaned_at is null
     returning k.checkout_id`,
    [network, boundPattern],
  )
  return rows.map(({ checkout_id }) => checkout_id)
}

/** Tells the store for which checkout a payment sent by somebody else may be meant. */
async function hintForeign(tx: Transaction, network: string, blockHash: Hex): Promise<void> {
  await tx.query(
    `insert into payment_hints (payment_id, checkout_id, disposition, created_at)
     select k.payment_id, a.checkout_id, 'unmatched', clock() from credits k
     cross join ${authorizationOf('k')}
     where k.network = $1 and k.block_hash = $2 and k.checkout_id is null and a.spent_reason = 'landed_by_another'
       and a.checkout_id is not null
     on conflict do nothing`,
    [network, blockHash],
  )
}

/** Records the block that spent a nonce on something else, or canceled it. */
async function noteSpent(
  tx: Transaction,
  network: string,
  block: { number: number; hash: Hex },
  spent: readonly { asset: string; payer: string; nonce: string; reason: string }[],
): Promise<void> {
  await tx.query(
    `update authorizations a set spent_block_number = $3, spent_block_hash = $4, spent_reason = i.reason
     from json_to_recordset($2) as i (asset text, payer text, nonce text, reason text)
     where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce`,
    [network, JSON.stringify(spent), block.number, block.hash],
  )
}

export async function forgetSpentAbove(tx: Transaction, network: string, number: number): Promise<void> {
  await tx.query(
    `update authorizations set spent_block_number = null, spent_block_hash = null, spent_reason = null
     where network = $1 and spent_block_number > $2`,
    [network, number],
  )
}

async function forgetSpentIn(tx: Transaction, network: string, blockHash: Hex): Promise<void> {
  await tx.query(
    `update authorizations set spent_block_number = null, spent_block_hash = null, spent_reason = null
     where network = $1 and spent_block_hash = $2`,
    [network, blockHash],
  )
}

/**
 * The addresses that a chain is searched for. Recipients are all wallets of stores, and those named by claims and
 * reserved amounts. Authorizers are the payers of unresolved authorizations; after a restore also the stores' wallets,
 * because refunds that they signed may be unknown. Null if there are too many to name.
 */
async function listConcerns(db: Database | Transaction, network: string): Promise<Concerns> {
  const unresolved = `select payer, pay_to from authorizations
      where network = $1 and state in ('claimed', 'sent') and not is_credited
    union all
    select payer, pay_to from authorizations where network = $1 and state = 'prepared'
    union all
    select a.payer, a.pay_to from checkouts c join authorizations a on a.checkout_id = c.id and a.network = $1
      and a.state in ('rejected', 'dead') where c.status = 'PROCESSING'`
  const ours = `select w.pay_to from wallets w join stores s on s.id = w.store_id and s.mode = $2
    where w.family = 'EVM'`
  const rows = await db.query<{ recipients: Hex[]; authorizers: Hex[] }>(
    `with unresolved as materialized (${unresolved}), ours as materialized (
       select distinct pay_to from (${ours}) w limit $3)
     select array(select pay_to from ours union select pay_to from unresolved
         union select pay_to from reserved_amounts where network = $1 and freed_at is null limit $3) as recipients,
       array(select payer from unresolved
         union select pay_to from ours where exists (select 1 from restores where network = $1)
         limit $3) as authorizers`,
    [network, modeOf(network), concernsMax + 1],
  )
  const named = (addresses: readonly Hex[] = []) =>
    addresses.length > concernsMax ? null : new Set<Hex>(addresses)
  return { recipients: named(rows[0]?.recipients), authorizers: named(rows[0]?.authorizers) }
}

/**
 * For this long after a store retires an unproven wallet, money to it is still recorded: as long as an amount stays
 * reserved.
 */
const retiredDays = 9
/**
 * How many unmatched transfers of a block are recorded for unproven wallets: per wallet, and in total. Anybody can
 * register somebody else's busy address, and each network has one follower for all stores.
 */
const unprovenMax = { perWallet: 20, perBlock: 200 }

/**
 * SQL: how stores of this mode relate to an address. `is_proven`: one has proven it. `is_registered`: one has
 * registered it and has not retired it long ago. Both are null if no store knows it.
 */
const oursAt = (
  address: string,
  mode: string,
) => `lateral (select bool_or(w.proven_at is not null) as is_proven,
    bool_or(w.retired_at is null or w.retired_at > clock() - interval '${retiredDays} days') as is_registered
  from wallets w join stores s on s.id = w.store_id and s.mode = ${mode} where w.pay_to = ${address} offset 0)`

/**
 * SQL: of the transfers `f`, each with its place in the block, those that we know (`is_known`), those to proven
 * wallets, and as many others as the limits allow. `unrecorded` is the number left out. While a restore is reconciled
 * there is no limit, because a payment whose claim was lost looks like an unmatched one. $1 is the network.
 */
const withinBudget = (
  found: string,
) => `select *, count(*) filter (where not is_within) over () as unrecorded from (
    select *, is_free or (is_next and count(*) filter (where is_next) over (order by place) <= ${unprovenMax.perBlock}) as is_within
    from (
      select *, is_known or coalesce(is_proven, false)
          or exists (select 1 from restores r where r.network = $1 and r.finished_at is null) as is_free,
        not is_known and not coalesce(is_proven, false) and is_registered
          and row_number() over (partition by pay_to, is_known order by place) <= ${unprovenMax.perWallet} as is_next
      from (${found}) f where is_known or is_proven or is_registered) g) h`

/** Block times are whole seconds, so a block may be this much later than its time. */
const blockSecond = "interval '1 second'"

/** The transfers that concern us, and how many transfers to unproven wallets exceed the limits. */
type Found<One> = { readonly found: One[]; readonly unrecorded: number }

/**
 * The transfers by authorization in a block that concern us, in one query per block. A transfer from a store's wallet
 * with a refund's nonce counts even if we know of no refund: a restored database may have forgotten it.
 */
export async function findConcerns(
  tx: Transaction,
  network: string,
  blockTime: Date,
  seen: readonly Seen[],
): Promise<Found<Concern>> {
  if (seen.length === 0) return { found: [], unrecorded: 0 }
  const rows = await tx.query<{
    place: number
    is_claimed: boolean
    checkout_id: string | null
    store_id: string | null
    is_match: boolean | null
    is_foreign: boolean | null
    is_within: boolean
    unrecorded: string
  }>(
    `${withinBudget(`select i.place, i.pay_to, o.is_proven, o.is_registered,
       a.nonce is not null or (i.nonce like $5 and exists (select 1 from wallets w
         join stores s on s.id = w.store_id and s.mode = $3 where w.pay_to = i.payer)) as is_known,
       a.nonce is not null as is_claimed, a.checkout_id, a.store_id,
       a.pay_to = i.pay_to and a.amount = i.amount as is_match,
       a.sends = 0 and a.refund_id is null and a.nonce not like $4 and (
         exists (select 1 from wallets w where w.store_id = a.store_id and w.pay_to = a.pay_to and w.shared_elsewhere)
         or $6::timestamptz + ${blockSecond} <= a.claimed_at or exists (select 1 from credits o where o.network = $1 and o.asset = a.asset
           and o.payer = a.payer and o.nonce = a.nonce and o.first_seen_block_time + ${blockSecond} <= a.claimed_at offset 0)) as is_foreign
     from json_to_recordset($2) as i (place integer, asset text, payer text, nonce text, pay_to text, amount numeric)
     left join ${authorizationOf('i', '$1')} on true
     cross join ${oursAt('i.pay_to', '$3')} o`)} order by place`,
    [
      network,
      JSON.stringify(
        seen.map(({ asset, payer, nonce, to, value }, place) => ({
          place,
          asset,
          payer,
          nonce,
          pay_to: to,
          amount: value.toString(),
        })),
      ),
      modeOf(network),
      boundPattern,
      refundPattern,
      blockTime,
    ],
  )
  return withinOf(rows, (row) => {
    const found = seen[row.place]
    if (!found) return []
    return {
      seen: found,
      claim: row.is_claimed
        ? {
            checkoutId: row.checkout_id,
            storeId: row.store_id,
            isMatch: row.is_match === true,
            isForeign: row.is_foreign === true,
          }
        : null,
    }
  })
}

function withinOf<Row extends { is_within: boolean; unrecorded: string }, One>(
  rows: readonly Row[],
  read: (row: Row) => One | never[],
): Found<One> {
  const found = rows.filter(({ is_within }) => is_within).flatMap(read) as One[]
  return { found, unrecorded: Number.parseInt(rows[0]?.unrecorded ?? '0', 10) }
}

/** The plain transfers in a block that concern us, in one query per block. */
export async function findMatches(
  tx: Transaction,
  network: string,
  blockNumber: number,
  seen: readonly SeenPlain[],
): Promise<Found<Match>> {
  if (seen.length === 0) return { found: [], unrecorded: 0 }
  const rows = await tx.query<{
    place: number
    checkout_id: string | null
    store_id: string | null
    is_within: boolean
    unrecorded: string
  }>(
    `${withinBudget(`select i.place, i.pay_to, o.is_proven, o.is_registered, c.id is not null as is_known,
       c.id as checkout_id, c.store_id
     from json_to_recordset($2) as i (place integer, asset text, pay_to text, amount numeric)
     left join reserved_amounts r on r.network = $1 and r.asset = i.asset and r.pay_to = i.pay_to
       and r.amount = i.amount and r.freed_at is null and r.after_block < $3
     left join checkouts c on c.id = r.checkout_id and ${mayMatchAt('c.store_id', 'r.pay_to', '$4')}
     cross join ${oursAt('i.pay_to', '$4')} o`)} order by place`,
    [
      network,
      JSON.stringify(
        seen.map(({ asset, to, value }, place) => ({ place, asset, pay_to: to, amount: value.toString() })),
      ),
      blockNumber,
      modeOf(network),
    ],
  )
  return withinOf(rows, ({ place, checkout_id, store_id }) => {
    const found = seen[place]
    return found ? { seen: found, checkoutId: checkout_id, storeId: store_id } : []
  })
}
