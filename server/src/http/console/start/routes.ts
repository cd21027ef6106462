import type { Context } from '../../../context.ts'
import { Refusal } from '../../../members/refusal.ts'
import { readStore } from '../../../stores/rows.ts'
import { networksFor, walletSegment } from '../../../stores/store.ts'
import { html } from '../../page/html.ts'
import { renderApiLine } from '../parts.ts'
import type { StoreRoutes } from '../screen.ts'
import { all, readStartDone, rememberSkipped, skippedBy, steps } from './steps.ts'
import { renderStart } from './view.ts'

const path = '/start'
const right = 'wallets:read'

/** The first steps of a store, ticked off as they happen. */
export function mountStart({ get, post }: StoreRoutes, ctx: Context): void {
  get(path, right, async (screen) => {
    const { storeId, store, session } = screen
    const { db } = screen.ctx
    const [own, done] = await Promise.all([
      readStore(db, storeId),
      readStartDone(ctx, storeId, session.member.id),
    ])
    if (!own) throw new Refusal('not_found')
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
      main: html`${renderStart(screen, own, done, skippedBy(screen.request))}${renderApiLine(screen, line)}`,
    })
  })

  post(`${path}/skip`, right, async (screen) => {
    const step = screen.field('step')
    if (step !== all && !steps.some((each) => each === step)) throw new Refusal('invalid')
    rememberSkipped(screen.request, screen.reply, screen.store, [...skippedBy(screen.request), step])
    return screen.go('/start')
  })
}
