/** Third-party clients pay over a real socket, on a chain with Base's id, token and domain. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { getAddress, type Hex, toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import { insertSettler } from '../../../src/payments/settlers/rows.ts'
import { startWorker } from '../../../src/worker.ts'
import { makeStore, openTestApp } from '../../support/app.ts'
import { atEnd } from '../../support/at-end.ts'
import { fundedKey } from '../../support/chain/evm.ts'
import { newPayer, type Payer } from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'
import { payTo } from '../../support/shop.ts'
import { untilReady } from '../../support/watch.ts'

const chain = await openChain({ network: 'BASE_MAINNET', blockTimeSeconds: 1 })
const port = await findPort()
const base = `http://127.0.0.1:${port}`
const farthing = await openTestApp({
  BASE_URL: base,
  CHECKOUT_PAGE_URL: `${base}/c`,
  NETWORKS: 'BASE_MAINNET',
  // Two are required; here both are the same node.
  BASE_MAINNET_RPC_URLS: `${chain.url},${chain.url}`,
  ECB_RATES_URL: '',
  EXCHANGE_RATES_URL: '',
})
await farthing.app.listen({ host: '127.0.0.1', port })
const signer = openSigner(fundedKey(1))
await insertSettler(farthing.ctx.db, 'eip155:8453', signer.address, 0)
const { key } = await makeStore(farthing.ctx, { mode: 'live', evmWallet: payTo })
const worker = startWorker(farthing.ctx, [signer])
atEnd(() => worker.stop())
await untilReady(farthing)

type Created = { readonly id: string; readonly checkoutUrl: string }

async function create(priceAmount: string): Promise<Created> {
  const answer = await fetch(`${base}/api/v1/checkouts`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ orderId: 'order-1', priceAmount, priceCurrency: 'USD' }),
  })
  assert.equal(answer.status, 201)
  return (await answer.json()) as Created
}

async function fund(): Promise<Payer> {
  const payer = newPayer()
  await chain.mint(payer.address, 1_000_000_000n)
  return payer
}

/** The stock client as its README sets it up. `send` may replace the network. */
function stockClient(payer: Payer, cap?: string, send: typeof fetch = fetch): typeof fetch {
  const client = new x402Client().register('eip155:8453', new ExactEvmScheme(privateKeyToAccount(payer.key)))
  if (cap) client.setSpendControls({ maxAmountPerPayment: cap })
  return wrapFetchWithPayment(send, client)
}

async function paidBy(payer: Payer): Promise<bigint[]> {
  return (await chain.transferLogs({ from: payer.address, to: payTo })).map(({ args }) => args.value)
}

async function assertPaid(answer: Response, id: string, payer: Payer): Promise<Hex> {
  assert.equal(answer.status, 200, await answer.clone().text())
  const checkout = (await answer.json()) as { id: string; status: string }
  assert.deepEqual([checkout.id, checkout.status], [id, 'COMPLETED'])
  const settlement = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '')
  assert.equal(settlement.success, true)
  assert.equal(settlement.network, 'eip155:8453')
  assert.equal(settlement.payer, payer.address)
  const hash = settlement.transaction as Hex
  assert.equal((await chain.client.getTransactionReceipt({ hash })).status, 'success')
  return hash
}

test('the stock x402 client pays at the API URL and gets the completed checkout with its settlement', async () => {
  const payer = await fund()
  const { id } = await create('0.50')
  const answer = await stockClient(payer)(`${base}/api/v1/checkouts/${id}`, { method: 'POST' })
  await assertPaid(answer, id, payer)
  assert.deepEqual(await paidBy(payer), [500_000n])
})

test('the stock x402 client pays at checkoutUrl, the address that people open', async () => {
  const payer = await fund()
  const { id, checkoutUrl } = await create('0.25')
  assert.equal(checkoutUrl, `${base}/c/${id}`)
  await assertPaid(await stockClient(payer)(checkoutUrl, { method: 'POST' }), id, payer)
  assert.deepEqual(await paidBy(payer), [250_000n])
})

test('above one dollar the stock client refuses on its own, and pays once its spendControls allow the price', async () => {
  const payer = await fund()
  const { id } = await create('49.99')
  const url = `${base}/api/v1/checkouts/${id}`
  await assert.rejects(stockClient(payer)(url, { method: 'POST' }), /spendControls\.maxAmountPerPayment/)
  assert.deepEqual(await paidBy(payer), [])
  await assertPaid(await stockClient(payer, '$50')(url, { method: 'POST' }), id, payer)
  assert.deepEqual(await paidBy(payer), [49_990_000n])
})

test('a stock client that calls again after paying gets the same settlement and does not pay again', async () => {
  const payer = await fund()
  const { id, checkoutUrl } = await create('0.10')
  const pay = stockClient(payer)
  const first = await assertPaid(await pay(checkoutUrl, { method: 'POST' }), id, payer)
  for (const url of [checkoutUrl, `${base}/api/v1/checkouts/${id}`])
    assert.equal(await assertPaid(await pay(url, { method: 'POST' }), id, payer), first)
  assert.deepEqual(await paidBy(payer), [100_000n])
})

test('a stock client that lost the answer to its payment starts over and still pays only once', async () => {
  const payer = await fund()
  const { id } = await create('0.20')
  const url = `${base}/api/v1/checkouts/${id}`
  const losing: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    const answer = await fetch(request.clone())
    if (request.headers.has('payment-signature')) throw new TypeError('the connection broke')
    return answer
  }
  await assert.rejects(stockClient(payer, undefined, losing)(url, { method: 'POST' }), /connection broke/)
  await assertPaid(await stockClient(payer)(url, { method: 'POST' }), id, payer)
  assert.deepEqual(await paidBy(payer), [200_000n])
})

test('two stock clients at one checkout: one pays, the other gets 409 and keeps its money', async () => {
  const payers = [await fund(), await fund()]
  const { id, checkoutUrl } = await create('0.30')
  const answers = await Promise.all(
    payers.map((payer) => stockClient(payer)(checkoutUrl, { method: 'POST' })),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
  const [winner, loser] = answers[0]?.status === 200 ? payers : payers.toReversed()
  assert(winner && loser)
  await assertPaid(answers.find(({ status }) => status === 200) ?? Response.error(), id, winner)
  assert.deepEqual([await paidBy(winner), await paidBy(loser)], [[300_000n], []])
})

test('a client written from the interface document alone pays with nothing but base64, JSON and EIP-712', async () => {
  const payer = await fund()
  const account = privateKeyToAccount(payer.key)
  const { id } = await create('3.21')
  const url = `${base}/api/v1/checkouts/${id}`

  const asked = await fetch(url, { method: 'POST' })
  assert.equal(asked.status, 402)
  const required = JSON.parse(Buffer.from(asked.headers.get('payment-required') ?? '', 'base64').toString())
  assert.deepEqual(await asked.json(), required)
  const [accepted] = required.accepts

  const authorization = {
    from: account.address,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1_000) + accepted.maxTimeoutSeconds),
    nonce: toHex(randomBytes(32)),
  }
  const signature = await account.signTypedData({
    domain: {
      name: accepted.extra.name,
      version: accepted.extra.version,
      chainId: Number.parseInt(accepted.network.split(':')[1], 10),
      verifyingContract: getAddress(accepted.asset),
    },
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message: {
      ...authorization,
      value: BigInt(authorization.value),
      validAfter: 0n,
      validBefore: BigInt(authorization.validBefore),
    },
  })
  const proof = { x402Version: 2, accepted, payload: { signature, authorization } }
  const paid = await fetch(url, {
    method: 'POST',
    headers: { 'PAYMENT-SIGNATURE': Buffer.from(JSON.stringify(proof)).toString('base64') },
  })
  await assertPaid(paid, id, payer)
  assert.deepEqual(await paidBy(payer), [3_210_000n])
})

/** Finds a free port in advance, because BASE_URL must be known before anything listens. */
async function findPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
