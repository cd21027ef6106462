import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { droppableFrom, type Month, parseMonth } from '../archive/month.ts'
import { dropMonth, listMonths, readExported } from '../archive/month-rows.ts'
import { parseWalletAddress, toStoredAnywhere } from '../chains/families.ts'
import { erasePayer } from '../checkouts/erase-payer.ts'
import type { Context } from '../context.ts'
import { isLockTimeout, sqlState } from '../database/db.ts'
import { families } from '../networks.ts'
import { type Options, UsageError } from './operator.ts'

const usage =
  'Usage: archive list, archive export MONTH --out FILE or archive drop MONTH [--force]. A month looks like 2026-08.'
const checkoutsPerRead = 500
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
  if (verb === 'drop') return await drop(ctx, month, options.force === true)
  throw new UsageError(usage)
}

async function list(ctx: Context): Promise<string> {
  const months = await listMonths(ctx.db)
  if (months.length === 0) return 'The archive is empty.'
  const days = ctx.config.retentionCheckoutsDays
  return months
    .map(({ month, checkouts, bytes }) => {
      const from = droppableFrom(month, days)
      const kept =
        from === null
          ? 'kept'
          : from <= ctx.now()
            ? 'may be dropped'
            : `kept until ${from.toISOString().slice(0, 10)}`
      const count =
        checkouts === null ? 'checkouts not counted yet' : `about ${Math.round(checkouts)} checkouts`
      return `${month}  ${count}, ${BigInt(bytes) / 1_000_000n} MB, ${kept}`
    })
    .join('\n')
}

/** One line of JSON for each checkout, with everything that is archived about it. */
async function exportMonth(ctx: Context, month: Month, out: Options[string]): Promise<string> {
  if (typeof out !== 'string') throw new UsageError('archive export requires --out FILE.')
  const handle = await open(out, 'wx', 0o600).catch((error: Error) => {
    throw new UsageError(`Cannot write ${out}, which must not exist yet: ${error.message}`)
  })
  const file = handle.createWriteStream()
  const writer = out.endsWith('.gz') ? createGzip() : file
  if (writer !== file) writer.pipe(file)
  let count = 0
  for (let after = ''; ; ) {
    const lines = await readExported(ctx.db, month, after, checkoutsPerRead)
    for (const { line } of lines) if (!writer.write(`${line}\n`)) await once(writer, 'drain')
    count += lines.length
    after = lines.at(-1)?.id ?? after
    if (lines.length < checkoutsPerRead) break
  }
  writer.end()
  await finished(file)
  return `Wrote ${count} ${count === 1 ? 'checkout' : 'checkouts'} of ${month} to ${out}, one line of JSON each. The file holds what payers signed: keep it like a backup.`
}

async function drop(ctx: Context, month: Month, isForced: boolean): Promise<string> {
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
      await dropMonth(ctx.db, month)
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
  const { erased, refunded, recent } = await erasePayer(ctx, toStoredAnywhere(known.address))
  return [
    `Erased ${address} from ${erased} ${erased === 1 ? 'checkout' : 'checkouts'} in the archive. Their payments cannot be refunded any more.`,
    ...(refunded > 0 ? [`${refunded} with a refund still name it: the refund is known by its payer.`] : []),
    ...(recent > 0
      ? [
          `${recent} not in the archive still name it: run this again once ARCHIVE_AFTER_DAYS have passed since they ended.`,
        ]
      : []),
  ].join('\n')
}
