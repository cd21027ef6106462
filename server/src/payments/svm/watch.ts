import type { Agreement } from '../../chains/agree.ts'
import { leaseFollower, lockFollower, writeDispute, writeHead } from '../../chains/rows.ts'
import type { SvmChain } from '../../chains/svm/chain.ts'
import { type Landed, readLanded } from '../../chains/svm/landed.ts'
import { hashMessage } from '../../chains/svm/message.ts'
import {
  countWith,
  findHeads,
  findWithout,
  isMissed,
  judge,
  readRecent,
  readTime,
  readViews,
  type Status,
  type View,
} from '../../chains/svm/status.ts'
import { readExact } from '../../chains/svm/transfer.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import * as credits from '../credits/rows.ts'
import { writeCredits } from '../credits/write.ts'
import { bury } from '../end.ts'
import type { UpdateStatus } from '../rail.ts'
import { type Doubt, joinDoubts, noDoubt } from './doubts.ts'
import { type OwnKeys, recoverSent } from './recover.ts'
import * as rows from './rows.ts'
import { blockhashExpired } from './simulate.ts'

type Watching = {
  readonly updateStatus: UpdateStatus
  readonly noteDoubt: (doubt: Doubt) => void
  readonly keys: OwnKeys
}

/**
 * Finds the outcome of sent transactions. Solana is not followed block by block. Only we can send a transaction that
 * one of our settlers must sign, so we know the hash of every such transaction before it is on the chain, and ask for
 * that hash until its outcome is final.
 *
 *   confirmed    two thirds of the stake have voted for its block. The transaction is read, and the amount that it added
 *                to the store's token account becomes a credit: `included`, and `safe` as well
 *   finalized    the credit is final, and watching ends
 *   failed       it cost us the fee and moved nothing. It can never run again: once that is finalized, it is dead
 *   expired      no node has it, and the finalized height is past the life of its blockhash: it is dead
 *   orphaned     it was confirmed, and no node has it any more: its credit is orphaned, and the bytes are sent again
 *
 * Every provider is asked, and each outcome needs as many that say the same as the network requires. While they
 * contradict each other about something final, and no majority settles it, nothing is decided and no payment is
 * accepted.
 *
 * Providers charge for every call, so there are two kinds of looks. The frequent one only asks whether recent
 * transactions have landed, and can only credit them. The rare one also asks for the chain's height. Only this one
 * concludes anything from a transaction's absence. `lookEveryMs` says how rare it is.
 */
export function openWatch(
  ctx: Context,
  chain: SvmChain,
  holder: string,
  watching: Watching,
): () => Promise<boolean | null> {
  const network = chain.network.caip2
  const looked: Looked = { forSentAt: 0, atAllAt: 0, forTimeAt: 0, failsSince: null, isDoubtful: false }
  return async () => {
    const follower = await leaseFollower(ctx.db, network, holder, leaseSeconds)
    if (!follower) return null
    const pending = await rows.readPending(ctx.db, network)
    const now = ctx.now().getTime()
    if (isAllDue(now, looked, pending, chain)) {
      const isTimeWanted =
        follower.headTime === null ||
        pending.isRestoring ||
        passed(now, looked.forTimeAt) >= timeEveryMs ||
        (await rows.isExpiryWaiting(ctx.db, network))
      looked.atAllAt = looked.forSentAt = now
      looked.failsSince ??= now
      const found = await lookAtAll(ctx, chain, watching, isTimeWanted)
      looked.isDoubtful = found === 'disputed'
      if (found === 'unknown') return false
      looked.failsSince = null
      if (found === 'disputed') return false
      if (isTimeWanted) looked.forTimeAt = now
      return found.isCredited
    }
    if (!isSentDue(now, looked, pending, chain)) return false
    looked.forSentAt = now
    return await lookForSent(ctx, chain, watching)
  }
}

/** When each kind of look last happened, in milliseconds by the process's clock. */
type Looked = {
  forSentAt: number
  atAllAt: number
  forTimeAt: number
  /** Since when too few providers report the chain's height. */
  failsSince: number | null
  isDoubtful: boolean
}

const leaseSeconds = 10
/** Enough for a hundred payments per second during the half minute until they are final. */
const watchedMax = 4_000
const buriedPerRun = 200
/** How often the time up to which the chain was watched is stored. A restore begins there, and operators see it. */
const timeEveryMs = 300_000
/** A transaction is looked for again each time an eighth of its age has passed. */
const ageShare = 8

/** Time passed since then. If the clock was set back, the look is due. */
function passed(now: number, at: number): number {
  return at > now ? Number.POSITIVE_INFINITY : now - at
}

function isAllDue(now: number, looked: Looked, pending: rows.Pending, { network }: SvmChain): boolean {
  const { sent, unsettled, idle } = network.lookEveryMs
  const isUnsettled = looked.isDoubtful || pending.isRestoring || (pending.oldestMs ?? 0) >= unsettled
  const usual = isUnsettled ? unsettled : idle
  // Soon after a first failure, then less and less often, in proportion to how long it has failed.
  const waitMs =
    looked.failsSince === null
      ? usual
      : Math.min(usual, Math.max(sent, passed(looked.atAllAt, looked.failsSince)))
  return passed(now, looked.atAllAt) >= waitMs
}

function isSentDue(now: number, looked: Looked, pending: rows.Pending, { network }: SvmChain): boolean {
  const { youngestSentMs, isRestoring } = pending
  // What was sent before a restore comes first.
  if (youngestSentMs === null || looked.isDoubtful || isRestoring) return false
  return passed(now, looked.forSentAt) >= Math.max(network.lookEveryMs.sent, youngestSentMs / ageShare)
}

/** Credits recent transactions that have landed. Concludes nothing else, and makes only the calls that this needs. */
async function lookForSent(ctx: Context, chain: SvmChain, { updateStatus }: Watching): Promise<boolean> {
  const watched = await rows.listWatched(ctx.db, chain.network.caip2, watchedMax, 'uncredited')
  if (watched.length === 0) return false
  const views = await readRecent(
    chain,
    watched.map(({ hash }) => hash),
  )
  const { seen, isDisputed } = await readSeen(chain, watched, views)
  return isDisputed ? false : await credit(ctx, chain, seen, updateStatus)
}

/** 'unknown' if too few providers report the chain's height. */
async function lookAtAll(
  ctx: Context,
  chain: SvmChain,
  { updateStatus, noteDoubt, keys }: Watching,
  isTimeWanted: boolean,
): Promise<'disputed' | 'unknown' | { readonly isCredited: boolean }> {
  const { caip2: network, id, witnessesMin } = chain.network
  const watched = await rows.listWatched(ctx.db, network, watchedMax)
  const { views, ...apart } = await readViews(
    chain,
    watched.map(({ hash }) => hash),
    (i, told) => isTelling(watched[i], i, told),
  )
  const heads = findHeads(views, witnessesMin)
  const { time, ...timed } =
    heads && isTimeWanted ? await readTime(chain, heads.slot) : { time: null, ...noDoubt }
  const { seen, ...read } = await readSeen(chain, watched, views)
  const doubt = joinDoubts([apart, timed, read])
  noteDoubt(doubt)
  ctx.metrics.nodeDispute.set({ network: id }, doubt.isDisputed ? 1 : 0)
  await writeDispute(ctx.db, network, doubt.isDisputed ? 'a transaction or the height of the chain' : null)
  if (doubt.isDisputed) return 'disputed'
  if (!heads || (isTimeWanted && !time)) return 'unknown'
  if (time) await recoverSent(ctx, chain, keys, time)
  const isCredited = await credit(ctx, chain, seen, updateStatus)
  await finalize(ctx, network, seen, updateStatus)
  await orphanOrBury(ctx, chain, seen, views, updateStatus)
  await buryUnsent(ctx, network, heads.finalizedHeight, updateStatus)
  // Written last, so that anyone who reads this height also finds the credits up to it.
  await writeHead(ctx.db, network, { ...heads, time })
  await rows.retireDrained(ctx.db, network)
  return { isCredited }
}

/** Whether a provider's silence about this transaction would bury or orphan it, or count as a contradiction. */
function isTelling(one: rows.Watched | undefined, i: number, views: readonly View[]): boolean {
  if (!one) return false
  if (isMissed(views, i, slotOf(one))) return true
  return findWithout(views, i, null).some(({ finalizedHeight }) => BigInt(one.validBefore) < finalizedHeight)
}

function slotOf({ slot }: rows.Watched): number | null {
  return slot === null ? null : Number.parseInt(slot, 10)
}

type Seen = rows.Watched & { readonly status: Status | null; readonly landed: Landed | null }

/** Judges each transaction, and reads those that were confirmed since the last look. */
async function readSeen(
  chain: SvmChain,
  watched: readonly rows.Watched[],
  views: readonly View[],
): Promise<Doubt & { readonly seen: readonly Seen[] }> {
  const judged = watched.map((_, i) => judge(views, i, chain.network.witnessesMin))
  const isNew = ({ slot }: rows.Watched, status: Status | null | undefined) =>
    status && !status.isFailed && slot !== `${status.slot}`
  const wanted = watched.filter((one, i) => isNew(one, judged[i]?.status)).map(({ hash }) => hash)
  const agreed = await readLanded(chain, wanted)
  const found = new Map<string, Agreement<Landed>>(agreed.map((one, i) => [wanted[i] ?? '', one]))
  const seen = watched.map((one, i) => ({
    ...one,
    status: judged[i]?.status ?? null,
    landed: found.get(one.hash)?.fact ?? null,
  }))
  const doubts = seen.flatMap(({ hash, status }, i) => {
    const read = found.get(hash)
    // About a block that is only confirmed, providers may differ for a while.
    const isFinal = status?.commitment === 'finalized'
    return [judged[i] ?? [], read ? { ...read, isDisputed: read.isDisputed && isFinal } : []].flat()
  })
  return { seen, ...joinDoubts(doubts) }
}

function placeOf({ hash }: rows.Watched, slot: number): string {
  return `${slot}/${hash}`
}

/**
 * Credits payments that were confirmed since the last look, each in its own transaction so that none holds up another.
 */
async function credit(
  ctx: Context,
  chain: SvmChain,
  seen: readonly Seen[],
  updateStatus: UpdateStatus,
): Promise<boolean> {
  const network = chain.network.caip2
  let isCredited = false
  for (const one of seen) {
    if (!one.landed || one.landed.isFailed || one.landed.slot !== one.status?.slot) continue
    const value = readPaid(chain, one, one.landed)
    if (value === null) {
      ctx.log.error(
        { network: chain.network.id, checkoutId: one.checkoutId, txHash: one.hash },
        'a node returned a transaction that differs from the one we signed, so it is not credited; check the node',
      )
      continue
    }
    const { slot, time } = one.landed
    const place = { hash: placeOf(one, slot), number: slot, time }
    await ctx.db.transaction(async (tx) => {
      await lockFollower(tx, network)
      const paid = {
        asset: one.asset,
        payer: one.payer,
        nonce: one.nonce,
        to: one.payTo,
        value,
        transactionHash: one.hash,
        logIndex: 0,
        position: 0,
      }
      const concerns = await credits.findClaim(tx, network, paid)
      const changed = await writeCredits(ctx, tx, network, place, { concerns })
      await credits.advancePlaces(tx, network, [place.hash], 'safe')
      if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
      crashPoint(ctx, 'block-before-commit')
    })
    isCredited = true
    crashPoint(ctx, 'block-after-commit')
  }
  if (isCredited) ctx.db.wakeUps.send('outcomes')
  return isCredited
}

/** How much the transaction paid, by the change in balances; null if it is not what was signed. */
function readPaid(chain: SvmChain, one: rows.Watched, { transaction, gainOf }: Landed): bigint | null {
  const exact = readExact(transaction, chain.network)
  if ('refusal' in exact || hashMessage(transaction.message) !== one.messageHash) return null
  // A payment names its checkout, a refund its slot.
  if (exact.memo !== (one.checkoutId ?? one.nonce)) return null
  const gain = gainOf(exact.destination)
  return gain === BigInt(one.amount) ? gain : null
}

async function finalize(
  ctx: Context,
  network: string,
  seen: readonly Seen[],
  updateStatus: UpdateStatus,
): Promise<void> {
  const final = seen.filter(
    ({ status, slot }) => status?.commitment === 'finalized' && !status.isFailed && slot === `${status.slot}`,
  )
  if (final.length === 0) return
  await ctx.db.transaction(async (tx) => {
    await lockFollower(tx, network)
    const places = final.flatMap(({ place }) => place ?? [])
    const changed = await credits.advancePlaces(tx, network, places, 'finalized')
    await rows.finishWatched(tx, network, final)
    if (changed.length > 0) await updateStatus(tx, [...new Set(changed)], ctx.now())
    crashPoint(ctx, 'finality-before-commit')
  })
  crashPoint(ctx, 'finality-after-commit')
  ctx.db.wakeUps.send('outcomes')
}

/**
 * Orphans credits of transactions that enough providers have lost, and buries those that enough say can never land. A
 * transaction that any provider still has is not buried: asking a payer to sign again costs more than waiting.
 */
async function orphanOrBury(
  ctx: Context,
  chain: SvmChain,
  seen: readonly Seen[],
  views: readonly View[],
  updateStatus: UpdateStatus,
): Promise<void> {
  const { caip2: network, witnessesMin } = chain.network
  const dead: (Seen & { readonly reason: string })[] = []
  const orphaned: Seen[] = []
  for (const [i, one] of seen.entries()) {
    const without = findWithout(views, i, slotOf(one))
    const having = countWith(views, i)
    const past = without.filter(({ finalizedHeight }) => BigInt(one.validBefore) < finalizedHeight)
    if (one.status?.isFailed && one.status.commitment === 'finalized')
      dead.push({ ...one, reason: 'invalid_exact_svm_transaction_failed' })
    else if (past.length >= witnessesMin && having === 0) dead.push({ ...one, reason: blockhashExpired })
    else if (one.place !== null && without.length >= witnessesMin && without.length > having)
      orphaned.push(one)
  }
  const gone = [...orphaned, ...dead].flatMap(({ place }) => place ?? [])
  if (gone.length > 0) {
    await ctx.db.transaction(async (tx) => {
      await lockFollower(tx, network)
      const changed = await credits.orphanCredits(tx, network, gone)
      tx.afterCommit(() => ctx.metrics.reorganisations.inc({ network: chain.network.id }))
      if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
      crashPoint(ctx, 'orphan-before-commit')
    })
    crashPoint(ctx, 'orphan-after-commit')
  }
  if (dead.length > 0) {
    const keys = dead.map(({ asset, payer, nonce, reason }) => ({ asset, payer, nonce, reason }))
    await bury(ctx, network, keys, updateStatus, (tx) => rows.finishWatched(tx, network, dead))
  }
  // Orphaned transactions are sent again.
  if (gone.length > 0) ctx.db.wakeUps.send('claims')
}

/**
 * Buries transactions that were never sent and are too old. They lack our signature, so they can never be sent, and no
 * node needs to be asked. If something kept a refund from being sent, its row says so.
 */
async function buryUnsent(
  ctx: Context,
  network: string,
  height: number,
  updateStatus: UpdateStatus,
): Promise<void> {
  const unsent = await rows.listUnsentExpired(ctx.db, network, height, buriedPerRun)
  if (unsent.length === 0) return
  const dead = unsent.map(({ reason, ...key }) => ({ ...key, reason: reason ?? blockhashExpired }))
  await bury(ctx, network, dead, updateStatus)
}
