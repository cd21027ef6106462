import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { ConfigError } from '../config/read.ts'
import { Problem } from '../problems.ts'
import { openWakeUps, type WakeUps } from './wake.ts'

/**
 * Two ways to reach PostgreSQL, which must not mix:
 * - `query` sends one statement, pipelined with those of other callers on a few shared connections: one round trip, no
 *   wait for a free connection. Each statement is its own transaction.
 * - `transaction` borrows a connection from an ordinary pool for statements that belong together. On a shared pipelined
 *   connection, one caller's rollback would undo another's write.
 * All SQL is prepared once per connection.
 */
export type Database = {
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>
  transaction<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result>
  readonly wakeUps: WakeUps
  close(): Promise<void>
}

export type Transaction = {
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>
  /** Runs several statements without parameters, for migrations. */
  script(text: string): Promise<void>
  /** Runs this once the transaction is committed, and never if it is not: for log lines and counters. */
  afterCommit(run: () => void): void
}

/** A statement that waits for a lock gives up before its HTTP client does. */
const lockTimeoutMs = 5_000
/** Nothing we run takes longer; a query that does points to a missing index or a dead network. */
const statementTimeoutMs = 30_000
const connectTimeoutMs = 5_000
/**
 * Every statement here finds its rows by index. The planner would rather read whole tables while they are small or
 * their statistics are old, and a prepared statement keeps its plan while the tables grow: with 2,000 payments in
 * flight on a new database, only 13 to 85 payments per second were settled. Statistics arrive about a minute too late.
 * Planning each statement again does not help either when a partial index of unresolved rows holds thousands of rows
 * instead of one. So statements name their joins (payments/rows.ts), and `bench/overload.ts` fails if one reads too
 * much. Compiling plans does not pay for statements this short.
 */
const planning = '-c enable_seqscan=off -c enable_mergejoin=off -c jit=off'

export function openDatabase(options: {
  url: string
  connections: number
  name: string
  /** For tests: shifts the database's clock. */
  clockOffset?: string
}): Database {
  const connection: pg.ClientConfig = {
    ...secure(options.url),
    application_name: options.name,
    connectionTimeoutMillis: connectTimeoutMs,
    lock_timeout: lockTimeoutMs,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: statementTimeoutMs,
    keepAlive: true,
    options: planning + (options.clockOffset ? ` -c farthing.clock_offset=${options.clockOffset}` : ''),
  }
  const pipelined = Array.from({ length: Math.ceil(options.connections / 2) }, () =>
    openPipelined(connection),
  )
  // Transactions have few, large statements, so planning each of them for the current tables costs little.
  const pool = new pg.Pool({
    ...connection,
    options: `${connection.options} -c plan_cache_mode=force_custom_plan`,
    max: Math.floor(options.connections / 2),
  })
  // The pool replaces an idle connection that breaks; if the trouble lasts, the next caller gets the error.
  pool.on('error', () => {})
  // A connection that breaks between two statements, or right after opening, emits an error; the next statement fails
  // by itself. We listen from the start: a borrower would miss an error that arrives together with the server's
  // greeting.
  pool.on('connect', (client) => client.on('error', () => {}))
  let turn = 0

  async function query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    turn = (turn + 1) % pipelined.length
    const slot = pipelined[turn]
    assert(slot)
    return await slot.query<Row>(text, values)
  }
  const wakeUps = openWakeUps(connection, query)

  return {
    query,
    wakeUps,
    async transaction(work) {
      const client = await pool.connect().catch(refuseUnavailable)
      const committed: (() => void)[] = []
      let broken = false
      let result: Awaited<ReturnType<typeof work>>
      try {
        await client.query('begin')
        result = await work({
          query: (text, values = []) => run(client, text, values),
          script: async (text) => void (await client.query(text)),
          afterCommit: (then) => committed.push(then),
        })
        await client.query('commit')
      } catch (error) {
        broken = isConnectionError(error)
        if (!broken)
          await client.query('rollback').catch(() => {
            broken = true
          })
        if (isDeadlock(error)) throw refusedAsDeadlock(error)
        throw broken || isOutdated(error) ? unavailable(error) : error
      } finally {
        client.release(broken)
      }
      for (const then of committed) {
        try {
          then()
        } catch (error) {
          // The transaction is committed, even if its announcement fails.
          process.emitWarning(error as Error)
        }
      }
      return result
    },
    async close() {
      await Promise.all([...pipelined.map((slot) => slot.close()), pool.end(), wakeUps.close()])
    },
  }
}

/** One shared connection, opened on first use and again after it broke. */
function openPipelined(connection: pg.ClientConfig) {
  let opening: Promise<pg.Client> | null = null

  function open(): Promise<pg.Client> {
    if (opening) return opening
    const client = new pg.Client({ ...connection, pipeline: true })
    const mine = client.connect().then(() => client)
    opening = mine
    const forget = () => {
      if (opening === mine) opening = null
    }
    client.on('error', forget)
    client.on('end', forget)
    mine.catch(forget)
    return mine
  }

  return {
    async query<Row extends object>(text: string, values: readonly unknown[]): Promise<Row[]> {
      const mine = open()
      const client = await mine.catch(refuseUnavailable)
      return await run<Row>(client, text, values)
        .catch((error) => {
          if (!isOutdated(error)) throw error
          return run<Row>(client, text, values)
        })
        .catch((error) => {
          if (sqlState(error) === readOnly) {
            if (opening === mine) opening = null
            client.end().catch(() => {})
          }
          if (isDeadlock(error)) throw refusedAsDeadlock(error)
          throw isConnectionError(error) ? unavailable(error) : error
        })
    },
    async close() {
      const client = await opening?.catch(() => null)
      await client?.end()
    },
  }
}

const names = new Map<string, string>()
let statements = 0

async function run<Row extends object>(
  client: pg.ClientBase,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  const name = names.get(text) ?? nameAnew(text)
  try {
    const result = await client.query<Row>({ name, text, values: values as unknown[] })
    return result.rows
  } catch (error) {
    if (isOutdated(error) && names.get(text) === name) nameAnew(text)
    throw error
  }
}

function nameAnew(text: string): string {
  const name = `s${++statements}`
  names.set(text, name)
  return name
}

/**
 * The statement selects all columns of a table that has changed since the statement was prepared. This happens when a
 * newer program migrates while an older one is still running. The statement did not run, and is prepared again under a
 * new name.
 */
function isOutdated(error: unknown): boolean {
  return sqlState(error) === '0A000' && /cached plan/.test(String(error))
}

/** SQLSTATE of an error from the database; undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined
}

/**
 * Whether the database answers now. After an error, this says whose fault it was better than the error does: a lost
 * connection and a mistake of ours look alike.
 */
export async function isReachable(db: Database): Promise<boolean> {
  return await db.query('select 1 as one').then(
    () => true,
    () => false,
  )
}

/** Whether a statement gave up waiting for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

/**
 * Whether PostgreSQL cannot store a value: text that is not UTF-8 or has a U+0000, a time beyond the year 294276, or a
 * number outside the range of its type. Such a value is a caller's input that should have been rejected earlier.
 */
export function isUnstorable(error: unknown): boolean {
  return ['22021', '22P05', '22008', '22003'].includes(sqlState(error) ?? '')
}

/** Whether a statement took longer than it may, or was cancelled by hand. */
export function isStatementTimeout(error: unknown): boolean {
  return sqlState(error) === '57014'
}

/** Whether PostgreSQL failed this transaction to end a deadlock. */
function isDeadlock(error: unknown): boolean {
  return sqlState(error) === '40P01'
}

/**
 * SQLSTATE of a write to a standby. The standby may become the primary soon, or never. A new connection may reach the
 * primary.
 */
const readOnly = '25006'

const mistakes = [assert.AssertionError, TypeError, RangeError, SyntaxError, ReferenceError]

/** True if the statement did not run, or may not have run. */
function isConnectionError(error: unknown): boolean {
  const state = sqlState(error)
  // Class 08: connection; 57P: shutting down; 53: out of resources. Errors without a state come from the transport.
  return state === undefined
    ? error instanceof Error && !(error instanceof Problem) && isTransportError(error)
    : state === readOnly || /^(08|57P|53)/.test(state)
}

function isTransportError(error: Error): boolean {
  // These are mistakes of ours. Some have a code too.
  if (mistakes.some((kind) => error instanceof kind)) return false
  return 'code' in error || /connection|terminated|timeout/i.test(error.message)
}

function unavailable(cause: unknown): Problem {
  return new Problem('unavailable', 'The database cannot be reached.', { cause, retryAfterSeconds: 1 })
}

/** The transaction is rolled back, so the caller can repeat it. */
function refusedAsDeadlock(cause: unknown): Problem {
  const detail =
    'Other requests changed the same data at the same time. This request changed nothing: repeat it.'
  return new Problem('unavailable', detail, { cause, retryAfterSeconds: 1 })
}

function refuseUnavailable(cause: unknown): never {
  throw unavailable(cause)
}

/**
 * How a connection to the database is encrypted. With `sslmode=verify-full` the server must prove, by a certificate of
 * `sslrootcert` (or of a public authority), that it is the host in the URL. The driver would do most of this, but if
 * the host is an IP address, it compares the certificate with `localhost`.
 */
type Secured = { readonly connectionString: string; readonly ssl?: ConnectionOptions }

const files = { sslrootcert: 'ca', sslcert: 'cert', sslkey: 'key' } as const

function secure(databaseUrl: string): Secured {
  const url = new URL(databaseUrl)
  if (url.searchParams.get('sslmode') !== 'verify-full') return { connectionString: databaseUrl }
  const ssl: ConnectionOptions = { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), rejectUnauthorized: true }
  for (const [parameter, option] of Object.entries(files)) {
    const file = url.searchParams.get(parameter)
    if (file !== null) ssl[option] = readText(parameter, file)
    url.searchParams.delete(parameter)
  }
  url.searchParams.delete('sslmode')
  return { connectionString: url.href, ssl }
}

function readText(parameter: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError(
      `DATABASE_URL names a file in ${parameter} that cannot be read: ${error instanceof Error ? error.message : error}`,
    )
  }
}
