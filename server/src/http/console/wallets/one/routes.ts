import type { FastifyReply } from 'fastify'
import type { Context } from '../../../../context.ts'
import { isId } from '../../../../ids.ts'
import { Refusal } from '../../../../members/refusal.ts'
import { challengeWallet, proveWallet } from '../../../../stores/prove.ts'
import { listActive, readStore, readWallet } from '../../../../stores/rows.ts'
import type { Store, Wallet } from '../../../../stores/store.ts'
import { declareCustodial, stopWallet } from '../../../../stores/wallet-touches.ts'
import { inWords, type Screen, type StoreRoutes, sentenceFor } from '../../screen.ts'
import { renderMessage, renderStop, renderWallet } from './view.ts'

const path = '/wallets'
const one = `${path}/:walletId`
const read = 'wallets:read'
const write = 'wallets:write'

/** One wallet: its facts, its proof, and a way to stop using it. */
export function mountWallet({ get, post }: StoreRoutes, ctx: Context): void {
  get(one, read, async (screen) => {
    const wallet = await readOwn(screen)
    return screen.send({
      screen: 'wallets',
      title: screen.texts.wallets.one.title,
      isLive: true,
      main: renderWallet(screen, wallet, (await readOwnStore(screen)).standing),
    })
  })

  get(`${one}/stop`, write, async (screen) => {
    const wallet = await readOwn(screen)
    const [current, next = null] = await listActive(screen.ctx.db, screen.storeId, wallet.family)
    if (current?.id !== wallet.id) return screen.go(`${path}/${wallet.id}`)
    return screen.send({
      screen: 'wallets',
      title: screen.texts.wallets.stop.title,
      main: renderStop(screen, wallet, next),
    })
  })

  post(`${path}/stop`, write, async ({ ctx: mine, storeId, touch, field, go }) => {
    const asked = { walletId: field('walletId'), paidNext: field('paidNext') }
    await stopWallet(mine, storeId, await touch(), asked, ctx.now())
    return go(path)
  })

  post(`${path}/custody`, write, async ({ ctx: mine, storeId, touch, field, go }) => {
    const { id } = await declareCustodial(mine, storeId, await touch(), field('walletId'), ctx.now())
    return go(`${path}/${id}`)
  })

  mountProof({ get, post }, ctx)
}

/**
 * Proving takes no touch: it needs the wallet's own signature. `challenge` and `prove` are for the script, `message` and
 * `signature` for people whose wallet is elsewhere.
 */
function mountProof({ post }: StoreRoutes, ctx: Context): void {
  const challenge = async (screen: Screen) => {
    const { memberCtx, part } = screen
    return await inWords({}, async () =>
      challengeWallet(memberCtx, await readOwnStore(screen), part('walletId'), ctx.now()),
    )
  }
  /**
   * Returns the next screen: if a touch is needed before the proven wallet is used, that is the screen of all wallets.
   */
  const prove = async (screen: Screen): Promise<string> => {
    const { memberCtx, actor, part, field } = screen
    const by = { store: await readOwnStore(screen), actor, now: ctx.now() }
    const signature = field('signature').trim()
    const { id, confirmationRequired } = await proveWallet(memberCtx, by, part('walletId'), { signature })
    return confirmationRequired ? path : `${path}/${id}`
  }

  post(`${one}/challenge`, write, async (screen) => {
    const { message } = await challenge(screen)
    return { message }
  })

  post(`${one}/prove`, write, async (screen) => {
    const to = await inWords(screen.texts.wallets.problems, () => prove(screen))
    return { to: `${screen.base}${to}` }
  })

  post(`${one}/message`, write, async (screen) => {
    const { message } = await challenge(screen)
    return await sendMessage(screen, message, null)
  })

  post(`${one}/signature`, write, async (screen) => {
    try {
      return screen.go(await prove(screen))
    } catch (error) {
      const problem = sentenceFor(error, screen.texts.wallets.problems)
      if (problem === null) throw error
      // Another person may still present a signature of this message.
      return await sendMessage(screen, screen.field('message'), problem)
    }
  })
}

async function sendMessage(screen: Screen, message: string, problem: string | null): Promise<FastifyReply> {
  const wallet = await readOwn(screen)
  return await screen.send({
    screen: 'wallets',
    title: screen.texts.wallets.one.elsewhere,
    ...(problem !== null && { status: 422 }),
    main: renderMessage(screen, wallet, message, problem),
  })
}

async function readOwn({ ctx, storeId, part }: Screen): Promise<Wallet> {
  const id = part('walletId')
  const wallet = isId('wal', id) ? await readWallet(ctx.db, storeId, id) : null
  if (!wallet) throw new Refusal('not_found')
  return wallet
}

async function readOwnStore({ ctx, storeId }: Screen): Promise<Store> {
  const store = await readStore(ctx.db, storeId)
  if (!store) throw new Refusal('not_found')
  return store
}
