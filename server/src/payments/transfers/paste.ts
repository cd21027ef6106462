import { setTimeout as wait } from 'node:timers/promises'
import type { Hex } from '../../chains/chain.ts'
import type { Context } from '../../context.ts'
import { insertPasted, type PasteOutcome, readPasted } from './paste-rows.ts'

/** A buyer has paid once, perhaps twice, and may mistype. */
const perCheckoutMax = 10
/** Most transactions are known already, or found at once: the buyer is told on the spot. */
const patienceMs = 2_500
const lookEveryMs = 100

/** The transaction that a buyer typed, or null. */
export function parseTransactionHash(text: string): Hex | null {
  const hash = text.trim().toLowerCase()
  return /^0x[0-9a-f]{64}$/.test(hash) ? (hash as Hex) : null
}

/** Has a transaction looked up for a checkout, and says what came of it as far as that is known soon. */
export async function pasteTransaction(
  ctx: Context,
  checkoutId: string,
  networks: readonly string[],
  hash: Hex,
): Promise<PasteOutcome> {
  // Only EVM chains know transactions by hashes of this form.
  const known = networks.filter((network) => network.startsWith('eip155:'))
  if (!(await insertPasted(ctx.db, checkoutId, known, hash, perCheckoutMax))) return 'not_found'
  ctx.db.wakeUps.send('claims')
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += lookEveryMs) {
    const outcome = await readPasted(ctx.db, checkoutId, hash)
    if (outcome !== 'looking') return outcome
    await wait(lookEveryMs)
  }
  return 'looking'
}
