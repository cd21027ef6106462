import { randomBytes } from 'node:crypto'
import { toBase58 } from '../../chains/svm/message.ts'
import type { Context } from '../../context.ts'
import type { Wanted } from '../rail.ts'
import { insertReference } from './reference-rows.ts'

/**
 * On Solana a transfer can carry a reference: an address without a key, unique per checkout. So the amount is exactly
 * the price, and the reference identifies the transfer.
 */
export async function reserveReference(
  ctx: Context,
  wanted: Wanted,
  headAgeSecondsMax: number,
): Promise<boolean> {
  return await insertReference(ctx.db, wanted, toBase58(randomBytes(32)), headAgeSecondsMax)
}
