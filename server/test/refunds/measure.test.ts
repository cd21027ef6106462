import assert from 'node:assert/strict'
import { test } from 'node:test'
import { networks } from '../../src/networks.ts'
import { openRefundMeasure } from '../../src/refunds/measure.ts'
import { watchRefunds } from '../../src/refunds/watch.ts'
import { openTestApp } from '../support/app.ts'
import { completeByHand, refundByHand } from '../support/by-hand.ts'
import { openStore } from '../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const shop = await openStore(farthing)

test('operators see how many refunds wait, and what became of those that ended', async () => {
  const base = networks.filter(({ id }) => id === 'BASE_MAINNET')
  const measure = openRefundMeasure(ctx, base)
  for (const status of ['SENT', 'REQUESTED'] as const) {
    const { id } = await shop.create()
    await completeByHand(farthing, id)
    await refundByHand(farthing, id, status)
  }
  await ctx.db.query(
    "update refunds set is_watched = true, cancel_asked_at = case when status = 'REQUESTED' then clock() end",
  )
  await measure()
  const valuesOf = async (name: 'refunds' | 'refundsWaiting', label: 'outcome' | 'status') =>
    Object.fromEntries(
      (await ctx.metrics[name].get()).values.map(({ labels, value }) => [
        (labels as Record<string, unknown>)[label],
        value,
      ]),
    )
  assert.deepEqual(await valuesOf('refundsWaiting', 'status'), { SIGNED: 0, SENT: 1 })
  assert.deepEqual(await valuesOf('refunds', 'outcome'), { completed: 0, failed: 0, canceled: 0, reorged: 0 })
  await watchRefunds(ctx, { after: '' })
  assert.equal((await valuesOf('refunds', 'outcome')).canceled, 1)
})
