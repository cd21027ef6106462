/** Which wallets this cell still has a use for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findBusy } from '../../src/checkouts/uses.ts'
import type { Database } from '../../src/database/db.ts'
import { openTestApp } from '../support/app.ts'
import { payFinally, refundByHand } from '../support/by-hand.ts'
import { openStore } from '../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const shop = await openStore(farthing)

test('whether a retired wallet is in use is read from indexes of what is unfinished, however many refunds are done', async () => {
  const { id } = await shop.create()
  await payFinally(farthing, id)
  await refundByHand(farthing, id, 'COMPLETED', 1)
  await ctx.db.query(
    `insert into refunds select (jsonb_populate_record(r, jsonb_build_object('id', 'rf_' || i))).*
     from refunds r, generate_series(1, 2000) i`,
  )
  await ctx.db.query('analyze refunds')
  const read = await ctx.db.query<{ wallet: string }>('select distinct wallet from refunds')
  const plans: string[] = []
  const db: Database = {
    ...ctx.db,
    async query(text, values) {
      plans.push(JSON.stringify(await ctx.db.query(`explain (format json) ${text}`, values)))
      return await ctx.db.query(text, values)
    },
  }
  const wallets = read.map(({ wallet }) => wallet)
  assert.deepEqual(await findBusy(db, wallets), new Set())
  assert.match(plans.join(), /"refunds_unfinished"/)
  assert.doesNotMatch(plans.join(), /"refunds_by_store"|"Seq Scan"/)
  await ctx.db.query("update refunds set status = 'SENT' where id = 'rf_7'")
  assert.deepEqual(await findBusy(db, wallets), new Set(wallets))
})
