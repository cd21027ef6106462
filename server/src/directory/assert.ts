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
 * that is listed, and whatever was claimed before it cannot be put to use any more.
 */
export async function assertUses(ctx: Context, uses: Uses, self: Self, epoch: string): Promise<void> {
  await writeEpoch(ctx.db, epoch)
  let told = 0
  for await (const page of uses.pages()) {
    const got = await ask(ctx, (directory) => assertClaims(directory, page, self, 'adopted', epoch))
    for (const claim of without(page, got)) {
      if (told++ < conflictsToldMax)
        ctx.log.error(
          { claim: keyOf(claim) },
          'this cell uses a wallet or settler that another cell owns; take it out of use in one of them: see doctor',
        )
    }
  }
  await ask(ctx, (directory) => writeAsserted(directory, self, epoch))
  ctx.log.info({ epoch, conflicts: told }, 'told the directory all wallets and settlers that this cell uses')
}
