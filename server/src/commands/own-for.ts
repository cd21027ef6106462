import { toStoredAnywhere } from '../chains/families.ts'
import type { Context } from '../context.ts'
import { checkCellJoined } from '../directory/adopt.ts'
import { ask, type Ownership, walletOwnership } from '../directory/directory.ts'
import { type Hold, own } from '../directory/own.ts'
import { listCells, listOwners } from '../directory/rows.ts'
import type { Family, Mode } from '../networks.ts'

/**
 * Why this cell may not have a new store with these wallets; null if it may. It owns them then: a store that cannot have
 * its wallet should not exist.
 */
export async function findPlaceRefusal(
  ctx: Context,
  mode: Mode,
  wallets: readonly { readonly family: Family; readonly address: string }[],
): Promise<string | null> {
  await checkCellJoined(ctx)
  if (!ctx.directory) return null
  const { cell } = ctx.config
  const here = (await ask(ctx, listCells)).find(({ tag }) => tag === cell)
  if (here && !here.takesStores)
    return `Cell ${cell} takes no new stores. To see where one goes: directory place. To let it take some again: directory resume ${cell}`
  for (const { family, address } of wallets) {
    const held = await ownFor(ctx, walletOwnership(mode, family, toStoredAnywhere(address)))
    if ('refusal' in held) return `${address} ${held.refusal} Run store create in that cell.`
  }
  return null
}

/** Makes this cell the owner on an operator's word, or says which cell is. */
export async function ownFor(
  ctx: Context,
  ownership: Ownership,
): Promise<{ readonly hold: Hold } | { readonly refusal: string }> {
  const hold = await own(ctx, ownership, 'operator')
  if (hold === 'elsewhere') {
    const [owner] = await ask(ctx, (directory) => listOwners(directory, [ownership]))
    return { refusal: `belongs to cell ${owner?.cell ?? '(none since a moment ago)'}.` }
  }
  return { hold: hold === 'free' ? null : hold }
}
