import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Transaction } from '../../database/db.ts'
import type { UpdateStatus } from '../rail.ts'
import { buryAuthorizations } from '../rows.ts'
import { reverseCredits } from './rows.ts'

type Dead = {
  readonly asset: string
  readonly payer: string
  readonly nonce: string
  readonly reason: string
}

/**
 * Writes down that authorizations can never pay any more, whatever chain they were for, and that what the chain took
 * back of them is gone. Their payers may be asked to sign again from here on. Returns how many checkouts it concerns.
 */
export async function bury(
  ctx: Context,
  network: string,
  dead: readonly Dead[],
  updateStatus: UpdateStatus,
  /** What has to be written with it. */
  alongside: (tx: Transaction) => Promise<void> = async () => {},
): Promise<number> {
  const concerned = await ctx.db.transaction(async (tx) => {
    const buried = await buryAuthorizations(tx, network, dead)
    const reversed = await reverseCredits(tx, network, dead)
    const changed = [...new Set([...buried, ...reversed])]
    await alongside(tx)
    if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
    crashPoint(ctx, 'bury-before-commit')
    return changed.length
  })
  crashPoint(ctx, 'bury-after-commit')
  ctx.db.wakeUps.send('outcomes')
  return concerned
}
