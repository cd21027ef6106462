import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type PayEngine, preparePayment, whyClosed } from '../../checkouts/pay.ts'
import { isPayable, readView } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { Problem } from '../../problems.ts'
import { pagePathOf } from '../pay.ts'

/** A network and an address. */
const formBytesMax = 1_024

/**
 * POST checkoutUrl/prepare, and the same below the API's address: what a payer has to sign, where it cannot be made
 * without a node. The payment itself is then handed in as every other. Asking changes nothing.
 */
export function mountPrepare(app: FastifyInstance, ctx: Context, engine: PayEngine): void {
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: formBytesMax },
      async (_request: FastifyRequest, body: string) => new URLSearchParams(body),
    )
    // It is as open as the payment itself, also to pages of other origins.
    scope.addHook('onSend', async (_request, reply) => void reply.header('access-control-allow-origin', '*'))

    const prepare = async (request: FastifyRequest, reply: FastifyReply) => {
      const { checkoutId } = request.params as { checkoutId: string }
      const view = await readView(ctx, checkoutId)
      if (!view) throw new Problem('not_found', 'There is no such checkout.')
      if (!isPayable(view)) throw whyClosed(view.checkout)
      const body = request.body instanceof URLSearchParams ? request.body : new URLSearchParams()
      const offered = await engine.terms(checkoutId, view.checkout.options)
      const wanted = offered.find(({ network }) => network === body.get('network'))
      const prepared = wanted && (await preparePayment(engine, wanted, body.get('payer') ?? ''))
      if (!prepared) throw new Problem('not_found', 'Nothing is prepared for payments on that network.')
      if ('refusal' in prepared) return reply.code(402).send({ error: prepared.refusal })
      return reply.send({ accepted: wanted, ...prepared })
    }
    for (const path of [pagePathOf(ctx), '/api/v1/checkouts'])
      scope.post(`${path}/:checkoutId/prepare`, prepare)
  })
}
