/** Whatever is told of money whose checkout was deleted, by whomever, it is not written again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Concern } from '../../../src/payments/credits/rows.ts'
import { writeCredits } from '../../../src/payments/credits/write.ts'
import { insertRecovered } from '../../../src/payments/reconcile.ts'
import { proveBy } from '../../../src/refunds/prove-sent.ts'
import { deleteAll, isThere, makeAged, openWork } from '../../checkouts/retention/support/aged.ts'
import { openTestApp } from '../../support/app.ts'
import { openStore } from '../../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const shop = await openStore(farthing)
const work = openWork(farthing)
const { id } = await makeAged(farthing, shop)
const { paymentId: other } = await makeAged(farthing, shop)
const [credit] = await ctx.db.query<Record<string, string>>('select * from credits where checkout_id = $1', [
  id,
])
assert(credit)
await ctx.db.query('update credits set finalized_at = null where payment_id = $1', [other])
await deleteAll(work)
assert.equal(await isThere(farthing, id), false)

const network = credit.network ?? ''
const seen = {
  asset: credit.asset ?? '',
  payer: credit.payer ?? '',
  nonce: credit.nonce ?? '',
  to: credit.pay_to ?? '',
  value: BigInt(credit.amount ?? '0'),
  transactionHash: credit.transaction_hash ?? '',
  logIndex: 0,
  position: 0,
}
const place = { hash: '0xb10c', number: 7, time: new Date() }
const write = async (concerns: readonly Concern[], plain: readonly (typeof seen)[], isWitnessed: boolean) =>
  await ctx.db.transaction((tx) =>
    writeCredits(ctx, tx, network, place, {
      concerns,
      matches: plain.map((one) => ({ seen: one, checkoutId: null, storeId: null, sender: null })),
      isWitnessed,
    }),
  )
const count = async () =>
  (
    await ctx.db.query('select 1 as one from credits where transaction_hash = $1 or block_hash = $2', [
      seen.transactionHash,
      place.hash,
    ])
  ).length

test('neither by one provider alone nor by all, in another block, without its authorization or in another transaction', async () => {
  const claim = { checkoutId: null, storeId: null, isMatch: true }
  for (const isWitnessed of [false, true]) {
    await write([{ seen, claim: null }], [], isWitnessed)
    await write([{ seen, claim }], [], isWitnessed)
    await write([{ seen: { ...seen, logIndex: 5 }, claim: null }], [], isWitnessed)
    // A reading that left out the authorization, and one that tells of its nonce elsewhere.
    await write([], [seen], isWitnessed)
    await write([{ seen: { ...seen, transactionHash: '0xe15e' }, claim: null }], [], isWitnessed)
  }
  assert.equal(await count(), 0)
})

test('an equal transfer beside it that is new counts, and so does one of another amount, payer or recipient', async () => {
  const others = [
    { ...seen, position: 1, logIndex: 1 },
    { ...seen, value: seen.value + 1n, logIndex: 2 },
    { ...seen, payer: '0x1', logIndex: 3 },
    { ...seen, to: '0x2', logIndex: 4 },
  ]
  await write([], [seen, ...others], true)
  assert.equal(await count(), others.length)
})

test('its nonce is not recorded as recovered after a restore', async () => {
  const recover = async (nonce: string) =>
    await ctx.db.transaction((tx) =>
      insertRecovered(tx, network, { seen: { ...seen, nonce }, signature: '0x00', checkoutId: null }, true),
    )
  assert.equal(await recover(seen.nonce), null)
  assert.notEqual(await recover(`0x${'9'.repeat(64)}`), null)
})

test('it proves no refund', async () => {
  const [wallet] = await ctx.db.query<{ pay_to: string }>('select pay_to from wallets where store_id = $1', [
    shop.id,
  ])
  assert(wallet)
  // The deleted payment was one from this store's wallet to the refund's recipient.
  await ctx.db.query(
    `insert into kept_credits select credit_key($1, '0x7a', $2, $3, '0xp', 1, 1), 'pay_x', 'exact'`,
    [network, seen.asset, wallet.pay_to],
  )
  await ctx.db.query(
    `with t as (
       insert into refund_totals select network, asset, 'i', payment_id, store_id, amount, 1 from credits
       where payment_id = $1 returning *
     )
     insert into refunds (id, store_id, payment_id, network, asset, identity, wallet, amount, recipient, way, status,
       version, actor, created_at, transaction_hash)
     select 'rf_1', store_id, payment_id, network, asset, identity, '0xw', 1, '0xp', 'self-sent', 'SENT', 1, '{}', clock(), '0x7a'
     from t`,
    [other],
  )
  const named = {
    ...{ id: 'rf_1' as const, storeId: shop.id, network, asset: seen.asset, recipient: '0xp', amount: 1n },
    ...{ transaction: '0x7a', createdAt: new Date(), ageSeconds: 1 },
  }
  const prove = async (transaction: string) => {
    await ctx.db.query('update refunds set transaction_hash = $1', [transaction])
    const found = { ...named, transaction } as unknown as Parameters<typeof proveBy>[2]
    return await ctx.db.transaction((tx) =>
      proveBy(ctx, tx, found, { block: '0xb', place: 3, from: '0xw', at: new Date(), logIndex: 3 }),
    )
  }
  assert.equal(await prove('0x7a'), 'credited')
  assert.equal(await prove('0x7b'), 'proven')
})
