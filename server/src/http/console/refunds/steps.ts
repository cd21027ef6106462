import type { Refund as Wire } from '@farthing/sdk'
import { toShown } from '../../../chains/families.ts'
import type { Refund } from '../../../refunds/refund.ts'
import { type Html, html } from '../../page/html.ts'
import { type Locale, showShort, showTokens } from '../formats.ts'
import { renderTransaction } from '../parts.ts'
import type { Texts } from '../texts/choose.ts'

/** The next action on a refund. `sign`, `pay`, `confirm` and `link` are the store's. */
export type RefundTurn = keyof Texts['refunds']['turns']

export function turnOf({ status, way, recipient, isCanceling, addressRequest }: Wire): RefundTurn {
  switch (status) {
    case 'REQUESTED':
      if (isCanceling) return 'canceling'
      if (recipient !== null) return way === 'signed' ? 'sign' : 'pay'
      if (addressRequest?.status === 'NAMED') return 'confirm'
      return addressRequest?.status === 'OPEN' ? 'buyer' : 'link'
    case 'SIGNED':
    case 'SENT':
      return 'moving'
    case 'COMPLETED':
      return 'done'
    case 'DECLARED':
      return 'declared'
    case 'FAILED':
      return 'failed'
    case 'CANCELED':
      return 'canceled'
  }
}

const stores: readonly RefundTurn[] = ['sign', 'pay', 'confirm', 'link']

export function isStoresTurn(turn: RefundTurn): boolean {
  return stores.includes(turn)
}

type StepId = keyof Texts['refunds']['steps']

/** One step of a refund: when it happened, what fills its sentence, and who caused it. */
export type RefundStep = {
  readonly id: StepId
  /** Null if the time was not recorded, or if it has not happened yet. */
  readonly at: Date | null
  readonly tone: '' | 'failed' | 'coming'
  readonly fills: Readonly<Record<string, string | Html>>
  readonly by: string | null
}

/** The recorded steps of a refund in order, then the expected ones. */
export function stepsOf(refund: Refund, wire: Wire, locale: Locale): RefundStep[] {
  const { status, actor, network } = refund
  const shown = (address: string | null) => (address === null ? '' : showShort(toShown(network, address)))
  const fills = {
    amount: showTokens(locale, wire, wire.amount),
    payment: html`<code>${refund.paymentId}</code>`,
    wallet: shown(refund.wallet),
    address: shown(refund.recipient),
    transaction: refund.transaction === null ? '' : renderTransaction(network, refund.transaction),
    reference: html`<bdi>${refund.declared ?? ''}</bdi>`,
    failure: html`<bdi>${refund.failure ?? ''}</bdi>`,
  }
  const step = (
    id: StepId,
    at: Date | null,
    tone: RefundStep['tone'] = '',
    by: string | null = null,
  ): RefundStep => ({
    ...{ id, at, tone, by, fills },
  })
  const isMoving = status === 'SENT' && refund.transaction !== null
  const isFinal = refund.finality === 'finalized'
  const steps: (RefundStep | false)[] = [
    step('requested', refund.createdAt, '', actor.name ?? `${actor.type} ${actor.id}`),
    refund.signedAt !== null && step('signed', refund.signedAt),
    isMoving && step('sent', null),
    status === 'COMPLETED' && step('completed', refund.completedAt),
    status === 'COMPLETED' && (isFinal ? step('final', null) : step('awaitFinal', null, 'coming')),
    status === 'DECLARED' && step('declared', refund.endedAt),
    wire.isCanceling && step('cancelAsked', refund.cancelAskedAt),
    status === 'CANCELED' && step('canceled', refund.endedAt, 'failed'),
    status === 'FAILED' && step('failed', refund.endedAt, 'failed'),
  ]
  return steps.filter((each) => each !== false)
}
