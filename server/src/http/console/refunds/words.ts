import type { FastifyRequest } from 'fastify'
import { Refusal } from '../../../members/refusal.ts'
import { Problem } from '../../../problems.ts'
import { textsOf } from '../texts/choose.ts'

/** What the API says to programs, in the member's language; null for what is no answer to a member. */
export function wordsOf(request: FastifyRequest, error: unknown): string | null {
  if (!(error instanceof Problem)) return null
  const problems: Readonly<Record<string, string>> = textsOf(request).refunds.problems
  const [mistake] = error.extras.errors ?? []
  const pointer = /^\/\w+/.exec(mistake?.pointer ?? '')?.[0] ?? ''
  return problems[error.code] ?? problems[mistake?.code ?? ''] ?? problems[pointer] ?? null
}

/** For answers to the script, which shows the sentence. */
export async function inWords<Result>(request: FastifyRequest, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem && error.code === 'not_found') throw new Refusal('not_found')
    const detail = wordsOf(request, error)
    if (detail === null) throw error
    throw new Refusal('invalid', { detail, cause: error })
  }
}
