/** What refunds take of a payment never exceeds it, whatever is asked for at once, and whatever a restore has forgotten. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { newId } from '../../src/ids.ts'
import { openRails } from '../../src/payments/rails.ts'
import { Problem } from '../../src/problems.ts'
import { cancelRefund } from '../../src/refunds/cancel.ts'
import { noncesOf } from '../../src/refunds/refund.ts'
import { findRefund } from '../../src/refunds/rows.ts'
import { prepareRefund } from '../../src/refunds/sign.ts'
import { watchRefunds } from '../../src/refunds/watch.ts'
import { trials } from '../payments/adversity/size.ts'
import { openTestApp } from '../support/app.ts'
import { actor, openShopOfPaid, paid } from './support/paid.ts'

const farthing = await openTestApp()
const { ctx, work, shop, openPaid, readTotals } = await openShopOfPaid(farthing)

const anyAsked = fc.record({
  amount: fc.option(fc.bigInt({ min: 10_000n, max: paid })),
  /** Few keys, so that some are asked for twice at once. */
  key: fc.option(fc.nat(2)),
  isCanceled: fc.boolean(),
})

test('whatever is asked for and canceled at once, the total is the sum of what counts and within the payment', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyAsked, { minLength: 2, maxLength: 12 }), async (wanted) => {
      const { paymentId, ask } = await openPaid()
      const outcomes = await Promise.allSettled(
        wanted.map(async ({ amount, key, isCanceled }) => {
          const idempotency = key === null ? null : { key: `${paymentId} ${key}`, bodyHash: `${amount}` }
          const { id } = await ask({ amount, idempotency })
          if (isCanceled) await cancelRefund(ctx, shop.store.id, actor, id, new Date())
          return id
        }),
      )
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') assert(outcome.reason instanceof Problem, String(outcome.reason))
      const { reserved, counted } = await readTotals(paymentId)
      assert.equal(reserved, counted)
      assert(reserved <= paid)
    }),
    { numRuns: trials(12, 500) },
  )
})

/** The transfer of a refund in one of the payment's slots, as the follower records it. */
async function landByHand(paymentId: string, slot: number, amount: bigint): Promise<void> {
  const [credit] = await ctx.db.query<{
    network: string
    asset: string
    payer: string
    nonce: string
    pay_to: string
  }>('select network, asset, payer, nonce, pay_to from credits where payment_id = $1', [paymentId])
  assert(credit)
  const { network, asset, payer, pay_to } = credit
  const nonce = noncesOf(network, asset, `${payer} ${credit.nonce}`)[slot]
  const hash = `0x${randomBytes(32).toString('hex')}`
  await farthing.ctx.db.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, nonce, pay_to, amount, disposition, first_seen_block_time, included_at)
     values ($1, $2, 0, $3, 1, clock(), $2, 0, $4, $5, $6, $7, $8, 'unmatched', clock(), clock())`,
    [network, hash, newId('pay', '00', new Date()), asset, pay_to, nonce, payer, amount.toString()],
  )
}

test('refunds that a restore has forgotten count, and a key that asks for one of them again gets it', async () => {
  const { paymentId, ask } = await openPaid()
  await landByHand(paymentId, 0, 4_000_000n)
  await landByHand(paymentId, 1, 4_000_000n)
  const idempotency = { key: `${paymentId} lost`, bodyHash: 'a' }
  const found = await ask({ amount: 4_000_000n, idempotency })
  assert.equal(found.status, 'SENT')
  assert(found.transaction)
  assert.equal((await ask({ amount: 4_000_000n, idempotency })).id, found.id)
  assert.deepEqual(await readTotals(paymentId), { reserved: 8_000_000n, counted: 8_000_000n, refunds: 2 })
  const second = await ask({ amount: 4_000_000n, idempotency: { key: `${paymentId} too`, bodyHash: 'a' } })
  assert.deepEqual([second.status, second.id !== found.id], ['SENT', true])
  const third = await ask({ amount: 4_000_000n, idempotency: { key: `${paymentId} more`, bodyHash: 'a' } })
  assert.equal(third.status, 'REQUESTED')
  await assert.rejects(ask({ amount: 1_000_000n }), { code: 'refund_exceeds_payment' })
})

test('a refund of which a restore has forgotten only the preparation is found paid, and is not paid again', async () => {
  const { paymentId, ask } = await openPaid()
  const first = await ask({ amount: 4_000_000n })
  await landByHand(paymentId, 0, 4_000_000n)
  assert.equal((await ask({ amount: 5_000_000n })).status, 'REQUESTED')
  const found = await findRefund(ctx.db, shop.store.id, first.id)
  assert.deepEqual([found?.status, found?.slot], ['SENT', 0])
  assert.deepEqual(await readTotals(paymentId), { reserved: 9_000_000n, counted: 9_000_000n, refunds: 2 })
})

test('a refund that a restore has forgotten stays SENT while its transfer is in a block that too few nodes tell of', async () => {
  const { paymentId, ask } = await openPaid()
  const first = await ask({ amount: 4_000_000n })
  await landByHand(paymentId, 0, 4_000_000n)
  await farthing.ctx.db.query('update credits set counts = false where transaction_hash = block_hash')
  const second = await ask({ amount: 4_000_000n })
  while (await watchRefunds(work, { after: '' }));
  const read = async () => (await findRefund(ctx.db, shop.store.id, first.id))?.status
  assert.equal(await read(), 'SENT')
  await assert.rejects(prepareRefund(ctx, openRails(ctx), shop.store.id, first.id), {
    code: 'refund_in_progress',
  })
  assert.equal(second.status, 'REQUESTED')
  await farthing.ctx.db.query('update credits set counts = true where transaction_hash = block_hash')
  while (await watchRefunds(work, { after: '' }));
  assert.equal(await read(), 'COMPLETED')
})
