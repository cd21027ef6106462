/** No store, and nothing that cannot be booked, keeps the lines of others waiting. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openDatabase } from '../../src/database/db.ts'
import { newId } from '../../src/ids.ts'
import { bookDue } from '../../src/movements/book-due.ts'
import { findRefused } from '../../src/movements/find-refused.ts'
import { openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { openAs, urlAs } from '../support/database.ts'
import { openStore, type StoreClient } from '../support/store.ts'
import { bookAll, booksOf, sendUnmatched } from './support/books.ts'

const farthing = await openTestApp({ LOG_LEVEL: 'info' })
const { ctx } = farthing
const work = { ...ctx, db: openAs('work', farthing.databaseUrl) }
const operator = openAs('operator', farthing.databaseUrl)
/** `work` tomorrow, when everything that was put off is due. */
const ahead = openDatabase({
  url: urlAs('work', farthing.databaseUrl),
  connections: 4,
  name: 'ahead',
  clockOffset: '1day',
})
atEnd(() => ahead.close())
const tomorrow = { ...ctx, db: ahead }

/** A store with a wallet that no other store has. */
async function openOwn(): Promise<StoreClient> {
  const shop = await openStore(farthing)
  const address = `0x${newId('wal', '00', new Date()).slice(-20)}`.padEnd(42, 'a')
  await ctx.db.query('update wallets set address = $2 where store_id = $1', [shop.id, address])
  return shop
}

/** Gives a store the wallet of another. Neither has proven it. */
async function share(owner: StoreClient, other: StoreClient): Promise<void> {
  await ctx.db.query(
    'update wallets set address = (select address from wallets where store_id = $1 limit 1) where store_id = $2',
    [owner.id, other.id],
  )
}

/** More payments like this one, which become final after it. */
async function sendMore(paymentId: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('pay', '00', new Date()))
  await ctx.db.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, pay_to, amount, disposition, first_seen_block_time, included_at, safe_at)
     select k.network, i.id, 0, i.id, 1, k.block_time, i.id, 0, k.asset, k.payer, k.pay_to, k.amount, 'unmatched',
       clock(), clock(), clock()
     from credits k cross join unnest($2::text[]) as i (id) where k.payment_id = $1`,
    [paymentId, ids],
  )
  await ctx.db.query('update credits set finalized_at = clock() where payment_id = any($1)', [ids])
  return ids
}

const bookedOf = async (shop: StoreClient) =>
  (await booksOf(farthing, shop.id)).map(({ paymentId }) => paymentId)
const refusals = () => farthing.logged.filter(({ msg }) => /cannot be booked/.test(String(msg)))

/** Facts that no line can be made of: PostgreSQL refuses the one, our own code the other. Neither gets into `credits`. */
const spoils = {
  'that PostgreSQL refuses': "block_time = 'infinity'",
  'that our own code refuses': "amount = 'NaN'",
}

test('a store whose counter another process holds for long keeps no other store waiting', async () => {
  const [busy, neighbour] = [await openOwn(), await openOwn()]
  const first = await sendUnmatched(farthing, busy)
  const all = [first, ...(await sendMore(first, 450))]
  const paymentId = await sendUnmatched(farthing, neighbour)
  await ctx.db.transaction(async (tx) => {
    await tx.query('select 1 as one from event_counters where store_id = $1 for update', [busy.id])
    await bookDue(work)
    assert.deepEqual(await bookedOf(neighbour), [paymentId])
    assert.deepEqual(await bookedOf(busy), [])
  })
  await bookAll(work)
  assert.deepEqual((await bookedOf(busy)).toSorted(), all.toSorted())
})

for (const [what, spoil] of Object.entries(spoils))
  test(`a payment ${what} keeps waiting alone: its store’s others and its neighbours’ are booked`, async () => {
    const [shop, neighbour] = [await openOwn(), await openOwn()]
    const before = refusals().length
    const [good, bad, late] = [
      await sendUnmatched(farthing, shop),
      await sendUnmatched(farthing, shop),
      await sendUnmatched(farthing, shop),
    ]
    const [was] = await ctx.db.query<{ amount: string; block_time: Date }>(
      'select amount, block_time from credits where payment_id = $1',
      [bad],
    )
    await ctx.db.query(
      'alter table credits drop constraint if exists credits_time_check, drop constraint if exists credits_amount_is_number',
    )
    await ctx.db.query(`update credits set ${spoil} where payment_id = $1`, [bad])
    const paymentId = await sendUnmatched(farthing, neighbour)
    await bookDue(work)
    assert.deepEqual(await bookedOf(neighbour), [paymentId])
    assert.deepEqual((await bookedOf(shop)).toSorted(), [good, late].toSorted())
    const [line, ...more] = refusals().slice(before)
    assert.deepEqual(more, [])
    assert.deepEqual(line?.items, [bad])
    assert.deepEqual(line?.storeIds, [shop.id])
    assert.match(String(line?.msg), /tried again within an hour: repair what the error names/)
    assert(line?.err)
    assert.deepEqual(
      (await findRefused(operator)).map(({ says }) => says),
      [`a payment or refund is missing in the books, among them ${bad}`],
    )
    // It is put off, and found again by itself once its cause is cured.
    await bookDue(work)
    assert.equal(refusals().length, before + 1)
    await bookAll(tomorrow)
    assert.equal(refusals().length, before + 2)
    await ctx.db.query('update credits set amount = $2, block_time = $3 where payment_id = $1', [
      bad,
      was?.amount,
      was?.block_time,
    ])
    await ctx.db.query("update movements_due set due_at = clock() - interval '1 second'")
    await bookAll(work)
    assert.deepEqual((await bookedOf(shop)).toSorted(), [good, bad, late].toSorted())
    assert.deepEqual(await findRefused(ctx.db), [])
  })

test('a store whose counter is held keeps nobody waiting who shares its wallet, however much waits', async () => {
  const [busy, neighbour] = [await openOwn(), await openOwn()]
  await share(neighbour, busy)
  const first = await sendUnmatched(farthing, neighbour)
  const all = [first, ...(await sendMore(first, 120))].toSorted()
  await ctx.db.transaction(async (tx) => {
    await tx.query('select 1 as one from event_counters where store_id = $1 for update', [busy.id])
    for (let i = 0; i < 3; i++) await bookDue(work)
    assert.deepEqual((await bookedOf(neighbour)).toSorted(), all)
  })
  await bookAll(work)
  assert.deepEqual((await bookedOf(busy)).toSorted(), all)
  assert.deepEqual((await bookedOf(neighbour)).toSorted(), all)
})

test('a store that the books refuse keeps nobody waiting who shares its wallet, and gets its lines later', async () => {
  const [hostile, neighbour] = [await openOwn(), await openOwn()]
  await share(neighbour, hostile)
  await ctx.db.query(
    `alter table movements add constraint refused check (store_id <> '${hostile.id}') not valid`,
  )
  const first = await sendUnmatched(farthing, neighbour)
  const all = [first, ...(await sendMore(first, 40))]
  await bookAll(work)
  assert.deepEqual((await bookedOf(neighbour)).toSorted(), all.toSorted())
  assert.deepEqual(await bookedOf(hostile), [])
  await ctx.db.query('alter table movements drop constraint refused')
  await bookAll(tomorrow)
  assert.deepEqual((await bookedOf(hostile)).toSorted(), all.toSorted())
  assert.equal((await bookedOf(neighbour)).length, all.length)
})

for (const [what, spoil] of Object.entries({ 'can be booked': 'announced = announced', ...spoils }))
  test(`however many payments ${what} a store has, a neighbour’s line waits for one round`, async () => {
    const [hostile, neighbour] = [await openOwn(), await openOwn()]
    const first = await sendUnmatched(farthing, hostile)
    const all = [first, ...(await sendMore(first, 1_000))]
    await ctx.db.query(`update credits set ${spoil} where payment_id = any($1)`, [all])
    const own = await sendUnmatched(farthing, neighbour)
    await bookDue(work)
    assert.deepEqual(await bookedOf(neighbour), [own])
    await ctx.db.query('delete from movements_due where item = any($1)', [all])
  })

test('more stores than fit into one run have their turn in the next', async () => {
  const first = await sendUnmatched(farthing, await openOwn())
  const wallets = Array.from({ length: 250 }, (_, i) => `0x${i.toString(16).padStart(40, 'b')}`)
  const ids = await sendMore(first, wallets.length)
  await ctx.db.query('delete from movements_due')
  await ctx.db.query(
    'insert into movements_due (item, turn, due_at) select i.item, i.turn, i.due_at from unnest($1::text[], $2::text[], $3::timestamptz[]) as i (item, turn, due_at)',
    // Most of them are put off, so their turns pass without anything to do.
    [ids, wallets, wallets.map((_, i) => (i === 249 ? new Date(0) : new Date('2100-01-01')))],
  )
  const pass = { after: '' }
  for (const more of [true, true, true]) assert.equal(await bookDue(work, pass), more)
  assert.equal(await bookDue(work, { after: wallets[240] ?? '' }), false)
  const [row] = await ctx.db.query('select count(*)::int as left from movements_due')
  assert.deepEqual(row, { left: 249 })
  await ctx.db.query('delete from movements_due')
})
