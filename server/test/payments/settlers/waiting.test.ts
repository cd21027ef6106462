import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readReadiness } from '../../../src/payments/settlers/readiness.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { placeGasAwareWallet } from '../adversity/attacks/support/gas-aware-wallet.ts'
import { presentAny } from '../adversity/attacks/support/present.ts'
import { openDriven } from '../adversity/driven.ts'

test('a contract wallet with many signed payments counts as the one that can be in flight, so it closes the network to nobody', async () => {
  const shop = await openDriven()
  const { caip2 } = shop.chain.network
  const waiting = async () => (await readReadiness(shop.ctx.db, caip2)).waiting
  const owner = newPayer()
  const wallets = [await placeGasAwareWallet(shop.chain, 1_000), await placeGasAwareWallet(shop.chain, 1_000)]
  await shop.chain.mint(wallets, 1_000_000_000n)
  await shop.idle()
  for (const [i, wallet] of wallets.entries()) {
    const some = await Promise.all(Array.from({ length: 10 }, () => shop.prepareOne(owner, { from: wallet })))
    assert.equal((await presentAny(shop, some)).length, 10)
    assert.equal(await waiting(), i + 1)
  }
  const ordinary = await shop.prepare(3)
  assert.equal((await presentAny(shop, ordinary)).length, 3)
  assert.equal(await waiting(), wallets.length + 3)
})
