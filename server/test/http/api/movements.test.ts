/** The books by API: pages, files, months, and nobody else's. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Movement, MovementPage } from '@farthing/sdk'
import { bookAll, payFinal } from '../../movements/support/books.ts'
import { bookAt, lineOf, onSolana } from '../../movements/support/lines.ts'
import { openTestApp } from '../../support/app.ts'
import { openAs } from '../../support/database.ts'
import { assertProblem, openStore, type StoreClient } from '../../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const work = { ...ctx, db: openAs('work', farthing.databaseUrl) }

const read = async (shop: StoreClient, query = ''): Promise<MovementPage> => {
  const answer = await shop.call('GET', `/api/v1/movements${query}`)
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.json<MovementPage>()
}

async function openStoreIn(timeZone: string): Promise<StoreClient> {
  const shop = await openStore(farthing)
  const answer = await shop.call('PATCH', `/api/v1/stores/${shop.id}`, { timeZone })
  assert.equal(answer.statusCode, 200, answer.body)
  return shop
}

test('a paid checkout’s line says what was paid, when, and what it is worth; with details, by whom', async () => {
  const shop = await openStore(farthing)
  const { paymentId, checkoutId } = await payFinal(farthing, shop, {
    orderId: 'A-1',
    description: 'Two cups',
  })
  await bookAll(work)
  const { data, nextCursor, isClosed } = await read(shop)
  assert.deepEqual([nextCursor, isClosed, data.length], [null, false, 1])
  const [line = assert.fail()] = data
  const { number, type, amount, orderId, value, valueCurrency, valueRateSource, reverses } = line
  assert.deepEqual(
    { number, type, amount, orderId, value, valueCurrency, valueRateSource, reverses },
    {
      ...{ number: 1, type: 'payment', amount: '12500000', orderId: 'A-1', value: '12.50', reverses: null },
      ...{ valueCurrency: 'USD', valueRateSource: 'price' },
    },
  )
  assert.deepEqual([line.paymentId, line.checkoutId, 'details' in line], [paymentId, checkoutId, false])
  const [detailed] = (await read(shop, '?details=true')).data
  assert.equal(detailed?.details?.description, 'Two cups')
  assert.match(detailed?.details?.payer ?? '', /^0x[0-9a-fA-F]{40}$/)
})

test('pages follow one another without a gap, and a key sees only its own store', async () => {
  const [shop, other] = [await openStore(farthing), await openStore(farthing)]
  await bookAt(farthing, '2026-10-01T00:00:00Z', [
    ...Array.from({ length: 7 }, (_, i) => lineOf(shop.id, { orderId: `S-${i}` })),
    ...Array.from({ length: 3 }, () => lineOf(other.id)),
  ])
  const numbers: number[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page: MovementPage = await read(shop, `?limit=3${cursor && `&cursor=${cursor}`}`)
    numbers.push(...page.data.map(({ number }) => number))
    cursor = page.nextCursor
  }
  assert.deepEqual(numbers, [1, 2, 3, 4, 5, 6, 7])
  assert.equal((await read(other)).data.length, 3)
  assertProblem(await shop.call('GET', '/api/v1/movements?cursor=-1'), 422, 'invalid_request')
})

test('a month is that of the store’s time zone, and closed once it is over', async () => {
  const shop = await openStoreIn('America/New_York')
  for (const [at, orderId] of [
    ['2026-10-01T03:59:59Z', 'September'],
    ['2026-10-01T04:00:00Z', 'October, first'],
    ['2026-11-01T03:59:59Z', 'October, last'],
    ['2026-11-01T04:00:00Z', 'November'],
  ] as const)
    await bookAt(farthing, at, [lineOf(shop.id, { orderId })])
  const october = await read(shop, '?month=2026-10')
  const orders = ({ data }: MovementPage) => data.map(({ orderId }) => orderId)
  assert.deepEqual([orders(october), october.isClosed], [['October, first', 'October, last'], true])
  const times = '?bookedFrom=2026-10-01T04:00:00Z&bookedBefore=2026-11-01T04:00:00Z'
  assert.deepEqual(await read(shop, times), october)
  const coming = await read(shop, '?month=2999-01')
  assert.deepEqual([coming.data, coming.isClosed], [[], false])
  for (const wrong of [
    'month=2026-13',
    'month=October',
    'month=2026-10&bookedFrom=2026-10-01T04:00:00Z',
    'bookedFrom=x',
  ])
    assertProblem(await shop.call('GET', `/api/v1/movements?${wrong}`), 422, 'invalid_request')
})

test('a file has the same lines as the pages, as CSV with the store’s days and as NDJSON', async () => {
  const shop = await openStoreIn('Asia/Kathmandu')
  await bookAt(farthing, '2026-10-31T18:20:00Z', [
    lineOf(shop.id, { orderId: '=1+1"; x', happenedAt: new Date('2026-10-31T18:10:00Z') }),
    lineOf(shop.id, {
      ...onSolana,
      ...{ type: 'refund', amount: -2_500_001n, value: '-2.25', valueCurrency: 'EUR', valueRate: '0.9' },
      ...{
        valueRateSource: 'ecb',
        valueRateTime: new Date('2026-10-31T00:00:00Z'),
        actor: { type: 'member', id: 'mem_1' },
      },
    }),
  ])
  const file = (accept: string) => shop.call('GET', '/api/v1/movements', undefined, { accept })
  const ndjson = await file('application/x-ndjson')
  const lines = ndjson.body.trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line) as Movement),
    (await read(shop)).data,
  )
  assert.deepEqual([ndjson.headers['farthing-lines'], ndjson.headers['farthing-closed']], ['2', 'false'])
  const csv = await file('text/csv')
  assert.equal(csv.headers['content-type'], 'text/csv; charset=utf-8')
  const [head = '', first = '', second = ''] = csv.body.split('\r\n')
  assert.match(head, /^number,id,type,happened_at,happened_on,booked_at,booked_on,order_id,/)
  // Kathmandu is 5:45 ahead: 23:55 on the 31st when it happened, 0:05 on the 1st when it was booked.
  assert.match(
    first,
    /,2026-10-31T18:10:00\.000Z,2026-10-31,2026-10-31T18:20:00\.\d{3}Z,2026-11-01,"'=1\+1""; x",/,
  )
  const names = head.split(',')
  const of = (name: string) => second.split(',')[names.indexOf(name)]
  assert.deepEqual(
    ['amount', 'value', 'value_currency', 'value_rate', 'token', 'wallet', 'decided_by'].map(of),
    ['-2.500001', '-2.25', 'EUR', '0.9', 'USDC', onSolana.wallet, 'member mem_1'],
  )
})
