/**
 * Receivers that fail in every way, and `work` processes that are killed again and again while days pass on the
 * database's clock. In the end every event has arrived, or was given up and the store notified. FULL=1: 200 kills.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Event, WebhookEndpointSecret } from '@farthing/sdk'
import { verifyWebhook } from '@farthing/sdk/webhooks'
import { tidyDeliveries } from '../../../src/events/webhooks/deliveries.ts'
import { startProcess } from '../../support/process.ts'
import { deliverDue, type HookShop, later, openHookShop, openLocalApp } from './support/endpoints.ts'
import { answer, type Behaviour, drip, flood, openReceiver, reset } from './support/receiver.ts'

const isFull = process.env.FULL === '1'
const kills = isFull ? 200 : 8
const checkoutsPerKill = isFull ? 1 : 4
const hours = 3_600
/** Simulated time that the kills are spread over: less than all tries of a delivery take. */
const spanSeconds = 66 * hours
const killAfterMs = 1_000
/** This many `work` processes run in parallel, each until it is killed, with clocks that differ. */
const atOnce = isFull ? 6 : 2

const farthing = await openLocalApp()
const { ctx, databaseUrl } = farthing
let offsetSeconds = 0
let isOver = false
let turn = 0

const sometimes =
  (worse: Behaviour): Behaviour =>
  (received, response, request) =>
    (turn++ % 2 === 0 && !isOver ? worse : answer(204))(received, response, request)
/** Never answers. */
const hang: Behaviour = () => {}
const behaviours: Readonly<Record<string, Behaviour>> = {
  '/well': answer(204),
  '/error': sometimes(answer(500, {}, 'oh no')),
  '/busy': sometimes(answer(503, { 'retry-after': '60' })),
  '/hang': sometimes(hang),
  '/reset': sometimes(reset),
  '/drip': sometimes(drip(200)),
  '/flood': sometimes(flood(500)),
  // No answer for a day and a half.
  '/down': (received, response, request) => {
    const isDown = offsetSeconds > 2 * hours && offsetSeconds < 38 * hours
    return (isDown ? reset : answer(204))(received, response, request)
  },
  // Rejects some events forever and accepts the others.
  '/poison': (received, response, request) =>
    answer(received.body.includes('"orderId":"poison"') ? 500 : 204)(received, response, request),
  '/dead': answer(500),
  '/ordered': sometimes(answer(500)),
}

type Seen = { readonly id: string; readonly path: string; readonly isTaken: boolean; readonly event: Event }
const seen: Seen[] = []

test(`with failing receivers and ${kills} kills of work, every event arrives or is given up and reported`, async (t) => {
  const secrets = new Map<string, string>()
  const receiver = await openReceiver((received, response, request) => {
    response.once('close', () => {
      const { statusCode, headersSent } = response
      const event = JSON.parse(received.body.toString()) as Event
      const isTaken = headersSent && statusCode >= 200 && statusCode < 300
      seen.push({ id: received.headers['webhook-id'] ?? '', path: received.path, isTaken, event })
    })
    behaviours[received.path]?.(received, response, request)
  })
  const shops: { shop: HookShop; path: string; endpoint: WebhookEndpointSecret; checkouts: string[] }[] = []
  for (const path of Object.keys(behaviours)) {
    const shop = await openHookShop(farthing)
    const endpoint = await shop.register({ url: receiver.url + path, ordered: path === '/ordered' })
    secrets.set(path, endpoint.secret)
    shops.push({ shop, path, endpoint, checkouts: [] })
  }

  let kill = 0
  let moved: Promise<unknown> = Promise.resolve()
  const killOn = async () => {
    while (kill < kills) {
      const number = kill++
      const work = await startProcess('work', {
        DATABASE_URL: databaseUrl,
        BASE_URL: 'http://127.0.0.1:8402',
      })
      const goal = receiver.received.length + 1 + ((number * 7) % 23)
      const end = performance.now() + killAfterMs
      for (let i = 0; i < checkoutsPerKill; i++) {
        for (const { shop, checkouts } of shops) {
          const orderId = (number + i) % 5 === 0 ? 'poison' : 'order'
          const { id } = await shop.create({ orderId })
          checkouts.push(id)
          if ((number + i) % 2 === 0) await shop.call('POST', `/api/v1/checkouts/${id}/cancel`)
        }
      }
      while (receiver.received.length < goal && performance.now() < end) await pause(5)
      await work.kill('SIGKILL')
      offsetSeconds += spanSeconds / kills
      // For the next process it is later, so the leases of the killed one have expired.
      const database = new URL(databaseUrl).pathname.slice(1)
      moved = moved.then(() =>
        ctx.db.query(
          `alter database ${database} set farthing.clock_offset = '${Math.round(offsetSeconds)}s'`,
        ),
      )
      await moved
    }
  }
  await Promise.all(Array.from({ length: atOnce }, killOn))
  isOver = true
  for (let step = 0; step < 18; step++) {
    offsetSeconds += step === 0 ? 60 : 12 * hours
    // An endpoint that accepts other events does not count as failing.
    await shops.find(({ path }) => path === '/poison')?.shop.create()
    const then = later(farthing, offsetSeconds)
    await deliverDue(then)
    await tidyDeliveries(then, then.now())
    await then.close()
  }
  t.diagnostic(
    `${seen.length} requests received, ${new Set(seen.map(({ id, path }) => id + path)).size} events, ${turn} requests to receivers that fail every other time`,
  )

  await t.test('each request is signed and carries the id of its event', async () => {
    for (const received of receiver.received) {
      // Each process signs by its own clock, so each signature is verified at its own time.
      const now = new Date(Number(received.headers['webhook-timestamp']) * 1_000)
      const event = await verifyWebhook({ ...received, secrets: secrets.get(received.path) ?? '', now })
      assert.equal(event.id, received.headers['webhook-id'])
    }
  })

  let delivered = 0
  let undeliverable = 0
  for (const { shop, path, endpoint, checkouts } of shops) {
    await t.test(`${path}: nothing is lost`, async () => {
      // The first three are about the store's wallet, its key and this endpoint's creation.
      const log = (await shop.log()).filter(({ sequence }) => sequence > 3)
      const rows = await ctx.db.query<{ event_id: string; state: string }>(
        'select event_id, state from deliveries where endpoint_id = $1',
        [endpoint.id],
      )
      const states = new Map(rows.map(({ event_id, state }) => [event_id, state]))
      const taken = seen.filter((each) => each.path === path && each.isTaken)
      const arrived = new Set(taken.map(({ id }) => id))
      const disabledAt = log.find(({ type }) => type === 'webhook_endpoint.disabled')?.sequence ?? Infinity
      const told = new Set(
        log.flatMap(({ data, type }) =>
          type === 'webhook_endpoint.undelivered' && 'eventId' in data ? [data.eventId] : [],
        ),
      )
      for (const event of log) {
        const state = states.get(event.id)
        if (state === 'delivered') assert(arrived.has(event.id), `${event.id} did not arrive`)
        else if (state === 'undeliverable')
          assert(
            told.has(event.id) || disabledAt < Infinity || event.type === 'webhook_endpoint.undelivered',
            `${event.id} was given up without notice`,
          )
        // Events without a delivery exist only after the endpoint was disabled.
        else assert(state === undefined && event.sequence >= disabledAt, `${event.id} is ${state}`)
      }
      delivered += rows.filter(({ state }) => state === 'delivered').length
      undeliverable += rows.filter(({ state }) => state === 'undeliverable').length
      if (path === '/dead') assert(disabledAt < Infinity)
      else assert.equal(disabledAt, Infinity)
      if (path === '/poison') assert(told.size > 0)
      else assert.equal(told.size, 0)
      if (path === '/dead' || path === '/poison') return
      // As a store does: ignore events whose id was seen before, and versions that are not above the known one.
      const versions = new Map<string, number>()
      const order: number[] = []
      const met = new Set<string>()
      for (const { event } of taken) {
        if (met.has(event.id) || event.checkoutId === null) continue
        met.add(event.id)
        order.push(event.sequence)
        versions.set(
          event.checkoutId,
          Math.max(versions.get(event.checkoutId) ?? 0, event.checkoutVersion ?? 0),
        )
      }
      const truth = await ctx.db.query<{ id: string; version: number }>(
        'select id, version from checkouts where store_id = $1',
        [shop.id],
      )
      assert.equal(truth.length, checkouts.length)
      for (const { id, version } of truth) assert.equal(versions.get(id), version)
      if (path === '/ordered')
        assert.deepEqual(
          order,
          order.toSorted((a, b) => a - b),
        )
    })
  }
  t.diagnostic(`${delivered} delivered, ${undeliverable} undeliverable, ${kills} kills`)
  assert(delivered > kills * checkoutsPerKill && undeliverable > 0)
})
