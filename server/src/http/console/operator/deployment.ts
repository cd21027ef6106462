import type { FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { Refusal } from '../../../members/refusal.ts'
import { sessionOf } from '../visitor.ts'

/**
 * The deployment as its operators look at it: over all stores, with the rights of `serve`, which the console's own role
 * does not have. What is read this way is counts, ages, names and accounts, never a store's payments.
 */
export type Deployment = {
  readonly ctx: Context
  /** What `doctor` finds here. */
  examine(): Promise<readonly Finding[]>
}

export type Finding = { readonly what: string; readonly says: string; readonly fix: string | null }

/** To everybody else there is nothing here. */
export function refuseOthers(request: FastifyRequest): void {
  if (!sessionOf(request).member.isOperator) throw new Refusal('not_found')
}
