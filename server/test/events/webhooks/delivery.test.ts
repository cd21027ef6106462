/** Webhook deliveries: their content, the reaction to each answer, and what a store can inspect and redeliver. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import type { Event } from '@farthing/sdk'
import { verifyWebhook } from '@farthing/sdk/webhooks'
import { Webhook } from 'standardwebhooks'
import { assignWaitingSequences } from '../../../src/events/assign-sequence.ts'
import { openDeliverer } from '../../../src/events/webhooks/deliver.ts'
import { tidyDeliveries } from '../../../src/events/webhooks/deliveries.ts'
import { delaysSeconds } from '../../../src/events/webhooks/schedule.ts'
import { lockDueEndpoints, takeDeliveries } from '../../../src/events/webhooks/take.ts'
import { until } from '../../support/until.ts'
import { deliverDue, later, openHookShop, openLocalApp } from './support/endpoints.ts'
import { answer, drip, flood, openReceiver, type Received, reset } from './support/receiver.ts'

const farthing = await openLocalApp()
const { ctx } = farthing
const idsOf = (received: readonly Received[]) => received.map(({ headers }) => headers['webhook-id'])

test('an event is delivered exactly as the log shows it, signed according to Standard Webhooks 1.0', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  const { id, secret } = await shop.register({ url: `${receiver.url}/hook?x=1` })
  await shop.create()
  await deliverDue(ctx)
  const [received] = receiver.received
  assert(received && receiver.received.length === 1)
  assert.equal(received.path, '/hook?x=1')
  assert.equal(received.headers['content-type'], 'application/json')
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  const event = (await shop.log()).at(-1)
  // The standard's reference implementation and ours both accept it.
  assert.deepEqual(new Webhook(secret).verify(received.body.toString(), received.headers), event)
  assert.deepEqual(await verifyWebhook({ ...received, secrets: secret }), event)
  assert.equal(received.headers['webhook-id'], event?.id)
  const [delivery] = await shop.deliveries(id)
  assert.equal(delivery?.state, 'delivered')
  assert.deepEqual(
    delivery.attempts.map(({ attempt, status, error }) => [attempt, status, error]),
    [[1, 204, null]],
  )
})

test('an endpoint that falls back to one delivery at a time while deliveries are being chosen blocks no delivery', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  await shop.register({ url: receiver.url })
  /** The next transaction waits for this. */
  let gate: Promise<void> | null = null
  const transaction: typeof ctx.db.transaction = async (work) => {
    const mine = gate
    gate = null
    await mine
    return await ctx.db.transaction(work)
  }
  const deliverer = openDeliverer({ ...ctx, db: { ...ctx.db, transaction } })
  const step = () => deliverer.step(() => {})
  const happen = async (times: number) => {
    for (let i = 0; i < times; i++) await shop.create()
    while ((await assignWaitingSequences(ctx)) > 0);
  }
  for (let round = 0; round < 2; round++) {
    await happen(2)
    while (await step()) await deliverer.idle()
  }
  // The endpoint has been quick so far, so it may have several deliveries in flight: three are, and more are due.
  const held: ServerResponse[] = []
  receiver.behave = (_received, response) => held.push(response)
  await happen(3)
  assert(await step())
  await until('three deliveries are in flight', () => Promise.resolve(held.length === 3))
  await happen(2)
  const opened = Promise.withResolvers<void>()
  gate = opened.promise
  const choosing = step()
  held[0]?.writeHead(500).end()
  const failed = () =>
    ctx.db.query('select 1 as one from delivery_attempts where status = 500 and error is null')
  await until('one delivery has failed', async () => (await failed()).length > 0)
  opened.resolve()
  await choosing
  receiver.behave = answer(204)
  for (const response of held.splice(1)) response.writeHead(204).end()
  await deliverer.idle()
  await deliverDue(ctx)
  assert.equal(new Set(idsOf(receiver.received)).size, 9)
})

test('an endpoint gets the event types it selected, nothing from before it was created, and its own test events', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  await shop.create()
  await shop.log()
  const canceled = await shop.register({ url: `${receiver.url}/canceled`, types: ['checkout.canceled'] })
  await shop.register({ url: `${receiver.url}/all` })
  const { id } = await shop.create()
  await shop.call('POST', `/api/v1/checkouts/${id}/cancel`)
  const asked = await shop.call('POST', `/api/v1/webhook-endpoints/${canceled.id}/test`)
  assert.equal(asked.statusCode, 202)
  await deliverDue(ctx)
  const typesAt = (path: string) =>
    receiver.received
      .filter((received) => received.path === path)
      .map(({ body }) => (JSON.parse(body.toString()) as Event).type)
      .sort()
  // A security event: somebody registered a second endpoint.
  const second = 'webhook_endpoint.created'
  assert.deepEqual(typesAt('/canceled'), ['checkout.canceled', second, 'webhook_endpoint.test'])
  assert.deepEqual(typesAt('/all'), ['checkout.canceled', 'checkout.created'])
  assert((await shop.log()).some((event) => event.id === asked.json().eventId))
})

test('a failing delivery is tried ten times over about 75 hours with the same id and new signatures, then given up with an event', async () => {
  const total = delaysSeconds.reduce((sum, delay) => sum + delay, 0)
  assert.deepEqual([delaysSeconds.length, total], [10, 75 * 3_600 + 35 * 60 + 5])
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver(({ body }, response) =>
    response.writeHead(body.includes('"checkout.created"') ? 500 : 204).end('no'),
  )
  const { id, secret } = await shop.register({ url: receiver.url })
  const checkout = await shop.create()
  let seconds = 0
  for (const [i, delay] of delaysSeconds.entries()) {
    seconds += delay * 1.1 + 1
    const before = later(farthing, seconds - delay * 0.1 - 5)
    if (i > 1) await deliverDue(before)
    assert.equal(receiver.received.length, i, 'a try came too early')
    const now = later(farthing, seconds)
    await deliverDue(now)
    const last = receiver.received.at(-1)
    assert(last && receiver.received.length === i + 1)
    await verifyWebhook({ ...last, secrets: secret, now: now.now() })
    await Promise.all([before.close(), now.close()])
    // Another event succeeds in between, so only this event is failing, not the endpoint.
    if (i === 5) {
      await shop.call('POST', `/api/v1/checkouts/${checkout.id}/cancel`)
      const meanwhile = later(farthing, seconds)
      await deliverDue(meanwhile)
      await meanwhile.close()
      assert.equal(receiver.received.pop()?.body.includes('checkout.canceled'), true)
    }
  }
  assert.equal(new Set(idsOf(receiver.received)).size, 1)
  const delivery = (await shop.deliveries(id)).find(({ eventType }) => eventType === 'checkout.created')
  assert(delivery)
  assert.deepEqual(
    [delivery.state, delivery.tries, delivery.nextTryAt, delivery.attempts.length],
    ['undeliverable', 10, null, 10],
  )
  assert(delivery.attempts.every(({ status, answer: text }) => status === 500 && text === 'no'))
  const notice = (await shop.log()).at(-1)
  assert.equal(notice?.type, 'webhook_endpoint.undelivered')
  assert(notice && 'eventId' in notice.data && notice.data.eventId === delivery.eventId)
})

test('a try that ended with our process uses up none: the first failure after it is followed as soon as any first one', async () => {
  const local = await openLocalApp()
  const shop = await openHookShop(local)
  const receiver = await openReceiver(answer(500))
  const { id } = await shop.register({ url: receiver.url })
  await shop.create()
  while ((await assignWaitingSequences(local.ctx)) > 0);
  const leaseSeconds = 30
  for (let kills = 0; kills < 3; kills++) {
    const then = later(local, kills * (leaseSeconds + 1))
    const taken = await then.db.transaction(async (tx) => {
      const due = await lockDueEndpoints(tx, [], false, 10)
      return await takeDeliveries(
        tx,
        due.map((endpointId) => ({ id: endpointId, room: 1 })),
        leaseSeconds,
      )
    })
    // Nobody records what became of it.
    assert.deepEqual(
      taken.map(({ attempt, tries }) => [attempt, tries]),
      [[kills + 1, 0]],
    )
    await then.close()
  }
  const now = later(local, 3 * (leaseSeconds + 1))
  await deliverDue(now)
  const [delivery] = await shop.deliveries(id)
  assert.deepEqual([delivery?.state, delivery?.tries, receiver.received.length], ['pending', 1, 1])
  assert.deepEqual(
    delivery?.attempts.map(({ attempt, error }) => [attempt, error]),
    [
      [4, null],
      [3, 'interrupted'],
      [2, 'interrupted'],
      [1, 'interrupted'],
    ],
  )
  const [{ seconds } = assert.fail()] = await now.db.query<{ seconds: number }>(
    `select extract(epoch from d.run_at - a.started_at)::float8 - a.duration_ms / 1000.0 as seconds
     from deliveries d join delivery_attempts a on a.delivery_id = d.id where d.id = $1 and a.attempt = 4`,
    [delivery?.id],
  )
  // The second delay is five seconds and up to a tenth; the third is five minutes.
  assert(seconds >= 5 && seconds < 300, String(seconds))
})

test('an endpoint that only fails for three days is disabled, the store is notified, and only security events are left pending', async () => {
  const shop = await openHookShop(farthing)
  const dead = await openReceiver(answer(503))
  const alive = await openReceiver()
  const { id } = await shop.register({ url: dead.url })
  await shop.register({ url: alive.url, types: ['webhook_endpoint.disabled'] })
  await shop.create()
  await deliverDue(ctx)
  const soon = later(farthing, 71 * 3_600)
  await shop.create()
  await deliverDue(soon)
  assert.equal((await shop.call('GET', `/api/v1/webhook-endpoints/${id}`)).json().status, 'enabled')
  const late = later(farthing, 73 * 3_600)
  await shop.create()
  await deliverDue(late)
  await deliverDue(late)
  const endpoint = (await shop.call('GET', `/api/v1/webhook-endpoints/${id}`)).json()
  assert.deepEqual([endpoint.status, endpoint.disabledReason], ['disabled', 'failing'])
  const [told] = alive.received
  assert(told && JSON.parse(told.body.toString()).data.webhookEndpoint.id === id)
  await tidyDeliveries(ctx, ctx.now())
  const deliveries = await shop.deliveries(id)
  const pending = deliveries
    .filter(({ state }) => state !== 'undeliverable')
    .map(({ eventType }) => eventType)
  assert.deepEqual(pending, ['webhook_endpoint.created'])
  await Promise.all([soon.close(), late.close()])
})

test('an answer of 410 disables the endpoint at once', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver(answer(410))
  const { id } = await shop.register({ url: receiver.url })
  await shop.create()
  await deliverDue(ctx)
  await shop.create()
  await deliverDue(ctx)
  assert.equal(receiver.received.length, 1)
  const endpoint = (await shop.call('GET', `/api/v1/webhook-endpoints/${id}`)).json()
  assert.deepEqual([endpoint.status, endpoint.disabledReason], ['disabled', 'gone'])
  assert.equal((await shop.log()).filter(({ type }) => type === 'webhook_endpoint.disabled').length, 1)
})

test('429 and 503 with Retry-After pause all deliveries to the endpoint for that long', async () => {
  for (const [status, retryAfter] of [
    [429, '600'],
    [503, new Date(Date.now() + 600_000).toUTCString()],
  ] as const) {
    const shop = await openHookShop(farthing)
    const receiver = await openReceiver(answer(status, { 'retry-after': retryAfter }))
    await shop.register({ url: receiver.url })
    await shop.create()
    await deliverDue(ctx)
    receiver.behave = answer(204)
    await shop.create()
    const early = later(farthing, 560)
    await deliverDue(early)
    assert.equal(receiver.received.length, 1, 'the endpoint was not paused')
    const then = later(farthing, 630)
    await deliverDue(then)
    assert.equal(receiver.received.length, 3)
    await Promise.all([early.close(), then.close()])
  }
})

test('a redirect counts as a failure and is not followed', async () => {
  const shop = await openHookShop(farthing)
  const target = await openReceiver()
  for (const status of [301, 302, 303, 307, 308]) {
    const receiver = await openReceiver(answer(status, { location: `${target.url}/elsewhere` }))
    const { id } = await shop.register({ url: receiver.url })
    await shop.call('POST', `/api/v1/webhook-endpoints/${id}/test`)
    await deliverDue(ctx)
    const [delivery] = await shop.deliveries(id)
    assert.deepEqual([delivery?.state, delivery?.attempts[0]?.status], ['pending', status])
  }
  assert.equal(target.connections, 0)
})

test('a connection reset and slow or endless answers are cut off within the limits, and their status counts', async () => {
  const shop = await openHookShop(farthing)
  const cases = [
    [reset, 'pending', null],
    [drip(200), 'delivered', 200],
    [flood(200), 'delivered', 200],
    [flood(500), 'pending', 500],
  ] as const
  const endpoints = []
  for (const [behave] of cases) {
    const receiver = await openReceiver(behave)
    const { id } = await shop.register({ url: receiver.url })
    await shop.call('POST', `/api/v1/webhook-endpoints/${id}/test`)
    endpoints.push(id)
  }
  await deliverDue(ctx)
  for (const [i, [, state, status]] of cases.entries()) {
    const [delivery] = await shop.deliveries(String(endpoints[i]))
    const attempt = delivery?.attempts.at(-1)
    assert.deepEqual([delivery?.state, attempt?.status ?? null], [state, status])
    assert(Buffer.byteLength(attempt?.answer ?? '') <= 4_096)
  }
})

test('an ordered endpoint gets one event at a time in log order, and a failing one holds up the rest', async () => {
  const shop = await openHookShop(farthing)
  let under = 0
  let most = 0
  let failures = 2
  const receiver = await openReceiver((_received, response) => {
    most = Math.max(most, ++under)
    setTimeout(() => {
      under--
      response.writeHead(failures-- > 0 ? 500 : 204).end()
    }, 5)
  })
  await shop.register({ url: receiver.url, ordered: true })
  await Promise.all(Array.from({ length: 12 }, () => shop.create()))
  await deliverDue(ctx)
  assert.equal(receiver.received.length, 1)
  const soon = later(farthing, 10)
  await deliverDue(soon)
  assert.equal(receiver.received.length, 2)
  const then = later(farthing, 400)
  await deliverDue(then)
  await Promise.all([soon.close(), then.close()])
  const sequences = receiver.received.map(({ body }) => JSON.parse(body.toString()).sequence as number)
  assert.deepEqual(
    sequences.slice(2),
    sequences.slice(2).toSorted((a, b) => a - b),
  )
  assert.deepEqual([sequences.length, new Set(sequences).size, most], [14, 12, 1])
})

test('the old and the new secret both sign during the overlap after a roll, and only the new one afterwards', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  const { id, secret: first } = await shop.register({ url: receiver.url })
  const roll = async (body: object) =>
    (await shop.call('POST', `/api/v1/webhook-endpoints/${id}/roll-secret`, body)).json().secret as string
  const second = await roll({ overlapSeconds: 3_600 })
  const fits = async (context: typeof ctx, secrets: string | string[]) => {
    await shop.create()
    await deliverDue(context)
    // Security events, such as that the secret was rolled, are signed with the old secret for longer.
    const received = receiver.received.filter(({ body }) => body.includes('"checkout.created"')).at(-1)
    assert(received)
    return await verifyWebhook({ ...received, secrets, now: context.now() }).then(
      () => true,
      () => false,
    )
  }
  assert.deepEqual([await fits(ctx, first), await fits(ctx, second)], [true, true])
  const after = later(farthing, 3_601)
  assert.deepEqual([await fits(after, first), await fits(after, [first, second])], [false, true])
  await after.close()
  const third = await roll({ overlapSeconds: 0 })
  assert.deepEqual([await fits(ctx, second), await fits(ctx, third)], [false, true])
  const shown = await shop.call('GET', `/api/v1/webhook-endpoints/${id}`)
  assert(!shown.body.includes('whsec_'))
})

test('a store can redeliver one delivery, or everything since a point, with the same ids', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  const { id } = await shop.register({ url: receiver.url, types: ['checkout.created'] })
  await shop.create()
  await deliverDue(ctx)
  const [first] = await shop.deliveries(id)
  const again = await shop.call('POST', `/api/v1/deliveries/${first?.id}/redeliver`)
  assert.deepEqual([again.statusCode, again.json().state], [202, 'pending'])
  await deliverDue(ctx)
  assert.equal(new Set(idsOf(receiver.received)).size, 1)
  assert.equal(receiver.received.length, 2)
  // Events that happen while the endpoint is disabled have no delivery, except security events, such as that it is
  // disabled or enabled. Redelivering since a point creates the others.
  const point = (await shop.call('GET', '/api/v1/events?limit=100')).json().cursor
  const since = new Date().toISOString()
  const path = `/api/v1/webhook-endpoints/${id}`
  await shop.call('PATCH', path, { status: 'disabled' })
  await Promise.all(Array.from({ length: 3 }, () => shop.create()))
  await deliverDue(ctx)
  assert.equal(receiver.received.length, 2 + 1)
  assert.equal((await shop.call('POST', `${path}/redeliver`, { after: point })).statusCode, 409)
  await shop.call('PATCH', path, { status: 'enabled' })
  await deliverDue(ctx)
  for (const [body, count] of [
    [{ after: point }, 3],
    [{ since }, 0],
    [{ since, include: 'all' }, 5],
    [{ after: point, include: 'all' }, 5],
  ] as const) {
    const answered = await shop.call('POST', `${path}/redeliver`, body)
    assert.deepEqual([answered.statusCode, answered.json().count], [202, count], JSON.stringify(body))
    await deliverDue(ctx)
  }
  assert.equal(receiver.received.length, 2 + 2 + 3 + 5 + 5)
  assert.equal(new Set(idsOf(receiver.received)).size, 4 + 2)
})

test('deliveries and their attempts are deleted 30 days after they finished; pending deliveries and events are kept', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  const { id } = await shop.register({ url: receiver.url })
  await shop.create()
  await deliverDue(ctx)
  const events = await shop.log()
  receiver.behave = answer(500)
  await shop.create()
  await deliverDue(ctx)
  const before = later(farthing, 29 * 86_400)
  await tidyDeliveries(before, before.now())
  assert.equal((await shop.deliveries(id)).length, 2)
  const after = later(farthing, 31 * 86_400)
  await tidyDeliveries(after, after.now())
  assert.deepEqual(
    (await shop.deliveries(id)).map(({ state }) => state),
    ['pending'],
  )
  assert.deepEqual((await shop.log()).slice(0, events.length), events)
  await Promise.all([before.close(), after.close()])
})
