/** Transactions that buyers name: how often nodes are asked about one, and how many are looked for at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hex } from 'viem'
import { pasteLimits } from '../../../src/payments/transfers/paste.ts'
import {
  insertPasted,
  listPasted,
  readPasted,
  writePasted,
} from '../../../src/payments/transfers/paste-rows.ts'
import { openTestApp } from '../../support/app.ts'
import { openStore } from '../../support/store.ts'

const farthing = await openTestApp({ NETWORKS: 'BASE_SEPOLIA' })
const { db } = farthing.ctx
const shop = await openStore(farthing, { mode: 'test' })
const network = 'eip155:84532'
const hashOf = (i: number): Hex => `0x${i.toString(16).padStart(64, '0')}`
const limits = { perCheckoutMax: 10, perStoreMax: 3, againAfterSeconds: 60 }
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

test('when a store’s buyers name too many, the oldest give way, and those of another store do not', async () => {
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
  // Those that give way are counted before the new one.
  const outcomes = await Promise.all(made.map((id, i) => readPasted(db, id, hashOf(11 + i))))
  assert.deepEqual(outcomes, ['not_found', 'not_found', 'looking', 'looking', 'looking', 'looking'])
  assert.equal(await readPasted(db, theirs.id, hashOf(10)), 'looking')
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
    "select count(*)::integer as looking from pasted_transactions where outcome = 'looking'",
  )
  assert.equal(row?.looking, 101)
})
