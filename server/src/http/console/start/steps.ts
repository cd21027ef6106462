import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import type { MemberId, StoreId } from '../../../ids.ts'
import type { Membership } from '../../../members/member.ts'
import { readSpare } from '../../../members/recovery-codes.ts'
import { mayAct } from '../../../members/rights.ts'
import { readStepsDone, type StepsDone } from '../../../stores/rows.ts'
import { readCookie } from '../../cookies.ts'
import { forStore, sessionOf } from '../visitor.ts'

/**
 * The first steps of a store. Facts about the store decide whether a step is done, and for a second way in (`spare`)
 * facts about its only owner. Which steps a member skipped is remembered in this browser: a cookie for the store's
 * paths names the member and the steps, or `all` once nothing is left.
 */
export const steps = ['wallet', 'proof', 'spare', 'payment', 'key', 'webhook'] as const
export type StartStep = (typeof steps)[number]
export const all = 'all'

const cookie = 'steps'
/** A year. After that, whether steps are left is read from the store again, and skipped ones are back. */
const rememberedSeconds = 31_536_000

export function skippedBy(request: FastifyRequest): readonly string[] {
  const [memberId, list = ''] = (readCookie(request, cookie) ?? '').split(':')
  return memberId === sessionOf(request).member.id ? list.split('.') : []
}

export function rememberSkipped(
  request: FastifyRequest,
  reply: FastifyReply,
  { storeId }: Membership,
  skipped: readonly string[],
): void {
  const list = [...steps, all].filter((each) => skipped.includes(each)).join('.')
  const value = `${cookie}=${sessionOf(request).member.id}:${list}`
  const rules = `Path=/stores/${storeId}; HttpOnly; SameSite=Lax; Max-Age=${rememberedSeconds}`
  reply.header('set-cookie', `${value}; ${rules}`)
}

/** `spare` is null for members who are not the only owner: they are not asked for it. */
export type StartDone = StepsDone & { readonly spare: boolean | null }

export async function readStartDone(ctx: Context, storeId: StoreId, memberId: MemberId): Promise<StartDone> {
  const [done, spare] = await Promise.all([
    readStepsDone(forStore(ctx, storeId).db, storeId),
    readSpare(ctx.db, storeId, memberId),
  ])
  return { ...done, spare }
}

/** The steps that this member is asked for. */
export function stepsFor({ spare }: StartDone): readonly StartStep[] {
  return steps.filter((step) => step !== 'spare' || spare !== null)
}

export function isDone(done: StartDone, step: StartStep): boolean {
  return step === 'wallet' ? done.wallet !== null : done[step] === true
}

/** Whether the navigation still leads there. Once nothing is left, the browser remembers it and the database is not asked again. */
export async function hasStepsLeft(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  store: Membership,
): Promise<boolean> {
  if (!mayAct(store.role, 'wallets:read')) return false
  const skipped = skippedBy(request)
  if (skipped.includes(all)) return false
  const done = await readStartDone(ctx, store.storeId, sessionOf(request).member.id)
  if (stepsFor(done).some((step) => !isDone(done, step) && !skipped.includes(step))) return true
  rememberSkipped(request, reply, store, [all])
  return false
}
