import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Event, EventPage } from '@farthing/sdk'
import { makeStore, openTestApp, type TestStore } from '../support/app.ts'
import { type Running, startProcess } from '../support/process.ts'

/** Writes go on for this long, and longer until enough processes of each kind were killed, but not beyond the limit. */
const writeMs = process.env.FULL === '1' ? 120_000 : 12_000
const limitMs = writeMs + 120_000
const killsMin = 2
/** Determines when processes are killed and which writer writes what. LOAD_SEED=7 for another run. */
const seed = Number.parseInt(process.env.LOAD_SEED ?? '1', 10)
const writers = 8
/** After the last write, every event must be numbered within this time. */
const quietMs = 30_000

type Acknowledged = {
  readonly created: Map<string, { readonly key: string; readonly body: string; readonly shop: TestStore }>
  readonly canceled: Set<string>
  /** Keys of requests that were sent but had no answer when the time was up. */
  readonly unknown: Set<string>
}

test(`while processes are killed at random, every store’s log gets every change once, in order and without gaps (seed ${seed})`, async (t) => {
  const { ctx, databaseUrl } = await openTestApp()
  const { db } = ctx
  const shops = await Promise.all(Array.from({ length: 4 }, () => makeStore(ctx)))
  const fleet = await startFleet({
    DATABASE_URL: databaseUrl,
    KEY_REQUESTS_PER_SECOND: '1000000',
    ADDRESS_REQUESTS_PER_SECOND: '1000000',
    LOG_LEVEL: 'info',
  })
  const done: Acknowledged = { created: new Map(), canceled: new Set(), unknown: new Set() }
  const time = startTime()
  const following = shops.map((shop) => follow(fleet, shop, time))

  try {
    const acknowledged = () => done.created.size + done.canceled.size
    const [serves, works] = await Promise.all([
      fleet.killAtRandom('serve', time, acknowledged),
      fleet.killAtRandom('work', time, acknowledged),
      ...Array.from({ length: writers }, (_, i) =>
        write(fleet, shops, time, randomFrom(seed + i + 1), done).finally(time.stopWriting),
      ),
    ])
    t.diagnostic(
      `${done.created.size} created, ${done.canceled.size} canceled, ${done.unknown.size} unknown; ${serves} serve and ${works} work killed`,
    )
    await eventually(quietMs, 'every event has its number', async () => {
      const [row] = await db.query<{ waiting: number }>(
        'select count(*)::int as waiting from events where sequence is null',
      )
      return row?.waiting === 0
    })
  } finally {
    time.stopReading()
  }
  const logs = await Promise.all(following)
  assert(done.created.size >= 50 && done.canceled.size >= 10)

  await t.test('sequence numbers are 1 to n in every store, and its counter is n', async () => {
    const rows = await db.query<{ store_id: string; sequences: number[]; last: number }>(
      `select e.store_id, array_agg(e.sequence::int order by e.sequence) as sequences, c.last_sequence::int as last
       from events e join event_counters c using (store_id) group by e.store_id, c.last_sequence`,
    )
    assert.equal(rows.length, shops.length)
    for (const { sequences, last } of rows) {
      assert.deepEqual(
        sequences,
        Array.from({ length: last }, (_, i) => i + 1),
      )
    }
  })

  await t.test(
    'a reader that followed its cursor during the writes has seen every event in order',
    async () => {
      for (const [i, log] of logs.entries()) {
        const rows = await db.query<{ id: string; sequence: number }>(
          'select id, sequence::int from events where store_id = $1 order by sequence',
          [shops[i]?.store.id],
        )
        assert.deepEqual(
          log.map(({ id, sequence }) => ({ id, sequence })),
          rows,
        )
      }
    },
  )

  await t.test('every checkout has one event per version, in order, with its status', async () => {
    const rows = await db.query<{
      id: string
      status: string
      version: number
      told: { version: number; sequence: number; type: string; status: string; storeId: string }[] | null
      store_id: string
    }>(
      `select c.id, c.store_id, c.status, c.version, (
         select json_agg(json_build_object('version', e.checkout_version, 'sequence', e.sequence, 'type', e.type,
           'status', e.data->'checkout'->>'status', 'storeId', e.store_id) order by e.sequence)
         from events e where e.checkout_id = c.id and e.type like 'checkout.%'
       ) as told
       from checkouts c`,
    )
    const [events] = await db.query<{ count: number }>(
      `select count(*)::int from events where checkout_id is not null`,
    )
    assert.equal(
      events?.count,
      rows.reduce((sum, { version }) => sum + version, 0),
    )
    for (const { id, store_id: storeId, status, version, told } of rows) {
      const expected = [
        { version: 1, type: 'checkout.created', status: 'OPEN', storeId },
        { version: 2, type: 'checkout.canceled', status: 'CANCELED', storeId },
      ].slice(0, version)
      assert.deepEqual(
        told?.map(({ sequence: _, ...event }) => event),
        expected,
        id,
      )
      assert.equal(expected.at(-1)?.status, status, id)
    }
  })

  await t.test(
    'every acknowledged create and cancel is stored, and nothing that was not requested',
    async () => {
      const rows = await db.query<{
        id: string
        store_id: string
        status: string
        key: string
        body: string
      }>(
        `select c.id, c.store_id, c.status, k.key, k.answer as body
       from checkouts c left join idempotency_keys k on k.resource_id = c.id`,
      )
      const stored = new Map(rows.map((row) => [row.id, row]))
      for (const [id, { key, body, shop }] of done.created) {
        const row = stored.get(id)
        assert.deepEqual([row?.key, row?.body, row?.store_id], [key, body, shop.store.id])
      }
      for (const id of done.canceled) assert.equal(stored.get(id)?.status, 'CANCELED')
      for (const { id, key } of rows) assert(done.created.has(id) || done.unknown.has(key), id)
    },
  )
})

type Time = ReturnType<typeof startTime>

/** Writing stops when its time is up and enough processes were killed, or after a failure. Reading goes on to the end. */
function startTime() {
  const began = performance.now()
  const kills = { serve: 0, work: 0 }
  let isStopped = false
  let isReading = true
  return {
    kills,
    isUp: (ms: number) => performance.now() >= began + ms,
    isWriting: () =>
      !isStopped && (performance.now() < began + writeMs || Math.min(kills.serve, kills.work) < killsMin),
    isReading: () => isReading,
    stopWriting() {
      isStopped = true
    },
    stopReading() {
      isReading = false
    },
  }
}

type Fleet = Awaited<ReturnType<typeof startFleet>>

/** Two processes of each kind. A killed process is started again, at a new address. */
async function startFleet(environment: Readonly<Record<string, string>>) {
  const start = async (command: 'serve' | 'work'): Promise<(Running | null)[]> =>
    await Promise.all([startProcess(command, environment), startProcess(command, environment)])
  const running = { serve: await start('serve'), work: await start('work') }
  return {
    /** Where to send the next request: any `serve` that is up. */
    address(turn: number): string {
      const up = running.serve.flatMap((process) => process?.started.address ?? [])
      return up[turn % up.length] ?? ''
    },
    /** Kills processes of a kind one by one, each after a random number of further acknowledged writes. Returns how many. */
    async killAtRandom(command: 'serve' | 'work', time: Time, acknowledged: () => number): Promise<number> {
      const random = randomFrom(command === 'serve' ? seed : -seed)
      while (time.isWriting()) {
        const target = acknowledged() + 1 + random(40)
        const victim = random(2)
        await eventually(limitMs, 'writes go on', () => acknowledged() >= target || !time.isWriting())
        const killed = running[command][victim]
        running[command][victim] = null
        await killed?.kill('SIGKILL')
        time.kills[command]++
        running[command][victim] = await startProcess(command, environment)
      }
      return time.kills[command]
    },
  }
}

/** Creates checkouts and cancels some of them. A request that got no answer is sent again, unchanged. */
async function write(
  fleet: Fleet,
  shops: readonly TestStore[],
  time: Time,
  random: (below: number) => number,
  done: Acknowledged,
): Promise<void> {
  const open: { id: string; shop: TestStore }[] = []
  while (time.isWriting()) {
    const [candidate] = random(3) === 0 ? open.splice(random(open.length), 1) : []
    if (candidate) {
      const { id, shop } = candidate
      const answer = await insist(fleet, random, time, shop, `/api/v1/checkouts/${id}/cancel`, {})
      if (!answer) return
      assert.equal(answer.status, 200, answer.body)
      done.canceled.add(id)
      continue
    }
    const shop = shops[random(shops.length)]
    assert(shop)
    const key = randomUUID()
    const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
    const body = JSON.stringify({ orderId: key, priceAmount: '12.50', priceCurrency: 'USD' })
    done.unknown.add(key)
    const answer = await insist(fleet, random, time, shop, '/api/v1/checkouts', { headers, body })
    if (!answer) return
    assert.equal(answer.status, 201, answer.body)
    done.unknown.delete(key)
    const { id } = JSON.parse(answer.body)
    done.created.set(id, { key, body: answer.body, shop })
    open.push({ id, shop })
  }
}

async function insist(
  fleet: Fleet,
  random: (below: number) => number,
  time: Time,
  shop: TestStore,
  path: string,
  init: { headers?: Record<string, string>; body?: string },
): Promise<{ status: number; body: string } | null> {
  while (time.isWriting()) {
    try {
      const response = await fetch(`${fleet.address(random(2))}${path}`, {
        ...init,
        method: 'POST',
        headers: { 'x-api-key': shop.key, ...init.headers },
        signal: AbortSignal.timeout(10_000),
      })
      const body = await response.text()
      // 5xx means that the outcome is unknown, 409 that the first try is still running.
      if (response.status < 500 && response.status !== 409) return { status: response.status, body }
    } catch {
      // The process was killed before it answered.
    }
    await pause(5)
  }
  return null
}

/** Reads from cursor to cursor, whatever happens, as a store does that must not miss an event. */
async function follow(fleet: Fleet, shop: TestStore, time: Time): Promise<Event[]> {
  const events: Event[] = []
  let after = ''
  for (let turn = 0; ; turn++) {
    const isLast = !time.isReading()
    const page = await fetch(`${fleet.address(turn)}/api/v1/events?limit=100${after}`, {
      headers: { 'x-api-key': shop.key },
    }).then(
      async (response) => (response.ok ? ((await response.json()) as EventPage) : null),
      () => null,
    )
    if (page) {
      events.push(...page.data)
      after = `&after=${page.cursor}`
      if (isLast && !page.hasMore) return events
    } else if (time.isUp(2 * limitMs)) {
      throw new Error('the log could not be read')
    }
    if (!page?.hasMore) await pause(50)
  }
}

/** Waits until a condition holds, and fails if it takes longer than `withinMs`. */
async function eventually(
  withinMs: number,
  what: string,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await holds())) {
    assert(performance.now() < deadline, `not within ${withinMs} ms: ${what}`)
    await pause(10)
  }
}

/** Pseudorandom integers below a bound, the same for the same seed (mulberry32). */
function randomFrom(start: number): (below: number) => number {
  let state = start
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return below === 0 ? 0 : ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}
