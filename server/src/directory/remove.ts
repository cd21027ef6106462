import type { Context } from '../context.ts'
import * as cells from './cell-rows.ts'
import { ask, quietMinutes } from './directory.ts'
import { readState } from './state-rows.ts'

export type Removed = cells.Held | { readonly refusal: string }

/**
 * Takes a cell out of the directory, with its claims. By itself that is safe if the cell has given everything up. One that
 * is lost can't, so an operator says that its database never starts again, and it has to be silent already.
 */
export async function removeCell(ctx: Context, tag: string, isLost: boolean): Promise<Removed> {
  const { identity } = await readState(ctx.db)
  const removed = await ask(ctx, (directory) =>
    directory.transaction(async (tx): Promise<Removed> => {
      await cells.lockEpoch(tx)
      const cell = await cells.lockCell(tx, tag)
      if (!cell) return { refusal: `There is no cell ${tag}. Run: directory list` }
      // Counted under the lock: a claim refers to its cell, so none is added or missed.
      const held = await cells.countHeld(tx, tag)
      const isEmpty = cell.isAsserted && held.wallets + held.settlers === 0
      const refusal = isEmpty ? null : findRefusal(tag, cell, held, isLost, cell.identity === identity)
      if (refusal !== null) return { refusal }
      await cells.deleteCell(tx, tag)
      return held
    }),
  )
  if (!('refusal' in removed)) ctx.log.warn({ cell: tag, ...removed }, 'removed a cell from the directory')
  return removed
}

function findRefusal(
  tag: string,
  { secondsSilent, isAsserted }: cells.Locked,
  { wallets, settlers }: cells.Held,
  isLost: boolean,
  isThis: boolean,
): string | null {
  const has = isAsserted
    ? `Cell ${tag} has ${wallets} wallets and ${settlers} settlers.`
    : `Cell ${tag} has not told what it uses since the directory was restored.`
  const giveUp =
    'Retire its wallets, drain its settlers and leave its work running until directory list shows none of either, 25 hours later.'
  if (secondsSilent !== null && secondsSilent < quietMinutes * 60)
    return `${has} It reported ${secondsSilent} seconds ago, so it runs. ${giveUp} If it is lost, wait until it has not reported for ${quietMinutes} minutes.`
  if (!isLost)
    return `${has} ${giveUp} If its database is lost and will never start again, add --lost: other cells can have its wallets and settlers then, and if it did start, one transfer could complete two checkouts.`
  return isThis ? `${has} It is the cell of this very database, so it is not lost.` : null
}
