import type { Refund } from '@farthing/sdk'
import type { Context } from '../../../context.ts'
import type { StoreId } from '../../../ids.ts'
import type { Role } from '../../../members/member.ts'
import { mayAct } from '../../../members/rights.ts'
import type { CreditRow } from '../../../payments/credits/credit.ts'
import { expectedFinalAt } from '../../../refunds/create.ts'
import { readRefundable } from '../../../refunds/create-rows.ts'
import { listRefunds } from '../../../refunds/read.ts'
import { readStore } from '../../../stores/rows.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { type Reader, showTime } from '../formats.ts'
import type { Texts } from '../texts/choose.ts'

/** Why somebody cannot refund a payment. */
type Obstacle = 'notAllowed' | 'ownersOnly' | 'reversed' | 'unproven' | 'notFinal' | 'nothingLeft'

/** What of a payment has gone back, what is left, and whether this member can refund it. */
export type Standing = {
  readonly payment: CreditRow
  /** In the asset's smallest unit. */
  readonly left: bigint
  /** Whether the payer signed it: then it goes back to them. */
  readonly isSigned: boolean
  readonly refunds: readonly Refund[]
  readonly obstacle: Obstacle | null
}

/** More refunds of one payment than anybody makes; the list of refunds has them all. */
const refundsMax = 20

export async function readStanding(
  ctx: Context,
  storeId: StoreId,
  role: Role,
  payment: CreditRow,
  mayDecide: boolean,
): Promise<Standing> {
  const [known, { data: refunds }, store] = await Promise.all([
    readRefundable(ctx.db, storeId, payment.paymentId),
    listRefunds(ctx, storeId, { paymentId: payment.paymentId, limit: refundsMax }),
    role === 'manager' ? readStore(ctx.db, storeId) : null,
  ])
  // Of stores that share a wallet, one refunds it.
  const isTheirs = known !== null && known.ownerId !== null && known.ownerId !== storeId
  const left = known === null || isTheirs ? 0n : payment.amount - (known.reserved ?? 0n)
  const find = (): Obstacle | null => {
    if (!mayAct(role, 'refunds:write')) return 'notAllowed'
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
export function renderObstacle(
  texts: Texts['refunds'],
  storeId: StoreId,
  { obstacle, payment }: Standing,
  reader: Reader,
  now: Date,
): Html | null {
  if (obstacle === null) return null
  if (obstacle === 'notFinal') {
    const time = expectedFinalAt(payment)
    return time > now
      ? fill(texts.notFinal, { time: showTime(reader, time, now) })
      : html`${texts.notFinalSoon}`
  }
  if (obstacle === 'unproven')
    return html`${texts.unproven} <a href="/stores/${storeId}/wallets">${texts.toWallets}</a>`
  return html`${texts[obstacle]}`
}
