import { registerWallet } from '../../../../src/stores/wallets.ts'
import { openChain } from '../../../support/chain/open.ts'
import { freePort } from '../../../support/free-port.ts'
import { operator } from '../../../support/operator.ts'
import { openShop, payTo, type ShopOptions } from '../../../support/shop.ts'

export type PageShop = Awaited<ReturnType<typeof openPageShop>>

/** A store whose payment pages a browser can open: HTTP on its own port, a chain, a worker. */
export async function openPageShop(options: ShopOptions = {}) {
  const { port, url, settings } = await findPlace()
  const shop = await openShop({
    network: 'BASE_MAINNET',
    ...options,
    settings: { ...settings, ...options.settings },
  })
  await shop.app.listen({ host: '127.0.0.1', port })
  return { ...shop, url }
}

export type SvmPageShop = Awaited<ReturnType<typeof openSvmPageShop>>

/** The same for a store that is paid on Solana, and with `isOnEvm` also on an EVM chain. */
export async function openSvmPageShop(
  options: {
    readonly isOnEvm?: boolean
    /** Local chains that pose as the public ones, so that pages show those names. */
    readonly isLive?: boolean
    readonly worker?: boolean
  } = {},
) {
  const { isOnEvm = false, isLive = false, worker = true } = options
  const { port, url, settings } = await findPlace()
  const [svm, evm] = isLive
    ? (['SOLANA_MAINNET', 'BASE_MAINNET'] as const)
    : (['SOLANA_LOCAL', 'LOCAL'] as const)
  const shop = await openShop({
    worker,
    network: svm,
    settings: {
      ...settings,
      ...(isOnEvm && {
        NETWORKS: `${evm},${svm}`,
        [`${evm}_RPC_URLS`]: (await openChain({ network: evm })).url,
      }),
    },
  })
  if (isOnEvm) {
    const wallet = { walletAddress: payTo, custodialType: 'NON_CUSTODIAL' } as const
    await registerWallet(shop.ctx, shop.store.id, operator, { family: 'EVM', ...wallet }, shop.ctx.now())
  }
  await shop.app.listen({ host: '127.0.0.1', port })
  return { ...shop, url }
}

/** The application has to know its own URLs before it listens. */
async function findPlace() {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const url = `${origin}/pay`
  return { port, url, settings: { CHECKOUT_PAGE_URL: url, BASE_URL: origin } }
}
