/**
 * Attack: a buyer pays the store's wallet through another service, with a nonce that isn't bound to a checkout. A
 * thief copies the authorization from the pending transaction and presents it for their own checkout of the same
 * price.
 * What should hold: a transfer that someone else sent doesn't pay for the checkout of the person who copied it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeTransfer, newPayer } from '../../../support/chain/evm-payment.ts'
import { openDriven } from '../driven.ts'
import { presentAny } from './support/present.ts'

const shop = await openDriven()

test('an authorization that is already in the pool does not complete a checkout for someone who copied it', async () => {
  const victim = newPayer()
  await shop.chain.mint(victim.address, 1_000_000n)
  await shop.follow()
  const copied = await shop.prepareOne(victim)
  await shop.submit([{ to: shop.chain.token, data: encodeTransfer(copied.signed) }], {
    maxFeePerGas: 100_000_000_000n,
    maxPriorityFeePerGas: 1_000_000_000n,
  })

  await presentAny(shop, [copied])
  await shop.send()
  await shop.mine()
  assert.equal(await shop.chain.balance(victim.address), 0n)
  assert.notEqual((await shop.read(copied.checkoutId)).status, 'COMPLETED')
})
