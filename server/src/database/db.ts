import assert from 'node:assert/strict'
import pg from 'pg'
import { Problem } from '../problems.ts'
import { openWakeUps, type WakeUps } from './wake.ts'

/**
 * Two ways to PostgreSQL, because they must not mix:
 * - `query` sends one statement, pipelined with other callers' on a few shared connections: one round trip, no waiting
 *   for a free connection. Each statement is its own transaction.
 * - `transaction` borrows a connection of an ordinary pool for statements that belong together. On a shared pipelined
 *   connection, one caller's rollback would take another's write with it.
 * All SQL is prepared once a connection.
 */
export type Database = {
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>
  transaction<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result>
  readonly wakeUps: WakeUps
  close(): Promise<void>
}

export type Transaction = {
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>
  /** Runs several statements without parameters, as a migration has them. */
  script(text: string): Promise<void>
}

/** A statement that waits for another's lock gives up before its HTTP client does. */
const lockTimeoutMs = 5_000
/** Nothing we run takes longer; a query that does is a missing index or a dead network. */
const statementTimeoutMs = 30_000
const connectTimeoutMs = 5_000

export function openDatabase(options: {
  url: string
  connections: number
  name: string
  /** For tests: moves what the database takes for the present. */
  clockOffset?: string
}): Database {
  const connection: pg.ClientConfig = {
    connectionString: options.url,
    application_name: options.name,
    connectionTimeoutMillis: connectTimeoutMs,
    lock_timeout: lockTimeoutMs,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: statementTimeoutMs,
    keepAlive: true,
    ...(options.clockOffset && { options: `-c farthing.clock_offset=${options.clockOffset}` }),
  }
  const pipelined = Array.from({ length: Math.ceil(options.connections / 2) }, () =>
    openPipelined(connection),
  )
  const pool = new pg.Pool({ ...connection, max: Math.floor(options.connections / 2) })
  // An idle connection that breaks is replaced by the pool; whoever uses the next one is told of any lasting trouble.
  pool.on('error', () => {})
  // One that breaks between two statements, or as soon as it is open, says so as an event; the next statement fails by
  // itself. Heard from the start: whoever borrows it comes too late for what arrived together with its greeting.
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
      let broken = false
      try {
        await client.query('begin')
        const result = await work({
          query: (text, values = []) => run(client, text, values),
          script: async (text) => void (await client.query(text)),
        })
        await client.query('commit')
        return result
      } catch (error) {
        broken = isConnectionError(error)
        if (!broken)
          await client.query('rollback').catch(() => {
            broken = true
          })
        throw broken || isOutdated(error) ? unavailable(error) : error
      } finally {
        client.release(broken)
      }
    },
    async close() {
      await Promise.all([...pipelined.map((slot) => slot.close()), pool.end(), wakeUps.close()])
    },
  }
}

/** One shared connection, opened when first used and again after it broke. */
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
 * The statement was prepared before somebody changed a table that it reads all columns of, as a newer program's migration
 * does under an older one that is still running. It did not run, and under another name it is prepared anew.
 */
function isOutdated(error: unknown): boolean {
  return sqlState(error) === '0A000' && /cached plan/.test(String(error))
}

/** SQLSTATE of an error the database gave, if it is one. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined
}

/** Whether a statement gave up waiting for another's lock. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

/** SQLSTATE of a write to a standby. It may lead in a moment, or never: another connection may find who does. */
const readOnly = '25006'

/** The statement did not run, or nobody knows whether it did. */
function isConnectionError(error: unknown): boolean {
  const state = sqlState(error)
  // Class 08: connection; 57P: shutting down; 53: out of resources. Anything without a state broke on the way.
  return state === undefined
    ? error instanceof Error && !(error instanceof Problem) && isTransportError(error)
    : state === readOnly || /^(08|57P|53)/.test(state)
}

function isTransportError(error: Error): boolean {
  return 'code' in error || /connection|terminated|timeout/i.test(error.message)
}

function unavailable(cause: unknown): Problem {
  return new Problem('unavailable', 'The database cannot be reached.', { cause, retryAfterSeconds: 1 })
}

function refuseUnavailable(cause: unknown): never {
  throw unavailable(cause)
}
