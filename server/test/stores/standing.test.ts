/** Which stores create checkouts, and that nothing else depends on it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '@farthing/sdk'
import { createStore } from '../../src/stores/create.ts'
import { noteStoreProven } from '../../src/stores/prove.ts'
import { decideStanding, type StandingDecision } from '../../src/stores/standing.ts'
import { creditByHand } from '../support/by-hand.ts'
import { operator } from '../support/operator.ts'
import { openShop } from '../support/shop.ts'
import { assertProblem, openStore, order, type StoreClient, send, wallets } from '../support/store.ts'
import { until } from '../support/until.ts'

const shop = await openShop({ settings: { UNPROVEN_CHECKOUTS_PER_HOUR: '3' } })
const { ctx } = shop

const decide = (storeId: StoreClient['store']['id'], decision: StandingDecision) =>
  ctx.db.transaction((tx) => decideStanding(ctx, tx, { storeId, actor: operator, decision, now: ctx.now() }))
const suspend = { verb: 'suspend', reason: 'Sells what it does not have.' } as const

async function openSeller(change = ''): Promise<StoreClient> {
  const seller = await openStore(shop, { mode: 'test', evmWallet: wallets[2] })
  if (change !== '') await ctx.db.query(`update stores set ${change} where id = $1`, [seller.id])
  return seller
}
const create = (seller: StoreClient, key?: string) =>
  seller.call('POST', '/api/v1/checkouts', order, key === undefined ? {} : { 'idempotency-key': key })
/** Two may be numbering events, the worker and the test, so one may not see yet what the other is at. */
const untilTold = (seller: StoreClient, type: string) =>
  until(`the log ends with ${type}`, async () => (await seller.events()).at(-1)?.type === type)
const standingOf = async (seller: StoreClient) =>
  (await seller.call('GET', '/api/v1/store')).json<Store>().standing

test('a suspended store creates no checkouts, not even by a process that knew it a moment ago; its owners read why', async () => {
  const seller = await openSeller()
  await seller.create()
  const stored = await create(seller, 'key-1')
  await decide(seller.store.id, suspend)
  const { detail } = assertProblemHere(await create(seller), 'store_inactive')
  assert.match(detail, /Sells what it does not have\./)
  assert.equal((await create(seller, 'key-1')).body, stored.body, 'a repeated request gets its first answer')
  await untilTold(seller, 'store.suspended')
  const event = (await seller.events()).at(-1) ?? assert.fail()
  assert(event.type === 'store.suspended')
  assert.deepEqual(event.actor, operator)
  const { store } = event.data
  assert.deepEqual([store.standing, store.suspendedReason], ['suspended', suspend.reason])

  assert.equal((await decide(seller.store.id, suspend)).isChanged, false)
  assert.equal(
    (await decide(seller.store.id, { verb: 'approve' })).isChanged,
    false,
    'approving lifts nothing',
  )
  assert.equal((await create(seller)).statusCode, 403)
  await decide(seller.store.id, { verb: 'resume' })
  await untilTold(seller, 'store.resumed')
  await seller.create()
})

test('the buyer of a suspended store still pays, and the store reads, accepts, cancels and changes its settings', async () => {
  const payer = await shop.fund()
  const seller: StoreClient['call'] = (method, path, body) =>
    send(shop.app, method, path, body, { 'x-api-key': shop.key })
  const [paid, open, stray] = [await shop.create(), await shop.create(), await shop.create('3.00')]
  const paymentId = await creditByHand(shop, stray)
  await decide(shop.store.id, suspend)
  const answer = await shop.pay(paid, await shop.sign(paid, payer))
  assert.equal(answer.statusCode, 200, answer.body)
  assert.equal((await shop.read(paid)).status, 'COMPLETED')
  const done = [
    await seller('POST', `/api/v1/checkouts/${open}/cancel`),
    await seller('POST', `/api/v1/payments/${paymentId}/accept`, { checkoutId: stray }),
    await seller('GET', '/api/v1/payments'),
    await seller('PATCH', `/api/v1/stores/${shop.store.id}`, { name: 'Shop' }),
  ]
  for (const each of done) assert.equal(each.statusCode, 200, each.body)
  await decide(shop.store.id, { verb: 'resume' })
})

test('a store that waits is approved by an operator; one that is unproven by that or by its proof', async () => {
  const waiting = await openSeller("admission = 'waiting', revision = revision + 1")
  assertProblemHere(await create(waiting), 'store_inactive')
  await ctx.db.transaction((tx) => noteStoreProven(tx, waiting.store.id, ctx.now()))
  assert.equal((await create(waiting)).statusCode, 403, 'a proof is not what it waits for')
  await decide(waiting.store.id, { verb: 'approve' })
  await waiting.create()

  const unproven = await openSeller("admission = 'unproven', revision = revision + 1")
  assert.equal(await standingOf(unproven), 'unproven')
  assertProblemHere(await create(unproven), 'store_inactive')
  await ctx.db.transaction((tx) => noteStoreProven(tx, unproven.store.id, ctx.now()))
  await unproven.create()
  await decide(unproven.store.id, suspend)
  await decide(unproven.store.id, { verb: 'resume' })
  await unproven.create()
})

test('suspending and resuming a store that waits leaves it waiting', async () => {
  const { id } = await createStore(ctx, { name: 'New', mode: 'test', signsUpAs: 'waiting' }, ctx.now())
  await decide(id, suspend)
  const { store } = await decide(id, { verb: 'resume' })
  assert.equal(store.standing, 'waiting')
  assert.equal((await decide(id, { verb: 'approve' })).store.standing, 'approved')
})

test('a store that was signed up for creates so many checkouts per hour, however many ask at once, until it has proven a wallet', async () => {
  const seller = await openSeller('signed_up = true, revision = revision + 1')
  const first = await create(seller, 'first')
  const answers = await Promise.all(Array.from({ length: 8 }, () => create(seller)))
  assert.deepEqual(answers.map(({ statusCode }) => statusCode).sort(), [201, 201, ...Array(6).fill(429)])
  const refused = answers.find(({ statusCode }) => statusCode === 429) ?? assert.fail()
  assert(Number.parseInt(String(refused.headers['retry-after']), 10) > 3_000)
  assert.equal((await create(seller, 'first')).body, first.body, 'a repeated request gets its first answer')
  shop.clock.now = new Date(Date.now() + 3_601_000)
  assert.equal((await create(seller)).statusCode, 201)
  shop.clock.now = null
  await ctx.db.transaction((tx) => noteStoreProven(tx, seller.store.id, ctx.now()))
  await seller.create()
})

function assertProblemHere(answer: Awaited<ReturnType<typeof create>>, code: 'store_inactive') {
  return assertProblem(answer, 403, code)
}
