import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { openDatabaseProxy } from './proxy.ts'

const cluster = new URL(process.env.FARTHING_TEST_CLUSTER ?? '')
const table = `proxy_${process.pid}`

describe('the database proxy', () => {
  const direct = new pg.Client(`${cluster.href}postgres`)
  let proxy: Awaited<ReturnType<typeof openDatabaseProxy>>

  before(async () => {
    await direct.connect()
    await direct.query(`create table ${table} (number integer)`)
    proxy = await openDatabaseProxy({ port: Number.parseInt(cluster.port, 10) })
  })
  after(async () => {
    proxy.close()
    await direct.query(`drop table ${table}`)
    await direct.end()
  })

  /** Whether a client got an answer through the proxy, and whether its work was done. */
  async function tell(number: number, work: (client: pg.Client) => Promise<unknown>) {
    const client = new pg.Client({
      host: '127.0.0.1',
      port: proxy.port,
      user: cluster.username,
      database: 'postgres',
    })
    client.on('error', () => {})
    await client.connect()
    const isAnswered = await work(client).then(
      () => true,
      () => false,
    )
    await client.end().catch(() => {})
    const { rowCount } = await direct.query(`select 1 from ${table} where number = $1`, [number])
    return { isAnswered, isDone: rowCount === 1 }
  }
  const insert = (number: number) => (client: pg.Client) =>
    client.query({ name: 'insert', text: `insert into ${table} values ($1)`, values: [number] })
  const inTransaction = (number: number) => async (client: pg.Client) => {
    await client.query('begin')
    await insert(number)(client)
    await client.query('commit')
  }

  const lose = (what: 'reply' | 'request') => proxy.choosers.add(() => what)

  test('loses nothing by default', async () => {
    assert.deepEqual(await tell(1, insert(1)), { isAnswered: true, isDone: true })
    assert.deepEqual(await tell(2, inTransaction(2)), { isAnswered: true, isDone: true })
  })

  test('loses the reply to a write that is durable', async () => {
    lose('reply')
    assert.deepEqual(await tell(3, insert(3)), { isAnswered: false, isDone: true })
    assert.equal(proxy.lostReplies, 1)
  })

  test('loses the reply to a commit, and to nothing before it', async () => {
    lose('reply')
    assert.deepEqual(await tell(4, inTransaction(4)), { isAnswered: false, isDone: true })
    assert.equal(proxy.lostReplies, 2)
  })

  test('loses a write before it reaches the database', async () => {
    lose('request')
    assert.deepEqual(await tell(5, insert(5)), { isAnswered: false, isDone: false })
    assert.equal(proxy.lostRequests, 1)
  })

  test('loses no reply to a read', async () => {
    lose('reply')
    assert.deepEqual(await tell(1, (client) => client.query('select 1')), { isAnswered: true, isDone: true })
  })
})
