import type { Context } from '../../context.ts'
import { type FeePayer, listFeePayers } from './rows.ts'

/** The settlers of a network that take new payments. */
export type FeePayers = (network: string) => Promise<readonly FeePayer[]>

/** A lane that shows itself is seen in its row every few hundred milliseconds. */
const rememberedMs = 1_000

/** Asked with every payment, so the answer is remembered for a second. */
export function openFeePayers(ctx: Context): FeePayers {
  const remembered = new Map<string, { at: number; answer: Promise<readonly FeePayer[]> }>()
  return (network) => {
    const at = ctx.now().getTime()
    const known = remembered.get(network)
    if (known && at - known.at < rememberedMs) return known.answer
    const answer = listFeePayers(ctx.db, network)
    remembered.set(network, { at, answer })
    answer.catch(() => remembered.delete(network))
    return answer
  }
}
