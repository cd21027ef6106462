import type { Scope } from '@farthing/sdk'
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { openClaim } from '../checkouts/claim.ts'
import { openCreateCheckout } from '../checkouts/create.ts'
import { openLinkQueue, openOpenLink } from '../checkouts/links/open.ts'
import { openPayLink } from '../checkouts/links/pay.ts'
import type { PayEngine } from '../checkouts/pay.ts'
import { openOutcomes, openPayViews } from '../checkouts/pay-view.ts'
import type { Context } from '../context.ts'
import type { FairQueue } from '../database/fair-queue.ts'
import { type EventWaits, openEventWaits } from '../events/wait.ts'
import { openBudgets, openPlaces } from '../payments/limits.ts'
import { openRails } from '../payments/rails.ts'
import { type Issuer, openIssuer } from '../payments/receipts.ts'
import { openReadiness } from '../payments/settlers/readiness.ts'
import { Problem } from '../problems.ts'
import { type Authenticator, actWithKey, type Caller, openAuthenticator } from '../stores/authenticate.ts'
import { isInside, mayDo } from '../stores/scopes.ts'
import { mountAddressRequests } from './address-requests/mount.ts'
import { checkoutRoutes } from './api/checkouts.ts'
import { eventRoutes } from './api/events.ts'
import { keyRoutes } from './api/keys.ts'
import { linkRoutes } from './api/links.ts'
import { movementRoutes } from './api/movements.ts'
import { publicRoutes } from './api/networks.ts'
import { crossOrigin, pagePathOf, payLinkRoutes, payRoutes } from './api/pay.ts'
import { paymentRoutes } from './api/payments.ts'
import { refundRoutes } from './api/refunds.ts'
import { storeRoutes } from './api/store.ts'
import { testRoutes } from './api/test.ts'
import { walletRoutes } from './api/wallets.ts'
import { webhookRoutes } from './api/webhooks.ts'
import { parseBody } from './body.ts'
import { mountForms, mountPrepare } from './buyer/forms.ts'
import { mountLive } from './buyer/live.ts'
import { mountBuyerReceipts } from './buyer-receipts/mount.ts'
import { mountDocs } from './docs/mount.ts'
import { openExports } from './exports.ts'
import { type Health, openReadyCheck } from './health.ts'
import { addressBucket, openLimiter } from './limits.ts'
import { mountLinks } from './links/mount.ts'
import { mountPage } from './page/page.ts'
import { callerOf, type Route } from './route.ts'
import { openServer, sendProblem } from './server.ts'
import { openShares, type Shares } from './shares.ts'
import { mountCellCheck } from './wrong-cell.ts'

/** Builds the HTTP application without listening, so that tests can call it without a socket. */
export function buildApp(ctx: Context, health: Health): FastifyInstance {
  const app = openServer(ctx, health)
  app.setErrorHandler((error, request, reply) => sendProblem(ctx, error, request, reply))
  app.setValidatorCompiler(({ schema, httpPart }) =>
    (httpPart === 'body' ? bodies : queries).compile(schema as object),
  )

  const authenticator = openAuthenticator(ctx)
  const shares = openShares(ctx, 'api')
  const admit = openAdmission(ctx, authenticator, shares)
  const act = openAct(ctx, shares)
  const waits = openEventWaits(ctx)
  // Release clients that wait for events first, so that they don't delay the stop.
  app.addHook('preClose', async () => waits.close())
  const engine = openPayEngine(ctx)
  app.addHook('onClose', async () => engine.outcomes.close())
  const links = openLinkQueue()
  const { store, pay, open } = listRoutes(ctx, engine, authenticator, waits, links)
  const routes = [...store, ...pay, open.checkout, open.link]
  app.setNotFoundHandler((request) => refuseUnknown(routes, request))
  mountCellCheck(app, ctx)
  app.addHook('onRequest', (request, reply) => admit(routeOf(request), request, reply))
  // Routes that expect no body read one anyway, up to the limit, and ignore it: its content must not cause an error.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async () => undefined)

  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      'application/json',
      { parseAs: 'buffer' },
      async (request: FastifyRequest, body: Buffer) => {
        request.bodyBytes = body
        // Clients declare JSON even when they send no body, for example to cancel.
        return body.length === 0 ? undefined : parseBody(body)
      },
    )
    for (const route of store) mount(scope, ctx, authenticator, act, route)
  })
  void app.register(async (scope) => {
    // Payers' clients send arbitrary bodies, some with an invalid content type.
    scope.addHook('onRequest', async (request) => void delete request.headers['content-type'])
    // In onSend, so that a page can read the answer even if its payer is over the rate limit.
    scope.addHook('onSend', async (_request, reply) => void reply.headers(crossOrigin))
    mountPage(scope, ctx, open.checkout, engine.rails)
    for (const route of pay) {
      mount(scope, ctx, authenticator, act, route)
      scope.options(route.path, (_request, reply) => reply.code(204).headers(preflight).send())
    }
  })
  mountLive(app, ctx, pagePathOf(ctx))
  mountForms(app, ctx, engine, pagePathOf(ctx))
  mountBuyerReceipts(app, ctx, pagePathOf(ctx))
  mountPrepare(app, ctx, engine)
  mountAddressRequests(app, ctx, pagePathOf(ctx))
  mountLinks(app, ctx, { path: pagePathOf(ctx), openLink: openOpenLink(ctx, links), pay: open.link })
  mountDid(app, ctx, engine.issuer)
  const isReady = openReadyCheck(ctx, health)
  mountDocs(app, ctx, routes, isReady)
  app.get('/livez', (_request, reply) => reply.send('alive\n'))
  app.get('/readyz', async (_request, reply) => {
    const ready = await isReady()
    return reply.code(ready ? 200 : 503).send(ready ? 'ready\n' : 'not ready\n')
  })
  return app
}

/**
 * The API. Every operation of `store` acts for the store whose key was sent, and sees nothing of any other store. The
 * operations of `pay` are for payers, and those of `open` are the addresses that people open too.
 */
export function listRoutes(
  ctx: Context,
  engine: PayEngine,
  authenticator: Authenticator,
  waits: EventWaits,
  links: FairQueue,
): {
  readonly store: readonly Route[]
  readonly pay: readonly Route[]
  readonly open: { readonly checkout: Route; readonly link: Route }
} {
  const store = [
    ...checkoutRoutes(openCreateCheckout(ctx, authenticator)),
    ...linkRoutes(),
    ...paymentRoutes(ctx),
    ...refundRoutes(ctx, engine.rails),
    ...movementRoutes(openExports()),
    ...storeRoutes(engine.rails),
    ...walletRoutes(),
    ...keyRoutes(),
    ...eventRoutes(waits, authenticator),
    ...webhookRoutes(),
    ...testRoutes(engine),
    ...publicRoutes(),
  ]
  const [checkout, link] = [
    payRoutes(ctx, engine),
    payLinkRoutes(ctx, engine, openPayLink(ctx, engine, links)),
  ]
  return {
    store,
    pay: [...checkout.pay, ...link.pay],
    open: { checkout: checkout.open, link: link.open },
  }
}

function openPayEngine(ctx: Context): PayEngine {
  const rails = openRails(ctx)
  return {
    rails,
    view: openPayViews(ctx),
    claim: openClaim(ctx),
    outcomes: openOutcomes(ctx),
    readiness: openReadiness(ctx, rails),
    budgets: openBudgets(ctx),
    places: openPlaces(ctx.config.paymentsAtOnce),
    issuer: openIssuer(ctx.config.receiptKeysFile),
  }
}

/**
 * Publishes the keys that sign offers and receipts. API and payment page may have two hosts, and each host has its own
 * document: the request's host chooses between these two and never appears in the answer.
 */
function mountDid(app: FastifyInstance, { config }: Context, issuer: Issuer | null): void {
  const pageHost = new URL(config.checkoutPageUrl).host
  app.get('/.well-known/did.json', (request, reply) => {
    if (!issuer) throw new Problem('not_found', 'This deployment signs no receipts.')
    // Not request.host: clients choose X-Forwarded-Host, trusted proxies may pass it on, and the answer is cached.
    const url = request.headers.host === pageHost ? config.checkoutPageUrl : config.baseUrl
    return reply
      .headers({ 'cache-control': 'public, max-age=300', 'access-control-allow-origin': '*' })
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(issuer.describeKeys(url)))
  })
}

const common = {
  allErrors: true,
  removeAdditional: false,
  useDefaults: false,
  strict: false,
  // All schemas are our own and typed. Compiling the meta-schema, twice, would take a fifth of the startup time.
  validateSchema: false,
} as const
const bodies = formats.default(new Ajv({ ...common, coerceTypes: false }))
// Query parameters arrive as text, so numbers must be coerced.
const queries = formats.default(new Ajv({ ...common, coerceTypes: true }))

const preflight = {
  'access-control-allow-methods': 'POST, OPTIONS',
  // The stock x402 browser client sends Access-Control-Expose-Headers as a request header.
  'access-control-allow-headers': 'PAYMENT-SIGNATURE, Access-Control-Expose-Headers, Content-Type',
  'access-control-max-age': '86400',
}

/** Gives the context in which a caller makes changes. */
type Act = (who: Caller, route: Route) => Context

function openAct(ctx: Context, shares: Shares): Act {
  const queue = shares.openFairQueue('store', changesAtOnce, storeRequests(ctx), changeMs(ctx))
  // A queue of its own, so that revoking the keys behind a flood does not wait behind the flood.
  const urgent = shares.openFairQueue('store', changesAtOnce, storeRequests(ctx))
  return (who, { isUrgent = false }) => actWithKey(ctx, who, isUrgent ? urgent : queue)
}

function mount(
  scope: FastifyInstance,
  ctx: Context,
  authenticator: Authenticator,
  act: Act,
  route: Route,
): void {
  const isChange = route.scope !== null && route.method !== 'GET'
  const { needsFreshCaller = true } = route
  scope.route({
    method: route.method,
    url: route.path,
    exposeHeadRoute: !hasStream(route),
    schema: { ...(route.body && { body: route.body }), ...(route.query && { querystring: route.query }) },
    config: { route },
    preValidation: [
      ...(route.isBodyOptional ? [expectNothing] : []),
      ...(isChange ? [meetAgain(authenticator, needsFreshCaller)] : []),
    ],
    handler: (request, reply) => route.handle(isChange ? act(callerOf(request), route) : ctx, request, reply),
  })
}

/** Streams have no HEAD, because they have no answer without a body. */
function hasStream({ answers }: Route): boolean {
  return Object.values(answers).some(({ stream }) => stream)
}

async function expectNothing(request: FastifyRequest): Promise<void> {
  request.body ??= {}
}

/** Reads the caller again, because the body may arrive long after the headers. */
function meetAgain({ refresh, recall }: Authenticator, isFresh: boolean) {
  return async (request: FastifyRequest): Promise<void> => {
    request.caller = await (isFresh ? refresh : recall)(callerOf(request))
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    route?: Route
  }
}

function routeOf(request: FastifyRequest): Route | undefined {
  return request.routeOptions.config.route
}

/** Checks the rate limits, the key, and that the store in the path is the key's own. */
function openAdmission(ctx: Context, authenticator: Authenticator, shares: Shares) {
  const keys = openLimiter('key', ctx.config.keyRequestsPerSecond, ctx.now)
  const addresses = openLimiter('address', ctx.config.addressRequestsPerSecond, ctx.now)
  const takeRequest = shares.openRequests(storeRequests(ctx), 'one store')
  const perHour = ctx.config.unprovenCheckoutsPerHour
  const unproven = openLimiter('unproven', perHour, ctx.now, 3_600)
  return async (route: Route | undefined, request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const limitAddress = () => addresses.take(addressBucket(request.ip), reply)
    // Probes arrive every second from one address and must not be rate-limited. Answering them costs next to nothing.
    if (request.url === '/livez' || request.url === '/readyz') return
    if (!route || route.scope === null) return limitAddress()
    const header = request.headers['x-api-key']
    const found = await authenticator.authenticate(
      typeof header === 'string' ? header : undefined,
      limitAddress,
    )
    refuseElsewhere(found, request.ip, limitAddress)
    keys.take(found.keyId, reply)
    const { id, isLimited } = found.holder.store
    takeRequest(id)
    if (isLimited && isLimitable(route) && !unproven.tryTake(id))
      throw shares.refuse(
        'changes',
        id,
        `A store that has not proven a wallet makes at most ${perHour} changes per hour. Prove the wallet to lift the limit.`,
        Math.ceil(3_600 / perHour),
      )
    const needsFresh = route.needsFreshCaller === true && route.method === 'GET'
    request.caller = needsFresh ? await authenticator.refresh(found) : found
    const ids = request.params as { readonly [name: string]: string; readonly storeId?: string }
    // PostgreSQL cannot compare text that has a zero byte.
    if (Object.values(ids).some((id) => id.includes('\0')))
      throw new Problem('not_found', 'An id contains a zero byte, so it belongs to nothing.')
    const { storeId } = ids
    if (storeId !== undefined && storeId !== found.holder.store.id) {
      throw new Problem('not_found', 'No such store.')
    }
    refuseUnscoped(found, route.scope)
  }
}

/** Every change leaves an event for good. Creates have a limit across all processes (checkouts/create.ts). */
function isLimitable({ method, isUrgent, operationId }: Route): boolean {
  return method !== 'GET' && !isUrgent && operationId !== 'createCheckout'
}

/** All keys of a store together may make as many requests as this many single keys. */
const keysWorth = 3

function storeRequests(ctx: Context): number {
  return keysWorth * ctx.config.keyRequestsPerSecond
}

/** Per store and process. */
const changesAtOnce = 2

/**
 * The length of a turn. It limits a store's changes to half of one key's requests per second, so that they need only a
 * small part of a processor. Changes wait only if they come faster; a single one takes a few milliseconds.
 */
function changeMs({ config }: Context): number {
  return (changesAtOnce * 1_000) / (config.keyRequestsPerSecond / 2)
}

/** Counts against the address, so that a stolen key can't use up its owner's limit. */
function refuseElsewhere({ holder: { key } }: Caller, address: string, limitAddress: () => void): void {
  if (key.addresses.length === 0 || isInside(key.addresses, address)) return
  limitAddress()
  throw new Problem('address_not_allowed', `The key may not be used from ${address}.`)
}

function refuseUnscoped({ holder: { key } }: Caller, scope: Scope | 'any'): void {
  if (scope === 'any' || mayDo(key.scopes, scope)) return
  throw new Problem('scope_required', `The key lacks the scope ${scope}.`, { members: { scope } })
}

function refuseUnknown(routes: readonly Route[], request: FastifyRequest): never {
  const path = request.url.split('?')[0] ?? ''
  const methods = routes.filter((route) => matches(route.path, path)).map(({ method }) => method)
  if (methods.length === 0)
    throw new Problem('not_found', 'Nothing exists at this URL. The API is described at /docs/api.')
  throw new Problem('method_not_allowed', `This URL supports ${methods.join(', ')}.`, {
    headers: { allow: methods.join(', ') },
  })
}

function matches(pattern: string, path: string): boolean {
  const expected = pattern.split('/')
  const parts = path.split('/')
  return (
    expected.length === parts.length && expected.every((part, i) => part.startsWith(':') || part === parts[i])
  )
}
