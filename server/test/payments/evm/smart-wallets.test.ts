/** Wallets that are contracts, as people have them: each pays with the signatures that its own clients make. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contractGas } from '../../../src/chains/evm/simulate.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import {
  deploySafe,
  deployWallet,
  foreseePasskeyWallet,
  foreseeSafe,
  type SmartWallet,
} from '../../support/chain/smart-wallets.ts'
import { openShop } from '../../support/shop.ts'
import { assertPaid, assertRefused } from '../../support/watch.ts'

const shop = await openShop()
const { chain } = shop
await deploySafe(chain)

const undeployed = 'invalid_exact_evm_payload_undeployed_smart_wallet'
const owners = (count: number) => Array.from({ length: count }, newPayer)
const addresses = (count: number) => owners(count).map(({ address }) => address)
const sign = async (id: string, { address, signTyped }: SmartWallet) =>
  await shop.sign(id, newPayer(), { from: address, signTyped })

const wallets: readonly (readonly [string, SmartWallet, reason?: string])[] = [
  // Its signature has the form of an ordinary wallet's.
  ['a Safe with one owner', await foreseeSafe(chain, owners(1), 1), 'invalid_exact_evm_signature'],
  ['a Safe of which two of three owners sign', await foreseeSafe(chain, owners(3), 2)],
  ['a Safe of which five of seven owners sign', await foreseeSafe(chain, owners(7), 5)],
  ['a wallet with Coinbase’s signatures by a key', await foreseePasskeyWallet(chain, newPayer())],
  [
    'a wallet with Coinbase’s signatures by a passkey, its third owner',
    await foreseePasskeyWallet(chain, 'passkey', addresses(2)),
  ],
]

for (const [name, wallet, reason = undeployed] of wallets)
  test(`${name} is told to make a transaction first while it is not deployed, and pays once it is`, async (t) => {
    const { address } = wallet
    await chain.mint(address, 5_000_000n)
    const id = await shop.create()
    const header = await sign(id, wallet)
    const refused = await shop.pay(id, header)
    assertRefused(shop, refused, reason)
    const { errorMessage = '' } = shop.settlementOf(refused)
    for (const words of [
      address,
      /any transaction from it/,
      /send the same payment again/,
      /Nothing was charged/,
    ])
      assert.match(errorMessage, new RegExp(words))

    await deployWallet(chain, wallet)
    const paid = await shop.pay(id, header)
    assertPaid(paid)
    const { transaction, payer } = shop.settlementOf(paid)
    assert.equal(payer, address)
    assert.equal(await chain.balance(address), 4_000_000n)
    const { gasUsed } = await chain.client.getTransactionReceipt({ hash: transaction })
    t.diagnostic(`${gasUsed} gas`)
    assert(gasUsed < contractGas)

    // Now that it is deployed, its clients no longer wrap what it signs.
    const next = await shop.create()
    assertPaid(await shop.pay(next, await sign(next, wallet)))
    assert.equal(await chain.balance(address), 3_000_000n)
  })

test('what too few owners of a Safe sign, or another wallet’s owner, pays nothing', async () => {
  const [all, one] = [owners(3), newPayer()]
  const safe = await foreseeSafe(chain, all, 2)
  const passkeys = await foreseePasskeyWallet(chain, 'passkey')
  for (const wallet of [safe, passkeys]) {
    await chain.mint(wallet.address, 5_000_000n)
    await deployWallet(chain, wallet)
  }
  const { signTyped: byOneOwner } = await foreseeSafe(chain, all, 1)
  const { signTyped: byStranger } = await foreseePasskeyWallet(chain, one)
  const id = await shop.create()
  for (const { address, signTyped } of [
    { address: safe.address, signTyped: byOneOwner },
    { address: passkeys.address, signTyped: byStranger },
  ]) {
    const header = await shop.sign(id, one, { from: address, signTyped })
    const refused = await shop.pay(id, header)
    assert.equal(refused.statusCode, 402, refused.body)
    assert.equal(await chain.balance(address), 5_000_000n)
  }
})
