import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { UpdateStatus } from '../rail.ts'
import { reportEnded } from '../report-ended.ts'
import { rejectAuthorizations } from '../rows.ts'

export type Refused = {
  readonly asset: string
  readonly payer: string
  readonly nonce: string
  readonly reason: string
}

/** Rejects claims that were never sent because they would fail. */
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
