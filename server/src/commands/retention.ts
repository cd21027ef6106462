import { parseWalletAddress, toStoredAnywhere } from '../chains/families.ts'
import { erasePayer } from '../checkouts/retention/erase-payer.ts'
import { exportOver } from '../checkouts/retention/export.ts'
import type { Context } from '../context.ts'
import { families } from '../networks.ts'
import { type Options, UsageError } from './usage.ts'

/** `retention export --before DATE`. Writes the lines to standard output, and returns the summary to print. */
export async function exportCommand(
  ctx: Context,
  options: Options,
  write: (line: string) => Promise<void>,
): Promise<string> {
  const text = typeof options.before === 'string' ? options.before : ''
  const before = new Date(`${text}T00:00:00Z`)
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || Number.isNaN(before.getTime()))
    throw new UsageError('retention export requires --before DATE, such as 2026-08-01.')
  let count = 0
  for await (const line of exportOver(ctx, before)) {
    await write(line)
    count++
  }
  return `Exported ${count} ${count === 1 ? 'checkout' : 'checkouts'} that ended before ${text}. The lines hold what payers signed: keep them like a backup.`
}

/** `erase payer ADDRESS`. Returns the text to print. */
export async function eraseCommand(ctx: Context, [verb, address = '']: readonly string[]): Promise<string> {
  if (verb !== 'payer' || address === '') throw new UsageError('Usage: erase payer ADDRESS.')
  const parsed = families.map((family) => parseWalletAddress(family, address))
  const known = parsed.find((one) => 'address' in one)
  if (!known || !('address' in known)) throw new UsageError(`${address} is not the address of a wallet.`)
  const result = await erasePayer(ctx, toStoredAnywhere(known.address))
  const { erased, moving, refunded, undecided, unmatched } = result
  if (moving > 0 && erased === 0)
    throw new UsageError(
      `${moving} of its signatures, payments or refunds can still move money. Nothing was erased; run this again once they have ended.`,
    )
  return [
    `Erased ${address} from ${erased} ${erased === 1 ? 'checkout' : 'checkouts'}. What it paid there cannot be refunded any more.`,
    ...(refunded > 0 ? [`${refunded} with a refund still name it: the refund is known by its payer.`] : []),
    ...(undecided > 0
      ? [`${undecided} with a payment that the store has not decided about still name it.`]
      : []),
    ...(unmatched > 0
      ? [
          `${unmatched} ${unmatched === 1 ? 'payment without a checkout still names' : 'payments without a checkout still name'} it, and so do the events about that. Once a store has accepted such a payment for a checkout, it is erased with it.`,
        ]
      : []),
  ].join('\n')
}
