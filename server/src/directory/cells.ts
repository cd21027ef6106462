import type { Context } from '../context.ts'
import { ask, quietMinutes } from './directory.ts'
import * as rows from './rows.ts'

/** False if there is no such cell. */
export async function writeTakesStores(ctx: Context, tag: string, takes: boolean): Promise<boolean> {
  const found = await ask(ctx, (directory) =>
    directory.query('update cells set takes_stores = $2 where tag = $1 returning tag', [tag, takes]),
  )
  return found.length > 0
}

/**
 * Records that the directory was restored. Nothing is granted until all cells have adopted it, including those that it has
 * forgotten. If `tags` leaves out cells, returns those and changes nothing.
 */
export async function declareRestored(ctx: Context, tags: readonly string[]): Promise<readonly string[]> {
  return await ask(ctx, (directory) =>
    directory.transaction(async (tx) => {
      await rows.lockGeneration(tx)
      const known = await tx.query<{ tag: string }>('select tag from cells order by tag')
      const forgotten = known.map(({ tag }) => tag).filter((tag) => !tags.includes(tag))
      if (forgotten.length > 0) return forgotten
      await tx.query('insert into cells (tag) select unnest($1::text[]) on conflict do nothing', [tags])
      await tx.query('update generation set number = number + 1')
      return []
    }),
  )
}

/**
 * Removes a cell from the directory, with everything that it owned. That is safe if it owns nothing. A lost cell can't
 * release anything, so an operator must confirm that its database never starts again, and the cell must have stopped
 * reporting.
 */
export async function removeCell(
  ctx: Context,
  tag: string,
  isLost: boolean,
): Promise<rows.Cell | { readonly refusal: string }> {
  const { identity } = await rows.readState(ctx.db)
  const removed = await ask(ctx, (directory) =>
    directory.transaction(async (tx) => {
      await rows.lockGeneration(tx)
      // A grant locks its cell for share, so none is added or missed.
      const [locked] = await tx.query<{ secondsSilent: number | null }>(
        `select extract(epoch from clock() - seen_at)::integer as "secondsSilent" from cells where tag = $1 for update`,
        [tag],
      )
      const cell = (await rows.listCells(tx)).find((each) => each.tag === tag)
      if (!locked || !cell) return { refusal: `There is no cell ${tag}. Run: directory list` }
      const refusal = refuseRemoval(cell, locked.secondsSilent, isLost, identity)
      if (refusal !== null) return { refusal }
      await tx.query('delete from owners where cell = $1', [tag])
      await tx.query('delete from cells where tag = $1', [tag])
      return cell
    }),
  )
  if ('refusal' in removed) return removed
  const { wallets, settlers } = removed
  ctx.log.warn({ cell: tag, wallets, settlers }, 'removed a cell from the directory')
  return removed
}

function refuseRemoval(
  { tag, wallets, settlers, isAdopted, identity }: rows.Cell,
  secondsSilent: number | null,
  isLost: boolean,
  ownIdentity: string | null,
): string | null {
  if (isAdopted && wallets + settlers === 0) return null
  const has = isAdopted
    ? `Cell ${tag} owns ${wallets} wallets and ${settlers} settlers.`
    : `Cell ${tag} has not adopted the directory since it was restored.`
  const close = `${has} Retire its wallets, drain its settlers, and a day later run there: directory release --all.`
  if (secondsSilent !== null && secondsSilent < quietMinutes * 60)
    return `${close} It reported ${secondsSilent} seconds ago, so it runs. If it is lost, wait until it has not reported for ${quietMinutes} minutes.`
  if (!isLost)
    return `${close} If its database is lost and will never start again, add --lost: other cells can own its wallets and settlers then, and if it did start, one transfer could complete two checkouts.`
  return identity !== null && identity === ownIdentity
    ? `${has} This database is that cell, so it is not lost.`
    : null
}
