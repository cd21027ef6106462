import type { Chain, Hex, Log } from '../../chains/chain.ts'
import { decodeAggregate, readManyParams } from '../../chains/chain.ts'
import {
  type Authorization,
  authorizationStateCalldata,
  type NonceEvent,
  readTransfers,
  topics,
} from '../../chains/eip3009.ts'
import { type Listener, readBlocksAgain } from '../../chains/follower.ts'
import { readFollower, readStoredBlocks, readStoredRange } from '../../chains/rows.ts'
import { RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Transaction } from '../../db.ts'
import { appendEvent, newEvent } from '../../events/append.ts'
import { boundPattern } from '../bound-nonce.ts'
import { noteMined } from '../lanes/rows.ts'
import type { UpdateStatus } from '../rail.ts'
import { claimByAmount, findMatches } from '../transfers/rows.ts'
import { maxTimeoutSeconds } from '../verify.ts'
import { bury } from './bury.ts'
import { toPayment } from './credit.ts'
import { forgetSpentAbove, listPerhapsDead, listTakenBack, noteSpent } from './dead-rows.ts'
import { finishReconciling, recoverClaims } from './reconcile.ts'
import { listSettlerAddresses } from './reconcile-rows.ts'
import * as credits from './rows.ts'
import { writeCredits } from './write.ts'

/**
 * Makes credits of what the follower reads. The only proof of a signed payment is AuthorizationUsed(payer, nonce) and,
 * directly after it, the Transfer it names: same token, same transaction, in a block of the chain, whoever sent it.
 * Receipts, return values and authorizationState prove nothing: a failed transaction of ours may have been overtaken by
 * another's that paid, and a used nonce may have been canceled or spent on something else.
 *
 * Any other Transfer is a plain one. It belongs to the checkout that its amount is reserved for at that address, and to
 * none otherwise. A Transfer by authorization is left to its claim: its amount counts only once it is safe, if nobody
 * has claimed it by then.
 */
export function openListener(ctx: Context, chain: Chain, updateStatus: UpdateStatus): Listener {
  const network = chain.network.caip2
  return {
    async onBlock(tx, block, logs) {
      const seen = readByAsset(logs)
      const found = await credits.findConcerns(tx, network, seen.authorized)
      const concerns = await recoverClaims(ctx, tx, chain, found)
      const matches = await findMatches(tx, network, block.number, seen.plain)
      const senders = await readSenders(
        chain,
        matches.map(({ seen }) => seen.transactionHash),
      )
      const paid = await writeCredits(
        ctx,
        tx,
        network,
        block,
        concerns,
        matches.map((match) => ({ ...match, sender: senders.get(match.seen.transactionHash) ?? null })),
      )
      const changed = new Set(paid)
      const spent = [
        ...concerns
          .filter(({ claim }) => claim !== null && !claim.isMatch)
          .map(({ seen }) => ({
            asset: seen.asset,
            payer: seen.payer,
            nonce: seen.nonce,
            reason: 'nonce_spent_elsewhere',
          })),
        ...seen.usedOnly.map((event) => ({ ...keyOf(event), reason: 'nonce_spent_elsewhere' })),
        ...seen.canceled.map((event) => ({ ...keyOf(event), reason: 'authorization_canceled' })),
      ]
      if (spent.length > 0) await noteSpent(tx, network, block, spent)
      const adopted = await credits.adoptUnmatched(tx, network)
      for (const id of adopted) changed.add(id)
      if (changed.size > 0) await updateStatus(tx, [...changed], ctx.now())
      if (adopted.length > 0) crashPoint(ctx, 'adopt-before-commit')
    },
    async onOrphaned(tx, hashes, number) {
      const changed = await credits.orphanCredits(tx, network, hashes)
      await forgetSpentAbove(tx, network, number)
      if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
    },
    accounts: () => listSettlerAddresses(ctx.db, network),
    onNonces: (tx, accounts) => noteMined(tx, network, accounts),
    async onFinality(tx, safe, finalized) {
      const changed = await credits.advanceCredits(tx, network, safe, finalized)
      changed.push(...(await claimByAmount(tx, network, boundPattern)))
      if (changed.length > 0) await updateStatus(tx, [...new Set(changed)], ctx.now())
      await announceUnmatched(ctx, tx, network)
    },
    onCommit() {
      ctx.db.wakeUps.send('outcomes')
      // A block makes room in the lanes.
      ctx.db.wakeUps.send('claims')
    },
  }
}

/** Below a cent of a 6-decimal token it is dust: a row, but no event. */
const announcedUnitsMin = 10_000n

/** Told only when it is safe: until then its claim may still be on the way to us. */
async function announceUnmatched(ctx: Context, tx: Transaction, network: string): Promise<void> {
  const unmatched = await credits.listUnannounced(tx, network)
  for (const row of unmatched) {
    if (row.amount < announcedUnitsMin || row.dismissedAt) continue
    const data = { checkout: null, payment: toPayment(row) }
    await appendEvent(tx, newEvent(ctx, row.storeId, 'payment.unmatched', data, ctx.now()))
  }
  if (unmatched.length > 0)
    await credits.noteAnnounced(
      tx,
      network,
      unmatched.map(({ paymentId }) => paymentId),
    )
}

/**
 * Who sent the transactions of plain transfers, with which account nonces: it is asked for while the chain has them. A
 * credit does not wait for it; without it, a transfer that the chain takes back is given up only after its time.
 */
async function readSenders(
  chain: Chain,
  hashes: readonly string[],
): Promise<Map<string, { address: Hex; nonce: number }>> {
  const senders = new Map<string, { address: Hex; nonce: number }>()
  const asked = [...new Set(hashes)]
  const calls = asked.map((hash) => ({ method: 'eth_getTransactionByHash', params: [hash] }))
  const outcomes = await chain.rpc.batch(calls).catch((error) => {
    if (!(error instanceof RpcUnavailableError)) throw error
    return []
  })
  for (const [i, hash] of asked.entries()) {
    const outcome = outcomes[i]
    if (!outcome || 'error' in outcome) continue
    const { from, nonce } = outcome.result as { from: Hex; nonce: Hex }
    senders.set(hash, { address: from.toLowerCase() as Hex, nonce: Number.parseInt(nonce, 16) })
  }
  return senders
}

type ByAsset = {
  authorized: credits.Seen[]
  plain: credits.SeenPlain[]
  usedOnly: (NonceEvent & { asset: Hex })[]
  canceled: (NonceEvent & { asset: Hex })[]
}

function readByAsset(logs: readonly Log[]): ByAsset {
  const result: ByAsset = { authorized: [], plain: [], usedOnly: [], canceled: [] }
  for (const [asset, group] of Map.groupBy(logs, ({ address }) => address)) {
    const { authorized, plain, usedOnly, canceled } = readTransfers(group)
    // Tokens let anybody move nothing from anybody: that is not money.
    const isMoney = ({ value }: { value: bigint }) => value > 0n
    result.authorized.push(...authorized.filter(isMoney).map((transfer) => ({ ...transfer, asset })))
    result.plain.push(...plain.filter(isMoney).map((transfer) => ({ ...transfer, asset })))
    result.usedOnly.push(...usedOnly.map((event) => ({ ...event, asset })))
    result.canceled.push(...canceled.map((event) => ({ ...event, asset })))
  }
  return result
}

function keyOf({ asset, payer, nonce }: NonceEvent & { asset: Hex }) {
  return { asset, payer, nonce }
}

const buriedPerRun = 200

/**
 * Proves authorizations dead: at negative depth, by as many nodes as the network asks for, either a block is as late as
 * validBefore and the nonce is unused in it, or the nonce was spent on something else or canceled. Nothing less lets a
 * payer be asked to sign again after something was sent.
 */
export async function buryDead(ctx: Context, chain: Chain, updateStatus: UpdateStatus): Promise<number> {
  const network = chain.network.caip2
  const stored = await readStoredBlocks(
    ctx.db,
    network,
    Number.MAX_SAFE_INTEGER,
    chain.network.negativeDepth + 1,
  )
  const deep = stored[chain.network.negativeDepth]
  if (!deep) return 0
  await finishReconciling(ctx, network, deep.time)
  const candidates = [
    ...(await listPerhapsDead(ctx.db, network, deep, buriedPerRun)),
    ...(await listTakenBack(ctx.db, network, deep, buriedPerRun)),
  ]
  if (candidates.length === 0) return 0
  const states = await readStates(
    chain,
    deep.hash,
    candidates.map(({ transfer }) => transfer),
  )
  const seconds = BigInt(Math.floor(deep.time.getTime() / 1_000))
  const safeSeconds = await readSafeSeconds(ctx, network)
  const unpaid = new Set<Authorization>()
  for (const [i, { transfer, spentReason }] of candidates.entries()) {
    const { authorization } = transfer
    if (states[i] !== true || spentReason !== null || authorization.validBefore > safeSeconds) continue
    const uses = await findUses(ctx, chain, transfer)
    if (uses?.length === 0) unpaid.add(authorization)
    else if (uses) await readBlocksAgain(ctx, chain, uses, openListener(ctx, chain, updateStatus))
  }
  const dead = candidates.flatMap(({ transfer: { asset, authorization }, spentReason }, i) => {
    const isUsed = states[i]
    const key = { asset, payer: authorization.from, nonce: authorization.nonce }
    if (isUsed === true && spentReason !== null) return { ...key, reason: spentReason }
    if (isUsed === false && authorization.validBefore <= seconds)
      return { ...key, reason: 'authorization_expired' }
    // Used, and not noted by what: it was used before it was claimed. Every block in which it could have paid has been
    // read twice once one as late as validBefore is safe; until then the follower may still find that it did. And
    // enough nodes say that it is in none of them.
    if (unpaid.has(authorization)) return { ...key, reason: 'nonce_spent_elsewhere' }
    return []
  })
  return dead.length === 0 ? 0 : await bury(ctx, network, dead, updateStatus)
}

/** Longer than any authorization is good for when it is claimed. */
const searchedSeconds = maxTimeoutSeconds + 120

/**
 * The blocks in which a nonce was used while it could have paid, as any node has them: two readings through a node that
 * hides a payment miss it twice. Null where too few nodes answered to say that there is none.
 */
async function findUses(
  ctx: Context,
  chain: Chain,
  { asset, authorization: { from, nonce, validBefore } }: { asset: string; authorization: Authorization },
): Promise<Hex[] | null> {
  const end = Number.parseInt(validBefore.toString(), 10)
  const range = await readStoredRange(
    ctx.db,
    chain.network.caip2,
    new Date((end - searchedSeconds) * 1_000),
    new Date(end * 1_000),
  )
  if (!range) return []
  const answers = await chain.rpc.callAll<{ blockHash: Hex }[]>('eth_getLogs', [
    {
      address: asset,
      fromBlock: `0x${range.first.toString(16)}`,
      toBlock: `0x${range.last.toString(16)}`,
      topics: [topics.authorizationUsed, `0x${from.slice(2).padStart(64, '0')}`, nonce],
    },
  ])
  const found = new Set(answers.flat().map(({ blockHash }) => blockHash.toLowerCase() as Hex))
  return found.size > 0 || answers.length >= chain.network.witnessesMin ? [...found] : null
}

/** Time of the newest block that was read a second time. */
async function readSafeSeconds(ctx: Context, network: string): Promise<bigint> {
  const follower = await readFollower(ctx.db, network)
  const [safe] = await readStoredBlocks(ctx.db, network, follower?.safeNumber ?? 0, 1)
  return BigInt(Math.floor((safe?.time.getTime() ?? 0) / 1_000))
}

/** Whether each nonce is used at a block, where enough nodes agree; null where they do not. */
async function readStates(
  chain: Chain,
  blockHash: Hex,
  transfers: readonly { asset: string; authorization: { from: Hex; nonce: Hex } }[],
): Promise<(boolean | null)[]> {
  const calls = transfers.map(({ asset, authorization }) => ({
    target: asset,
    callData: authorizationStateCalldata(authorization.from, authorization.nonce),
  }))
  const zero = '0x0000000000000000000000000000000000000000'
  const answers = await chain.rpc.callAll<Hex>('eth_call', readManyParams(calls, zero, { blockHash }))
  const decoded = answers.map((answer) => decodeAggregate(answer))
  return transfers.map((_, i) => {
    const said = decoded.map((results) => (results[i]?.success ? BigInt(results[i].returnData) !== 0n : null))
    const [first] = said
    const isAgreed = said.length >= chain.network.witnessesMin && said.every((state) => state === first)
    return isAgreed && first !== undefined ? first : null
  })
}
