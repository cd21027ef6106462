import { leaseFollower, lockFollower, writeHead } from '../../chains/rows.ts'
import { unwrap } from '../../chains/rpc.ts'
import {
  type Landed,
  readLanded,
  readStatuses,
  readSvmHeads,
  type Status,
  type SvmChain,
  statusCalls,
} from '../../chains/svm/chain.ts'
import { hashMessage } from '../../chains/svm/message.ts'
import { readExact } from '../../chains/svm/transfer.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { bury } from '../credits/bury.ts'
import * as credits from '../credits/rows.ts'
import { writeCredits } from '../credits/write.ts'
import type { UpdateStatus } from '../rail.ts'
import { recoverSent } from './recover.ts'
import * as rows from './rows.ts'
import { blockhashExpired } from './verify.ts'

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
 * A transaction is dead or orphaned only if as many nodes as the network requires confirm it, each at its own finalized
 * height.
 */
export async function watchOnce(
  ctx: Context,
  chain: SvmChain,
  holder: string,
  updateStatus: UpdateStatus,
): Promise<boolean | null> {
  const network = chain.network.caip2
  if (!(await leaseFollower(ctx.db, network, holder, leaseSeconds))) return null
  const heads = await readSvmHeads(chain)
  if (!heads) return false
  await recoverSent(ctx, chain, heads.time)
  const watched = await rows.listWatched(ctx.db, network, watchedMax)
  const seen = await readSeen(chain, watched)
  const isCredited = await credit(ctx, chain, seen, updateStatus)
  await finalize(ctx, network, seen, updateStatus)
  const missing = seen.filter(({ status }) => status === null || status.isFailed)
  const doubtful = missing.filter(
    ({ place, status, validBefore }) =>
      place !== null || status?.commitment === 'finalized' || BigInt(validBefore) < heads.finalizedHeight,
  )
  if (doubtful.length > 0) await orphanOrBury(ctx, chain, doubtful, updateStatus)
  await buryUnsent(ctx, network, heads.finalizedHeight, updateStatus)
  // Last, so that anyone who reads how far the chain was watched also finds the credits up to there.
  await writeHead(ctx.db, network, heads)
  await rows.retireDrained(ctx.db, network)
  return isCredited
}

const leaseSeconds = 10
/** Enough for a hundred payments per second during the thirteen seconds that finality takes. */
const watchedMax = 2_000
const readPerRequest = 50
const buriedPerRun = 200

type Seen = rows.Watched & { readonly status: Status | null; readonly landed: Landed | null }

async function readSeen(chain: SvmChain, watched: readonly rows.Watched[]): Promise<Seen[]> {
  const hashes = watched.map(({ hash }) => hash)
  const statuses = readStatuses(await chain.rpc.batch(statusCalls(hashes)))
  const isNew = ({ slot }: rows.Watched, status: Status | null | undefined) =>
    status && !status.isFailed && status.commitment !== 'processed' && slot !== `${status.slot}`
  const wanted = hashes.filter((_, i) => watched[i] && isNew(watched[i], statuses[i]))
  const found = new Map<string, Landed | null>()
  for (let i = 0; i < wanted.length; i += readPerRequest) {
    const some = wanted.slice(i, i + readPerRequest)
    for (const [place, landed] of (await readLanded(chain, some)).entries())
      found.set(some[place] ?? '', landed)
  }
  return watched.map((one, i) => ({
    ...one,
    status: statuses[i] ?? null,
    landed: found.get(one.hash) ?? null,
  }))
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
    if (!one.landed || one.landed.isFailed) continue
    const value = readPaid(chain, one, one.landed)
    if (value === null) {
      ctx.log.error(
        { txHash: one.hash },
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
      const changed = await writeCredits(ctx, tx, network, place, concerns)
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
  if ('refusal' in exact || hashMessage(transaction.message) !== one.nonce) return null
  if (exact.memo !== one.checkoutId) return null
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

/** Queries every node about transactions that one node does not have or reports as failed. */
async function orphanOrBury(
  ctx: Context,
  chain: SvmChain,
  doubtful: readonly Seen[],
  updateStatus: UpdateStatus,
): Promise<void> {
  const network = chain.network.caip2
  const nodes = await askAll(
    chain,
    doubtful.map(({ hash }) => hash),
  )
  if (nodes.length < chain.network.witnessesMin) return
  const dead: (Seen & { readonly reason: string })[] = []
  const orphaned: Seen[] = []
  for (const [i, one] of doubtful.entries()) {
    const said = nodes.map((node) => ({ ...node, status: node.statuses[i] ?? null }))
    const isFailed = said.every(({ status }) => status?.isFailed && status.commitment === 'finalized')
    const isAbsent = said.every(
      ({ status, slot }) => status === null && (one.slot === null || slot > Number.parseInt(one.slot, 10)),
    )
    const isExpired = said.every(({ finalizedHeight }) => BigInt(one.validBefore) < finalizedHeight)
    if (isFailed) dead.push({ ...one, reason: 'invalid_exact_svm_transaction_failed' })
    else if (isAbsent && isExpired) dead.push({ ...one, reason: blockhashExpired })
    else if (isAbsent && one.place !== null) orphaned.push(one)
  }
  const gone = [...orphaned, ...dead].flatMap(({ place }) => place ?? [])
  if (gone.length > 0) {
    await ctx.db.transaction(async (tx) => {
      await lockFollower(tx, network)
      const changed = await credits.orphanCredits(tx, network, gone)
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

type Node = {
  readonly slot: number
  readonly finalizedHeight: number
  readonly statuses: readonly (Status | null)[]
}
type EpochInfo = { readonly absoluteSlot: number; readonly blockHeight: number }

/** The height is queried first: a transaction that a node does not have afterwards is in no block up to that height. */
export async function askAll({ rpc }: SvmChain, hashes: readonly string[]): Promise<Node[]> {
  const info = (commitment: string) => ({ method: 'getEpochInfo', params: [{ commitment }] })
  const answers = await rpc.batchAll([info('finalized'), info('confirmed'), ...statusCalls(hashes)])
  return answers.flatMap(([final, head, ...outcomes]) => {
    if ([final, head, ...outcomes].some((outcome) => !outcome || 'error' in outcome)) return []
    return {
      finalizedHeight: unwrap<EpochInfo>(final).blockHeight,
      slot: unwrap<EpochInfo>(head).absoluteSlot,
      statuses: readStatuses(outcomes),
    }
  })
}

/** An unsent claim lacks our signature: once it is too old, it can never be sent, so no node needs to be queried. */
async function buryUnsent(
  ctx: Context,
  network: string,
  height: number,
  updateStatus: UpdateStatus,
): Promise<void> {
  const unsent = await rows.listUnsentExpired(ctx.db, network, height, buriedPerRun)
  if (unsent.length === 0) return
  const dead = unsent.map((one) => ({ ...one, reason: blockhashExpired }))
  await bury(ctx, network, dead, updateStatus)
}
