import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toStored } from '../../chains/families.ts'
import { closedProblem, type PayEngine, preparePayment, restoringProblem } from '../../checkouts/pay.ts'
import { simulate } from '../../checkouts/simulate.ts'
import { type CheckoutView, isPayable, readView } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { toTerms } from '../../payments/rail.ts'
import { type PasteOutcome, pasteTransaction } from '../../payments/transfers/paste.ts'
import { reserveTransfer } from '../../payments/transfers/reserve.ts'
import { Problem } from '../../problems.ts'
import { pagePathOf } from '../api/pay.ts'
import { addressBucket, openLimiter } from '../limits.ts'
import { caseOf } from '../page/parts/simulate.ts'

/** Each may cost a query to every node. */
const pastesPerSecond = 2
/**
 * Each takes one of a limited number of amounts near a price. No buyer pays twenty orders in an hour by plain transfer.
 * If many buyers share an IP address, those beyond the limit are asked to pay by signing instead.
 */
const reservationsPerHour = 20
const hourSeconds = 3_600

/**
 * The forms of the payment page. They work without JavaScript: the answer to each redirects to the page, which shows
 * the result.
 */
export function mountForms(app: FastifyInstance, ctx: Context, engine: PayEngine, path: string): void {
  const { rails } = engine
  const pastes = openLimiter('paste', pastesPerSecond, ctx.now)
  const reservations = openLimiter('reserve', reservationsPerHour, ctx.now, hourSeconds)
  void app.register(async (scope) => {
    takeForms(scope)
    scope.addHook('onRequest', async (request) => refuseCrossSite(ctx, request))

    scope.post(`${path}/:checkoutId/transfer`, async (request, reply) => {
      const { checkout, isRestoring, transfers } = await findView(ctx, request)
      const wanted = fieldOf(request, 'network')
      const place = checkout.options.findIndex(({ network }) => wanted === null || network === wanted)
      const option = checkout.options[place]
      const reserve = async () => {
        if (!option || isRestoring) return 'unavailable'
        const isNew = !transfers.some(({ network }) => network === option.network)
        if (isNew && !reservations.tryTake(addressBucket(request.ip))) return 'crowded'
        return await reserveTransfer(ctx, rails.get(option.network), {
          checkoutId: checkout.id,
          network: option.network,
          asset: toStored(option.network, option.asset),
          payTo: toStored(option.network, option.payTo),
          price: BigInt(option.amount),
        })
      }
      const outcome = await reserve()
      // Where there are several networks, the page has to know which one was chosen.
      const chosen = checkout.options.length > 1 ? { option: String(place) } : {}
      const said = outcome === 'reserved' ? { way: 'send', ...chosen } : { notice: outcome }
      return lead(reply, request, path, said)
    })

    scope.post(`${path}/:checkoutId/transaction`, async (request, reply) => {
      const { checkout } = await findView(ctx, request)
      if (!pastes.tryTake(addressBucket(request.ip)))
        return lead(reply, request, path, { notice: 'unavailable' })
      const networks = [...new Set(checkout.options.map(({ network }) => network))]
      const text = fieldOf(request, 'hash') ?? ''
      const outcome = await pasteTransaction(ctx, rails, checkout.id, networks, text)
      const notice = outcome === null ? 'invalid_hash' : notices[outcome]
      return lead(reply, request, path, notice === null ? {} : { notice })
    })
    mountSimulate(scope, ctx, engine, path)
  })
}

/** POST checkoutUrl/simulate: whoever has a test store's page open chooses what happens. */
function mountSimulate(scope: FastifyInstance, ctx: Context, engine: PayEngine, path: string): void {
  const simulations = openLimiter('simulate', pastesPerSecond, ctx.now)
  scope.post(`${path}/:checkoutId/simulate`, async (request, reply) => {
    const { checkout } = await findView(ctx, request)
    const what = caseOf(fieldOf(request, 'case'))
    if (what === null) throw new Problem('not_simulated', 'The form names nothing that can happen.')
    if (!simulations.tryTake(addressBucket(request.ip)))
      return lead(reply, request, path, { notice: 'unavailable' })
    await simulate(ctx, engine, { storeId: null, checkoutId: checkout.id }, what)
    return lead(reply, request, path, {})
  })
}

/** The notice to show. An applied payment needs none, because the page shows the checkout's new state. */
const notices: Readonly<Record<PasteOutcome, string | null>> = {
  looking: 'looking',
  applied: null,
  hinted: 'unmatched',
  not_found: 'not_found',
}

/** Redirects to the page, in the language it was shown in. */
function lead(
  reply: FastifyReply,
  request: FastifyRequest,
  path: string,
  said: Readonly<Record<string, string>>,
): FastifyReply {
  const { checkoutId } = request.params as { checkoutId: string }
  const { lang } = request.query as { lang?: unknown }
  const query = new URLSearchParams(said)
  if (typeof lang === 'string' && /^[A-Za-z-]{2,20}$/.test(lang)) query.set('lang', lang)
  const search = query.size > 0 ? `?${query}` : ''
  return reply.code(303).header('location', `${path}/${checkoutId}${search}#send`).send()
}

/** Enough for a network's name and an address or a transaction hash. */
const formBytesMax = 1_024

/** Makes a scope read only form bodies, as a buyer's browser or wallet posts them. */
export function takeForms(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: formBytesMax },
    async (_request: FastifyRequest, body: string) => new URLSearchParams(body),
  )
}

export function fieldOf({ body }: FastifyRequest, name: string): string | null {
  return body instanceof URLSearchParams ? body.get(name) : null
}

/**
 * Another site has no reason to post these forms. Browsers say where a form came from; those that hide the page's URL
 * send the origin "null".
 */
export function refuseCrossSite(ctx: Context, { headers }: FastifyRequest): void {
  const site = headers['sec-fetch-site']
  const origin = headers.origin
  const isOurs =
    typeof site === 'string'
      ? site === 'same-origin' || site === 'none'
      : origin === undefined || origin === 'null' || origin === new URL(ctx.config.checkoutPageUrl).origin
  if (!isOurs) throw new Problem('cross_site', 'This form can be submitted only from its own page.')
}

/** The checkout that the URL names. */
async function findView(ctx: Context, { params }: FastifyRequest): Promise<CheckoutView> {
  const view = await readView(ctx, (params as { checkoutId: string }).checkoutId)
  if (!view) throw new Problem('not_found', 'No such checkout.')
  return view
}

/**
 * POST checkoutUrl/prepare, and the same under the API's path: returns what a payer has to sign, on networks where
 * building it takes a node. The signed payment is then submitted like any other. Preparing changes nothing.
 */
export function mountPrepare(app: FastifyInstance, ctx: Context, engine: PayEngine): void {
  void app.register(async (scope) => {
    takeForms(scope)
    // Open to pages of any origin, like the payment itself.
    scope.addHook('onSend', async (_request, reply) => void reply.header('access-control-allow-origin', '*'))

    const prepare = async (request: FastifyRequest, reply: FastifyReply) => {
      const view = await findView(ctx, request)
      if (!isPayable(view)) throw closedProblem(view.checkout)
      if (view.isRestoring) throw restoringProblem()
      const offered = await toTerms(engine.rails, view.checkout.id, view.checkout.options)
      const wanted = offered.find(({ network }) => network === fieldOf(request, 'network'))
      const prepared = wanted && (await preparePayment(engine, wanted, fieldOf(request, 'payer') ?? ''))
      if (!prepared)
        throw new Problem(
          'not_found',
          'The server does not prepare payments for this checkout on that network.',
        )
      if ('refusal' in prepared) return reply.code(402).send({ error: prepared.refusal })
      return reply.send({ accepted: wanted, ...prepared })
    }
    for (const path of [pagePathOf(ctx), '/api/v1/checkouts'])
      scope.post(`${path}/:checkoutId/prepare`, prepare)
  })
}
