import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData } from 'viem'
import { acceptPayment } from '../../src/checkouts/payments/decide.ts'
import { updateStatus } from '../../src/checkouts/update-status.ts'
import { newId } from '../../src/ids.ts'
import { openRails } from '../../src/payments/rails.ts'
import { startReconciling } from '../../src/payments/reconcile.ts'
import { Problem } from '../../src/problems.ts'
import { tokenAbi } from '../support/chain/evm.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { payTo } from '../support/shop.ts'
import { openRefunding } from './support/refunding.ts'

const shop = await openRefunding()
const { chain, refunds } = shop
const { db } = shop.ctx
const actor = { type: 'member', id: 'mem_1', name: 'Ada' } as const
const sender = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'
await chain.mint(sender, 100_000_000n)

/** A plain transfer that matches no checkout. */
async function receive(units: bigint): Promise<string> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [payTo, units] })
  await chain.send({ to: chain.token, data, from: sender })
  await shop.mine(12)
  const [row] = await db.query<{ id: string }>('select payment_id as id from credits where amount = $1', [
    `${units}`,
  ])
  return row?.id ?? assert.fail()
}

function accept(paymentId: string, checkoutId: string) {
  const decision = {
    id: newId('dec', '00', new Date()),
    storeId: shop.store.id,
    paymentId,
    kind: 'accept' as const,
    checkoutId,
    note: null,
    actor,
    createdAt: new Date(),
  }
  return shop.work.db.transaction((tx) => acceptPayment(shop.work, tx, decision, new Date()))
}

/** As if the database had been restored to a copy from before any refund was asked for. */
async function restore(): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query('delete from credits k using refunds r where k.nonce = r.nonce')
    for (const table of ['transaction_calls', 'broadcasts', 'transactions'])
      await tx.query(`delete from ${table}`)
    await tx.query('delete from authorizations where refund_id is not null')
    await tx.query('delete from refunds')
    await tx.query('delete from refund_totals')
  })
  await startReconciling(shop.ctx, [openRails(shop.ctx).get(chain.network.caip2) ?? assert.fail()])
}

const isProblem = (code: string) => (error: unknown) => error instanceof Problem && error.code === code

for (const [what, part] of [
  ['all', null],
  ['a part', 4_000_000n],
] as const)
  test(`a payment of which ${what} went back is not accepted, also after a restore that has forgotten the refund`, async () => {
    const units = part === null ? 10_000_000n : 11_000_000n
    const paymentId = await receive(units)
    const checkoutId = await shop.create('10.00')
    const buyer = newPayer().address
    const { id } = await refunds.signed(paymentId, { recipient: buyer, amount: part })
    await shop.land()
    assert.equal((await refunds.read(id)).status, 'COMPLETED')
    await shop.mine(12)
    await assert.rejects(accept(paymentId, checkoutId), isProblem('payment_refunded'))

    await restore()
    // Its blocks are not read again yet, so nobody knows of the refund.
    await assert.rejects(accept(paymentId, checkoutId), isProblem('payment_in_progress'))
    await shop.follow()
    await assert.rejects(accept(paymentId, checkoutId), isProblem('payment_refunded'))
    await shop.pass(3_700)
    await shop.mine(12)
    await shop.bury()
    await assert.rejects(accept(paymentId, checkoutId), isProblem('payment_refunded'))
    assert.equal((await shop.read(checkoutId)).status, 'OPEN')
    // Nor does it count by itself, were it the checkout’s own.
    await db.query(
      "update credits set checkout_id = $2, store_id = $3, disposition = 'overpaid', accepted_at = clock() where payment_id = $1",
      [paymentId, checkoutId, shop.store.id],
    )
    await db.transaction((tx) => updateStatus(shop.ctx, tx, [checkoutId], new Date()))
    assert.equal((await shop.read(checkoutId)).status, 'OPEN')
  })

test('a payment of which nothing went back is accepted after a restore, once its blocks have been read again', async () => {
  const paymentId = await receive(12_000_000n)
  const checkoutId = await shop.create('10.00')
  await restore()
  await shop.follow()
  await shop.pass(3_700)
  await shop.mine(12)
  await shop.bury()
  await accept(paymentId, checkoutId)
  assert.equal((await shop.read(checkoutId)).status, 'COMPLETED')
})
