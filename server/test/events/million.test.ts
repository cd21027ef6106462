/**
 * Eight writers create checkouts for 200 stores, and two `work` processes expire them and number the events. All of them
 * are killed at random. The checks are written in SQL, independent of the server's code. FULL=1: a million events.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { makeStore, openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { type Running, startProcess } from '../support/process.ts'
import { until } from '../support/until.ts'

const isFull = process.env.FULL === '1'
/** Each checkout has two events: created and expired. */
const checkouts = isFull ? 500_000 : 4_000
const storesCount = 200
const writersCount = 8
/** A process is killed after at most this many further acknowledged creates. */
const killEvery = isFull ? 4_000 : 600
const minutesMax = isFull ? 40 : 4
const writer = new URL('support/writer.ts', import.meta.url).pathname

test(`${2 * checkouts} events of ${storesCount} stores from ${writersCount} writers survive random kills without loss, gap or repetition`, async (t) => {
  const { ctx, databaseUrl } = await openTestApp()
  const { db } = ctx
  const keys: string[] = []
  for (let i = 0; i < storesCount; i++) keys.push((await makeStore(ctx)).key)
  // In the database's clock of the processes started below, every checkout is already expired when it is created.
  const database = new URL(databaseUrl).pathname.slice(1)
  await db.query(`alter database ${database} set farthing.clock_offset = '1 hour'`)

  const acknowledged = new Set<string>()
  const kills = { writer: 0, work: 0 }
  /** Writers pause at this count until the next kill is done, so that all are busy when it happens. */
  let allowed = 0
  const idle = new Set<ChildProcess>()
  const startWriter = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [writer], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH ?? '',
        DATABASE_URL: databaseUrl,
        BASE_URL: 'https://farthing.example',
        WRITER_KEYS: keys.join(','),
      },
    })
    atEnd(() => child.kill('SIGKILL'))
    let text = ''
    child.stdout.on('data', (chunk) => {
      const lines = (text + chunk).split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) {
        if (line.startsWith('ch_')) acknowledged.add(line)
        else if (acknowledged.size < allowed) child.stdin.write('more\n')
        else idle.add(child)
      }
    })
    // The process was killed while we wrote to it.
    child.stdin.on('error', () => {})
    await once(child.stdout, 'data')
    return child
  }
  const startWork = () => startProcess('work', { DATABASE_URL: databaseUrl })
  const works: Running[] = await Promise.all([startWork(), startWork()])
  const writers = await Promise.all(Array.from({ length: writersCount }, startWriter))
  const end = performance.now() + minutesMax * 60_000

  while (acknowledged.size < checkouts) {
    const goal = Math.min(checkouts, acknowledged.size + 1 + Math.floor(Math.random() * killEvery))
    allowed = goal + (isFull ? 2 * killEvery : 256)
    for (const child of idle) child.stdin?.write('more\n')
    idle.clear()
    while (acknowledged.size < goal) {
      assert(performance.now() < end, `only ${acknowledged.size} creates in ${minutesMax} minutes`)
      await pause(5)
    }
    if ((kills.writer + kills.work) % 3 < 2) {
      const victim = Math.floor(Math.random() * writersCount)
      writers[victim]?.kill('SIGKILL')
      kills.writer++
      writers[victim] = await startWriter()
    } else {
      const victim = Math.floor(Math.random() * works.length)
      await works[victim]?.kill('SIGKILL')
      kills.work++
      works[victim] = await startWork()
    }
  }
  allowed = 0
  for (const child of writers) {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  await until(
    'every checkout has expired and every event has its number',
    async () => {
      const [row] = await db.query<{ open: boolean; waiting: boolean }>(
        `select exists (select 1 from checkouts where status = 'OPEN') as open,
           exists (select 1 from events where sequence is null) as waiting`,
      )
      return row?.open === false && row.waiting === false
    },
    minutesMax * 60_000,
  )
  const none = async (what: string, sql: string) =>
    await db.transaction(async (tx) => {
      // This joins a million rows, which the server itself never does.
      await tx.script('set local statement_timeout = 0')
      assert.deepEqual(await tx.query(`${sql} limit 5`), [], what)
    })
  await none(
    'a sequence has a gap, a repetition or a wrong counter',
    `select c.store_id from event_counters c left join (
       select store_id, count(*) as count, count(distinct sequence) as distinct, min(sequence) as first, max(sequence) as last
       from events group by store_id) e using (store_id)
     where (e.count, e.distinct, e.first, e.last) is distinct from (c.last_sequence, c.last_sequence, 1::bigint, c.last_sequence)`,
  )
  await none(
    'versions are not in log order',
    `select checkout_id from (
       select checkout_id, checkout_version, row_number() over (partition by checkout_id order by sequence) as place
       from events where checkout_id is not null) e
     where place <> checkout_version`,
  )
  await none(
    'a change has no event',
    `select c.id from checkouts c where c.version <> (select count(*) from events e where e.checkout_id = c.id)
       or c.version <> 2 or c.status <> 'EXPIRED'`,
  )
  await none(
    'an event has no matching change, or one of another store',
    `select e.id from events e left join checkouts c on c.id = e.checkout_id and c.store_id = e.store_id
     where e.type like 'checkout.%' and (c.id is null or e.data->'checkout'->>'id' <> c.id
       or e.data->'checkout'->>'status' <> (case e.checkout_version when 1 then 'OPEN' else 'EXPIRED' end)
       or e.type <> (case e.checkout_version when 1 then 'checkout.created' else 'checkout.expired' end))`,
  )
  const stored = new Set((await db.query<{ id: string }>('select id from checkouts')).map(({ id }) => id))
  for (const id of acknowledged) assert(stored.has(id), `${id} was acknowledged but is gone`)
  const [events] = await db.query<{ count: number }>('select count(*)::int from events')
  t.diagnostic(
    JSON.stringify({ events: events?.count, acknowledged: acknowledged.size, stored: stored.size, kills }),
  )
  assert((events?.count ?? 0) >= 2 * checkouts && kills.writer + kills.work >= 3)
})
