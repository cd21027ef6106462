import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { test } from 'node:test'
import { openDatabase } from '../../src/database/db.ts'
import { buildApp } from '../../src/http/app.ts'
import { Problem } from '../../src/problems.ts'
import { makeStore, openTestApp } from '../support/app.ts'
import { freshDatabase } from '../support/database.ts'

test('while the database cannot be reached, serve is not ready and requests get a 503 that says why', async () => {
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

test('a database that shuts down just as a connection opens counts as unavailable, and the process keeps running', async () => {
  const { url } = await freshDatabase()
  const { port } = new URL(url)
  const farewell = Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0')
  const length = Buffer.alloc(4)
  length.writeInt32BE(farewell.length + 4)
  // A proxy to the real database that sends the first "ready" and a shutdown message in one packet.
  const proxy = createServer((client) => {
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
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const address = proxy.address()
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
  proxy.close()
})

test('a read-only database, such as a standby before its promotion, leads to 503, and its connections are not reused', async () => {
  const { url } = await freshDatabase()
  const name = new URL(url).pathname.slice(1)
  // A connection keeps the setting from its start: only new connections see the change.
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

test('what is to be said after a commit is said only after it, never after a rollback, and cannot undo it', async () => {
  const { url } = await freshDatabase()
  const db = openDatabase({ url, connections: 2, name: 'after-commit' })
  const said: string[] = []
  const warned = once(process, 'warning')
  const result = await db.transaction(async (tx) => {
    tx.afterCommit(() => {
      throw new Error('a bug in what was to be said')
    })
    tx.afterCommit(() => said.push('committed'))
    assert.deepEqual(said, [])
    return 'done'
  })
  assert.deepEqual([result, said], ['done', ['committed']])
  assert.match(String(await warned), /a bug in what was to be said/)
  const undone = db.transaction(async (tx) => {
    tx.afterCommit(() => said.push('undone'))
    throw new Error('no')
  })
  await assert.rejects(undone, /no/)
  assert.deepEqual(said, ['committed'])
  await db.close()
})

test('of two transactions that wait for each other, one is refused as unavailable and changes nothing', async () => {
  const { db } = await freshDatabase()
  await db.query(`create table counters as select n, 0 as value from generate_series(1, 2) as n`)
  const raise = 'update counters set value = value + 1 where n = $1'
  let entered = 0
  const both = Promise.withResolvers<void>()
  const cross = (first: number, second: number) =>
    db.transaction(async (tx) => {
      await tx.query(raise, [first])
      if (++entered === 2) both.resolve()
      await both.promise
      await tx.query(raise, [second])
    })
  const outcomes = await Promise.allSettled([cross(1, 2), cross(2, 1)])
  const [refused, ...more] = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
  assert.deepEqual([refused instanceof Problem && refused.code, more], ['unavailable', []])
  assert.deepEqual(await db.query('select value from counters order by n'), [{ value: 1 }, { value: 1 }])
})

test('a mistake of ours in a transaction is not taken for a lost connection', async () => {
  const { db } = await freshDatabase()
  for (const fail of [() => assert.fail('impossible'), () => new URL('no address')])
    await assert.rejects(
      db.transaction(async (tx) => {
        await tx.query('select 1 as one')
        fail()
      }),
      (error) => !(error instanceof Problem),
    )
})
