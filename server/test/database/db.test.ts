import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { test } from 'node:test'
import { openDatabase } from '../../src/database/db.ts'
import { buildApp } from '../../src/http/app.ts'
import { makeStore, openTestApp } from '../support/app.ts'
import { freshDatabase } from '../support/database.ts'

test('a database that cannot be reached makes serve not ready, and a request an explained 503', async () => {
  const { app, ctx } = await openTestApp()
  const { key } = await makeStore(ctx)
  const gone = openDatabase({ url: 'postgres://farthing@127.0.0.1:9/none', connections: 4, name: 'gone' })
  const cut = buildApp({ ...ctx, db: gone }, { isDraining: false })
  assert.equal((await cut.inject('/readyz')).statusCode, 503)
  const answer = await cut.inject({ url: '/api/v1/checkouts', headers: { 'x-api-key': key } })
  assert.equal(answer.statusCode, 503)
  assert.equal(answer.json().code, 'unavailable')
  assert.equal((await app.inject('/readyz')).statusCode, 200)
  await gone.close()
})

test('a database that ends in the moment a connection to it is open is the database away, and the process goes on', async () => {
  const { url } = await freshDatabase()
  const { port } = new URL(url)
  const farewell = Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0')
  const length = Buffer.alloc(4)
  length.writeInt32BE(farewell.length + 4)
  // The real database, whose first "ready" comes in one piece with its farewell.
  const door = createServer((client) => {
    const upstream = connect(Number.parseInt(port, 10), '127.0.0.1')
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.pipe(upstream)
    upstream.on('data', (chunk) => {
      const isReady = chunk.subarray(-6).equals(Buffer.from('Z\0\0\0\x05I'))
      if (isReady) client.end(Buffer.concat([chunk, Buffer.from('E'), length, farewell]))
      else client.write(chunk)
    })
    client.on('close', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve))
  const address = door.address()
  assert(address && typeof address === 'object')
  const leaving = new URL(url)
  leaving.port = `${address.port}`
  const db = openDatabase({ url: leaving.href, connections: 2, name: 'leaving' })
  const unavailable = { code: 'unavailable' }
  await assert.rejects(
    db.transaction((tx) => tx.query('select 1')),
    unavailable,
  )
  await assert.rejects(db.query('select 1'), unavailable)
  await db.close()
  door.close()
})

test('a database that only reads, as a standby does until it leads, answers 503, and no connection to it is kept', async () => {
  const { url } = await freshDatabase()
  const name = new URL(url).pathname.slice(1)
  // What a session has at its start it keeps: only a new connection finds out what changed.
  const early = openDatabase({ url, connections: 2, name: 'early' })
  const late = openDatabase({ url, connections: 2, name: 'late' })
  const write = 'create temporary table written (one int)'
  await early.query(`alter database ${name} set default_transaction_read_only = on`)
  const unavailable = { code: 'unavailable' }
  await assert.rejects(late.query(write), unavailable)
  await assert.rejects(
    late.transaction((tx) => tx.query(write)),
    unavailable,
  )
  await early.query(`alter database ${name} set default_transaction_read_only = off`)
  await late.query(write)
  await late.transaction((tx) => tx.query(write))
  await Promise.all([early.close(), late.close()])
})
