import type { Context } from '../context.ts'

/** Nothing is followed or sent on a chain before it has been found to be the right one. */
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
    ctx.log.info({ network }, 'the chain is what it should be')
    return true
  }
}
