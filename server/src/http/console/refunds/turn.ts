import type { Actor, Refund } from '@farthing/sdk'
import type { Role } from '../../../members/member.ts'
import type { Texts } from '../texts/choose.ts'

/** Who has to do something, and what: `sign` to `link` is the store. */
export type Turn = keyof Texts['refunds']['turns']

/** Whose turn it is, and what for. */
export function turnOf({ status, way, recipient, isCanceling, claim }: Refund): Turn {
  switch (status) {
    case 'REQUESTED':
      if (isCanceling) return 'canceling'
      if (recipient !== null) return way === 'signed' ? 'sign' : 'pay'
      if (claim?.status === 'NAMED') return 'confirm'
      return claim?.status === 'OPEN' ? 'buyer' : 'link'
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

/**
 * Whether a member may say who gets the money of a refund, or that it was paid where nobody can look. A manager may only
 * for what they asked for themselves: that is within the limit that owners set.
 */
export function isTheirs(role: Role, memberId: string, { actor }: { readonly actor: Actor }): boolean {
  return role === 'owner' || actor.id === memberId
}

const yours: readonly Turn[] = ['sign', 'pay', 'confirm', 'link']

/** Whether the store has to do something. */
export function isYours(turn: Turn): boolean {
  return yours.includes(turn)
}
