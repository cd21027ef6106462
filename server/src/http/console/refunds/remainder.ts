import type { Refund } from '@farthing/sdk'
import type { CreditRow } from '../../../payments/credits/credit.ts'
import { expectedFinalAt } from '../../../refunds/create.ts'
import { listRefunds } from '../../../refunds/read.ts'
import { readRefundable } from '../../../refunds/rows.ts'
import { readStore } from '../../../stores/rows.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showTime, showTokens } from '../formats.ts'
import type { Screen } from '../screen.ts'
import { renderStatus } from './view.ts'

/** Why a member cannot refund a payment. */
type Obstacle = 'notAllowed' | 'ownersOnly' | 'reversed' | 'unproven' | 'notFinal' | 'nothingLeft'

/** What of a payment has gone back, what is left, and whether this member can refund it. */
export type Remainder = {
  readonly payment: CreditRow
  /** In the asset's smallest unit. */
  readonly left: bigint
  /** Whether the payer signed it: then it goes back to them. */
  readonly isSigned: boolean
  readonly refunds: readonly Refund[]
  readonly obstacle: Obstacle | null
}

/** More refunds than one payment ever has; the list of refunds has them all. */
const refundsMax = 20

export async function readRemainder(
  { ctx, storeId, store: { role }, may }: Pick<Screen, 'ctx' | 'storeId' | 'store' | 'may'>,
  payment: CreditRow,
  mayDecide: boolean,
): Promise<Remainder> {
  const [known, { data: refunds }, store] = await Promise.all([
    readRefundable(ctx.db, storeId, payment.paymentId),
    listRefunds(ctx, storeId, { paymentId: payment.paymentId, limit: refundsMax }),
    role === 'manager' ? readStore(ctx.db, storeId) : null,
  ])
  // Of stores that share a wallet, one refunds it.
  const isAnotherStores = known !== null && known.ownerId !== null && known.ownerId !== storeId
  const left = known === null || isAnotherStores ? 0n : payment.amount - (known.reserved ?? 0n)
  const find = (): Obstacle | null => {
    if (!may('refunds:write')) return 'notAllowed'
    if (store && isNothing(store.managerRefundLimit)) return 'ownersOnly'
    if (known === null || payment.isReversed) return 'reversed'
    if (!mayDecide || !known.isProven) return 'unproven'
    if (payment.finalizedAt === null) return 'notFinal'
    return left <= 0n ? 'nothingLeft' : null
  }
  return { payment, left, isSigned: known?.nonce != null, refunds, obstacle: find() }
}

/** Whether a limit allows nothing at all. */
export function isNothing(limit: string): boolean {
  return /^[0.]*$/.test(limit)
}

/** Says in words why not. */
export function renderObstacle(screen: Screen, { obstacle, payment }: Remainder): Html | null {
  if (obstacle === null) return null
  const { base, locale, now } = screen
  const texts = screen.texts.refunds
  if (obstacle === 'notFinal') {
    const time = expectedFinalAt(payment)
    return time > now
      ? fill(texts.notFinal, { time: showTime(locale, time, now) })
      : html`${texts.notFinalSoon}`
  }
  if (obstacle === 'unproven') return html`${texts.unproven} <a href="${base}/wallets">${texts.toWallets}</a>`
  return html`${texts[obstacle]}`
}

/** On a payment's screen: what went back of it, and the way to send more back, or why there is none. */
export function renderRemainders(screen: Screen, remainders: readonly Remainder[]): Html | null {
  if (remainders.length === 0) return null
  const { refundsOf } = screen.texts.refunds
  return html`<h2 id="refunds">${refundsOf}</h2>${remainders.map((each) => renderRemainder(screen, each))}`
}

function renderRemainder(screen: Screen, remainder: Remainder): Html {
  const { base, locale, now } = screen
  const { payment, refunds, left, obstacle } = remainder
  const lines = refunds.map((refund) => {
    const link = html`<a href="${base}/refunds/${refund.id}">${showTokens(locale, refund, refund.amount)}</a>`
    const time = showTime(locale, new Date(refund.createdAt), now)
    return html`<li><span>${link} ${renderStatus(screen, refund)}</span>${time}</li>`
  })
  const label = fill(screen.texts.refunds.refundOf, { amount: showTokens(locale, payment, left) })
  return html`<div class="stack">${lines.length > 0 && html`<ul class="list">${lines}</ul>`}${
    obstacle === null
      ? html`<p><a class="button quiet" href="${base}/payments/${payment.paymentId}/refund">${label}</a></p>`
      : html`<p class="soft">${renderObstacle(screen, remainder)}</p>`
  }</div>`
}
