import type { FastifyInstance } from 'fastify'
import { periods } from '../../../checkouts/rollups/takings.ts'
import type { Context } from '../../../context.ts'
import { openScreen } from '../screen.ts'
import { readHome } from './read.ts'
import { renderHome } from './view.ts'

/** What came in, and what waits for somebody. */
export function mountHome(scope: FastifyInstance, ctx: Context): void {
  scope.get('/stores/:storeId', { config: { right: 'payments:read' } }, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { may, storeId } = screen
    const period = periods.find((each) => each === screen.asked('period')) ?? 'month'
    const shows = { endpoints: may('developers:read'), refunds: may('refunds:write') }
    const home = await readHome(screen.ctx, storeId, period, shows)
    return screen.send({
      title: screen.texts.home.title,
      screen: 'home',
      isLive: true,
      main: renderHome(screen, home),
    })
  })
}
