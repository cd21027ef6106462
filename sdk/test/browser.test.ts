/** The same `pay` function in a real browser, on a page of another origin. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { PayResult, TransferTypedData } from '@farthing/sdk/pay'
import { buildSync, stop } from 'esbuild'
import { privateKeyToAccount } from 'viem/accounts'
import { openBrowser } from '../../server/test/http/page/support/browser.ts'
import { atEnd } from '../../server/test/support/at-end.ts'
import { openPaidStore } from './support/shops.ts'

test('a page of another origin pays a checkout with its own wallet', async () => {
  const shop = await openPaidStore()
  const payer = await shop.fund()
  const { checkoutUrl, id } = await shop.client.checkouts.create({
    orderId: 'order-1',
    priceAmount: '0.50',
    priceCurrency: 'USD',
  })
  const { outputFiles } = buildSync({
    entryPoints: [new URL('../src/agent/pay.ts', import.meta.url).pathname],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'farthing',
    platform: 'browser',
  })
  atEnd(stop)
  const page = await (await openBrowser()).newPage()
  // On loopback, because browsers block other pages from calling loopback; on another port, so another origin.
  const elsewhere = createServer((_request, response) => response.end('a page')).listen(0, '127.0.0.1')
  await once(elsewhere, 'listening')
  atEnd(() => elsewhere.close())
  await page.goto(`http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`)
  await page.addScriptTag({ content: outputFiles[0]?.text ?? '' })
  await page.exposeFunction('sign', async (text: string) => {
    const { message, ...rest } = JSON.parse(text) as TransferTypedData
    const { value, validAfter, validBefore } = message
    const numbers = { value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) }
    const account = privateKeyToAccount(payer.key)
    return await account.signTypedData({ ...rest, message: { ...message, ...numbers } })
  })
  const result = (await page.evaluate(`farthing.pay(${JSON.stringify(checkoutUrl)}, {
    address: ${JSON.stringify(payer.address)},
    signTypedData: (data) => sign(JSON.stringify(data, (_, value) => typeof value === 'bigint' ? String(value) : value)),
  }, { max: '0.50' })`)) as PayResult
  assert(result.outcome === 'paid', JSON.stringify(result))
  assert.deepEqual([result.checkout.id, result.payer], [id, payer.address])
  const logs = await shop.chain.transferLogs({ from: payer.address })
  assert.deepEqual(
    logs.map(({ args }) => args.value),
    [500_000n],
  )
})
