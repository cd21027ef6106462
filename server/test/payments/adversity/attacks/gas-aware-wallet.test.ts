/**
 * Attack: a contract wallet accepts a signature only while more gas is left than the settler's send has. The
 * simulation has that much gas, so the settler sends every such payment and pays for the revert. The signatures cost
 * nothing.
 * What should hold: a payment that would revert with the gas of its send is never sent.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newPayer } from '../../../support/chain/evm-payment.ts'
import { openDriven } from '../driven.ts'
import { placeGasAwareWallet } from './support/gas-aware-wallet.ts'
import { presentAny } from './support/present.ts'

/** Twice the gas limit of a contract wallet's send. */
const gasMin = 1_000_000
const shop = await openDriven()
const [lane = assert.fail()] = shop.engine.lanes

test('a signature that is valid only with more gas than the send has costs the settler nothing', async () => {
  const wallet = await placeGasAwareWallet(shop.chain, gasMin)
  await shop.chain.mint(wallet, 2_000_000n)
  await shop.idle()
  const { address } = lane.signer
  const before = await shop.chain.client.getBalance({ address })
  await presentAny(shop, [await shop.prepareOne(newPayer(), { from: wallet })])
  for (let i = 0; i < 3; i++) {
    await shop.send()
    await shop.mine()
  }
  assert.equal(before - (await shop.chain.client.getBalance({ address })), 0n, 'wei spent by the settler')
})
