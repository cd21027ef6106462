/**
 * Attack: a payment from a contract wallet needs a separate transaction, and a lane only considers the oldest 150
 * claims. An attacker who claims more than that from a contract wallet delays every ordinary payer who comes later.
 * What should hold: an ordinary payer is settled in the next block, however many contract wallets claimed before.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newPayer } from '../../../support/chain/evm-payment.ts'
import { openDriven } from '../driven.ts'
import { placeGasAwareWallet } from './support/gas-aware-wallet.ts'
import { presentAny } from './support/present.ts'

/** More than a lane considers, by about two blocks of single transactions. */
const contractClaims = 165
const atOnce = 55
const blocksMax = 4
const shop = await openDriven()

test('an ordinary payer does not wait behind the claims of contract wallets', async () => {
  const wallet = await placeGasAwareWallet(shop.chain, 1_000)
  const owner = newPayer()
  await shop.chain.mint(wallet, 10_000_000_000n)
  await shop.idle()
  for (let claims = 0; claims < contractClaims; claims += atOnce) {
    const payments = Array.from({ length: atOnce }, () => shop.prepareOne(owner, { from: wallet }))
    await presentAny(shop, await Promise.all(payments))
  }
  const [ordinary = assert.fail()] = await presentAny(shop, await shop.prepare(1))

  let blocks = 0
  while (blocks < blocksMax && (await shop.read(ordinary.checkoutId)).status !== 'COMPLETED') {
    await shop.send()
    await shop.mine()
    blocks++
  }
  assert.equal(blocks, 1, 'blocks that the ordinary payer waited')
})
