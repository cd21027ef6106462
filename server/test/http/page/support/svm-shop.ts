import { registerWallet } from '../../../../src/stores/wallets.ts'
import { openSvmShop } from '../../../payments/svm/support/shop.ts'
import { openChain } from '../../../support/chain.ts'
import { freePort } from '../../../support/free-port.ts'
import { payTo } from '../../../support/shop.ts'

export type SvmPageShop = Awaited<ReturnType<typeof openSvmPageShop>>

/** A store that is paid on Solana, and also on an EVM chain if asked, whose payment pages a browser can open. */
export async function openSvmPageShop(
  options: {
    readonly isOnEvm?: boolean
    /** On chains that say they are the public ones, and show their names. */
    readonly isLive?: boolean
    readonly worker?: boolean
  } = {},
) {
  const { isOnEvm = false, isLive = false, worker = true } = options
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/pay`
  const [svm, evm] = isLive
    ? (['SOLANA_MAINNET', 'BASE_MAINNET'] as const)
    : (['SOLANA_LOCAL', 'LOCAL'] as const)
  const shop = await openSvmShop({
    worker,
    network: svm,
    settings: {
      CHECKOUT_PAGE_URL: url,
      BASE_URL: `http://127.0.0.1:${port}`,
      ...(isOnEvm && {
        NETWORKS: `${evm},${svm}`,
        [`${evm}_RPC_URLS`]: (await openChain({ network: evm })).url,
      }),
    },
  })
  if (isOnEvm) {
    const wallet = { walletAddress: payTo, custodialType: 'NON_CUSTODIAL' } as const
    await registerWallet(shop.ctx, shop.store.id, 'EVM', wallet, shop.ctx.now())
  }
  await shop.app.listen({ host: '127.0.0.1', port })
  return { ...shop, url }
}
