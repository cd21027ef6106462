/**
 * Attack: the service finds no code at a payer's account and remembers that. The payer then delegates (EIP-7702) to
 * code that accepts the signature in simulation and burns all gas in the send, so that the whole batch reverts.
 * What should hold: one payer's code cannot use up the gas of the other payments in a batch.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { privateKeyToAccount } from 'viem/accounts'
import { fundedKey } from '../../../support/chain/evm.ts'
import { newPayer, type Payer } from '../../../support/chain/evm-payment.ts'
import { openDriven } from '../driven.ts'
import { placeGasAwareWallet } from './support/gas-aware-wallet.ts'
import { presentAny } from './support/present.ts'

/** Above the gas of any batch, below that of a simulation. */
const gasMin = 19_000_000
const honestPayers = 5
const shop = await openDriven()
const { client, domain } = shop.chain

/** Batches are ordered by payer; this address comes before nearly every other. */
function newLowPayer(): Payer {
  for (;;) {
    const payer = newPayer()
    if (payer.address.startsWith('0x00')) return payer
  }
}

async function delegate(payer: Payer): Promise<void> {
  const address = await placeGasAwareWallet(shop.chain, gasMin)
  const authorization = await privateKeyToAccount(payer.key).signAuthorization({
    address,
    chainId: domain.chainId,
    nonce: 0,
  })
  await client.sendTransaction({
    account: privateKeyToAccount(fundedKey(5)),
    to: payer.address,
    gas: 200_000n,
    authorizationList: [authorization],
    chain: null,
  })
  await shop.mine()
  assert.match(String(await client.getCode({ address: payer.address })), /^0xef0100/)
}

test('a payer who delegates to code after the first check cannot revert a batch with other payers', async () => {
  const attacker = newLowPayer()
  const refused = await shop.pay(await shop.prepareOne(attacker))
  assert.equal(refused.statusCode, 402, 'refused for lack of money, after its code was checked')
  await delegate(attacker)
  await shop.chain.mint(attacker.address, 2_000_000n)
  const honest = await shop.prepare(honestPayers)
  await presentAny(shop, [await shop.prepareOne(attacker), ...honest])

  await shop.send()
  await shop.mine()
  const read = await Promise.all(honest.map(({ checkoutId }) => shop.read(checkoutId)))
  const completed = read.filter(({ status }) => status === 'COMPLETED').length
  assert.equal(completed, honestPayers, 'honest payments completed in the first block')
})
