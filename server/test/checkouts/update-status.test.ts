/** Every type of payment event, produced from the facts that lead to it, with its version, checkout and payment. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { Disposition } from '@farthing/sdk'
import { updateStatus } from '../../src/checkouts/update-status.ts'
import { randomText } from '../../src/ids.ts'
import { openTestApp } from '../support/app.ts'
import { payer } from '../support/by-hand.ts'
import { openStore } from '../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing

/** Records money for a checkout as the follower does: this many units above the price, this many seconds late. */
async function credit(checkoutId: string, more: number, lateSeconds: number): Promise<void> {
  const hash = `0x${randomBytes(32).toString('hex')}`
  await ctx.db.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, nonce, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time,
       included_at)
     select o.network, $2, 0, $3, 1, clock(), $2, 0, lower(o.asset), $4, null, lower(o."payTo"), o.amount + $5, c.store_id, c.id,
       'overpaid', c.expires_at + make_interval(secs => $6), clock()
     from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
     where c.id = $1 limit 1`,
    [checkoutId, hash, `pay_${randomText(28)}`, payer.toLowerCase(), more, lateSeconds],
  )
}
const look = (checkoutId: string) =>
  ctx.db.transaction((tx) => updateStatus(ctx, tx, [checkoutId], ctx.now()))
const change = (checkoutId: string, set: string) =>
  ctx.db.query(`update credits set ${set} where checkout_id = $1`, [checkoutId])

async function tell(
  facts: (checkoutId: string) => Promise<unknown>,
): Promise<{ types: string[]; dispositions: (Disposition | null)[] }> {
  const shop = await openStore(farthing)
  const { id } = await shop.create()
  await facts(id)
  const events = (await shop.events()).filter(({ checkoutId }) => checkoutId === id)
  let version = 0
  for (const { type, checkoutVersion, data } of events) {
    assert('checkout' in data && data.checkout?.id === id)
    // Each status change is a new version; a payment event carries the version that was current when it was recorded.
    if (type.startsWith('checkout.')) assert.equal(checkoutVersion, ++version)
    else {
      assert.equal(checkoutVersion, version)
      assert('payment' in data && data.payment.checkoutId === id && data.payment.id.startsWith('pay_'))
    }
  }
  return {
    types: events.map(({ type }) => type),
    dispositions: events.map(({ data }) => ('payment' in data ? data.payment.disposition : null)),
  }
}

test('an underpaid, overpaid or late payment is reported once as such and completes nothing', async () => {
  for (const [more, lateSeconds, disposition] of [
    [-1, -60, 'underpaid'],
    [1, -60, 'overpaid'],
    [0, 60, 'late'],
  ] as const) {
    const { types, dispositions } = await tell(async (id) => {
      await credit(id, more, lateSeconds)
      await look(id)
      await look(id)
    })
    assert.deepEqual(types, ['checkout.created', `payment.${disposition}`])
    assert.equal(dispositions[1], disposition)
  }
})

test('an exact payment completes; finality, a reorg and a reversal are each reported as they happen', async () => {
  const final = await tell(async (id) => {
    await credit(id, 0, -60)
    await look(id)
    await change(id, 'safe_at = clock(), finalized_at = clock()')
    await look(id)
    await look(id)
  })
  assert.deepEqual(final.types, ['checkout.created', 'checkout.completed', 'payment.finalized'])
  const reversed = await tell(async (id) => {
    await credit(id, 0, -60)
    await look(id)
    await change(id, 'orphaned_at = clock()')
    await look(id)
    await change(id, 'reversed_at = clock()')
    await look(id)
  })
  assert.deepEqual(reversed.types.slice(0, 4), [
    'checkout.created',
    'checkout.completed',
    'checkout.processing',
    'payment.reorged',
  ])
  assert(reversed.types.includes('payment.reversed'), reversed.types.join(' '))
})
