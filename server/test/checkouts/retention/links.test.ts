/** A link's checkouts are deleted only together with the link. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Link } from '@farthing/sdk'
import { exportOver } from '../../../src/checkouts/retention/export.ts'
import { countRollups } from '../../../src/checkouts/rollups/count.ts'
import { assignWaitingSequences } from '../../../src/events/assign-sequence.ts'
import { newInvoice, newLink } from '../../http/support/new-link.ts'
import { openTestApp } from '../../support/app.ts'
import { openStore } from '../../support/store.ts'
import { agedDays, deleteAll, isThere, makeAged, makeEnded, openWork } from './support/aged.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const work = openWork(farthing)
const shop = await openStore(farthing)
const dayMs = 86_400_000
const daysAgo = (days: number) => new Date(Date.now() - days * dayMs)

/** Creates a link long ago that could be paid until so many days ago. */
async function makeLink(untilDaysAgo: number, body = newLink): Promise<string> {
  farthing.clock.now = daysAgo(agedDays)
  const until = daysAgo(untilDaysAgo).toISOString()
  const answer = await shop.call('POST', '/api/v1/links', { ...body(), until })
  farthing.clock.now = null
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json<Link>().id
}

async function belongTo(linkId: string, ...checkoutIds: string[]): Promise<void> {
  await ctx.db.query('update checkouts set link_id = $1 where id = any($2)', [linkId, checkoutIds])
  while ((await assignWaitingSequences(ctx)) > 0);
}

async function isLink(id: string): Promise<boolean> {
  return (await ctx.db.query('select 1 as one from links where id = $1', [id])).length > 0
}

async function countEvents(linkId: string): Promise<number> {
  const rows = await ctx.db.query("select 1 as one from events where data #>> '{link,id}' = $1", [linkId])
  return rows.length
}

test('a link’s checkouts stay while it can be paid, and go with it and its events once it ended long ago', async () => {
  const [lasting, over] = [await makeLink(-10), await makeLink(agedDays - 1, () => newInvoice('1'))]
  const { id: kept } = await makeAged(farthing, shop)
  const { id: paid } = await makeAged(farthing, shop)
  const expired = await makeEnded(farthing, shop, 'EXPIRED')
  const { id: own } = await makeAged(farthing, shop)
  await belongTo(lasting, kept)
  await belongTo(over, paid, expired)
  await deleteAll(work)
  assert.deepEqual(await Promise.all([kept, paid, expired, own].map((id) => isThere(farthing, id))), [
    true,
    false,
    false,
    false,
  ])
  assert.deepEqual([await isLink(lasting), await isLink(over)], [true, false])
  assert.deepEqual([await countEvents(lasting), await countEvents(over)], [1, 0])
  // The number is free again, as after any deletion.
  assert.equal((await shop.call('POST', '/api/v1/links', newInvoice('1'))).statusCode, 201)
})

test('a link stays, with all of its checkouts, while one of them can be paid or ended lately', async () => {
  const [open, young] = [await makeLink(agedDays - 1), await makeLink(agedDays - 1)]
  const { id: paid } = await makeAged(farthing, shop)
  const { id: unpaid } = await shop.create()
  const { id: old } = await makeAged(farthing, shop)
  const recent = await makeEnded(farthing, shop, 'EXPIRED', 'order-1', 30)
  await belongTo(open, paid, unpaid)
  await belongTo(young, old, recent)
  await deleteAll(work)
  assert.deepEqual([await isThere(farthing, paid), await isThere(farthing, unpaid)], [true, true])
  assert.deepEqual([await isThere(farthing, recent), await isLink(young)], [true, true])
  assert.equal(await isLink(open), true)
})

test('a link that nobody opened goes too, but not before its events are numbered', async () => {
  const link = await makeLink(agedDays - 1)
  await deleteAll(work)
  assert.equal(await isLink(link), true)
  while ((await assignWaitingSequences(ctx)) > 0);
  await deleteAll(work)
  assert.deepEqual([await isLink(link), await countEvents(link)], [false, 0])
})

test('a log that lost a link’s events says that it is truncated', async () => {
  const other = await openStore(farthing)
  farthing.clock.now = daysAgo(agedDays)
  const body = newLink({ until: daysAgo(agedDays - 1).toISOString() })
  assert.equal((await other.call('POST', '/api/v1/links', body)).statusCode, 201)
  farthing.clock.now = null
  const { length } = await other.events()
  await deleteAll(work)
  const answer = await other.call('GET', '/api/v1/events')
  assert.equal(answer.statusCode, 200)
  assert(answer.json().data.length < length, 'its events are gone')
  const [row] = await ctx.db.query<{ last: string }>(
    'select last_sequence as last from truncated_logs where store_id = $1',
    [other.id],
  )
  assert.equal(row?.last, String(length))
})

test('an export has a checkout’s link with the events about it, and never the key of its quotes', async () => {
  const link = await makeLink(agedDays - 1)
  const { id } = await makeAged(farthing, shop)
  await belongTo(link, id)
  while (await countRollups(work));
  const lines: { checkout: { id: string }; link: { id: string; events: unknown[] } | null }[] = []
  for await (const line of exportOver(ctx, daysAgo(90))) {
    assert(!line.includes('quote_key'))
    lines.push(JSON.parse(line))
  }
  const found = lines.find(({ checkout }) => checkout.id === id)
  assert.deepEqual([found?.link?.id, found?.link?.events.length], [link, 1])
})
