import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Transaction } from '../../database/db.ts'
import type { UpdateStatus } from '../rail.ts'
import { reportEnded } from '../report-ended.ts'
import { buryAuthorizations } from '../rows.ts'
import { reverseCredits } from './rows.ts'

type Dead = {
  readonly asset: string
  readonly payer: string
  readonly nonce: string
  readonly reason: string
  /** Only if nothing that lives longer was handed out for it. */
  readonly validBefore?: string
}

/**
 * Buries authorizations of any chain: records that they are dead, which means that they can never pay, and reverses
 * those of their credits that the chain has removed. From then on, their payers may be asked to sign again. Returns the
 * number of checkouts affected.
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
    const buried = await buryAuthorizations(tx, network, dead)
    const reversed = await reverseCredits(tx, network, dead)
    const changed = [...new Set([...buried.flatMap(({ checkoutId }) => checkoutId ?? []), ...reversed])]
    await alongside(tx)
    if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
    reportEnded(ctx, tx, network, 'failed', buried)
    crashPoint(ctx, 'bury-before-commit')
    return changed.length
  })
  crashPoint(ctx, 'bury-after-commit')
  ctx.db.wakeUps.send('outcomes')
  return concerned
}
