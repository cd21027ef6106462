/** A reorganisation below what was final takes refunds back too: they are noticed, told of and booked. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hex } from 'viem'
import { bookDue } from '../../src/movements/book-due.ts'
import { booksOf, inShort } from '../movements/support/books.ts'
import { until } from '../support/until.ts'
import { openRefunding } from './support/refunding.ts'

const shop = await openRefunding()
const { chain, refunds } = shop
const { db } = shop.ctx
/** The first to be taken back with its payment is in a block of its own, above the others. */
const payments = [...(await shop.paid(3)), ...(await shop.paid(1))]

/** A refund of half of a payment of 1.00, which is final and booked. */
async function refundFinally() {
  const paid = payments.pop() ?? assert.fail()
  const { id } = await refunds.signed(paid.paymentId, { amount: 500_000n })
  await shop.land()
  const { transaction } = await refunds.read(id)
  await shop.mine(9)
  assert.equal((await refunds.read(id)).finality, 'finalized')
  return { id, paid, transaction, blockNumber: await blockOf(transaction) }
}

async function blockOf(transaction: string | null): Promise<bigint> {
  return (await chain.client.getTransactionReceipt({ hash: transaction as Hex })).blockNumber
}

/** Replaces the blocks from this one on, by as many empty ones and a few more. */
async function replaceFrom(blockNumber: bigint): Promise<void> {
  await chain.reorg(Number((await chain.client.getBlockNumber({ cacheTime: 0 })) - blockNumber) + 1)
  await shop.mine(3)
}

const linesOf = async (refundId: string) => {
  await shop.follow()
  while (await bookDue(shop.work));
  return inShort((await booksOf(shop, shop.store.id)).filter((line) => line.refundId === refundId)).map(
    (line) => line.replace(/ of \d+$/, ' of'),
  )
}
const took = ['refund -500000 -0.50', 'refund_reversed 500000 0.50 of']

test('a final payment and its final refund that the chain takes back together are both reversed', async () => {
  const { id, paid } = await refundFinally()
  const credited = async () => {
    const [row] = await db.query<{ transaction: string; is_gone: boolean }>(
      `select transaction_hash as transaction, orphaned_at is not null as is_gone from credits where payment_id = $1
       order by orphaned_at desc nulls first limit 1`,
      [paid.paymentId],
    )
    return row ?? assert.fail()
  }
  await replaceFrom(await blockOf((await credited()).transaction))
  assert.equal((await credited()).is_gone, true)
  assert.equal((await refunds.read(id)).status, 'SENT')
  assert.deepEqual(await linesOf(id), took)
  assert.equal(await refunds.reserved(paid.paymentId), 500_000n)
  assert.equal((await refunds.told(id)).at(-1), 'refund.reorged')
  // Skips the wait until both are sent again.
  await db.query('update broadcasts set last_sent_at = null')
  await shop.land()
  await shop.mine(9)
  assert.equal((await credited()).is_gone, false)
  assert.equal((await refunds.read(id)).finality, 'finalized')
  assert.deepEqual(await linesOf(id), [...took, took[0]])
})

test('a final refund that the chain takes back is reversed, and the same bytes complete and book it again', async () => {
  const { id, paid, transaction, blockNumber } = await refundFinally()
  assert.deepEqual(await linesOf(id), took.slice(0, 1))
  await replaceFrom(blockNumber)
  const taken = await refunds.read(id)
  assert.deepEqual([taken.status, taken.finality, taken.completedAt], ['SENT', null, null])
  assert.equal(await refunds.reserved(paid.paymentId), 500_000n)
  assert.deepEqual(await linesOf(id), took)
  // Skips the wait until it is sent again.
  await db.query('update broadcasts set last_sent_at = null')
  await shop.land()
  assert.equal((await refunds.read(id)).transaction, transaction)
  assert.deepEqual(await linesOf(id), took, 'not final yet')
  await shop.mine(9)
  assert.equal((await refunds.read(id)).finality, 'finalized')
  assert.deepEqual(await linesOf(id), [...took, took[0]])
  const once = ['refund.completed', 'refund.finalized']
  assert.deepEqual(await refunds.told(id), ['refund.requested', ...once, 'refund.reorged', ...once])
})

test('a refund whose last change is just being written is watched again all the same', async () => {
  const { id } = await refundFinally()
  const [refund] = await db.query<{ nonce: string }>('select nonce from refunds where id = $1', [id])
  const orphan = 'update credits set orphaned_at = clock() where nonce = $1 and orphaned_at is null'
  await db.query('update refunds set is_watched = true where id = $1', [id])
  let isOver = false
  let taking: Promise<unknown> = Promise.resolve()
  await db.transaction(async (tx) => {
    await tx.query('update refunds set is_watched = false where id = $1', [id])
    taking = db.query(orphan, [refund?.nonce]).then(() => {
      isOver = true
    })
    await until('it is taken back, or waits', async () => {
      const waiting = await db.query(
        "select 1 as one from pg_stat_activity where wait_event_type = 'Lock' and query = $1",
        [orphan],
      )
      return isOver || waiting.length > 0
    })
  })
  await taking
  const rows = await db.query('select is_watched as "isWatched" from refunds where id = $1', [id])
  assert.deepEqual(rows, [{ isWatched: true }])
  // One that ended is looked at once more, and stays as it is.
  await db.query('update credits set orphaned_at = null where nonce = $1', [refund?.nonce])
  await shop.follow()
  for (const status of ['FAILED', 'CANCELED']) {
    const write = `update refunds set status = $2, ended_at = case when $2 in ('FAILED', 'CANCELED') then clock() end, is_watched = $3 where id = $1`
    await db.query(write, [id, status, false])
    await db.query(orphan, [refund?.nonce])
    await refunds.watch()
    const ended = await db.query('select status, is_watched as "isWatched" from refunds where id = $1', [id])
    assert.deepEqual(ended, [{ status, isWatched: false }])
    await db.query('update credits set orphaned_at = null where nonce = $1', [refund?.nonce])
  }
})

test('a final refund that the chain takes back and that can never be paid has failed, and counts no more', async () => {
  const { id, paid, blockNumber } = await refundFinally()
  await replaceFrom(blockNumber)
  await shop.pass(3_700)
  assert.equal((await refunds.read(id)).status, 'FAILED')
  assert.equal(await refunds.reserved(paid.paymentId), 0n)
  assert.deepEqual(await linesOf(id), took)
  const told = await refunds.told(id)
  assert.deepEqual(told.slice(0, 3), ['refund.requested', 'refund.completed', 'refund.finalized'])
  assert.equal(told.at(-1), 'refund.failed')
})
