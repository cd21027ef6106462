import assert from 'node:assert/strict'
import { agree } from '../../chains/agree.ts'
import { RpcUnavailableError } from '../../chains/rpc.ts'
import { readLamports, type SvmChain, type SvmSimulated, simulateSvm } from '../../chains/svm/chain.ts'
import { decodeTransaction, type SvmTransaction } from '../../chains/svm/message.ts'
import { findHindrance } from '../../chains/svm/refund-accounts.ts'
import type { SvmSigner } from '../../chains/svm/signer.ts'
import { readExact } from '../../chains/svm/transfer.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { type Refused, reject } from '../end.ts'
import { noteWaiting } from '../hand-outs.ts'
import type { UpdateStatus } from '../rail.ts'
import { type Authorized, listClaimed, readSentUnits } from '../rows.ts'
import { broadcast, enterLane, reportSent } from '../settlers/lane.ts'
import * as settlers from '../settlers/rows.ts'
import { listToSendAgain, listUnrecorded, recordSend } from './rows.ts'
import { reasonOf } from './simulate.ts'

/**
 * A Solana lane adds its settler's signature to transactions that payers have signed, and sends them. It may crash in
 * any of its steps:
 *
 *   lease     hold the settler's row; a holder that lost the lease can no longer sign
 *   choose    take claims that name this settler, oldest first; simulate them; reject those that would fail. Sending and
 *             rejecting need enough providers that say the same; the rest wait
 *   commit    write the completed bytes and mark the authorization as `sent`, in one transaction
 *   broadcast send only committed bytes, again and again until they are seen or can no longer land
 *
 * No transaction waits for another, because Solana has no account nonces. The fee can't be raised, because the payer
 * has signed it. A lane never decides the outcome of a transaction: `watch.ts` finds it on the chain.
 *
 * Refunds, which a store's wallet has signed, get the room that payments leave in a batch. A refund that would fail is
 * not rejected but set aside, with the reason in its row. It counts until its blockhash has expired; then `watch.ts`
 * buries it.
 */
export type SvmLane = {
  readonly chain: SvmChain
  readonly signer: SvmSigner
  /** The name under which this process holds leases. */
  readonly holder: string
  readonly updateStatus: UpdateStatus
  /** Refunds that are set aside, by nonce, and until when. */
  readonly resting: Map<string, number>
  /** The balance below which the settler counts as empty. */
  readonly lamportsMin: bigint
  /** The settler's balance. */
  readonly readBalance: (settler: Pick<settlers.Settler, 'address' | 'nextNonce'>) => Promise<bigint>
}

/** A balance is remembered this long, so money from outside is noticed within this time. */
const balanceKeptMs = 300_000
/** The same for a settler that is nearly empty, because an operator is probably sending it money. */
const emptyKeptMs = 30_000

/**
 * Returns a settler's balance, read or remembered. Only payments take much from it, and they change its nonce. Below
 * `lamportsMin` it counts as empty.
 */
export function openBalance(ctx: Context, chain: SvmChain, lamportsMin: bigint): SvmLane['readBalance'] {
  let known: { readonly lamports: bigint; readonly nextNonce: number; readonly at: number } | null = null
  return async ({ address, nextNonce }) => {
    const at = ctx.now().getTime()
    const keptMs = known && known.lamports < lamportsMin ? emptyKeptMs : balanceKeptMs
    // If the clock was set back, read again.
    const isKnown = known?.nextNonce === nextNonce && known.at <= at && at - known.at < keptMs
    if (!known || !isKnown) known = { lamports: await readLamports(chain, address), nextNonce, at }
    return known.lamports
  }
}

/** Simulations per request. */
const batchMax = 20
/** Payers take turns among this many claims. */
const listedMax = 400
/** Each leader has four slots, about a second, and may drop a transaction. */
const resendSeconds = 2
const resentPerStep = 100
/**
 * How soon a refund that was set aside is simulated again. Until its blockhash expires, its account may be thawed or
 * its wallet filled.
 */
const restMs = 5_000

/** Runs one step. True if there may be more to do at once. Null if another process holds the settler. */
export async function stepSvmLane(ctx: Context, lane: SvmLane): Promise<boolean | null> {
  const { chain, signer, holder } = lane
  const network = chain.network.caip2
  const entered = await enterLane(
    ctx,
    { network, address: signer.address, holder },
    { readBalance: lane.readBalance, least: () => lane.lamportsMin },
  )
  if (entered === 'held') return null
  if (entered === 'blind') return false
  const { settler, follower } = entered
  const again = await listToSendAgain(ctx.db, network, signer.address, resendSeconds, resentPerStep)
  await Promise.all(again.map((sent) => sendBytes(ctx, chain, sent)))
  await recordLost(ctx, lane)
  if (settler.state !== 'active') return false

  const listed = await listClaimed<string>(ctx.db, network, null, listedMax, { settler: signer.address })
  const payments = takeTurns(listed).slice(0, batchMax)
  const claimed = [...payments, ...(await listRefunds(ctx, lane, batchMax - payments.length))]
  const good = await choose(ctx, lane, claimed, follower.headNumber)
  const sent: { hash: string; bytes: Uint8Array }[] = []
  for (const payment of good) {
    const signed = await commit(ctx, lane, settler.epoch, payment)
    if (signed) sent.push(signed)
  }
  await Promise.all(sent.map((one) => sendBytes(ctx, chain, one)))
  return claimed.length === batchMax && sent.length > 0
}

/**
 * After a restore, claims that count as unsent may have been sent. Signing is deterministic, so the hashes of their
 * transactions are known: these are watched, but not sent.
 */
async function recordLost(ctx: Context, { chain, signer }: SvmLane): Promise<void> {
  const network = chain.network.caip2
  for (const { signature, ...key } of await listUnrecorded(ctx.db, network, signer.address, batchMax)) {
    const transaction = decodeTransaction(signature)
    assert(transaction, 'a claimed transaction must be decodable')
    const signed = await signer.complete(chain.network, transaction)
    await ctx.db.transaction((tx) => recordSend(tx, { network, settler: signer.address, ...signed, key }))
  }
}

/** Refunds that are not set aside, oldest first. */
async function listRefunds(ctx: Context, { chain, signer, resting }: SvmLane, room: number) {
  const now = ctx.now().getTime()
  for (const [nonce, until] of resting) if (until <= now) resting.delete(nonce)
  if (room <= 0) return []
  const limit = room + resting.size
  const listed = await listClaimed<string>(ctx.db, chain.network.caip2, null, limit, {
    settler: signer.address,
    direction: 'refund',
  })
  return listed.filter(({ transfer }) => !resting.has(transfer.authorization.nonce)).slice(0, room)
}

type Payment = Authorized<string>

/**
 * One payment of each payer before the second of any. A payment must wait if its payer's balance does not cover it in
 * addition to what is in flight, and a whole batch of such payments would hold up everybody else's.
 */
function takeTurns(listed: readonly Payment[]): Payment[] {
  const turns = new Map<string, number>()
  return listed
    .map((payment) => {
      const { from } = payment.transfer.authorization
      const turn = turns.get(from) ?? 0
      turns.set(from, turn + 1)
      return { payment, turn }
    })
    .toSorted((a, b) => a.turn - b.turn)
    .map(({ payment }) => payment)
}

/** A payment to send, and the amount that its payer had in flight when it was simulated. */
type Chosen = Payment & Pick<settlers.Sendable, 'unsettled'>

/** Simulates what could be sent in addition to what is in flight, and rejects what would fail. */
async function choose(
  ctx: Context,
  lane: SvmLane,
  claimed: readonly Payment[],
  headSlot: number,
): Promise<Chosen[]> {
  if (claimed.length === 0) return []
  const { chain } = lane
  const payers = [...new Set(claimed.map(({ transfer }) => transfer.authorization.from))]
  const assets = [...new Set(claimed.map(({ transfer }) => transfer.asset))]
  const inFlight = await readSentUnits(ctx.db, chain.network.caip2, assets, payers)
  crashPoint(ctx, 'simulate-before')
  const verdicts = await simulateSvm(
    chain,
    claimed.map((payment) => {
      const transaction = transactionOf(payment)
      const exact = readExact(transaction, chain.network)
      assert(!('refusal' in exact), 'only exact transfers are claimed')
      return { transaction, source: exact.source }
    }),
  )
  crashPoint(ctx, 'simulate-after')
  const good: Chosen[] = []
  const refused: Refused[] = []
  for (const [i, payment] of claimed.entries()) {
    const { asset, authorization } = payment.transfer
    const key = `${asset} ${authorization.from}`
    const unsettled = inFlight.get(key) ?? 0n
    // A node behind the head may not have seen the money arrive.
    const told = (verdicts[i]?.told ?? [])
      .filter(({ slot }) => slot >= headSlot)
      .map((one) => ({ provider: one.provider, fact: decide(one, authorization.value, unsettled) }))
    const { fact } = agree(told, JSON.stringify, chain.network.witnessesMin)
    if (fact === 'unpaid') throw new RpcUnavailableError('A settler cannot pay the transaction fee.')
    if (fact === 'send') {
      good.push({ ...payment, unsettled })
      inFlight.set(key, unsettled + authorization.value)
    } else if (payment.refundId !== null && fact !== null) {
      lane.resting.set(authorization.nonce, ctx.now().getTime() + restMs)
      if (fact !== 'wait') await noteRefused(ctx, chain, payment, fact.reason)
    } else if (fact !== null && fact !== 'wait')
      refused.push({ asset, payer: authorization.from, nonce: authorization.nonce, reason: fact.reason })
  }
  if (refused.length > 0) await reject(ctx, chain.network.caip2, refused, lane.updateStatus)
  return good
}

/** Records in a refund's row why it is not sent. */
async function noteRefused(
  ctx: Context,
  chain: SvmChain,
  { transfer: { asset, authorization } }: Payment,
  reason: string,
): Promise<void> {
  const { from: wallet, to: recipient, value: amount, nonce } = authorization
  const hindrance = await findHindrance(chain, { mint: asset, recipient, from: { wallet, amount } })
  const waiting = { asset, payer: wallet, nonce, reason: hindrance?.code ?? reason }
  await noteWaiting(ctx.db, chain.network.caip2, [waiting])
}

type Decision = 'send' | 'wait' | 'unpaid' | { readonly reason: string }

/** The meaning of one provider's simulation for a payment. */
function decide(
  { err, isGood, isOurFault, balance }: SvmSimulated,
  value: bigint,
  unsettled: bigint,
): Decision {
  // Signing is deterministic, so a transaction that is already on the chain has the same hash there.
  if (err === 'AlreadyProcessed') return 'send'
  if (isOurFault) return 'unpaid'
  if (!isGood) return { reason: reasonOf(err) }
  if ((balance ?? 0n) < value) return { reason: 'insufficient_funds' }
  return (balance ?? 0n) >= value + unsettled ? 'send' : 'wait'
}

/**
 * Signs under the locks of the settler and the authorization, and commits the bytes. Null if it must not be sent now.
 */
async function commit(ctx: Context, { chain, signer, holder }: SvmLane, epoch: bigint, payment: Chosen) {
  const network = chain.network.caip2
  const { transfer, sends, unsettled } = payment
  const { from: payer, nonce } = transfer.authorization
  const wanted = { asset: transfer.asset, payer, nonce, sends, unsettled }
  const signed = await ctx.db.transaction(async (tx) => {
    const lease = { network, address: signer.address, holder, epoch }
    const locked = await settlers.lockForSending(tx, lease, [wanted])
    if (!locked || locked.keys.length === 0) return null
    const { hash, bytes } = await signer.complete(chain.network, transactionOf(payment))
    await settlers.insertSend(tx, {
      network,
      settler: signer.address,
      nonce: locked.nonce,
      hash,
      bytes: `0x${Buffer.from(bytes).toString('hex')}`,
      keys: locked.keys,
    })
    reportSent(ctx, tx, { network, settler: signer.address, nonce: locked.nonce }, hash, [payment])
    crashPoint(ctx, 'send-before-commit')
    return { hash, bytes }
  })
  if (signed) crashPoint(ctx, 'send-after-commit')
  return signed
}

function transactionOf({ transfer }: Payment): SvmTransaction {
  const transaction = decodeTransaction(Buffer.from(transfer.signature.slice(2), 'hex'))
  assert(transaction, 'a claimed transaction must be decodable')
  return transaction
}

async function sendBytes(
  ctx: Context,
  { rpc }: SvmChain,
  { hash, bytes }: { hash: string; bytes: Uint8Array },
): Promise<void> {
  // It was simulated a moment ago, and a preflight might refuse a transaction that the chain would accept.
  const settings = { encoding: 'base64', skipPreflight: true, maxRetries: 0 }
  await broadcast(ctx, hash, () =>
    rpc.send('sendTransaction', [Buffer.from(bytes).toString('base64'), settings]),
  )
}
