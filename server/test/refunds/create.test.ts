/** What refunds reserve of a payment, against a real database, without a chain. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Refund } from '@farthing/sdk'
import { newId } from '../../src/ids.ts'
import { Problem, type ProblemCode } from '../../src/problems.ts'
import { cancelRefund } from '../../src/refunds/cancel.ts'
import { type AskedRefund, createRefund } from '../../src/refunds/create.ts'
import { openTestApp } from '../support/app.ts'
import { completeByHand, creditByHand, payer } from '../support/by-hand.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { openStore } from '../support/store.ts'

const farthing = await openTestApp()
const ctx = { ...farthing.ctx, db: openAs('serve', farthing.databaseUrl) }
const actor = { type: 'key', id: 'a', name: null } as const

/** A store whose checkout of 12.50 is paid, and the payment final. */
async function openPaid() {
  const wallet = newPayer().address
  const shop = await openStore(farthing, { evmWallet: wallet })
  await farthing.ctx.db.query('update wallets set proven_at = clock() where store_id = $1', [shop.store.id])
  const { id } = await shop.create()
  await completeByHand(farthing, id)
  const paymentId = newId('pay', '00', new Date())
  await farthing.ctx.db.query(
    `update credits set payment_id = $2, finalized_at = clock(), safe_at = clock(), pay_to = lower(pay_to),
       witnessed_at = clock() where checkout_id = $1`,
    [id, paymentId],
  )
  const ask = (asked: Partial<AskedRefund> = {}, mayChooseRecipient = false): Promise<Refund> =>
    createRefund(
      ctx,
      shop.store.id,
      { actor, mayChooseRecipient },
      {
        paymentId,
        amount: null,
        recipient: null,
        reason: null,
        way: 'signed',
        idempotency: null,
        ...asked,
      },
      new Date(),
    )
  const left = async () => {
    const [row] = await ctx.db.query<{ reserved: string }>(
      'select reserved from refund_totals where payment_id = $1',
      [paymentId],
    )
    return 12_500_000n - BigInt(row?.reserved ?? 0)
  }
  return { shop, id, paymentId, ask, left }
}

async function refused(code: ProblemCode, asked: Promise<unknown>): Promise<Problem> {
  const error = await asked.then(
    () => assert.fail(`expected ${code}`),
    (error: unknown) => error,
  )
  assert(error instanceof Problem, String(error))
  assert.equal(error.code, code, error.message)
  return error
}

test('a refund is for all that is left by default, goes to whoever signed, and is told', async () => {
  const { shop, paymentId, ask, left } = await openPaid()
  const half = await ask({ amount: 6_000_000n, reason: 'Size 42 was sold out' })
  assert.deepEqual(
    [half.status, half.amount, half.recipient, half.paymentId, half.orderId],
    ['REQUESTED', '6000000', payer, paymentId, 'order-1'],
  )
  const rest = await ask()
  assert.equal(rest.amount, '6500000')
  assert.equal(await left(), 0n)
  const error = await refused('refund_exceeds_payment', ask({ amount: 1_000_000n }))
  assert.match(error.message, /Nothing is left/)
  const told = (await shop.events()).filter(({ type }) => type === 'refund.requested')
  assert.deepEqual(
    told.map(({ data }) => 'refund' in data && data.refund.id),
    [half.id, rest.id],
  )
})

test('of 50 refunds of the whole payment at once, one is made', async () => {
  const { ask, left } = await openPaid()
  const outcomes = await Promise.allSettled(Array.from({ length: 50 }, () => ask()))
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
  assert.equal(await left(), 0n)
})

test('a refund that does not fit is told what is left, also of a payment that had another id before a restore', async () => {
  const { paymentId, ask } = await openPaid()
  await ask({ amount: 12_000_000n })
  await farthing.ctx.db.query('update refund_totals set payment_id = $2 where payment_id = $1', [
    paymentId,
    newId('pay', '00', new Date()),
  ])
  const error = await refused('refund_exceeds_payment', ask({ amount: 1_000_000n }))
  assert.equal(error.extras.members?.left, '500000')
  assert.match(error.message, /0\.50 is left/)
})

test('the same Idempotency-Key returns the same refund, and refuses another body', async () => {
  const { ask, left } = await openPaid()
  const idempotency = { key: 'order-1-refund', bodyHash: 'a' }
  const made = await Promise.all(Array.from({ length: 20 }, () => ask({ amount: 1_000_000n, idempotency })))
  const ids = new Set(made.map(({ id }) => id))
  assert.equal(ids.size, 1)
  assert.deepEqual([...ids], [(await ask({ amount: 1_000_000n, idempotency })).id])
  assert.equal(await left(), 11_500_000n)
  await refused('idempotency_key_reused', ask({ idempotency: { ...idempotency, bodyHash: 'b' } }))
})

test('a canceled refund of which nothing was handed out frees its amount at once', async () => {
  const { shop, ask, left } = await openPaid()
  const { id } = await ask()
  const canceled = await cancelRefund(ctx, shop.store.id, actor, id, new Date())
  assert.deepEqual([canceled.status, canceled.isCanceling], ['CANCELED', false])
  assert.equal(await left(), 12_500_000n)
  assert.equal((await cancelRefund(ctx, shop.store.id, actor, id, new Date())).status, 'CANCELED')
  assert.equal((await ask()).amount, '12500000')
})

test('a payment has as many refunds as its checkout can show, and then no more, whatever became of them', async () => {
  const { shop, ask, left } = await openPaid()
  const { id } = await ask()
  await cancelRefund(ctx, shop.store.id, actor, id, new Date())
  await farthing.ctx.db.query(
    `insert into refunds select (jsonb_populate_record(r, jsonb_build_object('id', r.id || i))).*
     from refunds r, generate_series(1, 98) i where r.id = $1`,
    [id],
  )
  await ask({ amount: 1_000_000n })
  const error = await refused('payment_not_open', ask({ amount: 1_000_000n }))
  assert.match(error.message, /100 refunds/)
  assert.equal(await left(), 11_500_000n)
})

test('a key cannot choose the recipient, and who merely sent money is not who it goes back to', async () => {
  const { id, ask } = await openPaid()
  const elsewhere = newPayer().address
  await refused('recipient_needs_member', ask({ recipient: elsewhere }))
  assert.equal((await ask({ recipient: elsewhere, amount: 1_000_000n }, true)).recipient, elsewhere)
  const paymentId = await creditByHand(farthing, id)
  await farthing.ctx.db.query(
    'update credits set finalized_at = clock(), safe_at = clock() where payment_id = $1',
    [paymentId],
  )
  assert.equal((await ask({ paymentId })).recipient, null)
})

test('money that is not final, of an unproven wallet, or another store’s is not refunded', async () => {
  const { shop, paymentId, ask } = await openPaid()
  await farthing.ctx.db.query('update wallets set proven_at = null where store_id = $1', [shop.store.id])
  await refused('wallet_unproven', ask())
  await farthing.ctx.db.query('update wallets set proven_at = clock() where store_id = $1', [shop.store.id])
  await farthing.ctx.db.query('update credits set finalized_at = null where payment_id = $1', [paymentId])
  const error = await refused('payment_not_final', ask())
  assert.equal(typeof error.extras.members?.expectedAt, 'string')
  const other = await openPaid()
  await refused('not_found', other.ask({ paymentId }))
  await refused('invalid_request', other.ask({ amount: 9_999n }))
})
