import assert from 'node:assert/strict'
import { ConfigError } from '../config/read.ts'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { checkSchema, type Migrated, migrate } from '../database/migrate.ts'
import { randomText } from '../ids.ts'
import { ask, directoryOf, type Ownership, orAway, type Uses, without } from './directory.ts'
import * as rows from './rows.ts'

const folder = new URL('../../directory/', import.meta.url)
/** 5 bits each, so that no two databases draw the same value. */
const identityLength = 26

export async function migrateDirectory(ctx: Context): Promise<Migrated> {
  return await migrate(directoryOf(ctx), { folder })
}

export async function checkDirectory(ctx: Context): Promise<void> {
  await checkSchema(directoryOf(ctx), folder)
}

export type Adopted = {
  readonly wallets: number
  readonly settlers: number
  /** What another cell owns. This cell does not put it to new use. */
  readonly elsewhere: readonly Ownership[]
}

/** Why nothing was changed. */
type NotAdopted =
  | { readonly conflicts: readonly Ownership[] }
  | { readonly waitsFor: readonly string[] }
  /** Another database is registered as this cell. */
  | { readonly isTaken: true }

/**
 * Enters this cell in the directory as the owner of everything that it uses. If another cell owns some of that, a cell
 * that joins for the first time changes nothing, and a cell that was in the directory before leaves that to the other.
 * That is recorded before anything is granted, so that a crash can't lose it.
 */
export async function adopt(ctx: Context, uses: Uses): Promise<Adopted | NotAdopted> {
  await checkDirectory(ctx)
  const { cell } = ctx.config
  const before = await rows.readState(ctx.db)
  const isFirst = before.generation === null
  const counts = { wallet: 0, settler: 0 }
  const elsewhere: Ownership[] = []
  let stamp = ''
  try {
    const refusal = await directoryOf(ctx).transaction(async (tx): Promise<NotAdopted | null> => {
      const generation = await rows.lockGeneration(tx)
      const { identity } = await rows.readState(ctx.db)
      const cells = await rows.listCells(tx)
      const known = cells.find(({ tag }) => tag === cell)
      const waitsFor = cells.filter(({ isAdopted }) => !isAdopted).map(({ tag }) => tag)
      if (!known && waitsFor.length > 0) return { waitsFor }
      if (known && known.identity !== null && known.identity !== identity) return { isTaken: true }
      stamp = await enter(ctx, tx, generation)
      for await (const page of uses.pages()) {
        const owned = await writeOwners(tx, page, cell, generation)
        for (const { kind } of owned) counts[kind]++
        const others = without(page, owned)
        elsewhere.push(...others)
        if (!isFirst) await uses.writeElsewhere(others, true)
      }
      if (isFirst && elsewhere.length > 0) throw new Conflict()
      return null
    })
    if (refusal) return refusal
  } catch (error) {
    if (isFirst) await ctx.db.query('update directory_state set generation = null')
    if (error instanceof Conflict) return { conflicts: elsewhere }
    throw error
  }
  await rows.writeStamped(ctx.db, stamp, before.takesStores)
  await noteElsewhere(ctx, uses)
  return { wallets: counts.wallet, settlers: counts.settler, elsewhere }
}

class Conflict extends Error {}

/**
 * Records the cell here, with a raised fence, and in the directory, with a stamp above all that either has seen. A cell
 * that the directory knew only by name stays drained if it was. Returns the stamp.
 */
async function enter({ db, config }: Context, tx: Transaction, generation: string): Promise<string> {
  const { cell, baseUrl, consoleUrl } = config
  const [known] = await tx.query<{ stamp: string }>('select stamp from cells where tag = $1 for update', [
    cell,
  ])
  const [state] = await db.query<rows.State>(
    `update directory_state set identity = coalesce(identity, $1), generation = $2, fence = fence + ${rows.step},
       stamp = case when next_stamp = $3 then next_stamp else stamp end,
       next_stamp = greatest(stamp, next_stamp, $3) + ${rows.step}
     returning ${rows.stateColumns}`,
    [randomText(identityLength), generation, known?.stamp ?? '0'],
  )
  assert(state?.nextStamp, 'the migration inserts the only row')
  await tx.query(
    `insert into cells as c (tag, api_url, console_url, identity, generation, stamp, takes_stores)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (tag) do update set api_url = excluded.api_url, console_url = excluded.console_url,
       identity = excluded.identity, generation = excluded.generation, stamp = excluded.stamp, is_contested = false,
       takes_stores = c.takes_stores and (c.identity is not null or excluded.takes_stores)`,
    [cell, baseUrl, consoleUrl, state.identity, generation, state.nextStamp, state.takesStores],
  )
  return state.nextStamp
}

/** Records what a cell uses. Returns what it now owns of that; the rest belongs to other cells. */
async function writeOwners(
  tx: Transaction,
  used: readonly Ownership[],
  cell: string,
  generation: string,
): Promise<Ownership[]> {
  return await tx.query<Ownership>(
    `insert into owners as o (kind, scope, address, cell, basis, owned_at, generation)
     select i.kind, i.scope, i.address, $2, 'adopted', clock(), $3
     from json_to_recordset($1) as i (kind text, scope text, address text) order by kind, scope, address
     on conflict (kind, scope, address) do update
       set grants = o.grants + 1, generation = excluded.generation, cell = excluded.cell,
         basis = case when o.cell = excluded.cell then o.basis else excluded.basis end
       where o.cell = excluded.cell or o.generation < excluded.generation
     returning o.kind, o.scope, o.address`,
    [JSON.stringify(used), cell, generation],
  )
}

/** Records for everything that this cell uses whether another cell owns it. */
export async function noteElsewhere(ctx: Context, uses: Uses): Promise<void> {
  for await (const page of uses.pages()) {
    const owners = await ask(ctx, (directory) => rows.listOwners(directory, page))
    const others = owners.filter(({ cell }) => cell !== ctx.config.cell)
    await uses.writeElsewhere(others, true)
    await uses.writeElsewhere(without(owners, others), false)
    if (others.length > 0)
      ctx.log.error(
        { count: others.length },
        'this cell has wallets or settlers that another cell owns; nothing new is paid to them or sent from them here; take them out of use in one of the cells: see doctor',
      )
  }
}

/**
 * A process may start if it agrees with its database about the directory: both use one that this cell has adopted, or
 * both use none. If the directory does not answer, the process starts anyway.
 */
export async function checkCellJoined(ctx: Context): Promise<void> {
  const state = await rows.readState(ctx.db)
  if (!ctx.directory) {
    if (state.generation === null) return
    throw new ConfigError(
      'DIRECTORY_URL is required: this deployment shares a directory with other cells, and must not use a wallet that another cell has.',
    )
  }
  if (state.generation === null)
    throw new ConfigError(
      `Cell ${ctx.config.cell} has not adopted the directory in DIRECTORY_URL. Run: farthing-admin directory adopt`,
    )
  const obstacle = await orAway(ctx, rows.findObstacle(ctx))
  if (obstacle && !obstacle.mayRun) throw new ConfigError(`${obstacle.says}. ${obstacle.fix}`)
}
