import type { ProblemDetails } from '@farthing/sdk'
import type { FastifyError } from 'fastify'
import type { Context } from '../context.ts'
import { isLockTimeout, isUnstorable } from '../database/db.ts'
import { type Mistake, Problem, type ProblemCode, problems } from '../problems.ts'

export type ProblemAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly code: ProblemCode
}

/** The only place that turns a refusal or a bug into HTTP (RFC 9457). Private causes never reach the body. */
export function renderProblem(ctx: Context, error: unknown, requestId: string): ProblemAnswer {
  const problem = error instanceof Problem ? error : fromFramework(error)
  const [status, title, advice] = problems[problem.code]
  const { errors, members, retryAfterSeconds, headers } = problem.extras
  const details: ProblemDetails = {
    type: `${ctx.config.baseUrl}/docs/errors/${problem.code}`,
    title,
    status,
    detail: problem.message,
    advice,
    code: problem.code,
    requestId,
    ...(errors && { errors: [...errors] }),
    ...members,
  }
  return {
    status,
    code: problem.code,
    body: JSON.stringify(details),
    headers: {
      'content-type': 'application/problem+json',
      ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
      ...headers,
    },
  }
}

const frameworkCodes: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'bad_request',
  FST_ERR_BAD_URL: 'bad_request',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
}

function fromFramework(error: unknown): Problem {
  if (!(error instanceof Error)) return bug(error)
  const { code, statusCode = 500, validation, validationContext } = error as FastifyError
  if (validation) {
    const mistakes = findMistakes(validation.slice(0, findingsMax), validationContext).slice(0, mistakesMax)
    return new Problem(
      'invalid_request',
      mistakes.map(({ pointer, detail }) => `${pointer || 'The body'} ${detail}.`).join(' '),
      {
        errors: mistakes,
      },
    )
  }
  if (isLockTimeout(error)) {
    return new Problem(
      'unavailable',
      'Another request is changing the same data. This request changed nothing.',
      {
        cause: error,
        retryAfterSeconds: 1,
      },
    )
  }
  if (isUnstorable(error)) {
    const detail = 'The database cannot store or compare one of the values. Nothing was changed.'
    return new Problem('invalid_request', detail, { cause: error })
  }
  const known = frameworkCodes[code] ?? (statusCode < 500 ? 'bad_request' : null)
  return known ? new Problem(known, problems[known][2]) : bug(error)
}

/** Limits the answer to a body full of mistakes. */
const mistakesMax = 20
/** A value that may be null has at most three findings: two types that do not fit, and that none fits. */
const findingsMax = 3 * mistakesMax

function bug(cause: unknown): Problem {
  return new Problem(
    'internal_error',
    'This is a bug in the server, and it was logged. Quote the requestId if you report it.',
    { cause },
  )
}

type Finding = NonNullable<FastifyError['validation']>[number]

/**
 * The validator's findings as one mistake per value. For a value that may have one of several types, such as null, the
 * validator reports each type, and also that none of them fits.
 */
function findMistakes(findings: readonly Finding[], part: string | undefined): Mistake[] {
  const broken = findings.filter(({ keyword }) => keyword !== 'anyOf')
  return broken.flatMap((found) => {
    const { instancePath, keyword } = found
    if (keyword !== 'type') return [toMistake(found, part, wordsOf(found))]
    const about = broken.filter((each) => `${each.instancePath}/`.startsWith(`${instancePath}/`))
    // Another rule is broken here or below, so one of the types did fit.
    if (about.some((each) => each.keyword !== 'type' || each.instancePath !== instancePath)) return []
    if (about[0] !== found) return []
    const types = about.flatMap(({ params }) => params.type as string | string[])
    return [toMistake(found, part, `must be ${types.map((type) => typeWords[type] ?? type).join(' or ')}`)]
  })
}

const typeWords: Readonly<Record<string, string>> = {
  array: 'an array',
  boolean: 'a boolean',
  integer: 'an integer',
  null: 'null',
  number: 'a number',
  object: 'an object',
  string: 'a string',
}

function wordsOf({ keyword, params, message }: Finding): string {
  if (keyword === 'additionalProperties') return 'is not a known field'
  if (keyword === 'required') return 'is required'
  const allowed = keyword === 'enum' ? `: ${(params.allowedValues as unknown[]).join(', ')}` : ''
  return `${message ?? keyword}${allowed}`
}

function toMistake(
  { instancePath, keyword, params }: Finding,
  part: string | undefined,
  detail: string,
): Mistake {
  const property = params.additionalProperty ?? params.missingProperty
  const path = property === undefined ? instancePath : `${instancePath}/${escapePointer(String(property))}`
  return { pointer: part === 'querystring' ? path.slice(1) : path, code: keyword, detail }
}

function escapePointer(text: string): string {
  return text.replaceAll('~', '~0').replaceAll('/', '~1')
}
