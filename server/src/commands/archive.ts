import { open } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { droppableFrom, type Month, parseMonth } from '../archive/month.ts'
import {
  dropMonth,
  listMonths,
  readArrivals,
  readExported,
  readExportedSent,
  type SentKey,
  writeExported,
} from '../archive/month-rows.ts'
import { parseWalletAddress, toStoredAnywhere } from '../chains/families.ts'
import { erasePayer } from '../checkouts/erase-payer.ts'
import type { Context } from '../context.ts'
import { isLockTimeout, sqlState } from '../database/db.ts'
import { families } from '../networks.ts'
import { type Options, UsageError } from './usage.ts'

const usage =
  'Usage: archive list, archive export MONTH --out FILE or archive drop MONTH [--force] [--without-export]. A month looks like 2026-08.'
/** A few megabytes at a time. */
const linesPerRead = 500
/** How often `drop` tries to get hold of the tables, three seconds each. */
const dropTriesMax = 5
const insufficientPrivilege = '42501'

/** The operator's commands about the archive. Each returns the text to print. */
export async function archiveCommand(
  ctx: Context,
  [verb, subject]: readonly string[],
  options: Options,
): Promise<string> {
  if (verb === 'list') return await list(ctx)
  const month = subject === undefined ? null : parseMonth(subject)
  if (!month) throw new UsageError(usage)
  const isStored = (await listMonths(ctx.db)).some((stored) => stored.month === month)
  if (!isStored) throw new UsageError(`The archive has no month ${month}. Run: archive list`)
  if (verb === 'export') return await exportMonth(ctx, month, options.out)
  if (verb === 'drop') return await drop(ctx, month, options)
  throw new UsageError(usage)
}

async function list(ctx: Context): Promise<string> {
  const months = await listMonths(ctx.db)
  if (months.length === 0) return 'The archive is empty.'
  const days = ctx.config.retentionCheckoutsDays
  return months
    .map(({ month, checkouts, bytes, isExported }) => {
      const from = droppableFrom(month, days)
      const kept =
        from === null
          ? 'kept'
          : from <= ctx.now()
            ? 'may be dropped'
            : `kept until ${from.toISOString().slice(0, 10)}`
      const count =
        checkouts === null ? 'checkouts not counted yet' : `about ${Math.round(checkouts)} checkouts`
      return `${month}  ${count}, ${BigInt(bytes) / 1_000_000n} MB, ${isExported ? 'exported' : 'not exported'}, ${kept}`
    })
    .join('\n')
}

/** One line of JSON for each checkout and each transaction of a settler, with everything that is archived about it. */
async function exportMonth(ctx: Context, month: Month, out: Options[string]): Promise<string> {
  if (typeof out !== 'string') throw new UsageError('archive export requires --out FILE.')
  // Read before the first line: what comes to the month from now on may not be in the file, and is not in this number.
  const arrivals = await readArrivals(ctx.db, month)
  const handle = await open(out, 'wx', 0o600).catch((error: Error) => {
    throw new UsageError(`Cannot write ${out}, which must not exist yet: ${error.message}`)
  })
  const file = handle.createWriteStream({ flush: true })
  const written = { checkouts: 0, transactions: 0 }
  const lines = readLines(ctx, month, written)
  await (out.endsWith('.gz') ? pipeline(lines, createGzip(), file) : pipeline(lines, file))
  // Only once the file is on its disk.
  await writeExported(ctx.db, month, arrivals)
  const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
  return `Wrote ${count(written.checkouts, 'checkout')} and ${count(written.transactions, 'transaction')} of ${month} to ${out}, one line of JSON each. The file holds what payers signed: keep it like a backup.`
}

async function* readLines(
  { db }: Context,
  month: Month,
  written: { checkouts: number; transactions: number },
) {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const read: { id: string; line: string }[] = await readExported(db, month, after, linesPerRead)
    for (const { line } of read) yield `${line}\n`
    written.checkouts += read.length
    after = read.at(-1)?.id
  }
  for (let after: SentKey | undefined = { network: '', settler: '', nonce: '0' }; after !== undefined; ) {
    const read: (SentKey & { line: string })[] = await readExportedSent(db, month, after, linesPerRead)
    for (const { line } of read) yield `${line}\n`
    written.transactions += read.length
    after = read.at(-1)
  }
}

async function drop(ctx: Context, month: Month, options: Options): Promise<string> {
  const isForced = options.force === true
  const isExportRequired = options['without-export'] !== true
  const from = droppableFrom(month, ctx.config.retentionCheckoutsDays)
  if (!isForced && from === null)
    throw new UsageError(
      'Checkouts are kept for ever: RETENTION_CHECKOUTS_DAYS is 0. Set it, or drop this month with --force.',
    )
  if (!isForced && from && from > ctx.now())
    throw new UsageError(
      `${month} is kept until ${from.toISOString().slice(0, 10)} (RETENTION_CHECKOUTS_DAYS). To drop it before that: --force.`,
    )
  for (let tries = 1; ; tries++) {
    try {
      if (!(await dropMonth(ctx.db, month, { isExportRequired })))
        throw new UsageError(
          `No file has all of ${month}: it was not exported, or more of it was archived since. Run: archive export ${month} --out FILE. To drop it all the same: --without-export.`,
        )
      return `Dropped ${month}: its checkouts, payments and events are gone. Refunds and what was counted of them stay.`
    } catch (error) {
      if (sqlState(error) === insufficientPrivilege)
        throw new UsageError('Only the role that migrates may drop a month: run this with its DATABASE_URL.')
      if (!isLockTimeout(error)) throw error
      if (tries === dropTriesMax)
        throw new UsageError(
          `Something has been reading ${month} for a while. Nothing was dropped; try again later.`,
        )
    }
  }
}

/** `erase payer ADDRESS`. Returns the text to print. */
export async function eraseCommand(ctx: Context, [verb, address = '']: readonly string[]): Promise<string> {
  if (verb !== 'payer' || address === '') throw new UsageError('Usage: erase payer ADDRESS.')
  const parsed = families.map((family) => parseWalletAddress(family, address))
  const known = parsed.find((one) => 'address' in one)
  if (!known || !('address' in known)) throw new UsageError(`${address} is not the address of a wallet.`)
  const { erased, refunded, recent, unmatched } = await erasePayer(ctx, toStoredAnywhere(known.address))
  return [
    `Erased ${address} from ${erased} ${erased === 1 ? 'checkout' : 'checkouts'} in the archive. What it paid there cannot be refunded any more.`,
    ...(refunded > 0 ? [`${refunded} with a refund still name it: the refund is known by its payer.`] : []),
    ...(recent > 0
      ? [
          `${recent} not in the archive still name it: run this again once ARCHIVE_AFTER_DAYS have passed since they ended.`,
        ]
      : []),
    ...(unmatched > 0
      ? [
          `${unmatched} ${unmatched === 1 ? 'payment without a checkout still names' : 'payments without a checkout still name'} it, and so do the events about that: money is archived with its checkout only. Once a store has accepted such a payment for a checkout, it is erased with it.`,
        ]
      : []),
  ].join('\n')
}
