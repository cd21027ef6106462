import type { FastifyInstance } from 'fastify'
import { periods } from '../../../checkouts/rollups/takings.ts'
import type { Context } from '../../../context.ts'
import { mayAct } from '../../../members/rights.ts'
import { sendPage } from '../document.ts'
import { textsOf } from '../texts/choose.ts'
import { forStore, storeOf } from '../visitor.ts'
import { readHome } from './read.ts'
import { renderHome } from './render.ts'

export function mountHome(scope: FastifyInstance, ctx: Context): void {
  scope.get('/stores/:storeId', { config: { right: 'payments:read' } }, async (request, reply) => {
    const { storeId, role } = storeOf(request)
    const { period } = request.query as { period?: string }
    const home = await readHome(
      forStore(ctx, storeId),
      storeId,
      periods.find((each) => each === period) ?? 'month',
      { endpoints: mayAct(role, 'developers:read'), refunds: mayAct(role, 'refunds:write') },
    )
    return sendPage(ctx, request, reply, {
      title: textsOf(request).home.title,
      screen: 'home',
      isLive: true,
      main: renderHome(ctx, request, home),
    })
  })
}
