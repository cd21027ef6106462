import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toStored } from '../../chains/families.ts'
import type { Context } from '../../context.ts'
import type { Rails } from '../../payments/rail.ts'
import { pasteTransaction } from '../../payments/transfers/paste.ts'
import type { PasteOutcome } from '../../payments/transfers/paste-rows.ts'
import { reserveTransfer } from '../../payments/transfers/reserve.ts'
import { Problem } from '../../problems.ts'
import { addressBucket, openLimiter } from '../limits.ts'
import { fieldOf, findView, takeForms } from './form.ts'

/** Each may cost a question to every node. */
const pastesPerSecond = 2

/**
 * The forms of the payment page, which work without JavaScript: they are posted, do something, and lead back to the
 * page, which shows what came of it.
 */
export function mountForms(app: FastifyInstance, ctx: Context, rails: Rails, path: string): void {
  const pastes = openLimiter('paste', pastesPerSecond, ctx.now)
  void app.register(async (scope) => {
    takeForms(scope)
    scope.addHook('onRequest', async (request) => refuseCrossSite(ctx, request))

    scope.post(`${path}/:checkoutId/transfer`, async (request, reply) => {
      const { checkout, isRestoring } = await findView(ctx, request)
      const wanted = fieldOf(request, 'network')
      const option = checkout.options.find(({ network }) => wanted === null || network === wanted)
      const outcome =
        option && !isRestoring
          ? await reserveTransfer(ctx, rails.get(option.network), {
              checkoutId: checkout.id,
              network: option.network,
              asset: toStored(option.network, option.asset),
              payTo: toStored(option.network, option.payTo),
              price: BigInt(option.amount),
            })
          : 'unavailable'
      return lead(reply, request, path, outcome === 'reserved' ? { send: '1' } : { notice: outcome })
    })

    scope.post(`${path}/:checkoutId/transaction`, async (request, reply) => {
      pastes.take(addressBucket(request.ip), reply)
      const { checkout } = await findView(ctx, request)
      const networks = [...new Set(checkout.options.map(({ network }) => network))]
      const text = fieldOf(request, 'hash') ?? ''
      const outcome = await pasteTransaction(ctx, rails, checkout.id, networks, text)
      const notice = outcome === null ? 'invalid_hash' : notices[outcome]
      return lead(reply, request, path, notice === null ? {} : { notice })
    })
  })
}

/** What a payment did to this checkout, the page shows by itself. */
const notices: Readonly<Record<PasteOutcome, string | null>> = {
  looking: 'looking',
  applied: null,
  hinted: 'unmatched',
  not_found: 'not_found',
}

/**
 * Nothing here can be used against a buyer, but no other site has any business with it. Browsers say where a form came
 * from; those that hide the page's address say "null" as its origin.
 */
function refuseCrossSite(ctx: Context, { headers }: FastifyRequest): void {
  const site = headers['sec-fetch-site']
  const origin = headers.origin
  const isOurs =
    typeof site === 'string'
      ? site === 'same-origin' || site === 'none'
      : origin === undefined || origin === 'null' || origin === new URL(ctx.config.checkoutPageUrl).origin
  if (!isOurs) throw new Problem('cross_site', 'This form can be submitted only from the payment page.')
}

/** Back to the page, in the language it was in. */
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
