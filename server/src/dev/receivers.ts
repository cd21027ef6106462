import type { EventType } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import { operatorActor } from '../events/actor.ts'
import { createEndpoint } from '../events/webhooks/endpoints.ts'
import type { StoreId } from '../ids.ts'

/** Two receivers of the demo store's webhooks: one takes everything, one is out of order. */
const paths = { orders: '/dev/webhooks/orders', mailing: '/dev/webhooks/mailing' } as const

export function offerReceivers(app: FastifyInstance): void {
  app.post(paths.orders, (_request, reply) => reply.code(204).send())
  app.post(paths.mailing, (_request, reply) =>
    reply.code(503).type('text/plain').send('The newsletter service is being moved.\n'),
  )
}

export async function addReceivers(ctx: Context, storeId: StoreId): Promise<void> {
  const actor = operatorActor('dev')
  const add = (path: string, types: readonly EventType[]) =>
    createEndpoint(ctx, storeId, actor, { url: `${ctx.config.baseUrl}${path}`, types: [...types] }, ctx.now())
  await add(paths.orders, [])
  await add(paths.mailing, ['checkout.completed'])
}
