import type { Chain, ChainLog } from '../../chains/evm/chain.ts'
import { type NonceEvent, readTransfers } from '../../chains/evm/eip3009.ts'
import type { Listener } from '../../chains/evm/take.ts'
import { readTransactions, type SentTransaction } from '../../chains/evm/transactions.ts'
import type { Hex } from '../../chains/hex.ts'
import { RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Transaction } from '../../database/db.ts'
import { appendEvent, newEvent } from '../../events/append.ts'
import { idOfNetwork } from '../../networks.ts'
import { toPayment } from '../credits/credit.ts'
import { advanceCredits, findReach, reportSafe } from '../credits/finality.ts'
import * as credits from '../credits/rows.ts'
import { allowAlone, isAnyNotFinal, limitsAlone, withdrawUntold } from '../credits/single-provider.ts'
import { type NewCredit, writeCredits } from '../credits/write.ts'
import { readDemand } from '../looks.ts'
import { boundPattern } from '../nonces.ts'
import type { UpdateStatus } from '../rail.ts'
import { liveCreditOf } from '../rows.ts'
import { reportForeign } from '../settlers/foreign-nonces.ts'
import { listSettlerAddresses, noteMined } from '../settlers/rows.ts'
import { claimByAmount, type Match } from '../transfers/match.ts'
import { recoverClaims } from './recover-claims.ts'
import {
  blockSecond,
  findConcerns,
  findMatches,
  forgetSpentAbove,
  forgetSpentIn,
  hintForeign,
  listConcerns,
  noteSpent,
} from './rows.ts'

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
      await announceUnmatched(ctx, tx, chain)
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

/** Announces unmatched payments, but only once they are safe: until then a claim may still arrive. */
async function announceUnmatched(ctx: Context, tx: Transaction, chain: Chain): Promise<void> {
  const network = chain.network.caip2
  const unmatched = await credits.listUnannounced(tx, network)
  const isNews = (row: (typeof unmatched)[number]) =>
    row.ownerId !== null && row.amount >= dustUnits(chain, row.asset) && !row.dismissedAt
  for (const row of unmatched) {
    if (row.ownerId === null || !isNews(row)) continue
    const data = { checkout: null, payment: toPayment(row) }
    await appendEvent(tx, newEvent(ctx, row.ownerId, null, { type: 'payment.unmatched', data }, ctx.now()))
  }
  if (unmatched.length === 0) return
  await credits.noteAnnounced(tx, network, [...new Set(unmatched.map(({ paymentId }) => paymentId))])
  // A payment has one row per store that may decide about it.
  const found = new Map(unmatched.filter(isNews).map((row) => [row.paymentId, row]))
  tx.afterCommit(() => {
    for (const { paymentId, transaction, amount } of found.values()) {
      ctx.metrics.payments.inc({ network: chain.network.id, outcome: 'unmatched' })
      ctx.log.info(
        { paymentId, network: chain.network.id, txHash: transaction, amount: `${amount}` },
        'payment belongs to no checkout; its store decides about it',
      )
    }
  })
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

/** Below a cent is dust: it gets a row, but no event and no log line. */
function dustUnits({ network }: Chain, asset: string): bigint {
  const token = network.assets.find(({ address }) => address.toLowerCase() === asset)
  return 10n ** BigInt((token?.decimals ?? 6) - 2)
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
