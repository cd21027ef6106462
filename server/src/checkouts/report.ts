import type { Disposition } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { idOfNetwork } from '../networks.ts'
import { type CreditRow, finalityOf } from '../payments/credits/credit.ts'
import { safeSentence } from '../payments/credits/finality.ts'
import type { Announcement } from '../payments/credits/rows.ts'
import type { Checkout } from './checkout.ts'

/** A credit, and what is new about it since the transaction that reads it began. */
export type FactCredit = CreditRow & {
  readonly isNew: boolean
  readonly isNewlySafe: boolean
  /** When its authorization was claimed; null if it was not paid by a claim. */
  readonly claimedAt: Date | null
  /** Whether a refund of it counts. */
  readonly isRefunded: boolean
  /** With its transaction, what the chain knows it by: its nonce, or null and its position among equal transfers. */
  readonly nonce: string | null
  readonly position: number
}

/** A checkout that was just evaluated: its status before and after, and its credits with what is said about each. */
export type Reported = {
  readonly checkout: Pick<Checkout, 'id' | 'status'>
  readonly status: Checkout['status']
  readonly credits: readonly (FactCredit & {
    readonly disposition: Disposition
    readonly announcement: Announcement['announcement'] | null
  })[]
  /** The credits whose disposition changed. */
  readonly changed: readonly { readonly key: string }[]
}

type Step = 'credited' | 'undecided' | 'safe' | 'confirmed' | 'finalized' | 'reorged' | 'reversed'

const sentences: Readonly<Record<Step, string>> = {
  credited: 'payment credited: it is in a block',
  undecided: 'payment in a block, but it does not pay its checkout; its store decides about it',
  safe: safeSentence,
  confirmed: 'payment confirmed: enough nodes report it, and its checkout completed with that',
  finalized: 'payment finalized, and its checkout completed with that',
  reorged:
    'payment removed by a reorganisation of the chain; it is sent again or found again, or else reversed',
  reversed: 'payment reversed: it left the chain and can never return, so the payer still has the money',
}

/**
 * Tells the operator what became of payments, once it is committed: one log line for each step of each payment, and the
 * counters. Not every payment takes every step: on chains whose blocks are safe when they are read, `credited` is one
 * with `safe`; `finalized` is reported only where a checkout waits for it, and `confirmed` only if too few nodes reported
 * the payment at first, or its block was replaced for a while.
 */
export function report(ctx: Context, tx: Transaction, evaluated: readonly Reported[]): void {
  const told = evaluated.flatMap((one) =>
    one.credits.flatMap((credit) => {
      const step = stepOf(one, credit)
      return step === null ? [] : { one, credit, step }
    }),
  )
  if (told.length > 0)
    tx.afterCommit(() => {
      for (const { one, credit, step } of told) tell(ctx, one, credit, step)
    })
}

function stepOf({ checkout, status, changed }: Reported, credit: Reported['credits'][number]): Step | null {
  const { announcement } = credit
  if (announcement === 'reorged' || announcement === 'reversed')
    return announcement === credit.announced ? null : announcement
  if (credit.isOrphaned) return null
  if (credit.isNew || changed.some(({ key }) => key === credit.key))
    return credit.disposition === 'exact' ? 'credited' : 'undecided'
  if (credit.isNewlySafe) return 'safe'
  if (credit.disposition !== 'exact' || checkout.status === status || status !== 'COMPLETED') return null
  return finalityOf(credit) === 'finalized' ? 'finalized' : 'confirmed'
}

function tell(
  ctx: Context,
  { checkout, status }: Reported,
  credit: Reported['credits'][number],
  step: Step,
): void {
  const network = idOfNetwork(credit.network)
  const { disposition, claimedAt } = credit
  const fields = {
    checkoutId: checkout.id,
    paymentId: credit.paymentId,
    network,
    txHash: credit.transaction,
    block: credit.blockNumber,
    disposition,
    finality: finalityOf(credit),
    status,
  }
  if (step === 'reorged' || step === 'reversed') ctx.log.warn(fields, sentences[step])
  else ctx.log.info(fields, sentences[step])
  if (step === 'safe' || step === 'confirmed' || step === 'finalized') return
  ctx.metrics.payments.inc({ network, outcome: step === 'undecided' ? disposition : step })
  if (step === 'credited' && claimedAt !== null)
    ctx.metrics.paymentSeconds.observe(
      { network },
      Math.max(0, credit.includedAt.getTime() - claimedAt.getTime()) / 1_000,
    )
}
