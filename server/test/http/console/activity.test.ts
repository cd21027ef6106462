/** Activity: who did what, in words, and what a look at it costs in a long log. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lookBack, lookedMax } from '../../../src/events/read.ts'
import { listStoreMembers } from '../../../src/members/rows.ts'
import { sendLines, textOf } from './support/api-lines.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'
import { read } from './support/wallets.ts'

const console = await openConsole()
const { ctx } = console.farthing

async function openShop() {
  const { store, token } = await openInvitedStore(console, {})
  const owner = await enrolWith(console, token)
  return { store, owner, path: `/stores/${store.id}/activity` }
}

/** The sentences of a page, newest first. */
function sentencesOf(page: string): string[] {
  return [...page.matchAll(/<li><p>(.*?)<small>/g)].map(([, each = '']) =>
    textOf(each.replace(/<[^>]+>/g, '')),
  )
}

test('it says in words what people, keys and operators did, and nothing of what payers or time did', async () => {
  const { store, owner, path } = await openShop()
  await store.create({ orderId: '<b>7</b>' })
  await inviteBy(owner, store.id, { name: '<i>Max</i>', role: 'viewer' })
  await store.events()
  const page = await read(owner.browser, path)
  assert.deepEqual(sentencesOf(page).slice(0, 3), [
    'Olga made a link for <i>Max</i> (Viewer)',
    `key ${store.key.split('_')[2]} created a checkout: <b>7</b>`,
    'Olga joined (Owner)',
  ])
  assert(!page.includes('<i>Max'), 'as text')
  const spanish = await read(owner.browser, `${path}?lang=es`)
  assert.equal(sentencesOf(spanish)[0], 'Olga creó un enlace para <i>Max</i> (Lector)')
})

test('it is filtered by who and by kind, and the line for the API answers the same', async () => {
  const { store, owner, path } = await openShop()
  await store.create()
  await inviteBy(owner, store.id, { name: 'Max', role: 'viewer' })
  await store.events()
  const [{ id } = assert.fail()] = await listStoreMembers(ctx.db, store.id)
  const mine = await read(owner.browser, `${path}?actor=${id}&kind=member&details=shown`)
  assert.deepEqual(sentencesOf(mine), ['Olga made a link for Max (Viewer)', 'Olga joined (Owner)'])
  const [{ data }] = await sendLines(store, mine, ctx.config.baseUrl)
  assert.deepEqual(
    data.map(({ type }: { type: string }) => type),
    ['member.joined', 'member.invited'],
  )
  assert.match(
    await read(owner.browser, `${path}?actor=%00%3Cscript%3E&kind=x&to=-1`),
    /Nothing found in this part/,
  )
})

test('a look through a long log reads a bounded stretch of it, in order of the index, and says how to go on', async () => {
  const { store, owner, path } = await openShop()
  const first = BigInt((await store.events()).length)
  // Each on a page of its own: the worst that a busy deployment does to one store's log.
  const many = 1_000
  await ctx.db.query('alter table events alter column data set storage plain')
  await ctx.db.query(
    `insert into events (id, store_id, sequence, type, data, created_at)
     select 'evt_00' || lpad(n::text, 26, '0'), $1, $2::bigint + n, 'payment.finalized',
       json_build_object('filler', (select string_agg(md5(n::text || i::text), '') from generate_series(1, 220) i)), clock()
     from generate_series(1, $3::int) n`,
    [store.id, first.toString(), many],
  )
  await ctx.db.query('update event_counters set last_sequence = $2 where store_id = $1', [
    store.id,
    (first + BigInt(many)).toString(),
  ])
  const filter = { type: null, checkoutId: null, actor: 'nobody', isByActor: true }
  const looked = await lookBack(ctx, store.store.id, filter, { to: null, limit: 25 })
  assert.equal(looked.to - looked.from + 1n, BigInt(lookedMax))
  let page = await read(owner.browser, path)
  let looks = 1
  for (; sentencesOf(page).length === 0; looks++) {
    const [, next = assert.fail('no link')] = /href="([^"]*to=[^"]*)">Look further back/.exec(page) ?? []
    page = await read(owner.browser, textOf(next))
  }
  assert.equal(looks, Math.ceil(many / lookedMax) + 1)
  const plan = await ctx.db.query<{ 'QUERY PLAN': string }>(
    `explain (analyze, buffers, costs off, timing off) select id, sequence, type, checkout_id, checkout_version, actor, data,
       created_at from events where store_id = '${store.id}' and sequence >= ${looked.from} and sequence <= ${looked.to}
       and actor ->> 'id' = 'nobody' and actor is not null order by sequence desc limit 25`,
  )
  const text = plan.map((row) => row['QUERY PLAN']).join('\n')
  assert.match(text, /Index Scan Backward using events_by_sequence/)
  assert.doesNotMatch(text, /Sort/)
  const buffers = [...(/Buffers: shared (.*)/.exec(text)?.[1] ?? '').matchAll(/(?:hit|read)=(\d+)/g)]
  const sum = buffers.reduce((total, [, each]) => total + Number(each), 0)
  assert(sum > 0 && sum <= 300, text)
})
