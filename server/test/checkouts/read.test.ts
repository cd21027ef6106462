import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Checkout, Page, StoreCheckout } from '@farthing/sdk'
import { openTestApp } from '../support/app.ts'
import { completeByHand, payer } from '../support/by-hand.ts'
import { assertInvalid, assertProblem, openStore, type StoreClient } from '../support/store.ts'

const farthing = await openTestApp()
const { db } = farthing.ctx
const shop = await openStore(farthing)
const path = '/api/v1/checkouts'

test('the store sees the payment of a completed checkout', async () => {
  const { id } = await shop.create({ priceAmount: '2' })
  const transaction = await completeByHand(farthing, id)
  const expected = {
    transaction,
    payer,
    network: 'eip155:8453',
    // Stored in lower case, as in the chain's logs, but returned with its checksum.
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    amount: '2000000',
    finality: 'included',
  }
  const read = async () => (await shop.call('GET', `${path}/${id}`)).json<StoreCheckout>()
  assert.deepEqual((await read()).payment, expected)
  for (const finality of ['safe', 'finalized', 'reversed']) {
    await db.query(`update credits set ${finality}_at = clock() where checkout_id = $1`, [id])
    assert.deepEqual((await read()).payment, { ...expected, finality })
  }
  await db.query('update credits set orphaned_at = clock() where checkout_id = $1', [id])
  assert.equal((await read()).payment, null)
})

test('an id that does not exist gets 404, whatever characters it contains', async () => {
  for (const id of [
    'ch_',
    'ch_x',
    shop.id,
    '%00',
    '%F0%9F%98%80',
    `ch_00${'0'.repeat(26)}`,
    'x'.repeat(300),
  ]) {
    assertProblem(await shop.call('GET', `${path}/${id}`), 404, 'not_found')
    assertProblem(await shop.call('POST', `${path}/${id}/cancel`), 404, 'not_found')
  }
})

const list = async (by: StoreClient, query: Record<string, string | number>) => {
  const answer = await by.call('GET', `${path}?${new URLSearchParams(query as Record<string, string>)}`)
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.json<Page<StoreCheckout>>()
}
const idsOf = ({ data }: Page<StoreCheckout>) => data.map(({ id }) => id)

test('checkouts are listed newest first, 20 by default, and filtered by status and by order', async () => {
  const seller = await openStore(farthing)
  assert.deepEqual(await list(seller, {}), { data: [], nextCursor: null })
  const made = await Promise.all(
    Array.from({ length: 25 }, (_, i) => seller.create({ orderId: `o-${i % 5}` })),
  )
  const newest = made
    .map(({ id }) => id)
    .sort()
    .reverse()
  assert.deepEqual(idsOf(await list(seller, {})), newest.slice(0, 20))
  assert.deepEqual(idsOf(await list(seller, { limit: 100 })), newest)
  assert.equal((await list(seller, { limit: 25 })).nextCursor, null)
  const canceled = made[3] as Checkout
  await seller.call('POST', `${path}/${canceled.id}/cancel`)
  assert.deepEqual(idsOf(await list(seller, { status: 'CANCELED' })), [canceled.id])
  assert.equal((await list(seller, { status: 'OPEN', limit: 100 })).data.length, 24)
  const ofOrder = await list(seller, { orderId: 'o-3' })
  assert.equal(ofOrder.data.length, 5)
  assert(ofOrder.data.every(({ orderId }) => orderId === 'o-3'))
  assert.deepEqual(idsOf(await list(seller, { orderId: 'o-3', status: 'CANCELED' })), [canceled.id])
  assert.deepEqual(idsOf(await list(seller, { orderId: 'none' })), [])
})

test('paging through a list by cursor returns every checkout once, even while new ones are created', async () => {
  const seller = await openStore(farthing)
  const before = await Promise.all(Array.from({ length: 12 }, () => seller.create()))
  const met: string[] = []
  let cursor: string | null = null
  do {
    const page: Page<StoreCheckout> = await list(seller, { limit: 5, ...(cursor && { cursor }) })
    met.push(...idsOf(page))
    cursor = page.nextCursor
    assert(met.length <= before.length, 'the list does not end')
    await seller.create()
  } while (cursor !== null)
  assert.deepEqual(
    met,
    before
      .map(({ id }) => id)
      .sort()
      .reverse(),
  )
})

test('a list can be limited to a time range that includes its start and excludes its end', async () => {
  const seller = await openStore(farthing)
  const times = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z', '2026-01-02T00:00:00.000Z']
  for (const time of times) {
    farthing.clock.now = new Date(time)
    await seller.create()
  }
  farthing.clock.now = null
  const [first = '', second = '', third = ''] = times
  const createdIn = async (query: Record<string, string>) =>
    (await list(seller, query)).data.map(({ createdAt }) => createdAt)
  assert.deepEqual(await createdIn({ createdFrom: first }), [third, second, first])
  assert.deepEqual(await createdIn({ createdFrom: second }), [third, second])
  assert.deepEqual(await createdIn({ createdBefore: third }), [second, first])
  assert.deepEqual(await createdIn({ createdFrom: first, createdBefore: second }), [first])
  assert.deepEqual(await createdIn({ createdFrom: '2026-01-01T01:00:00.001+01:00' }), [third, second])
  assert.deepEqual(await createdIn({ createdFrom: third, createdBefore: first }), [])
  const { nextCursor } = await list(seller, { createdBefore: third, limit: '1' })
  assert.deepEqual(await createdIn({ createdBefore: third, cursor: String(nextCursor) }), [first])
})

test('a list query with an invalid parameter is refused and names the parameter', async () => {
  for (const [parameter, values] of Object.entries({
    limit: ['0', '101', '-1', '1.5', 'x', ''],
    cursor: ['', 'x', 'ch_', shop.id, 'x'.repeat(101), '%00'],
    status: ['', 'open', 'PAID'],
    createdFrom: ['', 'yesterday', '2026-01-01', '2026-13-01T00:00:00Z', '1969-12-31T23:59:59Z'],
    createdBefore: ['2026-01-01T00:00:00', '%00'],
    orderId: ['%00', 'x'.repeat(256)],
    color: ['red'],
  }))
    for (const value of values)
      assertInvalid(await shop.call('GET', `${path}?${parameter}=${value}`), parameter)
  assertInvalid(await shop.call('GET', `${path}?limit=1&limit=2`), 'limit')
})
