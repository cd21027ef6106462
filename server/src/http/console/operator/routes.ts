import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { openRails } from '../../../payments/rails.ts'
import { mountChains } from './chains.ts'
import { type Deployment, refuseOthers } from './deployment.ts'
import { mountDoctor } from './doctor.ts'
import { mountQueues } from './queues.ts'
import { mountSettlers } from './settlers.ts'
import { mountStores } from './stores.ts'

/** The screens of whoever runs the deployment. */
export function mountOperator(scope: FastifyInstance, ctx: Context, deployment: Deployment): void {
  const rails = openRails(deployment.ctx)
  void scope.register(async (inner) => {
    inner.addHook('preHandler', async (request) => refuseOthers(request))
    mountStores(inner, ctx, deployment)
    mountSettlers(inner, ctx, deployment, rails)
    mountChains(inner, ctx, deployment, rails)
    mountQueues(inner, ctx, deployment)
    mountDoctor(inner, ctx, deployment)
  })
}
