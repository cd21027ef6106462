import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRails } from '../../src/payments/rails.ts'
import { startReconciling } from '../../src/payments/reconcile.ts'
import { Problem } from '../../src/problems.ts'
import { payTo } from '../support/shop.ts'
import { openRefunding, type Paid, signTyped, walletKey } from './support/refunding.ts'

const shop = await openRefunding()
const { chain, refunds } = shop
const { db } = shop.ctx
const payments = await shop.paid(5)
const next = () => payments.pop() ?? assert.fail()

const isProblem =
  (code: string, words = /./) =>
  (error: unknown) =>
    error instanceof Problem && error.code === code && words.test(error.message)

/** As if the database had been restored to a copy from before these refunds were asked for. */
async function forget({ paymentId }: Paid): Promise<void> {
  await db.transaction(async (tx) => {
    const ids = 'select id from refunds where payment_id = $1'
    await tx.query(
      `delete from credits k using refunds r where r.payment_id = $1 and k.nonce = r.nonce and k.payer = r.wallet`,
      [paymentId],
    )
    await tx.query(`delete from authorizations where refund_id in (${ids})`, [paymentId])
    await tx.query('delete from refunds where payment_id = $1', [paymentId])
    await tx.query('delete from refund_totals where payment_id = $1', [paymentId])
  })
}

async function reconcile(): Promise<void> {
  await startReconciling(shop.ctx, [openRails(shop.ctx).get(chain.network.caip2) ?? assert.fail()])
}

test('a restore between signing and sending: the refund is sent, once', async () => {
  const paid = next()
  const { id } = await refunds.signed(paid.paymentId)
  await reconcile()
  await shop.land()
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
  const moved = await chain.transferLogs({ from: payTo, to: paid.payer.address })
  assert.equal(moved.length, 1)
  // So that the next test has a restore of its own.
  await db.query('delete from restores')
})

test('what a restored database has forgotten is found on the chain, and is not paid again', async () => {
  const landed = next()
  const handedOut = next()
  const { id } = await refunds.signed(landed.paymentId, { amount: 600_000n })
  await shop.land()
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
  // Somebody keeps what was handed out, and its signature.
  const kept = await refunds.create(handedOut.paymentId)
  const prepared = await refunds.prepare(kept.id)
  const signature = await signTyped(prepared, walletKey)
  await forget(landed)
  await forget(handedOut)
  await reconcile()

  // Asked for again before the chain has been read.
  const early = await refunds.create(landed.paymentId)
  const again = await refunds.create(handedOut.paymentId)
  await assert.rejects(refunds.prepare(early.id), isProblem('unavailable', /database was restored/))
  await assert.rejects(refunds.prepare(again.id), isProblem('unavailable', /database was restored/))
  await assert.rejects(refunds.present(again.id, signature), isProblem('invalid_request', /Prepare it/))
  await shop.follow()
  await shop.pass(3_700)
  await assert.rejects(refunds.prepare(early.id), isProblem('refund_exceeds_payment', /Cancel this one/))
  assert.equal((await refunds.cancel(early.id)).status, 'CANCELED')
  await assert.rejects(
    refunds.create(landed.paymentId, { amount: 500_000n }),
    isProblem('refund_exceeds_payment', /0.4/),
  )
  const rest = await refunds.signed(landed.paymentId)
  assert.equal(rest.amount, '400000')
  await refunds.present(again.id, await refunds.sign(again.id))
  await shop.land()
  await shop.land()
  assert.equal((await refunds.read(rest.id)).status, 'COMPLETED')
  assert.equal((await refunds.read(again.id)).status, 'COMPLETED')
  for (const { payer } of [landed, handedOut]) {
    const moved = await chain.transferLogs({ from: payTo, to: payer.address })
    assert.equal(
      moved.reduce((sum, { args }) => sum + args.value, 0n),
      1_000_000n,
    )
  }
})

/** In the order in which they may be written. */
const kept = {
  refund_totals: 'payment_id = $1',
  refunds: 'payment_id = $1',
  authorizations: 'refund_id in (select id from refunds where payment_id = $1)',
  credits: 'nonce in (select nonce from refunds where payment_id = $1)',
} as const

/** What a payment's refunds have written so far. Returns how to restore it. */
async function backUp({ paymentId }: Paid): Promise<() => Promise<void>> {
  const tables = Object.entries(kept)
  const copies = await Promise.all(
    tables.map(([table, isIts]) =>
      db.query<{ row: unknown }>(`select to_json(t) as row from ${table} t where ${isIts}`, [paymentId]),
    ),
  )
  return async () => {
    await db.transaction(async (tx) => {
      for (const [table, isIts] of tables.toReversed())
        await tx.query(`delete from ${table} where ${isIts}`, [paymentId])
      for (const [i, [table]] of tables.entries())
        await tx.query(
          `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, $1)`,
          [JSON.stringify(copies[i]?.map(({ row }) => row))],
        )
    })
    await reconcile()
  }
}

test('a forgotten refund with a nonce that the restored database knows with other terms counts all the same', async () => {
  await db.query('delete from restores')
  const [ended, live] = [next(), next()]
  for (const paid of [ended, live]) {
    const first = await refunds.create(paid.paymentId)
    await refunds.prepare(first.id)
    const restore = paid === live ? await backUp(paid) : null
    await refunds.cancel(first.id)
    await shop.pass(3_700)
    assert.equal((await refunds.read(first.id)).status, 'CANCELED')
    const restoreEnded = restore ?? (await backUp(paid))
    const { id } = await refunds.signed(paid.paymentId, { amount: 600_000n })
    await shop.land()
    assert.equal((await refunds.read(id)).status, 'COMPLETED')
    await restoreEnded()
    await shop.follow()
    await shop.pass(3_700)
    if (paid === live) {
      await assert.rejects(refunds.prepare(first.id), isProblem('refund_exceeds_payment', /Cancel this one/))
      assert.equal((await refunds.cancel(first.id)).status, 'CANCELED')
    }
    await assert.rejects(
      refunds.create(paid.paymentId, { amount: 500_000n }),
      isProblem('refund_exceeds_payment', /0.4/),
    )
    const rest = await refunds.signed(paid.paymentId)
    assert.equal(rest.amount, '400000')
    await shop.land()
    await shop.land()
    assert.equal((await refunds.read(rest.id)).status, 'COMPLETED')
    const moved = await chain.transferLogs({ from: payTo, to: paid.payer.address })
    assert.equal(
      moved.reduce((sum, { args }) => sum + args.value, 0n),
      1_000_000n,
    )
    await db.query('delete from restores')
  }
})
