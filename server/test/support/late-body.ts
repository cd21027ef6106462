import assert from 'node:assert/strict'
import { connect } from 'node:net'
import type { Database } from '../../src/database/db.ts'
import { atEnd } from './at-end.ts'

/** A request of which the server has read the headers. */
export type Held = {
  /** Sends the body and returns the answer. */
  finish(): Promise<{ readonly status: number; readonly body: string }>
}

/** Sends a request's headers, waits until the server says that the body may follow, and keeps that back. */
export async function holdBody(
  port: string | number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: unknown,
): Promise<Held> {
  const text = JSON.stringify(body)
  const socket = connect(Number(port), '127.0.0.1')
  atEnd(() => socket.destroy())
  let received = ''
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const met = new Promise<void>((resolve) =>
    socket.on('data', (chunk) => {
      received += chunk
      resolve()
    }),
  )
  const lines = Object.entries({
    ...headers,
    'Content-Type': 'application/json',
    'Content-Length': `${Buffer.byteLength(text)}`,
    Expect: '100-continue',
    Connection: 'close',
  })
  socket.write(
    `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
  )
  await met
  assert.match(received, /^HTTP\/1\.1 100 /)
  return {
    async finish() {
      socket.write(text)
      await closed
      const [, status, answer = ''] =
        /^HTTP\/1\.1 100.*?HTTP\/1\.1 (\d{3}).*?\r\n\r\n(.*)$/s.exec(received) ?? []
      return { status: Number(status), body: answer }
    },
  }
}

/** Whether a statement waits for a lock. */
export async function isSomebodyWaiting(db: Database): Promise<boolean> {
  const rows = await db.query(
    "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  )
  return rows.length > 0
}
