import { openUses } from '../checkouts/uses.ts'
import type { Context } from '../context.ts'
import { SchemaError } from '../database/schema.ts'
import { checkDirectory } from '../directory/adopt.ts'
import { ask, keyOf, type Ownership, without } from '../directory/directory.ts'
import { findObstacle, listCells, listOwners, readState } from '../directory/rows.ts'
import { Problem } from '../problems.ts'

const what = 'directory'
/** More are only counted. */
const shownMax = 3

/** For `doctor`: whether the directory answers, grants, and this cell owns all that it uses. */
export async function examineDirectory(
  ctx: Context,
): Promise<{ readonly what: string; readonly says: string; readonly fix: string | null }[]> {
  const state = await readState(ctx.db)
  const { cell } = ctx.config
  if (!ctx.directory) {
    if (state.generation === null) return []
    const says = 'this cell shares one with others, but DIRECTORY_URL is not set here'
    return [{ what, says, fix: 'Set it, as it is for serve and work.' }]
  }
  try {
    await ask(ctx, () => checkDirectory(ctx))
    if (state.generation === null)
      return [{ what, says: `cell ${cell} is not in it`, fix: 'Run: farthing-admin directory adopt' }]
    const obstacle = await findObstacle(ctx)
    if (obstacle) return [{ what, says: obstacle.says, fix: obstacle.fix }]
    const cells = await ask(ctx, listCells)
    return await compare(ctx, cells.length)
  } catch (error) {
    if (error instanceof SchemaError)
      return [{ what, says: error.says, fix: 'Run: farthing-admin directory migrate' }]
    if (!(error instanceof Problem)) throw error
    const cause = error.cause instanceof Problem ? (error.cause.cause ?? error.cause) : error.cause
    const says = `does not answer, so no wallet or settler can be added: ${cause instanceof Error ? cause.message : cause}`
    return [{ what, says, fix: 'Check that its PostgreSQL is running and that DIRECTORY_URL is right.' }]
  }
}

async function compare(ctx: Context, cells: number) {
  const { cell } = ctx.config
  const foreign: Ownership[] = []
  const missing: Ownership[] = []
  let used = 0
  for await (const page of openUses(ctx.db).pages()) {
    const owners = await ask(ctx, (directory) => listOwners(directory, page))
    used += page.length
    foreign.push(...owners.filter((owner) => owner.cell !== cell))
    missing.push(...without(page, owners))
  }
  const findings = [
    ...(foreign.length > 0
      ? [
          {
            what,
            says: `another cell owns ${show(foreign)}, which this cell uses. This cell makes no new use of it, but both cells count the money that arrives`,
            fix: 'Retire the wallet or drain the settler today, in one of the two cells. If that is the other cell, also release the wallet or settler there (`directory release`), then run here: farthing-admin directory adopt',
          },
        ]
      : []),
    ...(missing.length > 0
      ? [
          {
            what,
            says: `nobody owns what this cell uses: ${show(missing)}; another cell could own it`,
            fix: 'Run: farthing-admin directory adopt',
          },
        ]
      : []),
  ]
  const says = `${cells} ${cells === 1 ? 'cell' : 'cells'}; cell ${cell} owns the ${used} wallets and settlers that it uses`
  return findings.length > 0 ? findings : [{ what, says, fix: null }]
}

function show(some: readonly Ownership[]): string {
  const shown = some.slice(0, shownMax).map(keyOf).join(', ')
  return some.length > shownMax ? `${shown} and ${some.length - shownMax} more` : shown
}
