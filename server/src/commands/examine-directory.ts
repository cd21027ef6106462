import { openUses } from '../checkouts/uses.ts'
import type { Context } from '../context.ts'
import { SchemaError } from '../database/schema.ts'
import { checkDirectory } from '../directory/adopt.ts'
import { listCells } from '../directory/cell-rows.ts'
import { ask, type Claim } from '../directory/directory.ts'
import { listOwners } from '../directory/rows.ts'
import { readState } from '../directory/state-rows.ts'
import { keyOf, without } from '../directory/uses.ts'
import { Problem } from '../problems.ts'

const what = 'directory'
/** The rest is counted. */
const shownMax = 3

/** For `doctor`: whether the directory answers, grants, and gives this cell all that it uses. */
export async function examineDirectory(
  ctx: Context,
): Promise<{ readonly what: string; readonly says: string; readonly fix: string | null }[]> {
  const { epoch, identity } = await readState(ctx.db)
  const { cell } = ctx.config
  if (!ctx.directory) {
    if (epoch === null) return []
    const says = 'this cell shares one with others, but DIRECTORY_URL is not set here'
    return [{ what, says, fix: 'Set it, as it is for serve and work.' }]
  }
  try {
    await ask(ctx, () => checkDirectory(ctx))
    const cells = await ask(ctx, listCells)
    const here = cells.find(({ tag }) => tag === cell)
    if (epoch === null || !here) {
      const fix =
        'Run: farthing-admin directory adopt. If the directory was restored: directory restored --cells LIST'
      return [{ what, says: `cell ${cell} is not in it`, fix }]
    }
    if (here.identity !== null && here.identity !== identity) {
      const says = `another database is cell ${cell} in it`
      return [{ what, says, fix: 'Stop serve and work here, and give this one a CELL of its own.' }]
    }
    if (here.isDoubled) {
      const says = 'a copy of this database runs beside it as the same cell; both send from the same settlers'
      return [
        { what, says, fix: 'Stop the one that must not run, such as the old server after a move, now.' },
      ]
    }
    const waiting = cells.filter(({ isAsserted }) => !isAsserted).map(({ tag }) => tag)
    if (waiting.length > 0) {
      const says = `grants no wallets and settlers until these cells have told what they use: ${waiting.join(', ')}`
      return [
        {
          what,
          says,
          fix: 'Start their work, which does it within a minute, or read its log. A cell that is gone for good: directory remove CELL',
        },
      ]
    }
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
  const foreign: Claim[] = []
  const missing: Claim[] = []
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
            says: `another cell owns what this one uses: ${show(foreign)}; new checkouts are not paid there, but both count what is`,
            fix: 'Retire the wallet, or drain the settler, in one of the two cells, today. If it was the other, this one has it back 25 hours later.',
          },
        ]
      : []),
    ...(missing.length > 0
      ? [
          {
            what,
            says: `nobody owns what this cell uses: ${show(missing)}; another cell could claim it`,
            fix: 'Run: farthing-admin directory adopt',
          },
        ]
      : []),
  ]
  const says = `${cells} ${cells === 1 ? 'cell' : 'cells'}; cell ${cell} owns the ${used} wallets and settlers that it uses`
  return findings.length > 0 ? findings : [{ what, says, fix: null }]
}

function show(claims: readonly Claim[]): string {
  const shown = claims.slice(0, shownMax).map(keyOf).join(', ')
  return claims.length > shownMax ? `${shown} and ${claims.length - shownMax} more` : shown
}
