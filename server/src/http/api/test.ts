import type * as Wire from '@farthing/sdk'
import Type from 'typebox'
import type { PayEngine } from '../../checkouts/pay.ts'
import { readCheckout } from '../../checkouts/read.ts'
import { simulate } from '../../checkouts/simulate.ts'
import { answer, type Route } from '../route.ts'
import { StoreCheckout } from './checkouts.ts'
import { nullable, object, shape } from './shapes.ts'

const SimulatedCase = Type.Enum([
  'payment.paid',
  'payment.underpaid',
  'payment.overpaid',
  'payment.late',
  'payment.twice',
  'payment.reorged',
  'payment.reversed',
  'payment.unknown_then_paid',
  'payment.unknown_then_dead',
  'payment.refused',
  'network.down',
  'network.no_gas',
  'checkout.expired',
])

const Simulate = shape<Wire.Simulate>()({ checkoutId: Type.String({ maxLength: 40 }), case: SimulatedCase })

const Simulated = shape<Wire.Simulated>()({
  case: SimulatedCase,
  checkout: StoreCheckout,
  answer: nullable(
    object({
      status: Type.Integer({ description: 'The status of the answer.' }),
      error: nullable(
        Type.String({ description: 'The code of its problem, or why the payment was refused.' }),
      ),
    }),
  ),
})

/** What a test store's developer can make happen. */
export function testRoutes(engine: PayEngine): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/test/simulate',
      operationId: 'simulate',
      summary: 'Make something happen to a test store’s checkout',
      description:
        'Only for test stores, on a deployment with SIMULATED in NETWORKS. The answer says what the payer was told; events tell what follows.',
      scope: 'checkouts:write',
      body: Simulate,
      answers: { 200: { description: 'Begun.', schema: Simulated } },
      problems: [
        'not_found',
        'not_simulated',
        'already_paid',
        'payment_in_progress',
        'checkout_expired',
        'checkout_canceled',
        'settlement_unavailable',
      ],
      handle: answer<Wire.Simulate>(200, async ({ ctx, storeId, input }) => {
        const told = await simulate(ctx, engine, { storeId, checkoutId: input.checkoutId }, input.case)
        return {
          case: input.case,
          checkout: await readCheckout(ctx, storeId, input.checkoutId),
          answer: told,
        }
      }),
    },
  ]
}
