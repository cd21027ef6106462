import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { Refusal } from '../../../members/refusal.ts'
import { putAwayNews } from '../../../members/silence.ts'
import { listChanges } from '../../../stores/change.ts'
import { confirmChange, refuseChange } from '../../../stores/confirm.ts'
import { listCurrent, listWallets, readStore } from '../../../stores/rows.ts'
import { undoChange } from '../../../stores/undo.ts'
import { confirmSetting } from '../../../stores/update.ts'
import { openScreen } from '../screen.ts'
import { choices, renderWallets } from './view.ts'

const path = '/stores/:storeId/wallets'
const read = { config: { right: 'wallets:read' } } as const
const write = { config: { right: 'wallets:write' } } as const
/** The newest wallets, of which those that wait for a signature are shown. */
const registeredMax = 50

/** The wallets that a store is paid to. Owners confirm, refuse and undo changes. */
export function mountWallets(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, read, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { storeId } = screen
    const { db } = screen.ctx
    const [store, current, changes, registered] = await Promise.all([
      readStore(db, storeId),
      listCurrent(db, storeId),
      listChanges(db, storeId),
      ctx.directory ? listWallets(db, storeId, { before: null, limit: registeredMax }) : [],
    ])
    if (!store) throw new Refusal('not_found')
    return screen.send({
      screen: 'wallets',
      title: screen.texts.wallets.title.replace('{store}', screen.store.storeName),
      main: renderWallets(screen, { store, current, changes, registered }),
    })
  })

  scope.post(`${path}/confirm`, write, async (request, reply) => {
    const { ctx: mine, storeId, touch, field, go } = openScreen(ctx, request, reply)
    await confirmChange(mine, storeId, await touch(), field('changeId'), ctx.now())
    return go('/wallets')
  })

  scope.post(`${path}/refuse`, write, async (request, reply) => {
    const { ctx: mine, storeId, session, field, go } = openScreen(ctx, request, reply)
    await refuseChange(mine, storeId, session.member, field('changeId'), ctx.now())
    return go('/wallets')
  })

  scope.post(`${path}/undo`, write, async (request, reply) => {
    const { ctx: mine, storeId, touch, field, go } = openScreen(ctx, request, reply)
    const cancelsOpen = field('cancelsOpen') === 'yes'
    await undoChange(mine, storeId, await touch(), { changeId: field('changeId'), cancelsOpen }, ctx.now())
    return go('/wallets')
  })

  scope.post(`${path}/setting`, write, async (request, reply) => {
    const { ctx: mine, storeId, touch, field, go } = openScreen(ctx, request, reply)
    const walletChanges = choices.find((each) => each === field('walletChanges'))
    if (!walletChanges) throw new Refusal('invalid')
    await confirmSetting(mine, storeId, await touch(), walletChanges, ctx.now())
    return go('/wallets')
  })

  scope.post(`${path}/seen`, read, async (request, reply) => {
    const { storeId, touch, field, go } = openScreen(ctx, request, reply)
    await putAwayNews(ctx, storeId, await touch(), field('until'), ctx.now())
    return go('/wallets')
  })
}
