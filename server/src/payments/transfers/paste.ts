import { setTimeout as wait } from 'node:timers/promises'
import type { Hex } from '../../chains/hex.ts'
import type { Context } from '../../context.ts'
import type { Rails } from '../rail.ts'
import { insertPasted, type PasteOutcome, readPasted } from './paste-rows.ts'

export const pasteLimits = {
  /** A buyer pays once, perhaps twice, and may mistype. */
  perCheckoutMax: 10,
  /** Limits how often nodes are asked about hashes that someone made up. A real one is found in a moment. */
  perStoreMax: 100,
  /** A buyer who sees "not found" may submit the form again at once. The answer would be the same. */
  againAfterSeconds: 60,
  /** A transaction that is in no block by then never will be, or is not ours to wait for. */
  patienceMinutes: 30,
}
/** Most transactions are already known or found at once, so the buyer gets an answer on the spot. */
const patienceMs = 2_500
const lookEveryMs = 100

/**
 * Queues a lookup of a transaction that a buyer pasted, and returns what is known within a few seconds. Null if the
 * text is not a transaction hash.
 */
export async function pasteTransaction(
  ctx: Context,
  rails: Rails,
  checkoutId: string,
  networks: readonly string[],
  text: string,
): Promise<PasteOutcome | null> {
  const parsed = new Map<string, Hex>()
  for (const rail of rails.values()) {
    const hash = rail.parseTransactionHash?.(text)
    if (hash) parsed.set(rail.network.caip2, hash)
  }
  const [hash] = parsed.values()
  if (!hash) return null
  const known = networks.filter((network) => parsed.has(network))
  if (!(await insertPasted(ctx.db, checkoutId, known, hash, pasteLimits))) return 'not_found'
  ctx.db.wakeUps.send('claims')
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += lookEveryMs) {
    const outcome = await readPasted(ctx.db, checkoutId, hash)
    if (outcome !== 'looking') return outcome
    await wait(lookEveryMs)
  }
  return 'looking'
}
