import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toStored } from '../../chains/families.ts'
import type { Context } from '../../context.ts'
import type { Rails } from '../../payments/rail.ts'
import { type PasteOutcome, pasteTransaction } from '../../payments/transfers/paste.ts'
import { reserveTransfer } from '../../payments/transfers/reserve.ts'
import { addressBucket, openLimiter } from '../limits.ts'
import { fieldOf, findView, refuseCrossSite, takeForms } from './form.ts'

/** Each may cost a query to every node. */
const pastesPerSecond = 2
/**
 * Each takes one of a limited number of amounts near a price. No buyer opens twenty orders in an hour to pay them
 * from another wallet; where many buyers share one address, the next ones are asked to sign.
 */
const reservationsPerHour = 20
const hourSeconds = 3_600

/**
 * The forms of the payment page. They work without JavaScript: the answer to each redirects to the page, which shows the
 * result.
 */
export function mountForms(app: FastifyInstance, ctx: Context, rails: Rails, path: string): void {
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
  })
}

/** The notice to show. An applied payment needs none: the page itself shows what it did to the checkout. */
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
