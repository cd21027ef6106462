import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type PayEngine, preparePayment } from '../../checkouts/pay.ts'
import { closedProblem, restoringProblem } from '../../checkouts/refusals.ts'
import { isPayable } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { toTerms } from '../../payments/terms.ts'
import { Problem } from '../../problems.ts'
import { pagePathOf } from '../api/pay.ts'
import { fieldOf, findView, takeForms } from './form.ts'

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
