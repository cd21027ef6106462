import assert from 'node:assert/strict'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { openIdentities } from '../../members/identities.ts'
import { type Reason, Refusal } from '../../members/refusal.ts'
import { Problem } from '../../problems.ts'
import { parseBody } from '../body.ts'
import { addressBucket, openLimiter } from '../limits.ts'
import type { Health } from '../operations.ts'
import { mountAssets, openAssets } from '../page/assets.ts'
import { html } from '../page/html.ts'
import { noteProblem, openServer } from '../server.ts'
import { mountAccount } from './account.ts'
import { sendPage } from './document.ts'
import { mountEnrol } from './enrol.ts'
import { languageOf } from './languages/choose.ts'
import type { Language } from './languages/language.ts'
import { mountOidc } from './oidc.ts'
import { mountSignIn } from './sign-in.ts'
import { mountTeam } from './team.ts'
import { enterStore, meetVisitor, readCookie, refuseCrossSite } from './visitor.ts'
import { mountWallets } from './wallets.ts'

/** A passkey's answer is about 1 KiB, a new passkey with its statement up to 3. */
const bodyBytesMax = 16_384
/** Signing in and enrolling, per address: more than a team behind one address needs, and too few to be a nuisance. */
const attemptsPerMinute = 30

/**
 * The console, on a listener and a host of its own: payment pages never see its cookie. Whatever changes something needs
 * a request from our own page, the form's token, and a session unless its route says that it is open; the hooks here see
 * to that for every route.
 */
export function buildConsole(ctx: Context, health: Health): FastifyInstance {
  const app = openServer(ctx, health)
  const addresses = openLimiter('address', ctx.config.addressRequestsPerSecond, ctx.now)
  const attempts = openLimiter('attempt', attemptsPerMinute, ctx.now, 60)
  app.decorateRequest('visitor')
  app.setErrorHandler((error, request, reply) => sendError(ctx, error, request, reply))
  app.setNotFoundHandler({ preHandler: async () => {} }, () => {
    throw new Refusal('not_found')
  })
  takeBodies(app)
  app.addHook('onRequest', async (request, reply) => {
    request.visitor = { token: readCookie(ctx, request), session: null, store: null }
    addresses.take(addressBucket(request.ip), reply)
    if (request.routeOptions.config?.isAttempt && !attempts.tryTake(addressBucket(request.ip)))
      throw new Problem('rate_limited', 'Too many attempts from your address. Wait a minute.', {
        retryAfterSeconds: 60,
      })
    refuseCrossSite(ctx, request)
  })
  app.addHook('preHandler', async (request) => {
    if (request.is404) return
    await meetVisitor(ctx, request)
    await enterStore(ctx, request)
  })
  app.addHook('onRoute', ({ url, config }) => {
    assert(url.includes(':storeId') === (config?.right !== undefined), `${url} needs a right in its store`)
  })
  const identities = openIdentities(ctx)
  void app.register(async (scope) => {
    mountAssets(scope, '', openAssets('console'), { isOpen: true })
    mountSignIn(scope, ctx, identities?.provider ?? null)
    mountEnrol(scope, ctx)
    mountAccount(scope, ctx, identities?.provider ?? null)
    mountTeam(scope, ctx)
    mountWallets(scope, ctx)
    if (identities) mountOidc(scope, ctx, identities)
  })
  return app
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Counts against the attempts of its address. */
    isAttempt?: boolean
  }
}

/** Forms and the script's JSON arrive as the same thing: an object of fields. */
function takeBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: bodyBytesMax },
    async (_request: FastifyRequest, body: string) => Object.fromEntries(new URLSearchParams(body)),
  )
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: bodyBytesMax },
    async (_request: FastifyRequest, body: Buffer) => parseBody(body),
  )
}

const statuses: Readonly<Record<Reason, number>> = {
  signed_out: 401,
  invitation: 410,
  passkey: 401,
  identity: 403,
  identity_taken: 409,
  provider: 502,
  challenge: 409,
  confirmation: 403,
  last_passkey: 409,
  passkeys_max: 409,
  last_owner: 409,
  role: 403,
  has_owner: 409,
  has_members: 409,
  other_stores: 409,
  operator: 409,
  is_member: 409,
  members_max: 409,
  change_over: 409,
  undo_over: 409,
  not_found: 404,
  invalid: 422,
}

/** The script gets the sentence as JSON, people get a page with it. */
function sendError(ctx: Context, error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const isScript = /^application\/json\b/.test(request.headers['content-type'] ?? '')
  if (error instanceof Refusal && error.reason === 'signed_out' && request.method === 'GET')
    return reply.code(303).header('location', '/sign-in').send()
  const { texts } = languageOf(request)
  const { status, text, headers } = describe(ctx, error, request, texts)
  if (headers) reply.headers(headers)
  if (isScript) return reply.code(status).type('application/json').send({ error: text })
  return sendPage(ctx, request, reply, {
    status,
    title: texts.failed.title,
    isAlone: true,
    main: html`<h1>${texts.failed.title}</h1><p>${text}</p><p><a href="/">${texts.failed.back}</a></p>`,
  })
}

function describe(ctx: Context, error: unknown, request: FastifyRequest, texts: Language['texts']) {
  if (error instanceof Refusal) {
    const { reason, detail, cause } = error
    ctx.log.debug(
      { requestId: request.id, reason, cause: String(cause ?? '') },
      'refused a request to the console',
    )
    return { status: statuses[reason], text: detail ?? texts.refusals[reason], headers: null }
  }
  const { status, code, headers } = noteProblem(ctx, error, request)
  const { internal } = texts.problems
  const text = code in texts.problems ? texts.problems[code as keyof typeof texts.problems] : internal
  const retry = headers['retry-after']
  return { status, text, headers: retry === undefined ? null : { 'retry-after': retry } }
}
