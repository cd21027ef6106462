/**
 * The yardstick of bench/create.ts: `pgbench` inserts rows of the same size into tables like ours, with their checks
 * and indexes, and does nothing else. There are two scripts: the checkout alone, and the three rows of a create
 * (checkout, stored answer, event) in one transaction. They are one statement, because pgbench is slower with three of
 * them between begin and commit, pipelined (0.9) or not (0.6). Everything but ids, order and Idempotency-Key is
 * constant in the statement, taken from a real create, so PostgreSQL parses it only once. Ids increase with time and end
 * in random digits, as real ones do.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Database } from '../server/src/database/db.ts'
import { endedChildrenCpuMs } from './meter.ts'
import { cpuMs } from './pay-load.ts'
import { runPgbench, type Stand } from './stand.ts'

/** A round takes the better of the two. */
export const bareClients = [16, 64] as const

export type Bare = 'oneRow' | 'threeRows'

export type BareRun = {
  readonly perSecond: number
  readonly transactions: number
  /** PostgreSQL and pgbench, which is its client as `serve` is in a create. */
  readonly cpuMs: number
}

type Real = Readonly<Record<string, string>>

/** Creates the tables. Returns the paths of the scripts. */
export async function prepareBare(db: Database, folder: string): Promise<Record<Bare, string>> {
  for (const table of ['checkouts', 'idempotency_keys', 'events'])
    await db.query(`create table bare_${table} (like ${table} including all)`)
  const [real] = await db.query<Real>(
    `select c.store_id, c.price_amount, c.price_currency, c.options::text as options, c.finality, k.route,
            encode(k.body_hash, 'hex') as body_hash, k.answer, e.data::text as data
     from checkouts c join idempotency_keys k on k.resource_id = c.id join events e on e.checkout_id = c.id limit 1`,
  )
  assert(real)
  const scripts = { oneRow: join(folder, 'one-row.sql'), threeRows: join(folder, 'three-rows.sql') }
  await writeFile(scripts.oneRow, `${counters}${insertCheckout(real)};\n`)
  await writeFile(
    scripts.threeRows,
    `${counters}with checkout as (${insertCheckout(real)}), answer as (
  insert into bare_idempotency_keys (store_id, route, key, body_hash, resource_id, answer, created_at)
  values (${quote(real.store_id)}, ${quote(real.route)}, 'r0-0-' || :client_id::text || '-' || :n::text, '\\x${real.body_hash}',
    'ch_00' || :n::text || :r::text, ${quote(real.answer)}, now())
)
insert into bare_events (id, store_id, type, checkout_id, checkout_version, data, created_at)
values ('evt_00' || :n::text || :r::text, ${quote(real.store_id)}, 'checkout.created', 'ch_00' || :n::text || :r::text, 1,
  ${quote(real.data)}, now());
`,
  )
  return scripts
}

const counters = '\\set n :n + 1\n\\set r random(1000000000000000, 9999999999999999)\n'

function insertCheckout(real: Real): string {
  return `insert into bare_checkouts (id, store_id, order_id, price_amount, price_currency, success_redirect_url, options,
  rate, finality, status, version, created_at, expires_at)
values ('ch_00' || :n::text || :r::text, ${quote(real.store_id)}, 'order-r0-0-' || :n::text,
  ${quote(real.price_amount)}, ${quote(real.price_currency)}, 'https://shop.example/thanks?order=r0-0-' || :n::text,
  ${quote(real.options)}, null, ${quote(real.finality)}, 'OPEN', 1, now(), now() + interval '1 day')`
}

/** As an escape string without colons: pgbench would take ":null" for one of its variables. */
function quote(text: string | undefined): string {
  assert(text !== undefined)
  return `E'${text.replace(/[\\':]/g, (character) => `\\x${character.charCodeAt(0).toString(16)}`)}'`
}

/** Measures one script. `base`, of ten digits, must exceed that of every earlier run, so that ids keep increasing. */
export async function runBare(
  { folder }: Stand,
  url: string,
  script: string,
  options: { readonly clients: number; readonly seconds: number; readonly base: number },
): Promise<BareRun> {
  const postgres = await findPostgres(folder)
  const used = () => cpuMs(postgres) + endedChildrenCpuMs()
  const before = used()
  const { clients, seconds, base } = options
  const { perSecond, transactions } = await runPgbench(url, script, { clients, seconds, define: `n=${base}` })
  return { perSecond, transactions, cpuMs: used() - before }
}

/** The process id of the stand's PostgreSQL. */
export async function findPostgres(folder: string): Promise<number> {
  return Number.parseInt(await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8'), 10)
}
