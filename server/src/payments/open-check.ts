import type { Context } from '../context.ts'

/** Checks a chain once per process, before anything on it is followed or sent. Throws until the check passes. */
export function openCheck(
  ctx: Context,
  network: string,
  findMistakes: () => Promise<string[]>,
): () => Promise<boolean> {
  let isGood = false
  return async () => {
    if (isGood) return true
    const mistakes = await findMistakes()
    if (mistakes.length > 0) throw new Error(mistakes.join(' '))
    isGood = true
    ctx.log.info({ network }, 'chain verified: its id, tokens and contracts are as configured')
    return true
  }
}
