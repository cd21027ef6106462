import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Hex } from '../../chains/hex.ts'
import { advanceHead, lockFollower } from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import type { SimulatedNetwork } from '../../networks.ts'
import { announceUnmatched } from '../credits/announce.ts'
import { advancePlaces, findClaim, orphanCredits, reverseOrphanedTransfers } from '../credits/rows.ts'
import { writeCredits } from '../credits/write.ts'
import { buryIn } from '../end.ts'
import type { UpdateStatus } from '../rail.ts'
import { listClaimed } from '../rows.ts'
import { listPasted, pasteLimits, resolvePastedIn, writePasted } from '../transfers/paste.ts'
import { cases, type Step, signedCases } from './cases.ts'
import * as rows from './rows.ts'
import { readSigned } from './verify.ts'

/** Between the steps of a transfer: long enough to see each on a page, short enough for tests. */
export const stepMs = 250
/** How long nobody can say what became of a payment. */
const unknownMs = 2_000
const claimsPerRun = 50
const pastedPerRun = 20
const pastedAgainSeconds = 3

type Sim = {
  readonly network: SimulatedNetwork
  readonly updateStatus: UpdateStatus
}

/** Takes claims onto the simulated chain, as a lane sends them. Returns whether there may be more. */
export async function takeClaims(ctx: Context, { network }: Sim): Promise<boolean> {
  const { caip2 } = network
  const claimed = await listClaimed<string>(ctx.db, caip2, null, claimsPerRun)
  for (const { transfer, checkoutId } of claimed) {
    const { from: payer, to: payTo, value: amount, nonce } = transfer.authorization
    const name = signedCases.find((each) => each === readSigned(transfer.signature))
    assert(name, 'a claim on the simulated network says what becomes of it')
    const { asset } = transfer
    await ctx.db.transaction(async (tx) => {
      const storeId = await rows.markSent(tx, caip2, { asset, payer, nonce })
      if (storeId === null) return
      const hash = newHash()
      const { steps } = cases[name]
      await rows.insertTransfers(
        tx,
        [{ hash, storeId, checkoutId: null, asset, payer, payTo, amount, nonce, steps }],
        0,
      )
      tx.afterCommit(() =>
        ctx.log.info(
          { checkoutId, network: network.id, txHash: hash, case: name },
          'simulating what becomes of a payment',
        ),
      )
    })
  }
  return claimed.length === claimsPerRun
}

export function newHash(): Hex {
  return `0x${randomBytes(32).toString('hex')}`
}

/**
 * Takes the next step of a transfer whose time has come. Returns whether it took one. Everything is written by the code
 * that other chains use, so events and states are the same.
 */
export async function takeStep(ctx: Context, sim: Sim): Promise<boolean> {
  const { caip2 } = sim.network
  const isTaken = await ctx.db.transaction(async (tx) => {
    await lockFollower(tx, caip2)
    const transfer = await rows.takeDue(tx)
    if (!transfer) return false
    const [step, next] = transfer.steps
    const place = await steps[step](ctx, tx, sim, transfer)
    await rows.passStep(tx, transfer.hash, {
      blockHash: place === undefined ? transfer.blockHash : place,
      afterMs: step === 'unknown' && next ? unknownMs : stepMs,
    })
    return true
  })
  if (isTaken) ctx.db.wakeUps.send('outcomes')
  return isTaken
}

/** Takes a step, and returns the block that the transfer is in from then on; undefined if that does not change. */
type TakeStep = (
  ctx: Context,
  tx: Transaction,
  sim: Sim,
  transfer: rows.SimulatedTransfer,
) => Promise<string | null | undefined>

const steps: Readonly<Record<Step, TakeStep>> = {
  included: include,
  safe: (...taken) => advance('safe', ...taken),
  finalized: (...taken) => advance('finalized', ...taken),
  orphaned: orphan,
  unknown: async () => undefined,
  dead: die,
}

async function include(
  ctx: Context,
  tx: Transaction,
  { network, updateStatus }: Sim,
  transfer: rows.SimulatedTransfer,
): Promise<string> {
  const { caip2 } = network
  const block = { hash: newHash(), ...(await advanceHead(tx, caip2)) }
  const { asset, payer, nonce, payTo: to, amount: value, hash } = transfer
  const seen = { asset, payer, to, value, transactionHash: hash, logIndex: 0, position: 0 }
  const landed =
    nonce === null
      ? { matches: [{ ...(await rows.matchAmount(tx, caip2, block.number, seen)), sender: null }] }
      : { concerns: await findClaim(tx, caip2, { ...seen, nonce }) }
  const changed = await writeCredits(ctx, tx, caip2, block, landed)
  if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
  if (transfer.checkoutId !== null)
    await resolvePastedIn(tx, caip2, { checkoutId: transfer.checkoutId, hash, isOld: false })
  return block.hash
}

async function advance(
  finality: 'safe' | 'finalized',
  ctx: Context,
  tx: Transaction,
  { network, updateStatus }: Sim,
  { blockHash }: rows.SimulatedTransfer,
): Promise<undefined> {
  const changed = await advancePlaces(tx, network.caip2, blockHash === null ? [] : [blockHash], finality)
  if (changed.length > 0) await updateStatus(tx, [...new Set(changed)], ctx.now())
  await announceUnmatched(ctx, tx, network)
}

async function orphan(
  ctx: Context,
  tx: Transaction,
  { network, updateStatus }: Sim,
  { blockHash }: rows.SimulatedTransfer,
): Promise<null> {
  const changed = await orphanCredits(tx, network.caip2, blockHash === null ? [] : [blockHash])
  tx.afterCommit(() => ctx.metrics.reorganisations.inc({ network: network.id }))
  if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
  return null
}

async function die(
  ctx: Context,
  tx: Transaction,
  { network, updateStatus }: Sim,
  { asset, payer, nonce, hash }: rows.SimulatedTransfer,
): Promise<undefined> {
  if (nonce !== null) {
    await buryIn(
      ctx,
      tx,
      network.caip2,
      [{ asset, payer, nonce, reason: 'authorization_expired' }],
      updateStatus,
    )
    return
  }
  const changed = await reverseOrphanedTransfers(tx, network.caip2, [hash])
  if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
}

/** The chain's time goes on while nothing happens: a checkout with a reserved amount expires only once it is past. */
export async function tick(ctx: Context, { network }: Sim): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await lockFollower(tx, network.caip2)
    await advanceHead(tx, network.caip2)
  })
}

/** Answers buyers who name a transaction: one that is on this chain was answered with its block. */
export async function answerPasted(ctx: Context, { network: { caip2 } }: Sim): Promise<void> {
  const { patienceMinutes } = pasteLimits
  for (const pasted of await listPasted(ctx.db, caip2, patienceMinutes, pastedAgainSeconds, pastedPerRun))
    await ctx.db.transaction(async (tx) => {
      await lockFollower(tx, caip2)
      if (await resolvePastedIn(tx, caip2, pasted)) return
      if (!(await rows.isComing(tx, pasted.hash))) await writePasted(tx, caip2, pasted, 'not_found')
    })
}
