import type { Agreement } from '../../chains/agree.ts'
import { leaseFollower, lockFollower, writeDispute, writeHead } from '../../chains/rows.ts'
import type { SvmChain } from '../../chains/svm/chain.ts'
import { type Landed, readLanded } from '../../chains/svm/landed.ts'
import { hashMessage } from '../../chains/svm/message.ts'
import {
  countWith,
  findWithout,
  judge,
  readHeads,
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
import { type Doubt, joinDoubts } from './doubts.ts'
import { type OwnKeys, recoverSent } from './recover.ts'
import * as rows from './rows.ts'
import { blockhashExpired } from './simulate.ts'

type Watching = {
  readonly updateStatus: UpdateStatus
  readonly noteDoubt: (doubt: Doubt) => void
  readonly keys: OwnKeys
}

/**
 * Finds out what became of sent transactions. Solana is not followed block by block: only we can send a transaction
 * that one of our settlers must sign, so every transaction that can pay is known by its hash before it is on the chain,
 * and is queried by that hash until its outcome is final.
 *
 *   confirmed    two thirds of the stake have voted for its block. The transaction is read, and what it added to the
 *                store's token account becomes a credit: `included`, and `safe` as well
 *   finalized    the credit is final, and watching ends
 *   failed       it cost us the fee and moved nothing. It can never run again: once that is finalized, it is dead
 *   expired      no node has it, and the finalized height is past the life of its blockhash: dead
 *   orphaned     it was confirmed, and no node has it any more: its credit is orphaned, and the bytes are sent again
 *
 * Every provider is asked, and each of these takes as many that say the same as the network requires. While they
 * contradict each other about something final, and no majority settles it, nothing is decided and no payment accepted.
 */
export async function watchOnce(
  ctx: Context,
  chain: SvmChain,
  holder: string,
  { updateStatus, noteDoubt, keys }: Watching,
): Promise<boolean | null> {
  const network = chain.network.caip2
  if (!(await leaseFollower(ctx.db, network, holder, leaseSeconds))) return null
  const watched = await rows.listWatched(ctx.db, network, watchedMax)
  const { views, ...apart } = await readViews(
    chain,
    watched.map(({ hash }) => hash),
  )
  const { heads, ...timed } = await readHeads(chain, views)
  const { seen, ...read } = await readSeen(chain, watched, views)
  const doubt = joinDoubts([apart, timed, read])
  noteDoubt(doubt)
  ctx.metrics.nodeDispute.set({ network: chain.network.id }, doubt.isDisputed ? 1 : 0)
  await writeDispute(ctx.db, network, doubt.isDisputed ? 'a transaction or the height of the chain' : null)
  if (doubt.isDisputed || !heads) return false
  await recoverSent(ctx, chain, keys, heads.time)
  const isCredited = await credit(ctx, chain, seen, updateStatus)
  await finalize(ctx, network, seen, updateStatus)
  await orphanOrBury(ctx, chain, seen, views, updateStatus)
  await buryUnsent(ctx, network, heads.finalizedHeight, updateStatus)
  // Last, so that anyone who reads how far the chain was watched also finds the credits up to there.
  await writeHead(ctx.db, network, heads)
  await rows.retireDrained(ctx.db, network)
  return isCredited
}

const leaseSeconds = 10
/** Enough for a hundred payments per second during the thirteen seconds that finality takes. */
const watchedMax = 2_000
const buriedPerRun = 200

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
    // Of a block that is only confirmed, they may differ for a while.
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
        'a node returned a transaction that differs from the one we signed; it is not credited, check the node',
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
      const concerns = await rows.findClaim(tx, network, paid)
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
 * Orphans what enough providers have lost, and buries what they say can never land. If any other has the transaction, it
 * is not buried: to ask a payer to sign again costs more than to wait.
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
    const without = findWithout(views, i, one.slot === null ? null : Number.parseInt(one.slot, 10))
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
 * What was not sent lacks our signature: once it is too old, it can never be sent, so no node needs to be queried. A
 * refund's row says why it was not sent, if something stood in its way.
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
