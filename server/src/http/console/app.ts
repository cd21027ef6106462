import assert from 'node:assert/strict'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { openIdentities } from '../../members/identities.ts'
import { type Reason, Refusal } from '../../members/refusal.ts'
import { Problem } from '../../problems.ts'
import { parseBody } from '../body.ts'
import { openExports } from '../exports.ts'
import type { Health } from '../health.ts'
import { addressBucket, openLimiter } from '../limits.ts'
import { mountAssets, openAssets } from '../page/assets.ts'
import { html } from '../page/html.ts'
import { noteProblem, openServer } from '../server.ts'
import { openShares } from '../shares.ts'
import { mountCellCheck } from '../wrong-cell.ts'
import { mountAccount, mountStop } from './account/routes.ts'
import { mountActivity } from './activity/routes.ts'
import { mountAudit } from './audit/routes.ts'
import { mountBranding } from './branding/routes.ts'
import { mountDevelopers } from './developers/routes.ts'
import { sendPage } from './document.ts'
import { mountLive } from './frame/live.ts'
import { startOf } from './frame/screens.ts'
import { mountHome } from './home/routes.ts'
import { mountInbox } from './inbox/routes.ts'
import { mountStoreLinks } from './links/routes.ts'
import { mountNew } from './new/routes.ts'
import { type Deployment, mountOperator } from './operator/routes.ts'
import { mountPayment } from './payment/routes.ts'
import { mountPayments } from './payments/routes.ts'
import { mountRefunds } from './refunds/routes.ts'
import { mountReports } from './reports/routes.ts'
import { signInPath } from './returning.ts'
import { storeRoutes } from './screen.ts'
import { mountSignIn } from './sign-in/routes.ts'
import { mountStart } from './start/routes.ts'
import { mountTeam } from './team/routes.ts'
import { type ConsoleLanguage, languageOf } from './texts/choose.ts'
import { enterStore, meetVisitor, readToken, refuseCrossSite } from './visitor.ts'
import { mountWallets } from './wallets/routes.ts'

/** A passkey's answer is about 1 KiB, a new passkey with its statement up to 3. */
const bodyBytesMax = 16_384
/** Sign-ins and enrolments per address: more than a team behind one address needs, but too few to do harm. */
const attemptsPerMinute = 30

/**
 * The console. It has its own listener and host, so payment pages never see its cookie. Every change needs a request
 * from our own page, the form's token, and a session unless its route says that it is open; the hooks here see to that
 * for every route except those whose path has a token for one thing.
 *
 * A screen is a folder: routes.ts reads and acts, view.ts renders. A handler gets a Screen, which has all that belongs
 * to the request: the store's own context, texts, locale, rights, form fields, and the ways to act, to confirm and to
 * answer. Outside of a store it gets a Page, the part that needs no store. Handlers change things through the verbs
 * that the API uses. parts.ts has the components of screens, texts/ one file per language, formats.ts times, money and
 * addresses, frame/ the frame around a screen and the list of screens.
 */
export function buildConsole(ctx: Context, health: Health, deployment: Deployment): FastifyInstance {
  const app = openServer(ctx, health, ctx.config.consoleUrl)
  const addresses = openLimiter('address', ctx.config.addressRequestsPerSecond, ctx.now)
  const attempts = openLimiter('attempt', attemptsPerMinute, ctx.now, 60)
  app.decorateRequest('visitor')
  app.decorateRequest('leaveQueue', null)
  app.setErrorHandler((error, request, reply) => sendError(ctx, error, request, reply))
  app.setNotFoundHandler({ preHandler: async () => {} }, () => {
    throw new Refusal('not_found')
  })
  takeBodies(app)
  app.addHook('onRequest', async (request, reply) => {
    request.visitor = { token: readToken(ctx, request), session: null, stores: [], store: null }
    addresses.take(addressBucket(request.ip), reply)
    if (request.routeOptions.config?.isAttempt && !attempts.tryTake(addressBucket(request.ip)))
      throw new Problem('rate_limited', 'Too many attempts from your address. Wait a minute.', {
        retryAfterSeconds: 60,
      })
    refuseCrossSite(ctx, request)
  })
  mountCellCheck(app, ctx)
  const shares = openConsoleShares(ctx)
  app.addHook('preHandler', async (request) => {
    if (request.is404) return
    await meetVisitor(ctx, request)
    shares.admit(request)
  })
  app.addHook('onRoute', (route) => {
    const { url, config, handler } = route
    assert(url.includes(':storeId') === (config?.right !== undefined), `${url} needs a right in its store`)
    route.handler = function (request, reply) {
      return shares.inQueue(request, async () => await handler.call(this, request, reply))
    }
  })
  // A slow reader or a long answer does not make other requests wait.
  app.addHook('onSend', async (request) => request.leaveQueue?.())
  const identities = openIdentities(ctx)
  void app.register(async (scope) => {
    mountAssets(scope, '', openAssets('console'), { isOpen: true })
    scope.get('/', (request, reply) => {
      const { stores } = request.visitor
      const first = stores.find(({ mode }) => mode === 'live') ?? stores[0]
      return reply
        .code(303)
        .header('location', first ? startOf(first) : '/account')
        .send()
    })
    const store = storeRoutes(scope, ctx)
    mountSignIn(scope, ctx, identities)
    mountAccount(scope, ctx, identities?.provider ?? null)
    mountStop(scope, ctx)
    mountInbox(store)
    mountActivity(store, ctx)
    mountAudit(store, ctx)
    mountDevelopers(store, ctx)
    mountHome(store)
    mountLive(scope, ctx)
    mountBranding(scope, ctx)
    mountNew(store)
    mountStoreLinks(store)
    mountPayment(store, ctx)
    const exports = openExports()
    mountPayments(store, ctx, exports)
    mountRefunds(store, ctx)
    mountReports(store, exports)
    mountStart(store, ctx)
    mountOperator(scope, ctx, deployment)
    mountTeam(store, ctx)
    mountWallets(store, ctx)
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
  code: 410,
  email_link: 410,
  email_links_max: 429,
  email_unknown: 409,
  codes_max: 429,
  nothing_waits: 409,
  operator_codes: 409,
  passkey_waits: 409,
  passkey: 401,
  identity: 403,
  identity_taken: 409,
  provider: 502,
  challenge: 409,
  confirmation: 403,
  no_passkey: 409,
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
  wallet_changed: 409,
  wallet_address: 422,
  drained: 409,
  sign_ups_max: 429,
  exports_max: 429,
  not_found: 404,
  invalid: 422,
}

/** The script gets the sentence as JSON, people get a page with it. */
async function sendError(
  ctx: Context,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const isScript = /^application\/json\b/.test(request.headers['content-type'] ?? '')
  if (error instanceof Refusal && error.reason === 'signed_out' && request.method === 'GET')
    return reply.code(303).header('location', signInPath(ctx, request)).send()
  const { texts } = languageOf(request)
  const { status, text, headers } = describe(ctx, error, request, texts)
  if (headers) reply.headers(headers)
  const isSignedOut = error instanceof Refusal && error.reason === 'signed_out'
  if (isScript) return reply.code(status).type('application/json').send({ error: text, isSignedOut })
  const { failed, signIn } = texts
  const [title, said] = isSignedOut ? [failed.signedOut, failed.signedOutAbout] : [failed.title, text]
  const [href, go] = isSignedOut ? [signInPath(ctx, request), signIn.title] : ['/', failed.back]
  return sendPage(ctx, request, reply, {
    status,
    title,
    isAlone: true,
    main: html`<h1>${title}</h1><p>${said}</p>
<p><a class="button quiet" href="${href}">${go}</a></p>`,
  })
}

function describe(ctx: Context, error: unknown, request: FastifyRequest, texts: ConsoleLanguage['texts']) {
  if (error instanceof Refusal) {
    const { reason, detail, cause } = error
    ctx.log.debug(
      { requestId: request.id, reason, cause: String(cause ?? '') },
      'refused a request to the console',
    )
    return { status: statuses[reason], text: detail ?? texts.refusals[reason], headers: null }
  }
  const { status, code, headers } = noteProblem(ctx, error, request)
  if (code === 'invalid_request') return { status, text: texts.refusals.invalid, headers: null }
  const { internal } = texts.problems
  const text = code in texts.problems ? texts.problems[code as keyof typeof texts.problems] : internal
  const retry = headers['retry-after']
  return { status, text, headers: retry === undefined ? null : { 'retry-after': retry } }
}

/**
 * Requests of one member, and of all members of one store, that are handled at once. A member cannot use all places of a
 * store, and a store uses fewer than half of the connections that transactions have by default.
 */
const memberAtOnce = 2
const storeAtOnce = 3
/** More than a person with many tabs waits for. Requests wait for their store only after it is their member's turn. */
const memberWaitingMax = 20

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while the request is handled. */
    leaveQueue: (() => void) | null
  }
}

/**
 * The limits for all members of a store together, and for each member in all their stores: as many requests per second
 * as one address may make, from any address, and few at once. Routes that need no session have the limit of the
 * address.
 */
function openConsoleShares(ctx: Context) {
  const shares = openShares(ctx, 'console')
  const { addressRequestsPerSecond: perSecond } = ctx.config
  const takeOfMember = shares.openRequests(perSecond, 'one member')
  const takeOfStore = shares.openRequests(perSecond, 'the members of one store')
  const members = shares.openFairQueue('member', memberAtOnce, memberWaitingMax)
  const stores = shares.openFairQueue('store', storeAtOnce, Number.POSITIVE_INFINITY)

  return {
    admit(request: FastifyRequest): void {
      const { session } = request.visitor
      if (session && !request.routeOptions.config.isOpen) takeOfMember(session.member.id)
      enterStore(request)
      if (request.visitor.store) takeOfStore(request.visitor.store.storeId)
    },
    async inQueue(request: FastifyRequest, work: () => Promise<unknown>): Promise<unknown> {
      const { session, store } = request.visitor
      // The handler of HEAD is that of GET, with its place.
      if (!session || request.leaveQueue || request.routeOptions.config.isOpen) return await work()
      return await members.take(session.member.id, async (endMember) => {
        request.leaveQueue = endMember
        if (!store) return await work()
        return await stores.take(store.storeId, async (endStore) => {
          request.leaveQueue = () => {
            endStore()
            endMember()
          }
          return await work()
        })
      })
    },
  }
}
