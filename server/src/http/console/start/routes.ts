import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { Refusal } from '../../../members/refusal.ts'
import { readStepsDone } from '../../../stores/rows.ts'
import { networksFor, walletSegment } from '../../../stores/store.ts'
import { html } from '../../page/html.ts'
import { renderApiLine } from '../parts.ts'
import { openScreen } from '../screen.ts'
import { all, rememberSkipped, skippedBy, steps } from './steps.ts'
import { renderStart } from './view.ts'

const path = '/stores/:storeId/start'
const config = { config: { right: 'wallets:read' } } as const

/** What a store needs before it can be paid, ticked off by what has happened. */
export function mountStart(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, config, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { storeId, store } = screen
    const done = await readStepsDone(screen.ctx.db, storeId)
    const segment = walletSegment(networksFor(ctx, store.mode))
    const line = {
      method: 'POST',
      path: `/stores/${storeId}/wallets/${segment}`,
      body: { walletAddress: done.wallet ?? '<your address>', custodialType: 'NON_CUSTODIAL' },
    }
    return screen.send({
      screen: 'start',
      title: screen.texts.start.title,
      isLive: true,
      main: html`${renderStart(screen, done, skippedBy(request))}${renderApiLine(screen, line)}`,
    })
  })

  scope.post(`${path}/skip`, config, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const step = screen.field('step')
    if (step !== all && !steps.some((each) => each === step)) throw new Refusal('invalid')
    rememberSkipped(request, reply, screen.store, [...skippedBy(request), step])
    return screen.go('/start')
  })
}
