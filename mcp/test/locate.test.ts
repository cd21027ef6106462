import assert from 'node:assert/strict'
import { test } from 'node:test'
import { locateCheckout } from '../src/locate.ts'

const id = `ch_${'1'.repeat(28)}`
const urls = ['https://shop.example/farthing', 'https://pay.example']

test('a checkout is found by its id, or by its URL below one of the settings’', () => {
  const api = `https://shop.example/farthing/api/v1/checkouts/${id}`
  for (const [given, found] of [
    [id, api],
    [api, api],
    [`https://SHOP.example:443/farthing/pay/${id}?lang=de#top`, `https://shop.example/farthing/pay/${id}`],
    [`https://pay.example/${id}`, `https://pay.example/${id}`],
    [`https://pay.example/c/${id}`, `https://pay.example/c/${id}`],
  ] as const)
    assert.equal(locateCheckout(urls, given), found)
  const odd = ['HTTPS://Shop.Example:443/x/../farthing']
  assert.equal(
    locateCheckout(odd, `https://shop.example/farthing/c/${id}`),
    `https://shop.example/farthing/c/${id}`,
  )
})

test('a URL beside the settings’ is refused, however it is written', () => {
  for (const given of [
    `https://shop.example/uploads/evil/${id}`,
    `https://shop.example/${id}`,
    `https://shop.example/farthing${id}`,
    `https://shop.example/farthing-evil/${id}`,
    `https://shop.example/Farthing/${id}`,
    `https://shop.example//farthing/${id}`,
    `https://shop.example/farthing/../uploads/${id}`,
    `https://shop.example/farthing/%2e%2e/uploads/${id}`,
    `https://shop.example/farthing/..%2fuploads/${id}`,
    `https://shop.example/farthing/..%5Cuploads/${id}`,
    `https://shop.example/farthing/..;/uploads/${id}`,
    `https://shop.example/farthing/..\\uploads\\${id}`,
    `https://shop.example/farthing//uploads/${id}`,
    `https://shop.example/farthing/c/${id}/`,
    `https://shop.example:8443/farthing/c/${id}`,
    `http://shop.example/farthing/c/${id}`,
    `https://x@shop.example/farthing/c/${id}`,
    `https://:x@shop.example/farthing/c/${id}`,
    `https://shop.example@evil.example/farthing/c/${id}`,
    `https://pay.example.evil.example/${id}`,
  ])
    assert.equal(locateCheckout(urls, given), null, given)
})
