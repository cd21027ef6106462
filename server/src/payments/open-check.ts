import type { Context } from '../context.ts'
import type { Difference } from './rail.ts'

/** Checks a chain once per process, before anything on it is followed or sent. Throws until the check passes. */
export function openCheck(
  ctx: Context,
  network: string,
  findDifferences: () => Promise<Difference[]>,
): () => Promise<boolean> {
  let isGood = false
  return async () => {
    if (isGood) return true
    const differences = await findDifferences()
    if (differences.length > 0)
      throw new Error(differences.map(({ says, fix }) => `${says} ${fix}`).join(' '))
    isGood = true
    ctx.log.info({ network }, 'chain verified: its id, tokens and contracts are as configured')
    return true
  }
}
