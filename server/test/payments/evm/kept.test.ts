/** Money whose checkout was deleted never counts again, however it is met on the chain. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hex } from 'viem'
import { openRails } from '../../../src/payments/rails.ts'
import { startReconciling } from '../../../src/payments/reconcile.ts'
import { insertPasted, pasteLimits, readPasted } from '../../../src/payments/transfers/paste.ts'
import { ageAndDelete } from '../../checkouts/retention/support/aged.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { buyers, reserve, sendUnits } from '../transfers/support/hand-transfers.ts'

const shop = await openShop()
const { chain, ctx } = shop
const { caip2 } = chain.network
await chain.mint(buyers, 10n ** 12n)

const [signed, sent] = [await shop.create(), await shop.create()]
const header = await shop.sign(signed, await shop.fund())
assert.equal((await shop.pay(signed, header)).statusCode, 200)
await sendUnits(shop, await reserve(shop, sent))
await until('both are paid', async () =>
  [await shop.read(signed), await shop.read(sent)].every(({ status }) => status === 'COMPLETED'),
)
const paid = await ctx.db.query<{ transaction_hash: Hex; block_hash: Hex; nonce: Hex | null }>(
  'select transaction_hash, block_hash, nonce from credits where orphaned_at is null order by nonce nulls last',
)
assert.equal(paid.length, 2)
await ageAndDelete(shop, [signed, sent])

/** What is known of the two payments. */
const countKnown = async () => {
  const [row] = await ctx.db.query<{ count: number }>(
    `select ((select count(*) from credits where transaction_hash = any($1))
       + (select count(*) from authorizations where nonce = any($2)))::integer as count`,
    [paid.map(({ transaction_hash }) => transaction_hash), paid.map(({ nonce }) => nonce)],
  )
  return row?.count
}

/** Lets the follower read the last hour again, as after a restore. */
async function readAgain(): Promise<void> {
  await ctx.db.query('delete from restores')
  await startReconciling(ctx, [openRails(ctx).get(caip2) ?? assert.fail()])
  await until('the blocks are read again', async () => {
    const hashes = paid.map(({ block_hash }) => block_hash)
    const read = await ctx.db.query('select 1 as one from blocks where network = $1 and hash = any($2)', [
      caip2,
      hashes,
    ])
    return read.length === new Set(hashes).size
  })
}

test('its signature pays for nothing else', async () => {
  const next = await shop.create()
  const answer = await shop.pay(next, header)
  assert([402, 409].includes(answer.statusCode), answer.body)
  assert.equal((await shop.read(next)).status, 'OPEN')
  assert.equal(await countKnown(), 0)
})

test('a buyer who names its transaction for another checkout gets nothing for it', async () => {
  for (const { transaction_hash } of paid) {
    const next = await shop.create()
    assert(await insertPasted(ctx.db, next, [caip2], transaction_hash, pasteLimits))
    await until(
      'it is looked up',
      async () => (await readPasted(ctx.db, next, transaction_hash)) !== 'looking',
    )
    assert.equal(await readPasted(ctx.db, next, transaction_hash), 'not_found')
    assert.equal((await shop.read(next)).status, 'OPEN')
  }
  assert.equal(await countKnown(), 0)
})

test('blocks that are read again after a restore bring it to nobody, and without its keys they would', async () => {
  await readAgain()
  assert.equal(await countKnown(), 0)
  await ctx.db.query('delete from kept_credits')
  await readAgain()
  await until('it would count', async () => ((await countKnown()) ?? 0) >= paid.length)
})
