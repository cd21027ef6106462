import assert from 'node:assert/strict'
import type { PaymentRequired } from '@farthing/sdk'
import { decodePaymentResponseHeader } from '@x402/core/http'
import type { LightMyRequestResponse } from 'fastify'
import type { Address, Hex } from 'viem'
import { openSigner } from '../../src/chains/signer.ts'
import type { Context } from '../../src/context.ts'
import { openReadiness } from '../../src/payments/lanes/readiness.ts'
import { insertSettler } from '../../src/payments/lanes/rows.ts'
import { startWorker } from '../../src/worker.ts'
import { makeStore, openTestApp } from './app.ts'
import { atEnd } from './at-end.ts'
import { fundedKey, newPayer, openChain, type Payer, paymentHeader } from './chain.ts'
import { until } from './until.ts'

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
  const stopWork = options.worker === false ? async () => {} : startWork()
  if (options.worker !== false) await untilReady(app.ctx, caip2)
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }

  const create = async (priceAmount = '1.00', more: object = {}): Promise<string> => {
    const payload = { orderId: 'order-1', priceAmount, priceCurrency: 'USD', ...more }
    const answer = await app.request({ method: 'POST', url: '/api/v1/checkouts', headers, payload })
    assert.equal(answer.statusCode, 201, answer.body)
    return answer.json().id
  }
  const pay = async (checkoutId: string, header?: string): Promise<LightMyRequestResponse> =>
    await app.request({
      method: 'POST',
      url: `/api/v1/checkouts/${checkoutId}`,
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
    ): Promise<string> => await paymentHeader(await require(checkoutId), payer.key, overrides),
    read: async (checkoutId: string) =>
      (await app.request({ url: `/api/v1/checkouts/${checkoutId}`, headers: { 'x-api-key': key } })).json(),
    settlementOf: (answer: LightMyRequestResponse) =>
      decodePaymentResponseHeader(String(answer.headers['payment-response'])) as {
        success: boolean
        transaction: Hex
        errorReason?: string
        payer: string
        network: string
      },
  }
}

/** Until the worker has seen the chain and its lanes have shown themselves. */
async function untilReady(ctx: Context, caip2: string): Promise<void> {
  await until('payments can be settled', async () => (await openReadiness(ctx)(caip2)) === null)
}
