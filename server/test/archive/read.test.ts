/** What is in the archive reads as it did before, whoever asks and however, and each store sees only its own. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Checkout, Delivery, EventPage, Page, Payment } from '@farthing/sdk'
import { listPayments } from '../../src/checkouts/payments/list.ts'
import { listCheckouts, readCheckout } from '../../src/checkouts/read.ts'
import { countRollups } from '../../src/checkouts/rollups/count.ts'
import { rebuildRollups } from '../../src/checkouts/rollups/rebuild.ts'
import { listClaims, listCredits } from '../../src/checkouts/trail-rows.ts'
import { updateStatus } from '../../src/checkouts/update-status.ts'
import { readView } from '../../src/checkouts/view.ts'
import { readEvents } from '../../src/events/read.ts'
import { enrolWith, openConsole, openInvitedStore } from '../http/console/support/console.ts'
import { creditByHand, payer, refundByHand } from '../support/by-hand.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { startDeciding } from '../support/decide.ts'
import { openStore } from '../support/store.ts'
import { archiveAll, makeAged, makeEnded, openWork, placesOf, sendAged, tables } from './support/aged.ts'

const console = await openConsole()
const { farthing } = console
const { ctx } = farthing
const work = openWork(farthing)
const neighbour = await openStore(farthing, { evmWallet: newPayer().address })
const invited = await openInvitedStore(console, { evmWallet: newPayer().address })
const owner = await enrolWith(console, invited.token)
const shop = invited.store

const foreign = await makeAged(farthing, neighbour)
for (const daysAgo of [250, 300]) await makeEnded(farthing, neighbour, 'EXPIRED', 'tea', daysAgo)
const paid = await makeAged(farthing, shop, 'tea')
const returned = await makeAged(farthing, shop, 'cup')
await refundByHand(farthing, returned.id, 'DECLARED')
await ctx.db.query("update refunds set created_at = created_at - interval '200 days'")
await sendAged(farthing, [paid.id, returned.id])
const expired = await makeEnded(farthing, shop, 'EXPIRED', 'tea')
const canceled = await makeEnded(farthing, shop, 'CANCELED', 'pot')
const recent = await shop.create({ orderId: 'tea' })
await shop.events()
while (await countRollups(work));

/** Paths of the API, of which each page is read to the end. */
const { data: refunds } = (await shop.call('GET', '/api/v1/refunds')).json<Page<{ id: string }>>()
const [refundId = ''] = refunds.map(({ id }) => id)
const [credit] = await ctx.db.query<{ transaction_hash: string; network: string }>(
  'select transaction_hash, network from credits where payment_id = $1',
  [paid.paymentId],
)
assert(credit)
const price = 'priceCurrency=USD&minPrice=1'
const reads: Readonly<Record<string, readonly string[]>> = {
  listCheckouts: [
    '',
    '?limit=1',
    '?orderId=tea',
    '?orderId=tea&status=EXPIRED',
    '?status=COMPLETED&limit=1',
    `?${price}`,
    '?createdBefore=2100-01-01T00:00:00Z&createdFrom=2020-01-01T00:00:00Z',
  ].map((query) => `/api/v1/checkouts${query}`),
  getCheckout: [paid.id, returned.id, expired, canceled, foreign.id].map((id) => `/api/v1/checkouts/${id}`),
  listPayments: [
    '',
    '?limit=1',
    `?checkoutId=${paid.id}`,
    '?disposition=exact',
    '?disposition=late',
    `?payer=${payer}`,
    `?transaction=${credit.transaction_hash}`,
    `?network=${credit.network}&minAmount=1`,
  ].map((query) => `/api/v1/payments${query}`),
  getPayment: [paid.paymentId, returned.paymentId, foreign.paymentId].map((id) => `/api/v1/payments/${id}`),
  listRefunds: ['', `?checkoutId=${returned.id}`].map((query) => `/api/v1/refunds${query}`),
  getRefund: [`/api/v1/refunds/${refundId}`],
  listEvents: [
    '',
    '?limit=2',
    '?type=checkout.created',
    '?type=checkout.*&limit=1',
    `?checkoutId=${paid.id}`,
    `?checkoutId=${foreign.id}`,
  ].map((query) => `/api/v1/events${query}`),
  openCheckoutPage: [paid.id, returned.id, expired, canceled].map((id) => `/pay/${id}`),
}
/** These answer from rows that are never archived. */
const unconcerned = [
  'getOwnStore',
  'getStore',
  'listWallets',
  'listKeys',
  'listWebhookEndpoints',
  'getWebhookEndpoint',
  'listDeliveries',
  'getDelivery',
  'listNetworks',
  'listCurrencies',
]
const posts = [
  ...[paid.id, expired, canceled].flatMap((id) => [`/api/v1/checkouts/${id}`, `/pay/${id}`]),
  ...[paid.id, expired, canceled].map((id) => `/api/v1/checkouts/${id}/cancel`),
]
const screens = [
  ...[paid.id, returned.id, expired].map((id) => `/checkouts/${id}`),
  '',
  '/payments',
  '/payments?q=tea',
  `/payments?q=${paid.id}`,
  `/payments?q=${credit.transaction_hash}`,
  '/payments?show=money',
  '/payments/export',
  '/refunds',
  `/refunds/${refundId}`,
  '/developers/events',
  '/inbox',
]

type Answered = readonly [status: number, body: string]

async function readAll(): Promise<Record<string, Answered>> {
  const found: Record<string, Answered> = {}
  for (const path of Object.values(reads).flat()) {
    for (let next: string | null = path; next !== null; ) {
      const answer = await shop.call('GET', next)
      found[next] = [answer.statusCode, withoutTokens(answer.body)]
      const page: Partial<Page<unknown> & EventPage> =
        answer.statusCode === 200 && next.startsWith('/api') ? answer.json() : {}
      const cursor = page.nextCursor
        ? `cursor=${page.nextCursor}`
        : page.hasMore
          ? `after=${page.cursor}`
          : null
      const rest = path.includes('?') ? `${path}&` : `${path}?`
      next = cursor === null ? null : rest + cursor
    }
  }
  for (const path of posts) {
    const answer = await shop.call('POST', path)
    found[`POST ${path}`] = [answer.statusCode, withoutTokens(answer.body)]
  }
  for (const path of screens) {
    const answer = await owner.browser.get(`/stores/${shop.id}${path}`)
    found[`console ${path}`] = [answer.statusCode, withoutTokens(answer.body)]
  }
  return found
}

/** What differs between two answers to the same request anyway. */
function withoutTokens(body: string): string {
  return body.replaceAll(
    /req_\w+|(?:value|content)="[\w-]{20,}"|nonce="[^"]+"|\d+ (seconds?|minutes?) ago/g,
    '…',
  )
}

test('every operation and screen answers as before for a checkout that is in the archive', async () => {
  const document = JSON.parse(
    await readFile(new URL('../../../docs/api/openapi.json', import.meta.url), 'utf8'),
  ) as { paths: Record<string, Record<string, { operationId: string }>> }
  const operations = Object.values(document.paths).flatMap(({ get }) => get?.operationId ?? [])
  assert.deepEqual(operations.sort(), [...Object.keys(reads), ...unconcerned].sort())

  const before = await readAll()
  const isFine = (path: string, status: number) => (path.startsWith('console') ? status < 400 : status < 500)
  for (const [path, [status]] of Object.entries(before)) assert(isFine(path, status), `${status} ${path}`)
  const rollups = async () => await ctx.db.query('select * from rollup_quarters order by 1, 2')
  const counted = await rollups()
  await archiveAll(work)
  for (const id of [paid.id, returned.id, expired, canceled, foreign.id])
    assert.deepEqual(await placesOf(farthing, id), ['archive'])
  assert.deepEqual(await ctx.db.query('select 1 as one from broadcasts'), [])
  const after = await readAll()
  for (const [path, answer] of Object.entries(before)) assert.deepEqual(after[path], answer, path)
  assert.deepEqual(Object.keys(after), Object.keys(before))
  // Reading, and being refused, brings nothing back.
  assert.deepEqual(await placesOf(farthing, paid.id), ['archive'])
  await rebuildRollups(ctx, shop.store.id)
  assert.deepEqual(await rollups(), counted)
  const { data } = (await shop.call('GET', '/api/v1/checkouts')).json<Page<Checkout>>()
  assert.deepEqual(
    data.map(({ id }) => id),
    [recent.id, canceled, expired, returned.id, paid.id],
  )
})

/** The plans of what is asked of both places. */
async function plansOf(
  work: (listening: typeof ctx) => Promise<unknown>,
  setting = '',
): Promise<[text: string, plan: string][]> {
  const heard: [string, readonly unknown[]][] = []
  const db: typeof ctx.db = {
    ...ctx.db,
    query(text, values = []) {
      if (text.includes(' all_')) heard.push([text, values])
      return ctx.db.query(text, values)
    },
  }
  await work({ ...ctx, db })
  return await ctx.db.transaction(async (tx) => {
    await tx.script(setting)
    const plans: [string, string][] = []
    for (const [text, values] of heard)
      plans.push([text, JSON.stringify(await tx.query(`explain (format json) ${text}`, values))])
    return plans
  })
}

test('lists over both places are merged in the order of indexes, and read no table as a whole', async () => {
  const storeId = shop.store.id
  const plans = await plansOf(async (listening) => {
    for (const filter of [{}, { orderId: 'tea' }, { status: 'EXPIRED' }])
      await listCheckouts(listening, storeId, { ...filter, limit: 2 })
    for (const filter of [{}, { payer }]) await listPayments(listening, storeId, { ...filter, limit: 2 })
    await readEvents(listening, storeId, { type: null, checkoutId: null, actor: null, after: null, limit: 2 })
  })
  assert.equal(plans.length, 6)
  for (const [text, plan] of plans) {
    assert.match(plan, /"Merge Append"/, text)
    assert.doesNotMatch(plan, /"Seq Scan"/, text)
  }
})

test('a checkout in the archive is looked for in its own month, and what was sent for it by its key', async () => {
  const { id } = paid
  const plans = await plansOf(async (listening) => {
    assert.equal((await readCheckout(listening, shop.store.id, id)).id, id)
    assert.equal((await readView(listening, id))?.checkout.id, id)
    assert.equal((await listCredits(listening.db, shop.store.id, id)).length, 1)
  })
  assert.equal(plans.length, 5)
  for (const [text, plan] of plans) {
    const months = Array.from(plan.matchAll(/"archived_\w+_(\d{4}_\d\d)"/g), ([, month]) => month)
    assert.equal(new Set(months).size, 1, text)
  }
  const [claims] = await plansOf(
    async ({ db }) => assert.equal((await listClaims(db, shop.store.id, id)).length, 1),
    'set local enable_nestloop = off',
  )
  assert.match(claims?.[1] ?? '', /archived_broadcasts/)
  assert.doesNotMatch(claims?.[1] ?? '', /"Hash Cond":"[^"]*settler/)
})

test('the console sees one store’s part of the archive, and no role can change it', async () => {
  const seen = openAs('console', farthing.databaseUrl)
  for (const table of tables.filter((each) => !/^(reserved|pasted|payment)/.test(each)))
    for (const name of [`archived_${table}`, `all_${table}`]) {
      const counts = await seen.transaction(async (tx) => {
        await tx.query("select set_config('farthing.store', $1, true)", [shop.id])
        return await tx.query<{ own: boolean }>(`select distinct store_id = $1 as own from ${name}`, [
          shop.id,
        ])
      })
      assert.deepEqual(counts, [{ own: true }], name)
      assert.deepEqual(await seen.query(`select 1 as one from ${name}`), [], `${name} without a store`)
    }
  for (const role of ['serve', 'work', 'console'] as const) {
    const db = openAs(role, farthing.databaseUrl)
    for (const sql of [
      'update archived_checkouts set status = status',
      'delete from archived_credits',
      "insert into archived_logs values ('st_1', 1)",
      ...(role === 'work'
        ? []
        : ["select archive_checkouts('ch_', 'ch~', 90, 1)", "select open_archive_month('ch_')"]),
    ])
      await assert.rejects(db.query(sql), /permission denied/, `${role}: ${sql}`)
  }
})

test('whatever is written about an archived checkout brings it back, and goes on as ever', async () => {
  startDeciding(farthing)
  const isBack = async (id: string, why: string) =>
    assert.deepEqual(await placesOf(farthing, id), ['hot'], why)
  const post = async (path: string, body: unknown, status: number) => {
    const answer = await shop.call('POST', path, body)
    assert.equal(answer.statusCode, status, answer.body)
    return answer
  }
  await post(`/api/v1/payments/${paid.paymentId}/refunds`, {}, 201)
  await isBack(paid.id, 'a refund')
  await post(`/api/v1/payments/${returned.paymentId}/note`, { note: 'Sent back' }, 200)
  await isBack(returned.id, 'a note')
  const stray = await creditByHand(farthing, recent.id)
  const accepted = await post(`/api/v1/payments/${stray}/accept`, { checkoutId: expired }, 200)
  assert.equal(accepted.json<Payment>().checkoutId, expired)
  await isBack(expired, 'a payment that was accepted for it')
  // A fact that turns up late, twice at once.
  const late = () => ctx.db.transaction((tx) => updateStatus(ctx, tx, [canceled], new Date()))
  await Promise.all([late(), late()])
  await isBack(canceled, 'a fact')
  await archiveAll(work)
  assert.deepEqual(await placesOf(farthing, canceled), ['archive'])
  await isBack(paid.id, 'a refund is on its way')

  const named = await farthing.request({
    method: 'POST',
    url: `/pay/${canceled}/transaction`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: `hash=0x${'ab'.repeat(32)}`,
  })
  assert(named.statusCode < 400, named.body)
  await isBack(canceled, 'a transaction that its buyer named')
})

test('events in the archive are delivered again, and stay until that is over', async () => {
  const id = await makeEnded(farthing, neighbour, 'EXPIRED', 'old')
  await archiveAll(work)
  assert.deepEqual(await placesOf(farthing, id), ['archive'])
  const url = 'https://neighbour.example/hook'
  const made = await neighbour.call('POST', '/api/v1/webhook-endpoints', { url })
  assert.equal(made.statusCode, 201, made.body)
  const endpoint = made.json<{ id: string }>()
  const again = await neighbour.call('POST', `/api/v1/webhook-endpoints/${endpoint.id}/redeliver`, {
    after: '1-0',
    include: 'all',
  })
  assert.equal(again.statusCode, 202, again.body)
  const deliveries = `/api/v1/webhook-endpoints/${endpoint.id}/deliveries`
  const told = (await neighbour.call('GET', deliveries)).json<Page<Delivery>>().data
  const events = (await neighbour.call('GET', `/api/v1/events?checkoutId=${id}`)).json<EventPage>().data
  assert.equal(events.length, 1)
  assert(told.some(({ eventId }) => eventId === events[0]?.id))
  await archiveAll(work)
  assert.deepEqual(await placesOf(farthing, id), ['hot'])
})
