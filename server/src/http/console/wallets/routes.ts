import type { Context } from '../../../context.ts'
import { Refusal } from '../../../members/refusal.ts'
import { putAwayNews } from '../../../members/silence.ts'
import { confirmChange, listChanges, refuseChange } from '../../../stores/change.ts'
import { listCurrent, listFormer, listWallets, readStore } from '../../../stores/rows.ts'
import { undoChange } from '../../../stores/undo.ts'
import { confirmSetting } from '../../../stores/update.ts'
import type { StoreRoutes } from '../screen.ts'
import { mountEntering } from './enter.ts'
import { mountWallet } from './one/routes.ts'
import { mountUndoing } from './undo.ts'
import { choices, renderWallets } from './view.ts'

const path = '/wallets'
const read = 'wallets:read'
const write = 'wallets:write'
/** The newest wallets. Those that wait for a signature are shown. */
const registeredMax = 50
/** Enough to recognise one's own. Older ones can be entered again. */
const formerMax = 20

/** The wallets that a store is paid to. Owners confirm, refuse and undo changes. */
export function mountWallets(routes: StoreRoutes, ctx: Context): void {
  const { get, post } = routes
  mountEntering(routes, ctx)
  mountUndoing(routes)
  mountWallet(routes, ctx)

  get(path, read, async (screen) => {
    const { storeId } = screen
    const { db } = screen.ctx
    const [store, current, changes, former, registered] = await Promise.all([
      readStore(db, storeId),
      listCurrent(db, storeId),
      listChanges(db, storeId),
      listFormer(db, storeId, formerMax),
      ctx.directory ? listWallets(db, storeId, { before: null, limit: registeredMax }) : [],
    ])
    if (!store) throw new Refusal('not_found')
    return screen.send({
      screen: 'wallets',
      title: screen.texts.wallets.title.replace('{store}', screen.store.storeName),
      main: renderWallets(screen, { store, current, changes, former, registered }),
    })
  })

  post(`${path}/confirm`, write, async ({ ctx: mine, storeId, touch, field, go }) => {
    await confirmChange(mine, storeId, await touch(), field('changeId'), ctx.now())
    return go('/wallets')
  })

  post(`${path}/refuse`, write, async ({ ctx: mine, storeId, session, field, go }) => {
    await refuseChange(mine, storeId, session.member, field('changeId'), ctx.now())
    return go('/wallets')
  })

  post(`${path}/undo`, write, async ({ ctx: mine, storeId, touch, field, go }) => {
    const cancelsOpen = field('cancelsOpen') === 'yes'
    await undoChange(mine, storeId, await touch(), { changeId: field('changeId'), cancelsOpen }, ctx.now())
    return go('/wallets')
  })

  post(`${path}/setting`, write, async ({ ctx: mine, storeId, touch, field, go }) => {
    const walletChanges = choices.find((each) => each === field('walletChanges'))
    if (!walletChanges) throw new Refusal('invalid')
    await confirmSetting(mine, storeId, await touch(), walletChanges, ctx.now())
    return go('/wallets')
  })

  post(`${path}/seen`, read, async ({ storeId, touch, field, go }) => {
    await putAwayNews(ctx, storeId, await touch(), field('until'), ctx.now())
    return go('/wallets')
  })
}
