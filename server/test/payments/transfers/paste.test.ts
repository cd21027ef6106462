/** Transactions that buyers name: how often nodes are asked about one, and how many are looked for at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hex } from 'viem'
import { readView } from '../../../src/checkouts/view.ts'
import {
  insertPasted,
  listPasted,
  pasteLimits,
  readPasted,
  writePasted,
} from '../../../src/payments/transfers/paste.ts'
import { openTestApp } from '../../support/app.ts'
import { openStore } from '../../support/store.ts'
import { until } from '../../support/until.ts'

const farthing = await openTestApp({ NETWORKS: 'BASE_SEPOLIA' })
const { db } = farthing.ctx
const shop = await openStore(farthing, { mode: 'test' })
const network = 'eip155:84532'
const hashOf = (i: number): Hex => `0x${i.toString(16).padStart(64, '0')}`
const limits = { ...pasteLimits, perStoreMax: 3 }
const look = async () => await listPasted(db, network, 30, 3, 20)

async function pass(seconds: number): Promise<void> {
  await db.query(
    `update pasted_transactions set pasted_at = pasted_at - make_interval(secs => $1),
       looked_at = looked_at - make_interval(secs => $1)`,
    [seconds],
  )
}

test('a transaction that is in no block is asked about thirteen times in half an hour, then given up', async () => {
  const { id } = await shop.create()
  await insertPasted(db, id, [network], hashOf(1), limits)
  const asked: number[] = []
  for (let second = 0, step = 0; second <= 1_860; second += step) {
    const [due] = await look()
    if (due) asked.push(second)
    if (due?.isOld) await writePasted(db, network, due, 'not_found')
    step = second < 30 ? 3 : 30
    await pass(step)
  }
  assert.equal(await readPasted(db, id, hashOf(1)), 'not_found')
  assert(asked.length <= 13, asked.join(' '))
  assert.deepEqual(asked.slice(0, 2), [0, 3])
})

test('one that was not found is not looked up again for a minute, however often it is named', async () => {
  const { id } = await shop.create()
  const name = async () => await insertPasted(db, id, [network], hashOf(2), limits)
  await name()
  const [due] = await look()
  assert(due)
  await writePasted(db, network, due, 'not_found')
  for (let i = 0; i < 5; i++) assert.equal(await name(), true)
  assert.deepEqual(await look(), [])
  await pass(60)
  await name()
  assert.deepEqual(
    (await look()).map(({ hash }) => hash),
    [hashOf(2)],
  )
})

test('when a store’s buyers name too many, the oldest wait for the last lookup, and those of another store do not', async () => {
  await db.query("update pasted_transactions set outcome = 'not_found'")
  const other = await openStore(farthing, { mode: 'test' })
  const theirs = await other.create()
  await insertPasted(db, theirs.id, [network], hashOf(10), limits)
  await pass(1)
  const made: string[] = []
  for (let i = 11; i < 17; i++) {
    const { id } = await shop.create()
    made.push(id)
    await insertPasted(db, id, [network], hashOf(i), limits)
    await pass(1)
  }
  const lookedUp = async () => (await look()).map(({ hash }) => Number.parseInt(hash, 16)).sort()
  // Those that give way are counted before the new one.
  assert.deepEqual(await lookedUp(), [10, 13, 14, 15, 16])
  // Nobody’s page stops saying that a payment is looked for, or asks for a second one.
  for (const id of [...made, theirs.id])
    assert.equal((await readView(farthing.ctx, id))?.announced.length, 1, id)
  await db.query("update pasted_transactions set outcome = 'not_found' where looked_at <= clock()")
  await pass(1_740)
  assert.deepEqual(await lookedUp(), [])
  await pass(120)
  const last = await look()
  assert.deepEqual(last.map(({ hash, isOld }) => [hash, isOld]).sort(), [
    [hashOf(11), true],
    [hashOf(12), true],
  ])
})

test('a checkout with many made-up transactions does not put off the lookup of another buyer’s', async () => {
  await db.query("update pasted_transactions set outcome = 'not_found'")
  const [buyer, stranger] = [await shop.create(), await shop.create()]
  await insertPasted(db, buyer.id, [network], hashOf(20), limits)
  for (let i = 21; i < 29; i++) {
    await pass(1)
    await insertPasted(db, stranger.id, [network], hashOf(i), limits)
  }
  const due = await look()
  assert.equal(due.length, 4)
  assert(due.some(({ hash }) => hash === hashOf(20)))
})

test('an outcome is written under the checkout’s lock, so that it cannot deadlock with the form', async () => {
  const { id: checkoutId } = await shop.create()
  await insertPasted(db, checkoutId, [network], hashOf(30), limits)
  let writing: Promise<void> | undefined
  await db.transaction(async (tx) => {
    await tx.query('select 1 as one from checkouts where id = $1 for no key update', [checkoutId])
    writing = writePasted(db, network, { checkoutId, hash: hashOf(30), isOld: false }, 'not_found')
    await until('the writer waits', async () => {
      const waiting = await db.query(
        "select 1 as one from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      )
      return waiting.length > 0
    })
    await tx.query('select 1 as one from pasted_transactions where checkout_id = $1 for update nowait', [
      checkoutId,
    ])
  })
  await writing
  assert.equal(await readPasted(db, checkoutId, hashOf(30)), 'not_found')
})

test('the form’s own limits keep at most 101 of a store’s transactions waiting', async () => {
  await db.query("update pasted_transactions set outcome = 'not_found'")
  const made = await Promise.all(Array.from({ length: 12 }, () => shop.create()))
  const name = async (id: string, i: number) => await insertPasted(db, id, [network], hashOf(i), pasteLimits)
  await Promise.all(
    made.flatMap(({ id }, checkout) =>
      Array.from({ length: 10 }, (_, i) => name(id, 100 + checkout * 10 + i)),
    ),
  )
  await name((await shop.create()).id, 1_000)
  const [row] = await db.query<{ looking: number }>(
    "select count(*)::integer as looking from pasted_transactions where outcome = 'looking' and looked_at is null",
  )
  assert.equal(row?.looking, 101)
})
