import { parseTransaction } from 'viem/utils'
import { aggregateCalldata, type Chain, multicall } from '../../chains/evm/chain.ts'
import { transferCalldata } from '../../chains/evm/eip3009.ts'
import { readFunds } from '../../chains/evm/finality.ts'
import type { Signer, Unsigned } from '../../chains/evm/signer.ts'
import { checkTransfers, type Simulated, simulateContract } from '../../chains/evm/simulate.ts'
import type { Hex } from '../../chains/hex.ts'
import { RpcAnswerError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { markerOf } from '../../ids.ts'
import type { UpdateStatus } from '../rail.ts'
import { type Authorized, listClaimed, listWithoutEffect, readSentUnits } from '../rows.ts'
import { broadcast } from '../settlers/broadcast.ts'
import { enterLane } from '../settlers/enter-lane.ts'
import { type Refused, reject } from '../settlers/reject.ts'
import * as settlers from '../settlers/rows.ts'
import { cappedFees, raisedFees } from './fees.ts'
import { fillLost } from './fill-lost.ts'
import { reasonOf } from './verify.ts'

/**
 * A lane settles payments with one key. It loops over small steps, and may crash in any of them:
 *
 *   lease     hold the settler's row; a holder that lost the lease can no longer use a nonce
 *   choose    take claimed authorizations, oldest first; simulate them together; reject those that the token refuses
 *   commit    write the nonce, calls and signed bytes in one transaction, which marks the authorizations as `sent`
 *   broadcast send only committed bytes; every error means "outcome unknown", and the same bytes are sent again
 *   tend      resend what is not mined; raise the fee at the same nonce; fill a nonce that is no longer needed
 *
 * Batches form by themselves: while transactions are in flight, new claims gather and are sent together. A lane never
 * decides the outcome of a call: the follower finds it in the logs.
 */
export type Lane = {
  readonly chain: Chain
  readonly signer: Signer
  /** The name under which this process holds leases. */
  readonly holder: string
  readonly updateStatus: UpdateStatus
  /**
   * Below this nonce, nothing that was mined without effect is left to send. Each process finds this out for itself.
   */
  settledBelow?: number
  /**
   * Authorizations that cannot be sent now, and until when they are skipped, so that they do not keep out later claims.
   */
  resting?: Map<string, number>
}

/** A new payment need not wait for the previous one's block. From this many unmined transactions on, claims gather. */
const unminedMax = 3
/** Full batches are sent beyond that, up to this many: gathering longer would not make them cheaper. */
const unminedFullMax = 8
/** About 90 KB of calldata; nodes accept 128 KB. */
const batchMax = 150
/**
 * Authorizations are sent again one by one, so there is no need to read more; and they must not keep out newer claims.
 */
const againMax = 20
/** How long an authorization that cannot be sent is skipped: only its payer or another block can change that. */
const restMs = 5_000
/** How far back a new process looks: more nonces than a settler uses while an authorization is valid. */
const noncesLookedBack = 2_000
/** Per call in a batch, with room to spare: unused gas costs nothing. */
const callGas = 120_000n
const batchGas = 80_000n
/** A contract wallet's own code runs in the call, so it is sent alone and under this cap. */
const contractGas = 500_000n
/** Sending the same bytes again is cheap, and nodes forget transactions. */
const resendSeconds = 3
/** Not mined for five blocks: the fee was too low. */
const replaceSeconds = 10
const unminedRead = 20

/** Runs one step. True if there may be more to do at once. Null if another process holds the settler. */
export async function stepLane(ctx: Context, lane: Lane): Promise<boolean | null> {
  const { chain, signer, holder } = lane
  const network = chain.network.caip2
  const entered = await enterLane(ctx, { network, address: signer.address, holder }, () =>
    readFunds(chain, signer.address),
  )
  if (entered === 'held') return null
  if (entered === 'blind') return false
  const { settler, follower } = entered
  const unmined = await settlers.listUnmined(ctx.db, network, signer.address, unminedRead)
  await tend(ctx, lane, unmined, follower.baseFee)
  const lowest = unmined[0]?.nonce ?? settler.nextNonce
  if (settler.minedNonce < lowest) await fillLost(ctx, lane, settler.minedNonce, follower.baseFee)
  if (unmined.length >= unminedFullMax || settler.state !== 'active') return false

  const resting = wakeRested(ctx, lane)
  const again = await listAgain(ctx, lane, settler, follower.headTime, againMax + resting.size)
  const claimed = await listClaimed(ctx.db, network, follower.headTime, batchMax + resting.size)
  const isAwake = ({ transfer }: Authorized) => !resting.has(keyText(transfer))
  const sendable = [
    ...again.filter(isAwake).slice(0, againMax),
    ...claimed.filter(isAwake).slice(0, batchMax),
  ]
  if (unmined.length >= unminedMax && sendable.length < batchMax) return false
  const restingBefore = resting.size
  const chosen = await choose(ctx, lane, sendable, resting, follower.headNumber)
  // Authorizations that were just set aside may have kept others out of the list.
  if (chosen.length === 0) return resting.size > restingBefore
  // Contract wallets, and authorizations that were sent before without effect, are sent alone, in turns with the
  // others.
  const isAlone = ({ transfer, sends }: Authorized) => transfer.isContract || sends > 0
  const [alone] = chosen.filter(isAlone)
  const together = chosen.filter((authorized) => !isAlone(authorized))
  const batch = alone && (together.length === 0 || settler.nextNonce % 2 === 1) ? [alone] : together
  const isSent = await send(ctx, lane, settler.epoch, batch, follower.baseFee)
  return isSent && (sendable.length > batch.length || sendable.length >= batchMax)
}

/**
 * Authorizations that this settler sent without effect. Its transactions are checked until nothing in them is left to
 * send.
 */
async function listAgain(
  ctx: Context,
  lane: Lane,
  { network, address, minedNonce }: settlers.Settler,
  headTime: Date,
  limit: number,
): Promise<Authorized[]> {
  // A reorganisation can lower the mined nonce.
  const fromNonce = Math.min(lane.settledBelow ?? Math.max(0, minedNonce - noncesLookedBack), minedNonce)
  const sent = { network, settler: address, fromNonce, belowNonce: minedNonce }
  const again = fromNonce < minedNonce ? await listWithoutEffect(ctx.db, sent, headTime, limit) : []
  lane.settledBelow = again.length === 0 ? minedNonce : fromNonce
  return again
}

/** Removes authorizations whose rest is over and returns those that are still skipped. */
function wakeRested(ctx: Context, lane: Lane): Map<string, number> {
  lane.resting ??= new Map()
  const now = ctx.now().getTime()
  for (const [key, until] of lane.resting) if (until <= now) lane.resting.delete(key)
  return lane.resting
}

/** An authorization to send, and what its payer had sent and not settled when it was simulated. */
type Chosen = Authorized & Pick<settlers.Wanted, 'unsettled'>

/** Simulates what could be sent on top of what is in flight, and rejects what the token refuses. */
async function choose(
  ctx: Context,
  lane: Lane,
  sendable: readonly Authorized[],
  resting: Map<string, number>,
  headNumber: number,
): Promise<readonly Chosen[]> {
  if (sendable.length === 0) return []
  const { chain, signer } = lane
  const network = chain.network.caip2
  const assets = [...new Set(sendable.map(({ transfer }) => transfer.asset))]
  const payers = [...new Set(sendable.map(({ transfer }) => transfer.authorization.from))]
  const sent = await readSentUnits(ctx.db, network, assets, payers)
  crashPoint(ctx, 'simulate-before')
  const verdicts = await simulate(chain, signer.address, sendable)
  crashPoint(ctx, 'simulate-after')
  const good: Chosen[] = []
  const refused: Refused[] = []
  const chosen = new Map<string, bigint>()
  for (const [i, authorized] of sendable.entries()) {
    const verdict = verdicts[i]
    const { asset, authorization } = authorized.transfer
    const purse = `${asset} ${authorization.from}`
    // A used nonce is decided by the logs, and an authorization that was sent is never rejected.
    if (!verdict || verdict.isNonceUsed || (!verdict.isGood && authorized.state === 'sent')) {
      resting.set(keyText(authorized.transfer), ctx.now().getTime() + restMs)
      continue
    }
    const unsettled = sent.get(purse) ?? 0n
    const inFlight = (authorized.state === 'sent' ? 0n : unsettled) + (chosen.get(purse) ?? 0n)
    if (verdict.isGood && verdict.balance >= authorization.value + inFlight) {
      good.push({ ...authorized, unsettled })
      chosen.set(purse, (chosen.get(purse) ?? 0n) + authorization.value)
    }
    // A node behind the head may not have seen the money arrive.
    else if (!verdict.isGood && verdict.blockNumber >= headNumber) {
      refused.push({
        asset,
        payer: authorization.from,
        nonce: authorization.nonce,
        reason:
          verdict.balance < authorization.value
            ? 'invalid_exact_evm_insufficient_balance'
            : reasonOf(verdict.revertReason),
      })
      // The balance covers this payment, but not in addition to what its payer has in flight.
    } else if (verdict.isGood) resting.set(keyText(authorized.transfer), ctx.now().getTime() + restMs)
  }
  if (refused.length > 0) await reject(ctx, chain.network.caip2, refused, lane.updateStatus)
  return good
}

async function simulate(
  chain: Chain,
  from: Hex,
  sendable: readonly Authorized[],
): Promise<(Simulated | null)[]> {
  const plain = sendable.filter(({ transfer }) => !transfer.isContract)
  const joined = await checkTransfers(
    chain,
    plain.map(({ transfer }) => transfer),
  )
  const verdicts = new Map(plain.map((authorized, i) => [authorized, joined[i] ?? null]))
  return await Promise.all(
    sendable.map(async (authorized) => {
      if (!authorized.transfer.isContract) return verdicts.get(authorized) ?? null
      return await simulateContract(chain, from, authorized.transfer).catch((error) => {
        if (!(error instanceof RpcAnswerError)) throw error
        return null
      })
    }),
  )
}

async function send(
  ctx: Context,
  lane: Lane,
  epoch: bigint,
  batch: readonly Chosen[],
  baseFee: bigint,
): Promise<boolean> {
  const { chain, signer, holder } = lane
  const network = chain.network.caip2
  const fees = cappedFees(chain.network, baseFee)
  if (!fees) return false
  const byKey = new Map(batch.map((authorized) => [keyText(authorized.transfer), authorized]))
  const signed = await ctx.db.transaction(async (tx) => {
    const wanted = batch.map(({ transfer: { asset, authorization }, sends, unsettled }) => ({
      asset,
      payer: authorization.from,
      nonce: authorization.nonce,
      sends,
      unsettled,
    }))
    const locked = await settlers.lockForSending(
      tx,
      { network, address: signer.address, holder, epoch },
      wanted,
    )
    if (!locked || locked.keys.length === 0) return null
    const carried = locked.keys.flatMap((key) => byKey.get(`${key.asset} ${key.payer} ${key.nonce}`) ?? [])
    const transaction = signer.sign(chain, { ...callOf(carried), ...fees, nonce: locked.nonce })
    await settlers.insertSend(tx, {
      network,
      settler: signer.address,
      nonce: locked.nonce,
      ...transaction,
      keys: locked.keys,
    })
    crashPoint(ctx, 'send-before-commit')
    return transaction
  })
  if (!signed) return false
  crashPoint(ctx, 'send-after-commit')
  await sendBytes(ctx, chain, signed)
  return true
}

function keyText({ asset, authorization }: Authorized['transfer']): string {
  return `${asset} ${authorization.from} ${authorization.nonce}`
}

/** A single call goes straight to its token; several go through Multicall3, where each may fail alone. */
function callOf(carried: readonly Authorized[]): Pick<Unsigned, 'to' | 'data' | 'gas'> {
  const calls = carried.map(({ transfer, checkoutId }) => ({
    target: transfer.asset,
    callData: transferCalldata(
      transfer.authorization,
      transfer.signature,
      checkoutId ? markerOf(checkoutId) : '0x',
    ),
  }))
  const [single] = calls
  if (calls.length === 1 && single) {
    const gas = carried[0]?.transfer.isContract ? contractGas : callGas + batchGas
    return { to: single.target, data: single.callData, gas }
  }
  return { to: multicall, data: aggregateCalldata(calls), gas: batchGas + callGas * BigInt(calls.length) }
}

async function sendBytes(
  ctx: Context,
  { rpc }: Chain,
  { hash, bytes }: { hash: Hex; bytes: Hex },
): Promise<void> {
  await broadcast(ctx, hash, () => rpc.send('eth_sendRawTransaction', [bytes]))
}

/** Looks after transactions in flight. Only the lowest nonce can be stuck; the others wait for it. */
async function tend(
  ctx: Context,
  lane: Lane,
  unmined: readonly settlers.Unmined[],
  baseFee: bigint,
): Promise<void> {
  for (const [i, transaction] of unmined.entries()) {
    const isLowest = i === 0
    if (isLowest && transaction.ageSeconds >= replaceSeconds) await replace(ctx, lane, transaction, baseFee)
    else if (transaction.sentAgoSeconds === null || transaction.sentAgoSeconds >= resendSeconds) {
      await sendBytes(ctx, lane.chain, transaction)
    }
  }
}

/**
 * Signs the same nonce again with a higher fee: the same calls while they are needed, otherwise an empty transaction.
 */
async function replace(ctx: Context, lane: Lane, old: settlers.Unmined, baseFee: bigint): Promise<void> {
  const { chain, signer } = lane
  const before = parseTransaction(old.bytes)
  const fees = raisedFees(
    { maxFeePerGas: before.maxFeePerGas ?? 0n, maxPriorityFeePerGas: before.maxPriorityFeePerGas ?? 0n },
    baseFee,
  )
  // Freeing the nonce is worth paying more than the cap.
  if (old.isWanted && fees.maxFeePerGas > chain.network.maxFeePerGas) return await sendBytes(ctx, chain, old)
  const call = old.isWanted
    ? { to: before.to ?? multicall, data: before.data ?? '0x', gas: before.gas ?? 0n }
    : { to: signer.address, data: '0x' as Hex, gas: 21_000n }
  const signed = signer.sign(chain, {
    ...call,
    ...fees,
    nonce: old.nonce,
  })
  crashPoint(ctx, old.isWanted ? 'replace-before-commit' : 'fill-before-commit')
  await settlers.insertReplacement(ctx.db, {
    network: chain.network.caip2,
    settler: signer.address,
    nonce: old.nonce,
    ...signed,
  })
  crashPoint(ctx, old.isWanted ? 'replace-after-commit' : 'fill-after-commit')
  await sendBytes(ctx, chain, signed)
}
