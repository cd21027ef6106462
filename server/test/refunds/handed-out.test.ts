/** What was handed out to be signed counts, and stays as it is, until it is dead. Without a chain. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { Refund } from '@farthing/sdk'
import { applyDecisions } from '../../src/checkouts/payments/apply-decisions.ts'
import type { Database, Transaction } from '../../src/database/db.ts'
import { newId } from '../../src/ids.ts'
import { claimHandOut, writeHandOut } from '../../src/payments/hand-outs.ts'
import { cancelRefund } from '../../src/refunds/cancel.ts'
import { changeRefund, type NewFacts } from '../../src/refunds/change.ts'
import { noncesOf } from '../../src/refunds/refund.ts'
import { findRefund, lockRefund } from '../../src/refunds/rows.ts'
import { watchRefunds } from '../../src/refunds/watch.ts'
import { openTestApp } from '../support/app.ts'
import { creditByHand } from '../support/by-hand.ts'
import { actor, openShopOfPaid, paid } from './support/paid.ts'

const farthing = await openTestApp()
const { ctx, work, shop, openPaid, readTotals } = await openShopOfPaid(farthing)
const storeId = shop.store.id

async function orderOf(wire: Refund, endedIds: readonly string[] = []) {
  const refund = await findRefund(ctx.db, storeId, wire.id)
  assert(refund)
  const { id, network, asset, wallet, identity, amount, recipient } = refund
  const nonces = noncesOf(network, asset, identity)
  const order = { refundId: id, storeId, asset, wallet, recipient: recipient ?? '', amount, nonces }
  return { id, network, order: { ...order, taken: null, endedIds } }
}

async function change(tx: Transaction, id: string, facts: NewFacts): Promise<void> {
  const refund = await lockRefund(tx, storeId, id)
  assert(refund)
  await changeRefund(ctx, tx, refund, facts, { actor: null, now: new Date() })
}

/** Hands a refund out as prepare does, with the payment's nonce of this slot. Null if the nonce is not free. */
async function handOut(wire: Refund, validBefore: bigint, slot = 0, endedIds: readonly string[] = []) {
  const { id, network, order } = await orderOf(wire, endedIds)
  const nonce = order.nonces[slot] ?? ''
  return await ctx.db.transaction(async (tx) => {
    const window = { nonce, validBefore, renewedBefore: validBefore - 1n, isContract: false }
    const written = await writeHandOut(tx, network, order, window)
    if (written) await change(tx, id, { handOut: { slot, nonce } })
    return written
  })
}

async function sign(wire: Refund, validBefore: bigint, to?: Refund): Promise<boolean> {
  const { id, network, order } = await orderOf(wire)
  const { asset, wallet, recipient, amount, nonces } = order
  const authorization = {
    ...{
      from: wallet,
      to: recipient,
      value: amount,
      validAfter: 0n,
      validBefore,
      nonce: nonces[0] as `0x${string}`,
    },
  }
  const signed = { asset, authorization, signature: '0x01', isContract: false } as const
  return await ctx.db.transaction(async (tx) => {
    const isClaimed = await claimHandOut(tx, network, to?.id ?? id, signed)
    if (isClaimed) await change(tx, id, { signedAt: 'now' })
    return isClaimed
  })
}

/** As the follower and the proofs of death write it. */
async function die(wire: Refund, reason = 'authorization_expired'): Promise<void> {
  await farthing.ctx.db.query(
    `update authorizations set state = 'dead', reason = $2, resolved_at = clock() where refund_id = $1`,
    [wire.id, reason],
  )
}

async function land(wire: Refund, change: { to?: string; amount?: bigint } = {}): Promise<void> {
  const { network, order } = await orderOf(wire)
  const { asset, wallet, recipient, amount, nonces } = order
  const hash = `0x${randomBytes(32).toString('hex')}`
  await farthing.ctx.db.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash, position,
       asset, payer, nonce, pay_to, amount, disposition, first_seen_block_time, included_at, witnessed_at)
     values ($1, $2, 0, $3, 1, clock(), $2, 0, $4, $5, $6, $7, $8, 'unmatched', clock(), clock(), clock())`,
    [
      network,
      hash,
      newId('pay', '00', new Date()),
      asset,
      wallet,
      nonces[0],
      change.to ?? recipient,
      (change.amount ?? amount).toString(),
    ],
  )
}

async function statusOf(wire: Refund): Promise<string> {
  while (await watchRefunds(work, { after: '' }));
  return (await findRefund(ctx.db, storeId, wire.id))?.status ?? ''
}

const soon = 2_000_000_000n

test('a refund that is canceled after it was handed out counts until that is dead', async () => {
  const { paymentId, ask } = await openPaid()
  const refund = await ask()
  assert(await handOut(refund, soon))
  const canceled = await cancelRefund(ctx, storeId, actor, refund.id, new Date())
  assert.deepEqual([canceled.status, canceled.isCanceling], ['REQUESTED', true])
  assert.equal(await statusOf(refund), 'REQUESTED')
  assert.equal((await readTotals(paymentId)).reserved, paid)
  await assert.rejects(ask({ amount: 1_000_000n }), { code: 'refund_exceeds_payment' })
  await die(refund)
  assert.equal(await statusOf(refund), 'CANCELED')
  assert.equal((await readTotals(paymentId)).reserved, 0n)
  assert.equal((await shop.events()).filter(({ type }) => type === 'refund.canceled').length, 1)
})

test('one that is canceled and lands all the same is COMPLETED, and CANCELED if the chain takes it back for good', async () => {
  const { paymentId, ask } = await openPaid()
  const refund = await ask()
  await handOut(refund, soon)
  await cancelRefund(ctx, storeId, actor, refund.id, new Date())
  await land(refund)
  assert.equal(await statusOf(refund), 'COMPLETED')
  await farthing.ctx.db.query(
    'update credits set orphaned_at = clock() where nonce is not null and payer = $1',
    [(await orderOf(refund)).order.wallet],
  )
  assert.equal(await statusOf(refund), 'SENT')
  assert.equal((await readTotals(paymentId)).reserved, paid)
  await die(refund)
  assert.equal(await statusOf(refund), 'CANCELED')
  assert.equal((await readTotals(paymentId)).reserved, 0n)
})

for (const outcome of ['FAILED', 'CANCELED', 'COMPLETED'])
  test(`a refund that another process has made ${outcome} for good since it was listed is left alone`, async () => {
    const refund = await (await openPaid()).ask()
    await handOut(refund, soon)
    if (outcome === 'CANCELED') await cancelRefund(ctx, storeId, actor, refund.id, new Date())
    else await sign(refund, soon)
    assert.notEqual(await statusOf(refund), outcome)
    if (outcome === 'COMPLETED') {
      await land(refund)
      await farthing.ctx.db.query('update credits set safe_at = clock(), finalized_at = clock()')
    } else await die(refund)
    const read = () => findRefund(ctx.db, storeId, refund.id)
    let written: Awaited<ReturnType<typeof read>> = null
    const db: Database = {
      ...work.db,
      async transaction(run) {
        assert.equal(await statusOf(refund), outcome)
        written = await read()
        return await work.db.transaction(run)
      },
    }
    await watchRefunds({ ...work, db }, { after: '' })
    assert(written)
    assert.deepEqual(await read(), written)
  })

test('only a transfer of its amount to its recipient completes a refund', async () => {
  const { ask } = await openPaid()
  const refund = await ask()
  await handOut(refund, soon)
  assert(await sign(refund, soon))
  await land(refund, { to: '0x00000000000000000000000000000000000000aa' })
  assert.equal(await statusOf(refund), 'SIGNED')
  await die(refund, 'nonce_spent_elsewhere')
  assert.equal(await statusOf(refund), 'FAILED')
  const other = await (await openPaid()).ask()
  await handOut(other, soon)
  assert(await sign(other, soon))
  await land(other, { amount: 1n })
  assert.equal(await statusOf(other), 'SIGNED')
})

test('a nonce that was handed out belongs to one refund until it has expired and that refund has ended', async () => {
  const { ask } = await openPaid()
  const first = await ask({ amount: 1_000_000n })
  const second = await ask({ amount: 2_000_000n })
  assert(await handOut(first, soon))
  assert.equal(await handOut(second, soon), null)
  assert(await handOut(second, soon, 1), 'the next slot is free')
  await die(first)
  const third = await ask({ amount: 3_000_000n })
  assert.equal(await handOut(third, soon), null, 'the first refund may be prepared again')
  await cancelRefund(ctx, storeId, actor, first.id, new Date())
  assert(await handOut(third, soon, 0, [first.id]))
})

test('a window is never recorded as shorter than what was handed out, and a signature is taken for the latest alone', async () => {
  const { ask } = await openPaid()
  const refund = await ask({ amount: 1_000_000n })
  const other = await ask({ amount: 1_000_000n })
  assert.equal((await handOut(refund, soon))?.validBefore, soon)
  assert.equal((await handOut(refund, soon - 100n))?.validBefore, soon)
  assert.equal((await handOut(refund, soon + 500n))?.validBefore, soon + 500n)
  await die(refund)
  assert.equal((await handOut(refund, soon + 900n))?.validBefore, soon + 900n)
  assert.equal(await sign(refund, soon), false)
  assert.equal(await sign(refund, soon + 900n, other), false)
  assert.equal(await sign(refund, soon + 900n), true)
  assert.equal(await sign(refund, soon + 900n), false, 'it is signed already')
})

test('a refund that a restore has forgotten, and that the chain takes back, is signed anew', async () => {
  const { ask } = await openPaid()
  const refund = await ask({ amount: 4_000_000n })
  await land(refund)
  await ask({ amount: 1_000_000n })
  assert.equal(await statusOf(refund), 'COMPLETED')
  await farthing.ctx.db.query('update credits set orphaned_at = clock() where nonce = $1', [
    (await orderOf(refund)).order.nonces[0],
  ])
  assert.equal(await statusOf(refund), 'SENT')
  assert.equal(await statusOf(refund), 'REQUESTED')
  assert(await handOut(refund, soon))
  assert.equal(await statusOf(refund), 'REQUESTED', 'nobody has signed what was handed out now')
  assert(await sign(refund, soon))
  assert.equal(await statusOf(refund), 'SIGNED')
})

test('a payment that a refund counts against pays no checkout any more', async () => {
  const { id } = await shop.create()
  const paymentId = await creditByHand(farthing, id)
  await farthing.ctx.db.query(
    'update credits set finalized_at = clock(), safe_at = clock() where payment_id = $1',
    [paymentId],
  )
  const { ask } = await openPaid()
  const refund = await ask({ paymentId })
  const [answer] = await Promise.all([
    shop.call('POST', `/api/v1/payments/${paymentId}/accept`, { checkoutId: id }),
    applyUntilDecided(),
  ])
  assert.equal(answer.json().code, 'payment_refunded', answer.body)
  await cancelRefund(ctx, storeId, actor, refund.id, new Date())
  const [again] = await Promise.all([
    shop.call('POST', `/api/v1/payments/${paymentId}/accept`, { checkoutId: id }),
    applyUntilDecided(),
  ])
  assert.equal(again.statusCode, 200, again.body)
})

/** What `work` does while a decision waits. */
async function applyUntilDecided(): Promise<void> {
  while ((await applyDecisions(work, new Date())) === 0) await new Promise((resolve) => setImmediate(resolve))
}
