import type { Context } from '../context.ts'
import { writeAsserted } from './cell-rows.ts'
import { ask } from './directory.ts'
import { assertClaims, type Self } from './rows.ts'
import { writeEpoch } from './state-rows.ts'
import { keyOf, type Uses, without } from './uses.ts'

/** As many as an operator reads in a log; `doctor` counts them all. */
const conflictsToldMax = 20

/**
 * Tells the directory all that this cell uses. The cell's own state moves to the epoch first: what is put to use before
 * that is listed, and whatever was claimed before it cannot be put to use any more. What turns out to be another cell's is
 * marked as such here before the directory may grant again, so a crash in between leaves nothing unmarked.
 */
export async function assertUses(ctx: Context, uses: Uses, self: Self, epoch: string): Promise<void> {
  await writeEpoch(ctx.db, epoch)
  let told = 0
  for await (const page of uses.pages()) {
    const got = await ask(ctx, (directory) => assertClaims(directory, page, self, 'adopted', epoch))
    const conflicts = without(page, got)
    if (conflicts.length > 0) await uses.writeElsewhere(conflicts, true)
    for (const claim of conflicts) {
      if (told++ < conflictsToldMax)
        ctx.log.error(
          { claim: keyOf(claim) },
          'this cell has a wallet or settler that another cell owns; nothing new is paid to it or sent from it here; take it out of use in one of them: see doctor',
        )
    }
  }
  await ask(ctx, (directory) => writeAsserted(directory, self, epoch))
  ctx.log.info({ epoch, conflicts: told }, 'told the directory all wallets and settlers that this cell uses')
}
