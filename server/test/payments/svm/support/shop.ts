import assert from 'node:assert/strict'
import type { KeyPairSigner } from '@solana/kit'
import { insertSettler } from '../../../../src/payments/settlers/rows.ts'
import { registerWallet } from '../../../../src/stores/wallets.ts'
import { makeStore, openTestApp } from '../../../support/app.ts'
import { openClient, startWork, untilReady } from '../../../support/client.ts'
import { type Changes, newSettler, openSvm, svmHeader, type TestSettler } from './chain.ts'

/** The store's own wallet: 32 bytes of 2, nobody's key. */
export const svmPayTo = '8qbHbw2BbbTHBW1sbeqakYXVKRQM8Ne7pLK7m6CVfeR'

export type SvmShop = Awaited<ReturnType<typeof openSvmShop>>

/** A store that is paid on Solana, on a chain of its own: HTTP application, worker and settler in this process. */
export async function openSvmShop(
  options: Parameters<typeof openSvm>[0] & {
    readonly worker?: boolean
    readonly settlers?: number
    readonly lamports?: bigint
    readonly settings?: Readonly<Record<string, string>>
  } = {},
) {
  const chain = await openSvm(options)
  const { caip2, id, mode } = chain.network
  const app = await openTestApp({
    NETWORKS: id,
    [`${id}_RPC_URLS`]: Array(chain.network.witnessesMin).fill(chain.url).join(','),
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
    ...options.settings,
  })
  const signers: TestSettler[] = []
  for (let i = 0; i < (options.settlers ?? 1); i++) signers.push(await newSettler(chain, options.lamports))
  for (const { address } of signers) await insertSettler(app.ctx.db, caip2, address, 0)
  await chain.fund(svmPayTo, { token: [chain.mint, 0n] })
  const { key, store } = await makeStore(app.ctx, { mode, evmWallet: null })
  const wallet = await registerWallet(
    app.ctx,
    store.id,
    'SOLANA',
    { walletAddress: svmPayTo, custodialType: 'NON_CUSTODIAL' },
    app.ctx.now(),
  )
  assert.equal(wallet.payable, true, wallet.unpayableReason ?? '')
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
    settlementOf: client.settlementOf<string>,
    startWork: start,
    stopWork,
    untilReady: () => untilReady(app, caip2),
    /** Signs for a checkout as the stock client would, but for the changes. */
    sign: async (checkoutId: string, payer: KeyPairSigner, changes: Changes = {}): Promise<string> =>
      await svmHeader(chain, await client.require(checkoutId), payer, changes),
    /** What the store's wallet holds. */
    received: async (): Promise<bigint> => (await chain.balance(svmPayTo, chain.mint)) ?? 0n,
  }
}
