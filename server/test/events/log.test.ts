import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Checkout, Event, EventPage, Wallet } from '@farthing/sdk'
import { expireCheckouts } from '../../src/checkouts/expire.ts'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import { createKey, revokeKey, rotateKey } from '../../src/stores/api-keys.ts'
import { openTestApp } from '../support/app.ts'
import { letTimePass } from '../support/by-hand.ts'
import { byOperator } from '../support/operator.ts'
import {
  assertInvalid,
  assertProblem,
  openStore,
  registerWallet,
  type StoreClient,
  wallets,
} from '../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const page = async (by: StoreClient, query = '') => {
  const answer = await by.call('GET', `/api/v1/events${query}`)
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.json<EventPage>()
}
const brief = (events: readonly Event[]) =>
  events.map(({ type, checkoutId, checkoutVersion }) => [type, checkoutId, checkoutVersion])
const cancel = (by: StoreClient, id: string) => by.call('POST', `/api/v1/checkouts/${id}/cancel`)

test('each change to a checkout leaves one event, with its version and the checkout as it was at that moment', async () => {
  const shop = await openStore(farthing)
  const [canceled, expired] = [await shop.create({ orderId: 'a' }), await shop.create({ orderId: 'b' })]
  await cancel(shop, canceled.id)
  await letTimePass(farthing, expired.id)
  const { expiresAt, createdAt } = (
    await shop.call('GET', `/api/v1/checkouts/${expired.id}`)
  ).json<Checkout>()
  await expireCheckouts(ctx, new Date())
  const events = (await shop.events()).filter(({ checkoutId }) => checkoutId !== null)
  assert.deepEqual(brief(events), [
    ['checkout.created', canceled.id, 1],
    ['checkout.created', expired.id, 1],
    ['checkout.canceled', canceled.id, 2],
    ['checkout.expired', expired.id, 2],
  ])
  assert.deepEqual(
    events.map(({ data }) => data),
    [
      { checkout: { ...canceled, payment: null } },
      { checkout: { ...expired, payment: null } },
      { checkout: { ...canceled, status: 'CANCELED', payment: null } },
      { checkout: { ...expired, expiresAt, createdAt, status: 'EXPIRED', payment: null } },
    ],
  )
})

test('each change to wallets and keys leaves one event, which never contains a secret', async () => {
  const shop = await openStore(farthing, { evmWallet: null })
  const registered = await registerWallet(shop, wallets[0])
  await registerWallet(shop, wallets[0])
  const second = await registerWallet(shop, wallets[1])
  const renewed = await registerWallet(shop, wallets[0])
  const retired = (
    await shop.call('POST', `/api/v1/stores/${shop.id}/wallets/${second.id}/retire`)
  ).json<Wallet>()
  const made = await createKey(ctx, shop.store.id, byOperator, {}, new Date())
  const rotated = await rotateKey(
    ctx,
    null,
    byOperator,
    { keyId: made.key.id, overlapSeconds: 3_600 },
    new Date(),
  )
  await revokeKey(ctx, null, byOperator, made.key.id, new Date())
  await revokeKey(ctx, null, byOperator, made.key.id, new Date())
  const events = await shop.events()
  assert.deepEqual(brief(events.slice(1)), [
    ['wallet.registered', null, null],
    ['wallet.registered', null, null],
    ['wallet.registered', null, null],
    ['wallet.retired', null, null],
    ['key.created', null, null],
    ['key.created', null, null],
    ['key.revoked', null, null],
  ])
  assert.deepEqual(
    events.slice(1, 5).map(({ data }) => data),
    [{ wallet: registered }, { wallet: second }, { wallet: renewed }, { wallet: retired }],
  )
  const keys = events.flatMap(({ data }) => ('key' in data ? [data.key] : []))
  assert.deepEqual(
    keys.slice(1).map(({ id }) => id),
    [made.key.id, rotated.key.id, made.key.id],
  )
  assert.deepEqual(
    keys.map(({ revokedAt }) => revokedAt === null),
    [true, true, true, false],
  )
  const log = JSON.stringify(events)
  for (const text of [shop.key, made.text, rotated.text])
    assert(!log.includes(text.slice(-52)), 'the log contains a secret')
})

test('a refused request leaves no event', async () => {
  const shop = await openStore(farthing)
  const before = await shop.events()
  const { id } = await (await openStore(farthing)).create()
  assertProblem(await cancel(shop, id), 404, 'not_found')
  assertInvalid(
    await shop.call('POST', '/api/v1/checkouts', { orderId: 'x' }),
    '/priceAmount',
    '/priceCurrency',
  )
  assert.deepEqual(await shop.events(), before)
})

test('an event is invisible until it has its sequence number, and then never moves', async () => {
  const shop = await openStore(farthing)
  const before = await shop.events()
  const { id } = await shop.create()
  assert.deepEqual((await page(shop)).data, before)
  assert((await assignWaitingSequences(ctx)) >= 1)
  const { data } = await page(shop)
  assert.deepEqual(data.slice(0, -1), before)
  assert.equal(data.at(-1)?.checkoutId, id)
  assert.equal(await assignWaitingSequences(ctx), 0)
  assert.deepEqual((await page(shop)).data, data)
})

test('sequence numbers count 1, 2, 3 … per store, even when several processes assign them at once', async () => {
  const shops = [await openStore(farthing), await openStore(farthing)]
  await Promise.all(
    shops.map(async (shop) => {
      for (let round = 0; round < 3; round++) {
        const made = await Promise.all(Array.from({ length: 8 }, () => shop.create()))
        await Promise.all([...made.map(({ id }) => cancel(shop, id)), assignWaitingSequences(ctx)])
        await Promise.all(Array.from({ length: 4 }, () => assignWaitingSequences(ctx)))
      }
    }),
  )
  for (const shop of shops) {
    const events = await shop.events()
    assert.deepEqual(
      events.map(({ sequence }) => sequence),
      events.map((_, i) => i + 1),
    )
    const versions = Map.groupBy(
      events.filter(({ checkoutId }) => checkoutId),
      ({ checkoutId }) => checkoutId,
    )
    assert.equal(versions.size, 24)
    for (const [id, own] of versions)
      assert.deepEqual(
        own.map(({ checkoutVersion }) => checkoutVersion),
        [1, 2],
        String(id),
      )
  }
})

test('reading from cursor to cursor returns every event once, including later ones', async () => {
  const shop = await openStore(farthing)
  await Promise.all(Array.from({ length: 9 }, () => shop.create()))
  const all = await shop.events()
  const met: Event[] = []
  let after = ''
  let read: EventPage
  do {
    read = await page(shop, `?limit=4${after}`)
    met.push(...read.data)
    after = `&after=${read.cursor}`
    assert(met.length <= all.length, 'the log has no end')
  } while (read.hasMore)
  assert.deepEqual(met, all)
  const idle = await page(shop, `?limit=4${after}`)
  assert.deepEqual(idle, { data: [], cursor: read.cursor, hasMore: false })
  const { id } = await shop.create()
  await assignWaitingSequences(ctx)
  assert.deepEqual(brief((await page(shop, `?limit=4${after}`)).data), [['checkout.created', id, 1]])
})

test('the log can be filtered by type and by checkout, and its cursor still advances', async () => {
  const shop = await openStore(farthing)
  const [one, other] = [await shop.create(), await shop.create()]
  await cancel(shop, one.id)
  await assignWaitingSequences(ctx)
  assert.deepEqual(brief((await page(shop, `?checkoutId=${one.id}`)).data), [
    ['checkout.created', one.id, 1],
    ['checkout.canceled', one.id, 2],
  ])
  const first = await page(shop, '?type=checkout.created&limit=1')
  assert.deepEqual([brief(first.data), first.hasMore], [[['checkout.created', one.id, 1]], true])
  const second = await page(shop, `?type=checkout.created&limit=1&after=${first.cursor}`)
  assert.deepEqual([brief(second.data), second.hasMore], [[['checkout.created', other.id, 1]], false])
  const both = await page(shop, `?type=checkout.canceled&checkoutId=${other.id}`)
  assert.deepEqual(both.data, [])
})

test('an invalid events query is rejected with the name of the invalid parameter', async () => {
  const shop = await openStore(farthing)
  for (const [parameter, values] of Object.entries({
    after: ['', 'x', '1', '-1', '1-', '1-x', '1--1', '1-1.5', `1-${'9'.repeat(19)}`, '%00'],
    type: ['', 'checkout.paid', 'CHECKOUT.CREATED'],
    limit: ['0', '101', 'x'],
    checkoutId: ['%00', 'x', shop.id],
    from: ['1'],
  }))
    for (const value of values)
      assertInvalid(await shop.call('GET', `/api/v1/events?${parameter}=${value}`), parameter)
})

test('after a restore an old cursor is rejected with the cursor to resume from, and nothing is missed from there', async () => {
  const shop = await openStore(farthing)
  await shop.create()
  const events = await shop.events()
  const { cursor } = await page(shop)
  const [epoch, last] = cursor.split('-')
  assert.equal(last, String(events.length))
  try {
    await ctx.db.query('update event_log set epoch = epoch + 1')
    const risen = Number(epoch) + 1
    const resumed = async (after: string) => {
      const answer = await shop.call('GET', `/api/v1/events?after=${after}`)
      const { resumeAfter } = assertProblem(answer, 409, 'log_restarted') as unknown as {
        resumeAfter: string
      }
      return resumeAfter
    }
    assert.equal(await resumed(cursor), `${risen}-${events.length}`)
    assert.equal(await resumed(`${epoch}-1`), `${risen}-1`)
    // Events that the store saw before the restore but that the log no longer has.
    assert.equal(await resumed(`${epoch}-${events.length + 7}`), `${risen}-${events.length}`)
    const { id } = await shop.create()
    await assignWaitingSequences(ctx)
    const next = await page(shop, `?after=${await resumed(`${epoch}-${events.length}`)}`)
    assert.deepEqual(brief(next.data), [['checkout.created', id, 1]])
    assert.equal(next.cursor, `${risen}-${events.length + 1}`)
  } finally {
    await ctx.db.query('update event_log set epoch = $1', [epoch])
  }
})

test('two events of one checkout cannot have the same version', async () => {
  const shop = await openStore(farthing)
  const { id } = await shop.create()
  await assert.rejects(
    ctx.db.query(
      `insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
       select 'evt_copy', store_id, 'checkout.canceled', checkout_id, checkout_version, data, created_at
       from events where checkout_id = $1`,
      [id],
    ),
    /events_one_per_version/,
  )
})

test('a cursor from before what retention deleted is answered 410 with the first number that is left', async () => {
  const shop = await openStore(farthing)
  await shop.create()
  await shop.create()
  const events = await shop.events()
  const { cursor } = await page(shop)
  const epoch = cursor.split('-')[0]
  const checkouts = events.filter(({ type }) => type === 'checkout.created')
  const [first, second] = checkouts
  assert(first && second && events.length > checkouts.length)
  // As retention does it.
  await ctx.db.query('delete from events where checkout_id = $1', [first.checkoutId])
  await ctx.db.query('insert into truncated_logs (store_id, last_sequence) values ($1, $2)', [
    shop.id,
    first.sequence,
  ])
  const stale = await shop.call('GET', `/api/v1/events?after=${epoch}-${first.sequence - 1}`)
  const problem = assertProblem(stale, 410, 'log_truncated') as unknown as { firstSequence: number }
  assert.equal(problem.firstSequence, first.sequence + 1)
  assertProblem(
    await shop.call('GET', `/api/v1/events?after=${epoch}-0&type=checkout.*`),
    410,
    'log_truncated',
  )
  const left = [['checkout.created', second.checkoutId, 1]]
  assert.deepEqual(brief((await page(shop, `?after=${epoch}-${first.sequence}`)).data), left)
  // Without a cursor the log begins where nothing was deleted, page by page.
  const begun = await page(shop, '?limit=1')
  assert.deepEqual(brief(begun.data), left)
  assert.equal((await page(shop, `?after=${begun.cursor}`)).data.length, 0)
  // Events of one checkout are all there or all gone, and other kinds are never deleted.
  assert.deepEqual(brief((await page(shop, `?after=${epoch}-0&checkoutId=${second.checkoutId}`)).data), left)
  const kept = events.filter(({ type }) => type.startsWith('wallet.'))
  assert(kept.length > 0)
  assert.deepEqual((await page(shop, '?type=wallet.*')).data, kept)
})
