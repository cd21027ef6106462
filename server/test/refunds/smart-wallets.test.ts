/** Contract wallets as people have them, on both sides of a refund. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TypedDataDefinition } from 'viem'
import { newPayer } from '../support/chain/evm-payment.ts'
import {
  deploySafe,
  deployWallet,
  foreseePasskeyWallet,
  foreseeSafe,
} from '../support/chain/smart-wallets.ts'
import { openRefunding } from './support/refunding.ts'

const shop = await openRefunding()
const { chain, refunds } = shop
await deploySafe(chain)

const safe = async () => await foreseeSafe(chain, [newPayer(), newPayer(), newPayer()], 2)
const withPasskey = async () => await foreseePasskeyWallet(chain, 'passkey')
const withKey = async () => await foreseePasskeyWallet(chain, newPayer())

for (const [from, open, to, openStores] of [
  ['a Safe', safe, 'a store that has Coinbase’s signatures by a passkey', withPasskey],
  ['a wallet with Coinbase’s signatures by a passkey', withPasskey, 'a store that has a Safe', safe],
  ['a wallet with Coinbase’s signatures by a key', withKey, 'a store that has such a wallet', withKey],
] as const)
  test(`what ${from} has paid goes back to it, signed by ${to}`, async () => {
    const [buyer, store] = [await open(), await openStores()]
    for (const wallet of [buyer, store]) await deployWallet(chain, wallet)
    await chain.mint(buyer.address, 5_000_000n)
    await shop.payTo(store.address)
    const { address, signTyped } = buyer
    const paymentId = await shop.payment(newPayer(), { from: address, signTyped })
    assert.deepEqual(
      [await chain.balance(address), await chain.balance(store.address)],
      [4_000_000n, 1_000_000n],
    )

    const { id } = await refunds.create(paymentId)
    const prepared = await refunds.prepare(id)
    assert('typedData' in prepared)
    const signature = await store.signTyped(prepared.typedData as TypedDataDefinition)
    assert.equal((await refunds.present(id, signature)).status, 'SIGNED')
    await shop.land()
    const { status, recipient } = await refunds.read(id)
    assert.deepEqual([status, recipient?.toLowerCase()], ['COMPLETED', address.toLowerCase()])
    assert.deepEqual([await chain.balance(address), await chain.balance(store.address)], [5_000_000n, 0n])
  })
