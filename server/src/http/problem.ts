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
    const mistakes = validation.slice(0, mistakesMax).map((found) => toMistake(found, validationContext))
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
    const detail = 'A value is one that the database cannot store or compare. Nothing was changed.'
    return new Problem('invalid_request', detail, { cause: error })
  }
  const known = frameworkCodes[code] ?? (statusCode < 500 ? 'bad_request' : null)
  return known ? new Problem(known, problems[known][2]) : bug(error)
}

/** A body full of mistakes need not get all of them back. */
const mistakesMax = 20

function bug(cause: unknown): Problem {
  return new Problem(
    'internal_error',
    'This is a bug in the server, and it was logged. Quote the requestId if you report it.',
    { cause },
  )
}

function toMistake(
  found: NonNullable<FastifyError['validation']>[number],
  part: string | undefined,
): Mistake {
  const { instancePath, keyword, params, message } = found
  const property = params.additionalProperty ?? params.missingProperty
  const path = property === undefined ? instancePath : `${instancePath}/${escapePointer(String(property))}`
  const detail =
    keyword === 'additionalProperties'
      ? 'is not a known field'
      : keyword === 'required'
        ? 'is required'
        : (message ?? keyword)
  const allowed = keyword === 'enum' ? `: ${(params.allowedValues as unknown[]).join(', ')}` : ''
  return { pointer: part === 'querystring' ? path.slice(1) : path, code: keyword, detail: detail + allowed }
}

function escapePointer(text: string): string {
  return text.replaceAll('~', '~0').replaceAll('/', '~1')
}
