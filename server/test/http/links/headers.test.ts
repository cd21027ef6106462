/** The terms of a link with ten ways to pay fit into headers, with and without signed offers. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { PaymentRequired } from '@farthing/sdk'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { x402Client } from '@x402/fetch'
import { toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { type EvmNetwork, networks } from '../../../src/networks.ts'
import { openTestApp } from '../../support/app.ts'
import { atEnd } from '../../support/at-end.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { openStore } from '../../support/store.ts'
import { newLink } from '../support/new-link.ts'
import { makeLink, openBuyer } from './support/buyer.ts'

const bytesMax = 12 * 1024
const ways = 10

// Ten tokens on Base: as many as there may be in some years.
const base = networks.find((network): network is EvmNetwork => network.caip2 === 'eip155:8453')
assert(base)
const assets = base.assets as EvmNetwork['assets'][number][]
for (let i = assets.length; i < ways; i++)
  assets.push({ ...(assets[0] ?? assert.fail()), address: toHex(BigInt(i), { size: 20 }) })

const folder = mkdtempSync(join(tmpdir(), 'farthing-headers-'))
atEnd(() => rmSync(folder, { recursive: true }))
const keyFile = join(folder, 'key.pem')
writeFileSync(keyFile, generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }))

/** As they go over the wire. */
function sizeOf(headers: object): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + `${name}: ${value}\r\n`.length, 0)
}

for (const isSigning of [false, true])
  test(`ten ways to pay a link or a checkout fit into 12 KiB of headers${isSigning ? ' with as many signed offers as have room' : ''}`, async () => {
    const farthing = await openTestApp({
      FIXED_RATES: 'EUR=0.857142',
      CHECKOUT_PAGE_URL: 'https://checkout.payments.some-long-name.example/pay',
      RECEIPT_KEYS_FILE: isSigning ? keyFile : '',
    })
    const shop = await openStore(farthing)
    const read = async (path: string): Promise<PaymentRequired> => {
      const answer = await farthing.request({ url: path })
      assert.equal(answer.statusCode, 402, answer.body)
      const size = sizeOf(answer.headers)
      assert(size <= bytesMax, `${size} bytes of headers`)
      const required = decodePaymentRequiredHeader(String(answer.headers['payment-required']))
      assert.deepEqual(required, answer.json())
      assert.equal(required.accepts.length, ways)
      return required as unknown as PaymentRequired
    }

    const many = await makeLink(
      shop,
      newLink({
        kind: 'many',
        priceAmount: undefined,
        minAmount: '1',
        maxAmount: '50000',
        priceCurrency: 'EUR',
      }),
    )
    const once = await makeLink(shop, newLink({ priceCurrency: 'EUR', priceAmount: '12345.67' }))
    await openBuyer(farthing.app).goOn(once)
    const { checkoutUrl } = await shop.create({ orderId: 'x'.repeat(255) })
    const counts = []
    for (const url of [`${many.url}?amount=12345.67`, once.url, checkoutUrl]) {
      const { pathname, search } = new URL(url)
      const required = await read(`${pathname}${search}`)
      const offers = required.extensions?.['offer-receipt'].info.offers ?? []
      counts.push(offers.length)
      assert.deepEqual(
        offers.map(({ acceptIndex }) => acceptIndex),
        offers.map((_, i) => i),
      )
      const client = new x402Client().register(
        'eip155:*',
        new ExactEvmScheme(privateKeyToAccount(newPayer().key)),
      )
      client.setSpendControls({ maxAmountPerPayment: '$50000' })
      const payment = await client.createPaymentPayload(required as never)
      const header = encodePaymentSignatureHeader(payment)
      assert(sizeOf({ 'payment-signature': header }) + 1_024 <= bytesMax, `${header.length} bytes`)
    }
    if (isSigning)
      assert(
        counts.every((count) => count > 0 && count < ways),
        String(counts),
      )
    else assert.deepEqual(counts, [0, 0, 0])
  })
