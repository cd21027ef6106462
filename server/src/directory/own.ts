import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Transaction } from '../database/db.ts'
import { Problem } from '../problems.ts'
import { ask, type Basis, keyOf, type Ownership, type Uses, unavailable } from './directory.ts'
import * as rows from './rows.ts'

/** Permission to use what was asked for, valid while the fence does not change; null without a directory. */
export type Hold = { readonly fence: string } | null

/**
 * Makes this cell the owner. If the basis is null, only asks whether it is. The caller passes the hold to `keepHold` in the
 * transaction that puts the wallet or settler to use. "free" means that no cell owns it, "elsewhere" that another cell
 * does. Throws `unavailable` if the directory does not answer, or grants nothing now.
 */
export async function own(
  ctx: Context,
  ownership: Ownership,
  basis: Basis | null,
): Promise<Hold | 'free' | 'elsewhere'> {
  if (!ctx.directory) return null
  const state = await rows.readState(ctx.db)
  const self = rows.toSelf(ctx, state)
  crashPoint(ctx, 'hold-before')
  const isGranted = await ask(ctx, (directory) => grant(directory, ownership, self, basis))
  crashPoint(ctx, 'hold-after')
  if (isGranted) return { fence: state.fence }
  const obstacle = await rows.findObstacle(ctx)
  if (obstacle) throw unavailable(obstacle.says)
  const [owner] = await ask(ctx, (directory) => rows.listOwners(directory, [ownership]))
  if (!owner && basis === null) return 'free'
  // It was released, or became ours, since we asked: a repeat gets an answer.
  if (!owner || owner.cell === self.tag) throw unavailable('Its owner changed meanwhile.')
  return 'elsewhere'
}

/** Asks the directory; true if the cell owns it now. */
async function grant(
  db: rows.Reader,
  { kind, scope, address }: Ownership,
  self: rows.Self,
  basis: Basis | null,
): Promise<boolean> {
  const text =
    basis === null
      ? `update owners o set grants = o.grants + 1, generation = s.number from (${rows.grantee}) s
         where o.kind = $5 and o.scope = $6 and o.address = $7 and o.cell = s.tag returning o.cell`
      : `insert into owners as o (kind, scope, address, cell, basis, owned_at, generation)
         select $5, $6, $7, s.tag, $8, clock(), s.number from (${rows.grantee}) s
         on conflict (kind, scope, address) do update set grants = o.grants + 1, generation = excluded.generation
           where o.cell = excluded.cell
         returning o.cell`
  const values = [...rows.granteeValues(self), kind, scope, address, ...(basis === null ? [] : [basis])]
  return (await db.query(text, values)).length > 0
}

/** Throws `unavailable` if the grant may have been released since. Call it in the transaction that uses the grant. */
export async function keepHold(tx: Transaction, hold: Hold): Promise<void> {
  const [state] = await tx.query<rows.State>(`select ${rows.stateColumns} from directory_state for share`)
  if (hold === null ? state?.generation === null : state?.fence === hold.fence) return
  throw unavailable(
    hold === null
      ? 'This deployment shares a directory, and this process was started without DIRECTORY_URL.'
      : 'This cell released something or adopted the directory meanwhile.',
  )
}

/** The refusal that callers may read. It does not say which cell: that would tell strangers where a store is. */
export function elsewhere(address: string): Problem {
  return new Problem(
    'wallet_elsewhere',
    `${address} is in use in another cell of this deployment. A wallet is paid in one cell only.`,
  )
}

/**
 * Releases what this cell owned when `owned` was read, so that another cell can own it. If this cell still uses any of it,
 * returns that and releases nothing. Throws `unavailable` if something was granted again meanwhile.
 */
export async function release(
  ctx: Context,
  uses: Uses,
  owned: readonly rows.Owner[],
): Promise<readonly Ownership[]> {
  const usedBefore = await uses.find(owned)
  if (usedBefore.length > 0) return usedBefore
  await ctx.db.query(`update directory_state set fence = fence + ${rows.step}`)
  // Recorded before the last look for uses: that look sees what was put to use before, and nothing comes back after it.
  await uses.writeReleased(owned)
  const used = await uses.find(owned)
  if (used.length > 0) return used
  const self = rows.toSelf(ctx, await rows.readState(ctx.db))
  const gone = await ask(ctx, (directory) =>
    directory.query<Ownership>(
      `delete from owners o using (${rows.grantee}) s,
         json_to_recordset($5) as i (kind text, scope text, address text, grants bigint)
       where o.cell = s.tag and o.kind = i.kind and o.scope = i.scope and o.address = i.address and o.grants = i.grants
       returning o.kind, o.scope, o.address`,
      [...rows.granteeValues(self), JSON.stringify(owned)],
    ),
  )
  for (const each of gone) ctx.log.warn({ ownership: keyOf(each) }, 'released a wallet or settler')
  if (gone.length === owned.length) return []
  const obstacle = await rows.findObstacle(ctx)
  throw unavailable(obstacle?.says ?? 'It was granted to this cell again meanwhile.')
}
