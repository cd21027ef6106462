import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Checkout, describeCheckout } from './checkout.ts'

const checkout = {
  id: 'ch_1',
  orderId: '1042',
  priceAmount: '8.00',
  priceCurrency: 'USD',
  expiresAt: new Date('2026-11-16T09:00:00.500Z'),
} as unknown as Checkout

const around = (name: string) =>
  `Checkout ch_1 of ${name}: 8.00 USD for order 1042, payable until 2026-11-16T09:00:00Z`

test('a description names the checkout, its store, price, order and end', () => {
  assert.equal(describeCheckout(checkout, 'Tea House'), around('Tea House'))
  assert.equal(describeCheckout(checkout, 'Tee & Kaffee “Zürich” 茶'), around('Tee & Kaffee “Zürich” 茶'))
})

test('a hostile order id is made plain as well', () => {
  const orderId = 'A\u2028B\u{e0041}\u200bC'
  assert.equal(
    describeCheckout({ ...checkout, orderId }, 'Tea House'),
    around('Tea House').replace('1042', 'A B C'),
  )
})

test('a hostile store name becomes one short line of text that reads in one direction', () => {
  assert.equal(describeCheckout(checkout, ' A\r\n\u0000\u001b[2J\u202eB\u2066\u2028C '), around('A [2J B C'))
  assert.equal(describeCheckout(checkout, '😀'.repeat(100)), around(`${'😀'.repeat(59)}…`))
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (name) => {
      const text = describeCheckout(checkout, name)
      assert(text.isWellFormed() && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text))
      assert([...text].length <= [...around('')].length + 60)
    }),
  )
})
