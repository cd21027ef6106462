import { parseTransaction } from 'viem/utils'
import { readDataFee, readFunds } from '../../chains/evm/accounts.ts'
import { readHasBatcher } from '../../chains/evm/batcher.ts'
import type { Chain } from '../../chains/evm/chain.ts'
import type { Signer } from '../../chains/evm/signer.ts'
import type { Hex } from '../../chains/hex.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { UpdateStatus } from '../rail.ts'
import { type Authorized, listClaimed, listContractClaims, listWithoutEffect } from '../rows.ts'
import { listStranded } from '../settlers/foreign-nonces.ts'
import { enterLane, reportSent } from '../settlers/lane.ts'
import * as settlers from '../settlers/rows.ts'
import { type BatchSize, learnSize, openBatchSize, sizeOfBatch } from './batch-size.ts'
import {
  type Candidate,
  type Chosen,
  canShare,
  choose,
  fullBatch,
  keyText,
  toCall,
  untilNextBlock,
} from './choose.ts'
import { countCosts } from './count-costs.ts'
import { findForeign } from './find-foreign.ts'
import { cappedFees, type Fees, fillLost, reserveCost, sendBytes, tend } from './tend.ts'

/**
 * A lane settles payments with one key. It loops over small steps, and may crash in any of them:
 *
 *   lease     hold the settler's row; a holder that lost the lease can no longer use a nonce
 *   choose    take claimed authorizations, oldest first; simulate them; reject payments that the token refuses
 *   commit    write the nonce, calls and signed bytes in one transaction, and mark the authorizations as `sent`
 *   broadcast send only committed bytes; every error means "outcome unknown", and the same bytes are sent again
 *   tend      resend what is not mined; raise the fee at the same nonce; use up a nonce that is no longer needed
 *
 * Claims are not leased. A lane reads and simulates them without a lock, and locks what it sends in the transaction
 * that takes the nonce. Two lanes may simulate the same claim, but only one sends it, and no claim waits for a dead
 * lane.
 *
 * Batches form because new claims gather while transactions are in flight, and are then sent together. Payments of
 * contract wallets, whose code can make a send fail, and payments that failed once are sent alone. They have their own
 * queue and their own places, so that nobody waits behind them. Refunds, which a store's wallet has signed, get the
 * room that payments leave in a batch, and the places in flight that they leave. A lane never decides the outcome of a
 * call: the follower finds it in the logs.
 *
 * If a transaction that is not ours uses one of the settler's nonces, somebody else has its key: the lane stops until
 * an operator decides about it. It sends nothing more, not even what it has in flight. Other lanes send that in
 * batches, once the nodes say that it has not paid yet. If both transactions are mined, the authorization's nonce lets
 * only one of them pay.
 */
export type Lane = {
  readonly chain: Chain
  readonly signer: Signer
  /** The name under which this process holds leases. */
  readonly holder: string
  readonly updateStatus: UpdateStatus
  /** Whether the chain has the batcher. Read once per process. */
  hasBatcher?: boolean
  /**
   * Below this nonce, no transaction that was mined without effect has anything left to send. Each process finds this
   * out itself.
   */
  settledBelow?: number
  /** Below this nonce, the cost of every transaction is known. Each process finds this out itself. */
  costedBelow?: number
  /** When transactions without a receipt are next looked up, in milliseconds. */
  doubtsRestUntil?: number
  /**
   * Authorizations that can't be sent now, and until when they are skipped, so that they don't keep out later claims.
   */
  resting?: Map<string, number>
  /** The head when `resting` was last checked. */
  restedAt?: number
  /** How large its batches are. Each process finds this out itself. */
  size?: BatchSize
  /** The transactions in flight, by hash. */
  sent?: ReadonlyMap<Hex, Sent>
  /** Whether it was logged that the settler can't pay for a single payment. */
  isBroke?: boolean
}

/**
 * A new payment need not wait for the block of the previous one. Claims gather once this many transactions are unmined.
 */
const unminedMax = 3
/** A transaction with refunds only leaves this many of those places to payments. */
const placesForPayments = 1
/** Full batches are sent beyond that, up to this many, because waiting would not make them cheaper. */
const unminedFullMax = 8
/** Payments that are sent alone take at most this many places. */
const unminedAloneMax = 2
/** Each payment that is sent alone needs its own simulation, and only one is sent per step. */
const aloneMax = 4
/** How far back a new process looks: more nonces than a settler uses within an authorization's life. */
const noncesLookedBack = 2_000
const unminedRead = 20

/** Runs one step. True if there may be more to do at once. Null if another process holds the settler. */
export async function stepLane(ctx: Context, lane: Lane): Promise<boolean | null> {
  const { chain, signer, holder } = lane
  const network = chain.network.caip2
  const entered = await enterLane(
    ctx,
    { network, address: signer.address, holder },
    {
      readBalance: () => readFunds(chain, signer.address),
      readDataFee: () => readDataFee(chain, fullBatch),
      least: (baseFee, dataFee) => reserveCost(chain.network, baseFee, dataFee, 0) ?? 0n,
    },
  )
  if (entered === 'held') return null
  if (entered === 'blind') return false
  const { settler, follower } = entered
  if (settler.minedNonce !== lane.costedBelow) {
    const { isMore, without } = await countCosts(ctx, chain, settler)
    await findForeign(ctx, lane, without)
    if (!isMore) lane.costedBelow = settler.minedNonce
  }
  // The other holder of the key may use any nonce. Another lane sends what this one has in flight.
  if (settler.stoppedAt !== null) return false
  const unmined = await settlers.listUnmined(ctx.db, network, signer.address, unminedRead)
  await tend(ctx, lane, unmined, follower.baseFee)
  lane.size ??= openBatchSize()
  learnSize(lane.size, unmined[0], { minedBelow: settler.minedNonce, headNumber: follower.headNumber })
  const lowest = unmined[0]?.nonce ?? settler.nextNonce
  if (settler.minedNonce < lowest) await fillLost(ctx, lane, settler.minedNonce, follower.baseFee)
  const fees = cappedFees(chain.network, follower.baseFee)
  const sends = settler.state === 'active' && !settler.isElsewhere
  if (unmined.length >= unminedFullMax || !sends || !fees) return false

  lane.hasBatcher ??= await readHasBatcher(chain)
  const { size } = lane
  const step = { ...entered, fees, unmined, size, resting: wakeRested(ctx, lane, follower.headNumber) }
  const restingBefore = step.resting.size
  const isMore = (await sendTogether(ctx, lane, step)) || (await sendAlone(ctx, lane, step))
  // Authorizations that were just set aside may have kept others out of the list.
  return isMore || step.resting.size > restingBefore
}

type Step = {
  readonly settler: settlers.Leased
  readonly follower: { readonly headTime: Date; readonly headNumber: number }
  readonly fees: Fees
  readonly unmined: readonly settlers.Unmined[]
  readonly size: BatchSize
  readonly resting: Map<string, number>
}

/** Sends a batch of ordinary payments, filled up with refunds. True if it was full, because then there may be more. */
async function sendTogether(ctx: Context, lane: Lane, step: Step): Promise<boolean> {
  const { follower, resting, unmined, size } = step
  const network = lane.chain.network.caip2
  const batchMax = await sizeOfBatch(lane.chain, size, lane.hasBatcher === true, ctx.now().getTime())
  const stranded = await listLeftBehind(ctx, lane, step, batchMax + resting.size, false)
  const claimed = await listClaimed(ctx.db, network, follower.headTime, batchMax + resting.size)
  const payments = takeAwake([...stranded, ...claimed], resting, batchMax)
  const inFlight = unmined.filter(({ isAlone }) => !isAlone).length
  if (inFlight >= unminedMax && payments.length < batchMax) return false
  const hasPlace = payments.length > 0 || inFlight < unminedMax - placesForPayments
  const refunds = hasPlace ? await listRefunds(ctx, lane, step, batchMax - payments.length) : []
  const sendable = [...payments, ...refunds]
  const chosen = await chooseFor(ctx, lane, step, sendable)
  const together = chosen.filter(canShare)
  // A payment that does not fit the batcher's form has a value that no ordinary client sends. It goes alone when no
  // other waits.
  const batch = together.length > 0 ? together : chosen.slice(0, 1)
  const isSent = batch.length > 0 && (await send(ctx, lane, step, batch))
  return isSent && (sendable.length >= batchMax || chosen.length > batch.length)
}

/** What stopped settlers have not settled, of ordinary or of contract wallets. */
async function listLeftBehind(
  ctx: Context,
  { chain }: Lane,
  { settler, follower }: Step,
  limit: number,
  isContract: boolean,
): Promise<Authorized[]> {
  if (!settler.isAnyStopped) return []
  return await listStranded(ctx.db, chain.network.caip2, follower.headTime, limit, isContract)
}

/** Refunds of ordinary wallets that may fill up a batch. */
async function listRefunds(
  ctx: Context,
  { chain }: Lane,
  { follower, resting }: Step,
  room: number,
): Promise<Authorized[]> {
  if (room <= 0) return []
  const limit = room + resting.size
  const listed = await listClaimed(ctx.db, chain.network.caip2, follower.headTime, limit, {
    direction: 'refund',
  })
  return takeAwake(listed, resting, room)
}

/**
 * Sends one payment alone: one of a contract wallet and one that was sent without effect, in turns. True if it sent
 * one.
 */
async function sendAlone(ctx: Context, lane: Lane, step: Step): Promise<boolean> {
  const { settler, follower, resting, unmined } = step
  if (unmined.filter(({ isAlone }) => isAlone).length >= unminedAloneMax) return false
  const network = lane.chain.network.caip2
  const limit = aloneMax + resting.size
  const again = [
    ...(await listLeftBehind(ctx, lane, step, limit, true)),
    ...(await listAgain(ctx, lane, settler, follower.headTime, limit)),
  ]
  const contracts = await listContractClaims(ctx.db, network, follower.headTime, limit)
  const refunds = () => listContractClaims(ctx.db, network, follower.headTime, limit, 'refund')
  const queues = settler.nextNonce % 2 === 0 ? [again, contracts] : [contracts, again]
  for (const queue of [...queues, refunds]) {
    const listed = typeof queue === 'function' ? await queue() : queue
    const [first] = await chooseFor(ctx, lane, step, takeAwake(listed, resting, aloneMax))
    if (!first) continue
    // A batch may have been sent in this step.
    const sent = await settlers.listUnmined(ctx.db, network, lane.signer.address, unminedRead)
    return await send(ctx, lane, { ...step, unmined: sent }, [first])
  }
  return false
}

function takeAwake<One extends Authorized>(
  listed: readonly One[],
  resting: ReadonlyMap<string, number>,
  limit: number,
): One[] {
  return listed.filter(({ transfer }) => !resting.has(keyText(transfer))).slice(0, limit)
}

async function chooseFor(
  ctx: Context,
  lane: Lane,
  { follower, fees, resting }: Step,
  sendable: readonly Candidate[],
): Promise<readonly Chosen[]> {
  const sendOf = (authorized: Authorized) => ({ ...toCall(lane.hasBatcher === true, [authorized]), ...fees })
  return await choose(ctx, lane, sendable, { resting, headNumber: follower.headNumber, sendOf })
}

/**
 * Authorizations that this settler sent without effect. Its transactions are checked until none has anything left to
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
function wakeRested(ctx: Context, lane: Lane, headNumber: number): Map<string, number> {
  lane.resting ??= new Map()
  const now = ctx.now().getTime()
  const isNewBlock = headNumber !== lane.restedAt
  lane.restedAt = headNumber
  for (const [key, until] of lane.resting)
    if (until <= now || (until === untilNextBlock && isNewBlock)) lane.resting.delete(key)
  return lane.resting
}

/**
 * As many of these payments as the settler can pay for, in addition to those in flight. Nodes demand the most that a
 * transaction can cost, and a transaction that they refuse holds up everything behind it.
 */
async function takeAffordable(
  ctx: Context,
  lane: Lane,
  { settler, fees, unmined }: Step,
  chosen: readonly Chosen[],
): Promise<readonly Chosen[]> {
  const upFront = (gas: bigint, maxFeePerGas: bigint, data: Hex) =>
    gas * maxFeePerGas + (settler.dataFeeWei * BigInt(data.length)) / BigInt(2 * fullBatch.bytes)
  const inFlight = readSent(lane, unmined)
    .map(({ gas = 0n, maxFeePerGas = 0n, data = '0x' }) => upFront(gas, maxFeePerGas, data))
    .reduce((sum, cost) => sum + cost, 0n)
  const costOf = (batch: readonly Chosen[]) => {
    const { gas, data } = toCall(lane.hasBatcher === true, batch)
    return upFront(gas, fees.maxFeePerGas, data)
  }
  // The stored balance is seconds old, and transactions may have been mined since.
  const isClear = (settler.balanceWei ?? 0n) >= 4n * (inFlight + costOf(chosen))
  const left =
    (isClear ? (settler.balanceWei ?? 0n) : await readFunds(lane.chain, lane.signer.address)) - inFlight
  let batch = chosen
  while (batch.length > 0 && costOf(batch) > left) batch = batch.slice(0, batch.length >> 1)
  const isBroke = batch.length === 0 && unmined.length === 0
  if (isBroke && !lane.isBroke)
    ctx.log.warn(
      { network: lane.chain.network.id, settler: settler.address, balance: String(left) },
      'a settler cannot pay for even one payment, so its payments wait; send it money (see settler list)',
    )
  lane.isBroke = isBroke
  return batch
}

type Sent = ReturnType<typeof parseTransaction>

/**
 * The transactions in flight. Each is parsed only once, because a full batch has 25 KB and every later send looks at
 * it.
 */
function readSent(lane: Lane, unmined: readonly settlers.Unmined[]): readonly Sent[] {
  const known = lane.sent
  lane.sent = new Map(unmined.map(({ hash, bytes }) => [hash, known?.get(hash) ?? parseTransaction(bytes)]))
  return [...lane.sent.values()]
}

async function send(ctx: Context, lane: Lane, step: Step, chosen: readonly Chosen[]): Promise<boolean> {
  const { chain, signer, holder } = lane
  const { epoch } = step.settler
  const network = chain.network.caip2
  const batch = await takeAffordable(ctx, lane, step, chosen)
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
    const transaction = await signer.sign(chain, {
      ...toCall(lane.hasBatcher === true, carried),
      ...step.fees,
      nonce: locked.nonce,
    })
    await settlers.insertSend(tx, {
      network,
      settler: signer.address,
      nonce: locked.nonce,
      ...transaction,
      keys: locked.keys,
    })
    reportSent(ctx, tx, { network, settler: signer.address, nonce: locked.nonce }, transaction.hash, carried)
    crashPoint(ctx, 'send-before-commit')
    return transaction
  })
  if (!signed) return false
  // The follower looks for it from now on.
  ctx.db.wakeUps.send('claims')
  crashPoint(ctx, 'send-after-commit')
  await sendBytes(ctx, chain, signed)
  return true
}
