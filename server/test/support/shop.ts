import assert from 'node:assert/strict'
import type { KeyPairSigner } from '@solana/kit'
import type { Address } from 'viem'
import { openSigner } from '../../src/chains/evm/signer.ts'
import { insertSettler } from '../../src/payments/settlers/rows.ts'
import { registerWallet } from '../../src/stores/wallets.ts'
import type { startWorker } from '../../src/worker.ts'
import { makeStore, openTestApp } from './app.ts'
import { type EvmOptions, fundedKey, openEvm, type TestChain } from './chain/evm.ts'
import { newPayer, type Payer, paymentHeader } from './chain/evm-payment.ts'
import { isSvm } from './chain/open.ts'
import { newSettler, openSvm, type SvmOptions, type TestSettler, type TestSvm } from './chain/svm.ts'
import { type Changes, svmHeader } from './chain/svm-payment.ts'
import { openClient, startWork, untilReady } from './client.ts'
import { operator } from './operator.ts'

/** The store's wallet on EVM chains; no test holds its key. */
export const payTo: Address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
/** The store's wallet on Solana: 32 bytes of 2, for which no key is known. */
export const svmPayTo = '8qbHbw2BbbTHBW1sbeqakYXVKRQM8Ne7pLK7m6CVfeR'

type Options = {
  readonly worker?: boolean
  readonly settlers?: number
  readonly settings?: Readonly<Record<string, string>>
  /** Nodes between the service and the chain; without them, the service reaches the chain itself. */
  readonly nodes?: readonly { readonly url: string; target: string }[]
}
export type ShopOptions = EvmOptions & Options
export type SvmShopOptions = SvmOptions &
  Options & {
    readonly lamports?: bigint
    /** The store's wallet, if its key is needed. */
    readonly payTo?: string
  }

export type Shop = Awaited<ReturnType<typeof openEvmShop>>
export type SvmShop = Awaited<ReturnType<typeof openSvmShop>>

/**
 * A store on its own chain, with the HTTP application, a worker and settlers in this process. The network (LOCAL by
 * default) determines the chain's family.
 */
export function openShop(options?: ShopOptions): Promise<Shop>
export function openShop(options: SvmShopOptions): Promise<SvmShop>
export function openShop(options: ShopOptions | SvmShopOptions = {}): Promise<Shop | SvmShop> {
  return isSvm(options) ? openSvmShop(options) : openEvmShop(options)
}

async function openEvmShop(options: ShopOptions) {
  const chain = await openEvm({ blockTimeSeconds: 0.2, ...options })
  const signers = Array.from({ length: options.settlers ?? 1 }, (_, i) => openSigner(fundedKey(i + 1)))
  const shop = await openOn(chain, { ...options, signers, payTo })
  return {
    ...shop,
    /** Creates a payer with money. */
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
    ): Promise<string> => await paymentHeader(await shop.require(checkoutId), payer.key, overrides),
  }
}

async function openSvmShop(options: SvmShopOptions) {
  const chain = await openSvm(options)
  const signers: TestSettler[] = []
  for (let i = 0; i < (options.settlers ?? 1); i++) signers.push(await newSettler(chain, options.lamports))
  const { payTo = svmPayTo } = options
  await chain.fund(payTo, { token: [chain.mint, 0n] })
  const shop = await openOn(chain, { ...options, signers, payTo })
  return {
    ...shop,
    settlementOf: shop.settlementOf<string>,
    untilReady: () => untilReady(shop, chain.network.caip2),
    /** Signs for a checkout as the stock client would, except for the changes. */
    sign: async (checkoutId: string, payer: KeyPairSigner, changes: Changes = {}): Promise<string> =>
      await svmHeader(chain, await shop.require(checkoutId), payer, changes),
    /** The balance of the store's wallet. */
    received: async (): Promise<bigint> => (await chain.balance(payTo, chain.mint)) ?? 0n,
  }
}

/** The parts that do not depend on the family. */
async function openOn<
  Chain extends TestChain | TestSvm,
  Signers extends NonNullable<Parameters<typeof startWorker>[1]>,
>(chain: Chain, options: Options & { readonly signers: Signers; readonly payTo: string }) {
  const { signers, nodes } = options
  const { caip2, family, id, mode, witnessesMin } = chain.network
  for (const node of nodes ?? []) node.target = chain.url
  const urls = nodes?.map(({ url }) => url) ?? Array<string>(witnessesMin).fill(chain.url)
  const app = await openTestApp({
    NETWORKS: id,
    [`${id}_RPC_URLS`]: urls.map((url, i) => `node-${i + 1}=${url}`).join(','),
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
    ...options.settings,
  })
  for (const { address } of signers) await insertSettler(app.ctx.db, caip2, address, 0)
  const { key, store } = await makeStore(app.ctx, { mode, evmWallet: null })
  const wallet = { walletAddress: options.payTo, custodialType: 'NON_CUSTODIAL' } as const
  const { payable, unpayableReason } = await registerWallet(
    app.ctx,
    store.id,
    operator,
    { family, ...wallet },
    app.ctx.now(),
  )
  assert.equal(payable, true, unpayableReason ?? '')
  const start = () => startWork(app, signers)
  const stopWork = options.worker === false ? async () => {} : start()
  if (options.worker !== false) await untilReady(app, caip2)
  return { ...app, chain, store, signers, key, ...openClient(app, key), startWork: start, stopWork }
}
