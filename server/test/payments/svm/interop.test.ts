/** A third-party client pays over a real socket, on a chain with Solana's genesis, token and decimals. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { ExactSvmScheme } from '@x402/svm/exact/client'
import { makeLink } from '../../http/links/support/buyer.ts'
import { newLink } from '../../http/support/new-link.ts'
import { openShop } from '../../support/shop.ts'
import { send } from '../../support/store.ts'

const shop = await openShop({ network: 'SOLANA_MAINNET' })
const { chain } = shop
const base = await shop.app.listen({ host: '127.0.0.1', port: 0 })

test('the stock x402 client pays a link on Solana, with the memo of a checkout that is made of its payment', async () => {
  const payer = await chain.payer(5_000_000n)
  const before = await shop.received()
  const api = {
    call: (method: 'GET' | 'POST', path: string, body?: unknown) =>
      send(shop.app, method, path, body, { 'x-api-key': shop.key }),
  }
  const link = await makeLink(api, newLink({ priceAmount: '0.50' }))
  const client = new x402Client().register('solana:*', new ExactSvmScheme(payer, { rpcUrl: chain.url }))
  const answer = await wrapFetchWithPayment(fetch, client)(`${base}${new URL(link.url).pathname}`)
  assert.equal(answer.status, 200, await answer.clone().text())
  const { id, status } = (await answer.json()) as { id: string; status: string }
  const { data } = (await api.call('GET', `/api/v1/checkouts?linkId=${link.id}`)).json()
  assert.deepEqual([status, data.map((made: { id: string }) => made.id)], ['COMPLETED', [id]])
  assert.equal((await shop.received()) - before, 500_000n)
})

test('the stock x402 client pays a checkout on Solana and gets it back completed, with its settlement', async () => {
  const payer = await chain.payer(5_000_000n)
  const id = await shop.create('0.50')
  const before = await shop.received()
  const client = new x402Client().register(
    'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    new ExactSvmScheme(payer, { rpcUrl: chain.url }),
  )
  const answer = await wrapFetchWithPayment(fetch, client)(`${base}/api/v1/checkouts/${id}`, {
    method: 'POST',
  })
  assert.equal(answer.status, 200, await answer.clone().text())
  const checkout = (await answer.json()) as { id: string; status: string }
  assert.deepEqual([checkout.id, checkout.status], [id, 'COMPLETED'])
  const settlement = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '')
  assert.equal(settlement.success, true)
  assert.equal(settlement.network, 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp')
  assert.equal(settlement.payer, payer.address)
  assert.equal((await shop.received()) - before, 500_000n)
  assert.equal(await chain.balance(payer.address, chain.mint), 4_500_000n)
  const landed = await chain.rpc<{ meta: { err: unknown } } | null>('getTransaction', [
    settlement.transaction,
    { commitment: 'confirmed', maxSupportedTransactionVersion: 0 },
  ])
  assert.equal(landed?.meta.err, null)
})
