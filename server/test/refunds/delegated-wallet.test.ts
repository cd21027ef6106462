import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hex } from 'viem'
import { payTo } from '../support/shop.ts'
import { openRefunding } from './support/refunding.ts'

/** How many seconds a refund that is handed out now can be used, with this code at the store's wallet. */
async function windowWith(bytecode: Hex): Promise<number> {
  const shop = await openRefunding()
  const [payment = assert.fail()] = await shop.paid(1)
  await shop.chain.client.setCode({ address: payTo, bytecode })
  const { id } = await shop.refunds.create(payment.paymentId)
  const { expiresAt } = await shop.refunds.prepare(id)
  return (new Date(expiresAt).getTime() - Date.now()) / 1_000
}

test('a wallet that has delegated itself gets the window of an ordinary one, since it may be one when a database is restored', async () => {
  const seconds = await windowWith(`0xef0100${'11'.repeat(20)}`)
  assert(seconds > 3_000 && seconds <= 3_600, String(seconds))
})

test('a contract, which stays one, gets a week', async () => {
  const seconds = await windowWith(`0x${'5b'.repeat(45)}00`)
  assert(seconds > 6 * 86_400, String(seconds))
})
