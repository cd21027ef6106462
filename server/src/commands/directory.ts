import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { parseWalletAddress, toStoredAnywhere } from '../chains/families.ts'
import { openUses, readLoad } from '../checkouts/uses.ts'
import type { Context } from '../context.ts'
import { adopt, checkDirectory, migrateDirectory } from '../directory/adopt.ts'
import { declareRestored, removeCell, writeTakesStores } from '../directory/cells.ts'
import { ask, keyOf, type Ownership, quietMinutes, walletOwnership } from '../directory/directory.ts'
import { release } from '../directory/own.ts'
import { reportToDirectory } from '../directory/report.ts'
import { type Cell, listCells, listOwned, listOwners, taken } from '../directory/rows.ts'
import { isId } from '../ids.ts'
import { families, type Mode } from '../networks.ts'
import { ownFor } from './own-for.ts'
import { type Options, UsageError } from './usage.ts'

const usage =
  'Usage: directory migrate, adopt, list, own FAMILY ADDRESS --mode live|test, release ADDRESS [--mode live|test], release --all, place [--member ID] [--evm-wallet ADDRESS] [--solana-wallet ADDRESS] [--test], maps --out FOLDER, drain CELL, resume CELL, remove CELL [--lost] or restored --cells LIST.'

const shownMax = 50

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
      return describeCells(await ask(ctx, listCells))
    case 'own':
      return await ownHere(ctx, subjects, options)
    case 'release':
      return await releaseHere(ctx, subjects[0], options)
    case 'place':
      return await place(ctx, options)
    case 'maps': {
      if (typeof options.out !== 'string')
        throw new UsageError('Say where the proxy reads its maps: --out FOLDER.')
      const maps = drawMaps(await ask(ctx, listCells), ctx.now())
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
      `Nothing was changed: the directory was restored, and ${adopted.waitsFor.join(', ')} must adopt it first. Run there: directory adopt`,
    )
  if ('conflicts' in adopted)
    throw new UsageError(
      [
        'Nothing was changed: another cell owns these.',
        ...show(adopted.conflicts),
        'Retire the wallets, or drain the settlers, in one of the two cells; if it is the other, release them there. Then run this again.',
      ].join('\n'),
    )
  if ('isTaken' in adopted)
    throw new UsageError(`Nothing was changed: ${taken(cell).says}. ${taken(cell).fix}`)
  const { wallets, settlers, elsewhere } = adopted
  return [
    `Cell ${cell} is in the directory, with ${count(wallets, 'wallet')} and ${count(settlers, 'settler')}. Start or restart its serve and work with this DIRECTORY_URL.`,
    ...(elsewhere.length > 0
      ? [
          'Another cell owns these, so nothing new is paid to them or sent from them here:',
          ...show(elsewhere),
        ]
      : []),
  ].join('\n')
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
      ...(cell.isContested ? ['TWO DATABASES REPORT AS THIS CELL: run doctor there'] : []),
      ...(cell.isAdopted ? [] : ['NOTHING IS GRANTED until directory adopt has run there']),
    ].join('  '),
  )
  return lines.join('\n') || 'There are no cells yet. In each cell, the oldest first: directory adopt'
}

async function ownHere(
  ctx: Context,
  [name, text = '']: readonly string[],
  { mode }: Options,
): Promise<string> {
  const family = families.find((each) => each === name?.toUpperCase())
  if (!family || (mode !== 'live' && mode !== 'test')) throw new UsageError(usage)
  const parsed = parseWalletAddress(family, text)
  if ('refusal' in parsed) throw new UsageError(parsed.refusal)
  const wanted = walletOwnership(mode, family, toStoredAnywhere(parsed.address))
  const held = await ownFor(ctx, wanted)
  if ('refusal' in held) throw new UsageError(`${parsed.address} ${held.refusal} Run the command there.`)
  return `${parsed.address} belongs to cell ${ctx.config.cell}. Let the store register it.`
}

async function releaseHere(ctx: Context, text: string | undefined, options: Options): Promise<string> {
  const { mode, all } = options
  const isModeFine = mode === undefined || (all !== true && (mode === 'live' || mode === 'test'))
  if ((text === undefined) !== (all === true) || !isModeFine) throw new UsageError(usage)
  const { cell } = ctx.config
  const uses = openUses(ctx.db)
  // A backup of this database from before now has an older stamp, so whoever restores it hears what was released.
  await reportToDirectory(ctx, uses, () => readLoad(ctx.db))
  const addresses = text === undefined ? null : readAddresses(text)
  let released = 0
  for (;;) {
    const found = (await ask(ctx, (directory) => listOwned(directory, cell, addresses))).filter(
      ({ kind, scope }) => mode === undefined || (kind === 'wallet' && scope.startsWith(`${mode} `)),
    )
    const owned = found.filter((each) => each.cell === cell)
    if (owned.length === 0 && released === 0 && found[0])
      throw new UsageError(`${text} belongs to cell ${found[0].cell}. Run the command there.`)
    if (owned.length === 0) break
    const used = await release(ctx, uses, owned)
    if (used.length > 0)
      throw new UsageError(
        [
          `Released ${released}. Not these, nor the others that were asked for with them: a wallet is released a day after every store has retired it, once nothing that concerns it is open; a settler once it is retired with nothing unmined.`,
          ...show(used),
        ].join('\n'),
      )
    released += owned.length
  }
  return released === 0
    ? `Cell ${cell} owns nothing ${text === undefined ? '' : `at ${text} `}that could be released.`
    : `Released ${released}. Another cell can own them now.`
}

/** As the directory may have it, in any family. */
function readAddresses(text: string): string[] {
  const parsed = families.map((family) => parseWalletAddress(family, text))
  const addresses = parsed.flatMap((one) => ('refusal' in one ? [] : [toStoredAnywhere(one.address)]))
  if (addresses.length === 0) throw new UsageError(`${text} is not an address.`)
  return addresses
}

async function place(ctx: Context, options: Options): Promise<string> {
  const { member } = options
  if (member !== undefined && (typeof member !== 'string' || !isId('mem', member)))
    throw new UsageError('--member must be the id of a member, which begins with mem_.')
  const wallets = readWallets(options, options.test ? 'test' : 'live')
  const owners = await ask(ctx, (directory) => listOwners(directory, wallets))
  const tags = [
    ...(typeof member === 'string' ? [member.slice(4, 6)] : []),
    ...owners.map(({ cell }) => cell),
  ]
  const placed = placeStore(await ask(ctx, listCells), tags, ctx.now())
  if ('refusal' in placed) throw new UsageError(placed.refusal)
  const { tag, consoleUrl } = placed.cell
  return `Cell ${tag}${consoleUrl === '' ? '' : `, ${consoleUrl}`}. Run store create there.`
}

async function setTakesStores(ctx: Context, verb: 'drain' | 'resume', tag: string): Promise<string> {
  if (!(await writeTakesStores(ctx, tag, verb === 'resume')))
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
  return `Cell ${tag} is not in the directory any more, and other cells can own its ${count(wallets, 'wallet')} and ${count(settlers, 'settler')}. Run directory maps, so that nothing leads there.`
}

async function restored(ctx: Context, options: Options): Promise<string> {
  const named = typeof options.cells === 'string' ? options.cells.split(',') : []
  if (named.length === 0 || !named.every(isTag))
    throw new UsageError(
      'Name all cells there are, as in --cells 00,01: a backup does not know those that were added later.',
    )
  const forgotten = await declareRestored(ctx, named)
  if (forgotten.length > 0)
    throw new UsageError(
      `--cells leaves out ${forgotten.join(', ')}, which the directory knows. If a cell is gone for good, run directory remove CELL first.`,
    )
  return `Nothing is granted until ${named.join(', ')} have adopted it. Run in each: directory adopt`
}

/** The wallets that options name. */
function readWallets(options: Options, mode: Mode): Ownership[] {
  return families.flatMap((family) => {
    const option = `${family.toLowerCase()}-wallet`
    const text = options[option]
    if (typeof text !== 'string') return []
    const parsed = parseWalletAddress(family, text)
    if ('refusal' in parsed) throw new UsageError(`--${option}: ${parsed.refusal}`)
    return [walletOwnership(mode, family, toStoredAnywhere(parsed.address))]
  })
}

/** As many as an operator can read. */
function show(some: readonly Ownership[]): string[] {
  const more = some.length > shownMax ? [`  and ${some.length - shownMax} more`] : []
  return [...some.slice(0, shownMax).map((each) => `  ${keyOf(each)}`), ...more]
}

function isTag(text: string): boolean {
  return /^[0-9a-z]{2}$/.test(text)
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** Which cell a new store goes to, or why none can be named. */
type Placement = { readonly cell: Cell } | { readonly refusal: string }

/**
 * A member and their stores live in one cell, and so does a wallet, so those decide. Otherwise the least loaded cell that
 * takes stores and runs. `owners` are the cells of the store's member and wallets that have one.
 */
export function placeStore(cells: readonly Cell[], owners: readonly string[], now: Date): Placement {
  const [tag, another] = [...new Set(owners)]
  if (another !== undefined)
    return {
      refusal: `The member and the wallets are in different cells (${[...new Set(owners)].join(', ')}). A store, its owners and its wallets are in one cell: use another wallet, or invite the person there as a new member.`,
    }
  if (tag !== undefined) {
    const cell = cells.find((each) => each.tag === tag)
    return cell ? { cell } : { refusal: `The directory knows no cell ${tag}. Run: directory list` }
  }
  const runsSince = new Date(now.getTime() - quietMinutes * 60_000)
  const [least] = cells
    .filter(({ takesStores, isAdopted }) => takesStores && isAdopted)
    .filter(({ seenAt }) => seenAt !== null && seenAt >= runsSince)
    .sort((a, b) => a.paymentsPerHour - b.paymentsPerHour || a.stores - b.stores || (a.tag < b.tag ? -1 : 1))
  return least
    ? { cell: least }
    : {
        refusal: `No cell takes new stores: each is drained, or its work has not reported for ${quietMinutes} minutes. Run: directory list, then start work, or directory resume CELL, or add a cell.`,
      }
}

/** The proxy's maps (ops/haproxy/haproxy.cfg): what leads where, one line for each entry. */
export function drawMaps(cells: readonly Cell[], now: Date): Readonly<Record<string, string>> {
  const consoles = cells.filter(({ consoleUrl }) => consoleUrl !== '')
  const placement = placeStore(consoles, [], now)
  return {
    'cells.map': cells.map(({ tag }) => `${tag} cell_${tag}\n`).join(''),
    'consoles.map': consoles
      .map(({ tag, consoleUrl }) => `${new URL(consoleUrl).hostname} console_${tag}\n`)
      .join(''),
    'placement.map': 'cell' in placement ? `new ${placement.cell.consoleUrl}\n` : '',
  }
}

/** Writes each file beside its place and moves it there, so that the proxy never reads half of one. */
async function writeMaps(folder: string, maps: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(maps)) {
    const path = join(folder, name)
    const file = await open(`${path}.next`, 'w', 0o644)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(`${path}.next`, path)
  }
}
