import { parseWalletAddress, toStoredAnywhere } from '../chains/families.ts'
import { openUses } from '../checkouts/uses.ts'
import type { Context } from '../context.ts'
import { adopt, checkDirectory, describeTaken, migrateDirectory } from '../directory/adopt.ts'
import * as cells from '../directory/cell-rows.ts'
import { ask, type Claim, walletClaim } from '../directory/directory.ts'
import { drawMaps, writeMaps } from '../directory/maps.ts'
import { placeStore } from '../directory/place.ts'
import { removeCell } from '../directory/remove.ts'
import { type Cell, listOwners } from '../directory/rows.ts'
import { isId } from '../ids.ts'
import { families, type Mode } from '../networks.ts'
import { claimFor } from './claim-for.ts'
import { type Options, UsageError } from './usage.ts'

const usage =
  'Usage: directory migrate, adopt, list, claim FAMILY ADDRESS --mode live|test, place [--member ID] [--evm-wallet ADDRESS] [--solana-wallet ADDRESS] [--test], maps --out FOLDER, drain CELL, resume CELL, remove CELL [--lost] or restored --cells LIST.'

/** The commands of the directory that cells share. Each returns the text to print. */
export async function directoryCommand(
  ctx: Context,
  [verb, ...subjects]: readonly string[],
  options: Options,
): Promise<string> {
  if (!ctx.directory) throw new UsageError('Set DIRECTORY_URL to the database that your cells share.')
  if (verb === 'migrate') {
    const { applied } = await migrateDirectory(ctx)
    return applied.length === 0
      ? 'The schema of the directory is up to date.'
      : `Applied ${applied.join(', ')}.`
  }
  await checkDirectory(ctx)
  switch (verb) {
    case 'adopt':
      return await adoptHere(ctx)
    case 'list':
      return describeCells(await ask(ctx, cells.listCells))
    case 'claim':
      return await claim(ctx, subjects, options)
    case 'place':
      return await place(ctx, options)
    case 'maps': {
      if (typeof options.out !== 'string')
        throw new UsageError('Say where the proxy reads its maps: --out FOLDER.')
      const maps = drawMaps(await ask(ctx, cells.listCells), ctx.now())
      await writeMaps(options.out, maps).catch((error: NodeJS.ErrnoException) => {
        throw new UsageError(`${options.out} cannot be written: ${error.message}.`)
      })
      return `Wrote cells.map, consoles.map and placement.map to ${options.out}. Reload the proxy: systemctl reload haproxy`
    }
    case 'drain':
    case 'resume':
      return await setTakesStores(ctx, verb, subjects[0] ?? '')
    case 'remove':
      return await remove(ctx, subjects[0] ?? '', options)
    case 'restored':
      return await restored(ctx, options)
    default:
      throw new UsageError(usage)
  }
}

async function adoptHere(ctx: Context): Promise<string> {
  const { cell } = ctx.config
  const adopted = await adopt(ctx, openUses(ctx.db))
  if ('waitsFor' in adopted)
    throw new UsageError(
      `Nothing was changed: ${adopted.waitsFor.join(', ')} must tell the directory first what they have. Their work does that within a minute, if it runs.`,
    )
  if ('conflicts' in adopted)
    throw new UsageError(
      [
        'Nothing was changed: another cell has these.',
        ...adopted.conflicts.map((conflict) => `  ${conflict}`),
        'Retire the wallets, or drain the settlers, in one of the two cells. Then run this again.',
      ].join('\n'),
    )
  if ('isTaken' in adopted) throw new UsageError(`Nothing was changed. ${describeTaken(cell)}`)
  const { wallets, settlers } = adopted
  return `Cell ${cell} is in the directory, with ${count(wallets, 'wallet')} and ${count(settlers, 'settler')}. Start or restart its serve and work with this DIRECTORY_URL.`
}

function describeCells(all: readonly Cell[]): string {
  const lines = all.map((cell) =>
    [
      cell.tag,
      cell.takesStores ? 'takes stores' : 'drained',
      count(cell.stores, 'store'),
      `${cell.paymentsPerHour} payments per hour`,
      count(cell.wallets, 'wallet'),
      count(cell.settlers, 'settler'),
      cell.seenAt ? `seen ${cell.seenAt.toISOString()}` : 'never seen',
      ...(cell.consoleUrl === '' ? [] : [cell.consoleUrl]),
      ...(cell.isDoubled ? ['TWO DATABASES REPORT AS THIS CELL: stop one'] : []),
      ...(cell.isAsserted ? [] : ['NOTHING IS GRANTED until its work has told what it uses']),
    ].join('  '),
  )
  return lines.join('\n') || 'There are no cells yet. In each cell, the oldest first: directory adopt'
}

async function claim(ctx: Context, [name, text = '']: readonly string[], { mode }: Options): Promise<string> {
  const family = families.find((each) => each === name?.toUpperCase())
  if (!family || (mode !== 'live' && mode !== 'test')) throw new UsageError(usage)
  const parsed = parseWalletAddress(family, text)
  if ('refusal' in parsed) throw new UsageError(parsed.refusal)
  const wanted = walletClaim(mode, family, toStoredAnywhere(parsed.address))
  const held = await claimFor(ctx, wanted)
  if ('refusal' in held) throw new UsageError(`${parsed.address} ${held.refusal} Run the command there.`)
  return `${parsed.address} belongs to cell ${ctx.config.cell}. Let the store register it within 24 hours: a claim that nothing uses is given up.`
}

async function place(ctx: Context, options: Options): Promise<string> {
  const { member } = options
  if (member !== undefined && (typeof member !== 'string' || !isId('mem', member)))
    throw new UsageError('--member must be the id of a member, which begins with mem_.')
  const claims = readWallets(options, options.test ? 'test' : 'live')
  const owners = await ask(ctx, (directory) => listOwners(directory, claims))
  const tags = [
    ...(typeof member === 'string' ? [member.slice(4, 6)] : []),
    ...owners.map(({ cell }) => cell),
  ]
  const placed = placeStore(await ask(ctx, cells.listCells), tags, ctx.now())
  if ('refusal' in placed) throw new UsageError(placed.refusal)
  const { tag, consoleUrl } = placed.cell
  return `Cell ${tag}${consoleUrl === '' ? '' : `, ${consoleUrl}`}. Run store create there.`
}

async function setTakesStores(ctx: Context, verb: 'drain' | 'resume', tag: string): Promise<string> {
  if (!(await ask(ctx, (directory) => cells.writeTakesStores(directory, tag, verb === 'resume'))))
    throw new UsageError(`There is no cell ${tag || 'of that name'}. Run: directory list`)
  return verb === 'drain'
    ? `Cell ${tag} gets no new stores; those that it has are served as before. Run directory maps, so that sign-ups lead elsewhere.`
    : `Cell ${tag} gets new stores. Run directory maps, so that sign-ups can lead there.`
}

async function remove(ctx: Context, tag: string, { lost }: Options): Promise<string> {
  if (!isTag(tag)) throw new UsageError('Say which cell: directory remove CELL')
  const removed = await removeCell(ctx, tag, lost === true)
  if ('refusal' in removed) throw new UsageError(removed.refusal)
  const { wallets, settlers } = removed
  return `Cell ${tag} is not in the directory any more, and other cells can have its ${count(wallets, 'wallet')} and ${count(settlers, 'settler')}. Run directory maps, so that nothing leads there.`
}

async function restored(ctx: Context, options: Options): Promise<string> {
  const named = typeof options.cells === 'string' ? options.cells.split(',') : []
  if (named.length === 0 || !named.every(isTag))
    throw new UsageError(
      'Name all cells there are, as in --cells 00,01: a backup does not know those that were added later.',
    )
  const forgotten = (await ask(ctx, cells.listTags)).filter((tag) => !named.includes(tag))
  if (forgotten.length > 0)
    throw new UsageError(
      `--cells leaves out ${forgotten.join(', ')}, which the directory knows. If a cell is gone for good, run directory remove CELL first.`,
    )
  await ask(ctx, (directory) =>
    directory.transaction(async (tx) => {
      await cells.lockEpoch(tx)
      await cells.insertMissing(tx, named)
      await cells.raiseEpoch(tx)
    }),
  )
  return `Nothing is granted until ${named.join(', ')} have told what they use. Their work does that within a minute; directory list shows it.`
}

/** The wallets that options name. */
function readWallets(options: Options, mode: Mode): Claim[] {
  return families.flatMap((family) => {
    const option = `${family.toLowerCase()}-wallet`
    const text = options[option]
    if (typeof text !== 'string') return []
    const parsed = parseWalletAddress(family, text)
    if ('refusal' in parsed) throw new UsageError(`--${option}: ${parsed.refusal}`)
    return [walletClaim(mode, family, toStoredAnywhere(parsed.address))]
  })
}

function isTag(text: string): boolean {
  return /^[0-9a-z]{2}$/.test(text)
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
