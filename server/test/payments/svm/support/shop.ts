import assert from 'node:assert/strict'
import type { PaymentRequired } from '@farthing/sdk'
import type { KeyPairSigner } from '@solana/kit'
import { decodePaymentResponseHeader } from '@x402/core/http'
import type { LightMyRequestResponse } from 'fastify'
import { openReadiness } from '../../../../src/payments/lanes/readiness.ts'
import { insertSettler } from '../../../../src/payments/lanes/rows.ts'
import { registerWallet } from '../../../../src/stores/wallets.ts'
import { startWorker } from '../../../../src/worker.ts'
import { makeStore, openTestApp } from '../../../support/app.ts'
import { atEnd } from '../../../support/at-end.ts'
import { until } from '../../../support/until.ts'
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
  const { caip2, chainId, mode } = chain.network
  const app = await openTestApp({
    NETWORKS: chainId,
    [`${chainId}_RPC_URLS`]: Array(chain.network.witnessesMin).fill(chain.url).join(','),
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
  const startWork = () => {
    const worker = startWorker(app.ctx, signers)
    let isStopped = false
    const stop = async () => {
      if (!isStopped) await worker.stop()
      isStopped = true
    }
    atEnd(stop)
    return stop
  }
  const untilReady = () =>
    until('payments can be settled', async () => (await openReadiness(app.ctx)(caip2)) === null)
  const stopWork = options.worker === false ? async () => {} : startWork()
  if (options.worker !== false) await untilReady()
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }

  const create = async (priceAmount = '1.00', more: object = {}): Promise<string> => {
    const payload = { orderId: 'order-1', priceAmount, priceCurrency: 'USD', ...more }
    const answer = await app.request({ method: 'POST', url: '/api/v1/checkouts', headers, payload })
    assert.equal(answer.statusCode, 201, answer.body)
    return answer.json().id
  }
  let requests = 0
  const pay = async (checkoutId: string, header?: string): Promise<LightMyRequestResponse> =>
    await app.request({
      method: 'POST',
      url: `/api/v1/checkouts/${checkoutId}`,
      // Bad payments cost their address time.
      remoteAddress: `10.0.${(++requests >> 8) % 256}.${requests % 256}`,
      ...(header !== undefined && { headers: { 'payment-signature': header } }),
    })
  const require = async (checkoutId: string): Promise<PaymentRequired> => {
    const answer = await pay(checkoutId)
    assert.equal(answer.statusCode, 402, answer.body)
    return answer.json()
  }

  return {
    ...app,
    chain,
    store,
    signers,
    key,
    create,
    pay,
    require,
    startWork,
    stopWork,
    untilReady,
    /** Signs for a checkout as the stock client would, but for the changes. */
    sign: async (checkoutId: string, payer: KeyPairSigner, changes: Changes = {}): Promise<string> =>
      await svmHeader(chain, await require(checkoutId), payer, changes),
    read: async (checkoutId: string) =>
      (await app.request({ url: `/api/v1/checkouts/${checkoutId}`, headers: { 'x-api-key': key } })).json(),
    /** What the store's wallet holds. */
    received: async (): Promise<bigint> => (await chain.balance(svmPayTo, chain.mint)) ?? 0n,
    settlementOf: (answer: LightMyRequestResponse) =>
      decodePaymentResponseHeader(String(answer.headers['payment-response'])) as {
        success: boolean
        transaction: string
        errorReason?: string
        payer: string
        network: string
      },
  }
}
