import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Transaction } from '../database/db.ts'
import { idOfNetwork } from '../networks.ts'
import { reversal } from './credits/rows.ts'
import type { UpdateStatus } from './rail.ts'
import { type AuthorizationKey, authorizationOf, isUncreditedHere } from './rows.ts'

/**
 * How an authorization ends without paying: it is rejected before it is sent because it would fail, or buried once it
 * can never pay.
 */
export type Refused = AuthorizationKey & { readonly reason: string }

/** Rejects claims that would fail, and were never sent. */
export async function reject(
  ctx: Context,
  network: string,
  refused: readonly Refused[],
  updateStatus: UpdateStatus,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const rejected = await rejectAuthorizations(tx, network, refused)
    crashPoint(ctx, 'reject-before-commit')
    const changed = rejected.flatMap(({ checkoutId }) => checkoutId ?? [])
    if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
    reportEnded(ctx, tx, network, 'refused', rejected)
  })
  crashPoint(ctx, 'reject-after-commit')
  ctx.db.wakeUps.send('outcomes')
}

/** With `validBefore`, it is dead only if nothing with a longer validity was handed out for it. */
type Dead = Refused & { readonly validBefore?: string }

/**
 * Buries authorizations of any chain: records that they can never pay, and reverses their credits that the chain has
 * removed. From then on, their payers may be asked to sign again. Returns the number of checkouts affected.
 */
export async function bury(
  ctx: Context,
  network: string,
  dead: readonly Dead[],
  updateStatus: UpdateStatus,
  /** Further writes for the same transaction. */
  alongside: (tx: Transaction) => Promise<void> = async () => {},
): Promise<number> {
  const concerned = await ctx.db.transaction(async (tx) => {
    const changed = await buryIn(ctx, tx, network, dead, updateStatus)
    await alongside(tx)
    crashPoint(ctx, 'bury-before-commit')
    return changed
  })
  crashPoint(ctx, 'bury-after-commit')
  ctx.db.wakeUps.send('outcomes')
  return concerned
}

/** The same in a transaction of the caller's. */
export async function buryIn(
  ctx: Context,
  tx: Transaction,
  network: string,
  dead: readonly Dead[],
  updateStatus: UpdateStatus,
): Promise<number> {
  const buried = await buryAuthorizations(tx, network, dead)
  const reversed = await reverseCredits(tx, network, dead)
  const changed = [...new Set([...buried.flatMap(({ checkoutId }) => checkoutId ?? []), ...reversed])]
  if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
  reportEnded(ctx, tx, network, 'failed', buried)
  return changed.length
}

const sentences = {
  refused: 'payment refused before it was sent: it would have failed',
  failed: 'payment given up: it can never be paid',
} as const

const refundSentence = 'the signature of a refund is dead: it can no longer move money'

/** Logs each authorization that will not pay, after the commit. */
function reportEnded(
  ctx: Context,
  tx: Transaction,
  caip2: string,
  outcome: keyof typeof sentences,
  ended: readonly Ended[],
): void {
  const network = idOfNetwork(caip2)
  tx.afterCommit(() => {
    for (const { checkoutId, refundId, reason } of ended) {
      if (refundId !== null) {
        ctx.log.info({ refundId, network, reason }, refundSentence)
        continue
      }
      ctx.metrics.payments.inc({ network, outcome })
      ctx.log.info({ checkoutId, network, reason }, sentences[outcome])
    }
  })
}

/** An authorization that will not pay any more, and why. It has no checkout if it was only found on the chain. */
type Ended = {
  readonly checkoutId: string | null
  readonly refundId: string | null
  readonly reason: string
}

/**
 * Rejects claims that were never sent. `state = 'claimed'` is what makes this safe: a sent authorization cannot match.
 */
export async function rejectAuthorizations(
  tx: Transaction,
  network: string,
  refused: readonly Refused[],
): Promise<Ended[]> {
  await lockCheckoutsOf(tx, network, refused)
  return await tx.query<Ended>(
    `update authorizations a set state = 'rejected', reason = i.reason, resolved_at = clock()
     from json_to_recordset($2) as i (asset text, payer text, nonce text, reason text)
     where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce and a.state = 'claimed'
     returning a.checkout_id as "checkoutId", a.refund_id as "refundId", a.reason`,
    [network, JSON.stringify(refused)],
  )
}

/**
 * Records that authorizations are dead. One that was handed out again for a refund, with the same nonce and a later
 * `validBefore`, is not.
 */
export async function buryAuthorizations(
  tx: Transaction,
  network: string,
  dead: readonly Dead[],
): Promise<Ended[]> {
  await lockCheckoutsOf(tx, network, dead)
  return await tx.query<Ended>(
    `update authorizations a set state = 'dead', reason = i.reason, resolved_at = clock()
     from json_to_recordset($2) as i (asset text, payer text, nonce text, reason text, "validBefore" numeric)
     where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce
       and a.state in ('prepared', 'claimed', 'sent', 'rejected') and ${isUncreditedHere}
       and (i."validBefore" is null or a.valid_before <= i."validBefore")
     returning a.checkout_id as "checkoutId", a.refund_id as "refundId", a.reason`,
    [network, JSON.stringify(dead)],
  )
}

/**
 * Every transaction that changes an authorization's state locks its checkout first, in order of id, so that two of them
 * cannot deadlock.
 */
async function lockCheckoutsOf(
  tx: Transaction,
  network: string,
  keys: readonly AuthorizationKey[],
): Promise<void> {
  await tx.query(
    `select id from checkouts where id in (
       select a.checkout_id from json_to_recordset($2) as i (asset text, payer text, nonce text)
       cross join ${authorizationOf('i', '$1')}
     ) order by id for no key update`,
    [network, JSON.stringify(keys.map(({ asset, payer, nonce }) => ({ asset, payer, nonce })))],
  )
}

/**
 * Reverses the orphaned credits of authorizations that have died since: the payer has the money again. Returns their
 * checkouts.
 */
export async function reverseCredits(
  tx: Transaction,
  network: string,
  dead: readonly AuthorizationKey[],
): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string | null }>(
    `update credits k set ${reversal}
     from json_to_recordset($2) as i (asset text, payer text, nonce text)
     where k.network = $1 and k.asset = i.asset and k.payer = i.payer and k.nonce = i.nonce
       and k.orphaned_at is not null and k.reversed_at is null
     returning k.checkout_id`,
    [network, JSON.stringify(dead)],
  )
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}
