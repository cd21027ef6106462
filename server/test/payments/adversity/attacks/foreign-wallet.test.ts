/**
 * Attack: a store registers the wallet of another store, even if only for a moment. From then on, payments to that
 * wallet that match no checkout show up in the wrong store only.
 * What should hold: the owner of a wallet keeps seeing its payments, and no other store does.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { registerWallet, retireWallet } from '../../../../src/stores/wallets.ts'
import { makeStore } from '../../../support/app.ts'
import { operator } from '../../../support/operator.ts'
import { payTo } from '../../../support/shop.ts'
import { openHandShop, paymentBy, transfer } from '../../transfers/support/hand-transfers.ts'

const shop = await openHandShop()

test('an unmatched payment stays with the owner of the wallet after another store registered that wallet', async () => {
  assert(
    await paymentBy(shop, await transfer(shop, 25_123_456n)),
    'the owner sees payments before the attack',
  )
  const other = await makeStore(shop.ctx, { mode: 'test', evmWallet: null })
  const input = { walletAddress: payTo, custodialType: 'NON_CUSTODIAL' } as const
  const { id } = await registerWallet(
    shop.ctx,
    other.store.id,
    operator,
    { family: 'EVM', ...input },
    shop.ctx.now(),
  )
  await retireWallet(shop.ctx, other.store.id, operator, id, shop.ctx.now())

  const hash = await transfer(shop, 25_123_457n)
  const seen = {
    byOwner: Boolean(await paymentBy(shop, hash)),
    byOther: Boolean(await paymentBy({ ...shop, key: other.key }, hash)),
  }
  assert.deepEqual(seen, { byOwner: true, byOther: false })
})
