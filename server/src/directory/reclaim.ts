import type { Context } from '../context.ts'
import { ask } from './directory.ts'
import { assertClaims, type Self } from './rows.ts'
import { keyOf, type Uses } from './uses.ts'

/**
 * Claims what another cell owned when this one told what it uses, if that cell has given it up since. From then on it is
 * put to use here again. What is not used any more keeps its mark: an owner may undo a change of wallet.
 */
export async function reclaimUses(ctx: Context, uses: Uses, self: Self, epoch: string): Promise<void> {
  const elsewhere = await uses.listElsewhere()
  if (elsewhere.length === 0) return
  const used = await uses.find(elsewhere)
  if (used.length === 0) return
  const got = await ask(ctx, (directory) => assertClaims(directory, used, self, 'adopted', epoch))
  if (got.length > 0) await uses.writeElsewhere(got, false)
  for (const claim of got)
    ctx.log.info({ claim: keyOf(claim) }, 'this cell owns a wallet or settler again that another cell had')
}
