import assert from 'node:assert/strict'
import { ConfigError } from '../config/read.ts'
import type { Context } from '../context.ts'
import { checkSchema, type Migrated, migrate } from '../database/migrate.ts'
import { randomText } from '../ids.ts'
import { Problem } from '../problems.ts'
import * as cells from './cell-rows.ts'
import { ask, type Claim, unavailable } from './directory.ts'
import { assertClaims } from './rows.ts'
import { readState, writeEpoch, writeIdentity, writeReported } from './state-rows.ts'
import { keyOf, type Uses, without } from './uses.ts'

const folder = new URL('../../directory/', import.meta.url)
/** An operator has to read them. */
const conflictsMax = 50
/** 5 bits each: no two databases draw the same. */
const identityLength = 26

export async function migrateDirectory(ctx: Context): Promise<Migrated> {
  if (!ctx.directory) throw noDirectory()
  return await migrate(ctx.directory, { folder })
}

export async function checkDirectory(ctx: Context): Promise<void> {
  if (!ctx.directory) throw noDirectory()
  await checkSchema(ctx.directory, folder)
}

export type Adopted =
  | {
      readonly wallets: number
      readonly settlers: number
    }
  | { readonly conflicts: readonly string[] }
  | { readonly waitsFor: readonly string[] }
  /** Another database is this cell. */
  | { readonly isTaken: true }

/**
 * Registers this cell and claims everything that it uses: all of it, or nothing if another cell has something of it. From
 * its first step on, no process of this cell can put a wallet to use without a claim, so nothing is missed.
 */
export async function adopt(ctx: Context, uses: Uses): Promise<Adopted> {
  const { directory, config } = ctx
  if (!directory) throw noDirectory()
  await checkDirectory(ctx)
  const before = await readState(ctx.db)
  const counts = { wallet: 0, settler: 0 }
  const conflicts: Claim[] = []
  const self = { tag: config.cell, identity: await writeIdentity(ctx.db, randomText(identityLength)) }
  let reports: string | null = null
  try {
    const refusal = await directory.transaction(async (tx) => {
      const epoch = await cells.lockEpoch(tx)
      const waiting = await cells.listWaiting(tx, config.cell)
      if (waiting.length > 0) return { waitsFor: waiting }
      const cell = { ...self, apiUrl: config.baseUrl, consoleUrl: config.consoleUrl }
      reports = await cells.writeCell(tx, cell, epoch)
      if (reports === null) return { isTaken: true as const }
      await writeEpoch(ctx.db, epoch)
      for await (const page of uses.pages()) {
        const got = await assertClaims(tx, page, self, 'adopted', epoch)
        for (const { kind } of got) counts[kind]++
        conflicts.push(...without(page, got))
        if (conflicts.length > conflictsMax) break
      }
      if (conflicts.length > 0) throw new Conflict()
      return null
    })
    if (refusal) return refusal
  } catch (error) {
    if (before.epoch === null) await writeEpoch(ctx.db, null)
    if (error instanceof Conflict) return { conflicts: conflicts.slice(0, conflictsMax).map(keyOf) }
    throw error
  }
  assert(reports !== null, 'the cell is in the directory')
  await writeReported(ctx.db, before, { reports, takesStores: before.takesStores })
  return { wallets: counts.wallet, settlers: counts.settler }
}

class Conflict extends Error {}

/**
 * A process may start if it agrees with its database about the directory: with one that this cell has adopted, or with
 * none at all. A directory that does not answer keeps nothing from starting.
 */
export async function checkCellJoined(ctx: Context): Promise<void> {
  const { epoch, identity } = await readState(ctx.db)
  const { cell } = ctx.config
  if (!ctx.directory) {
    if (epoch === null) return
    throw new ConfigError(
      'DIRECTORY_URL is required: this deployment shares a directory with other cells, and must not use a wallet that another cell has.',
    )
  }
  if (epoch === null)
    throw new ConfigError(
      `Cell ${cell} has not adopted the directory in DIRECTORY_URL. Run: farthing-admin directory adopt`,
    )
  const known = await ask(ctx, (directory) => cells.readIdentity(directory, cell)).catch((error) => {
    if (error instanceof Problem) return error
    throw error
  })
  if (known instanceof Problem)
    ctx.log.warn(
      { err: known.cause },
      'the directory does not answer; everything works except adding wallets and settlers',
    )
  else if (known === undefined)
    throw new ConfigError(
      `The directory in DIRECTORY_URL does not know cell ${cell}. If the directory was restored, run: farthing-admin directory restored --cells LIST; if the cell was removed, this database must not be used; if the directory is another, correct DIRECTORY_URL.`,
    )
  else if (known !== null && known !== identity) throw new ConfigError(describeTaken(cell))
}

/** What an operator has to know whose database has the tag of another. */
export function describeTaken(cell: string): string {
  return `Another database is cell ${cell} in the directory, so this one must not run as cell ${cell}: both would be paid to the same wallets. Give this one a CELL of its own, which takes a new database. If the other is gone for good, run first: farthing-admin directory remove ${cell}`
}

function noDirectory(): Problem {
  return unavailable('DIRECTORY_URL is not set.')
}
