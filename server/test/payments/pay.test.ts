import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openShop, payTo } from '../support/shop.ts'

const shop = await openShop()

test('a signed payment is settled on the chain and answered with the completed checkout', async () => {
  const payer = await shop.fund()
  const id = await shop.create('12.34')
  const before = await shop.chain.balance(payTo)
  const answer = await shop.pay(id, await shop.sign(id, payer))
  assert.equal(answer.statusCode, 200, answer.body)
  assert.equal(answer.json().status, 'COMPLETED')
  assert.equal((await shop.chain.balance(payTo)) - before, 12_340_000n)
  const settlement = shop.settlementOf(answer)
  assert.equal(settlement.success, true)
  assert.equal(settlement.payer, payer.address)
  const receipt = await shop.chain.client.getTransactionReceipt({ hash: settlement.transaction })
  assert.equal(receipt.status, 'success')
  const seen = await shop.read(id)
  assert.equal(seen.payment.transaction, settlement.transaction)
  assert.equal(seen.payment.amount, '12340000')
})
