import type { Address } from 'viem'
import { openSigner } from '../../src/chains/evm/signer.ts'
import { insertSettler } from '../../src/payments/settlers/rows.ts'
import { makeStore, openTestApp } from './app.ts'
import { fundedKey, newPayer, openChain, type Payer, paymentHeader } from './chain.ts'
import { openClient, startWork, untilReady } from './client.ts'

/** The store's own wallet: nobody's key. */
export const payTo: Address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

/** A store on a chain of its own: HTTP application, worker and settler in this process. */
export async function openShop(
  options: {
    network?: 'LOCAL' | 'BASE_MAINNET'
    blockTimeSeconds?: number | null
    worker?: boolean
    settlers?: number
    settings?: Readonly<Record<string, string>>
  } = {},
) {
  const { network = 'LOCAL', blockTimeSeconds = 1 } = options
  const chain = await openChain({ network, blockTimeSeconds })
  const { caip2, mode } = chain.network
  const app = await openTestApp({
    NETWORKS: network,
    [`${network}_RPC_URLS`]: chain.url,
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
    ...options.settings,
  })
  const signers = Array.from({ length: options.settlers ?? 1 }, (_, i) => openSigner(fundedKey(i + 1)))
  for (const { address } of signers) await insertSettler(app.ctx.db, caip2, address, 0)
  const { key, store } = await makeStore(app.ctx, { mode, evmWallet: payTo })
  const start = () => startWork(app, signers)
  const stopWork = options.worker === false ? async () => {} : start()
  if (options.worker !== false) await untilReady(app, caip2)
  const client = openClient(app, key)

  return {
    ...app,
    chain,
    store,
    signers,
    key,
    ...client,
    startWork: start,
    stopWork,
    /** A payer with money. */
    async fund(units = 1_000_000_000n): Promise<Payer> {
      const payer = newPayer()
      await chain.mint(payer.address, units)
      return payer
    },
    /** Signs for a checkout as the stock client would. */
    sign: async (
      checkoutId: string,
      payer: Payer,
      overrides: Parameters<typeof paymentHeader>[2] = {},
    ): Promise<string> => await paymentHeader(await client.require(checkoutId), payer.key, overrides),
  }
}
