/** The screens of whoever runs the deployment: what they show and do, to whom, and what they never show. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '@farthing/sdk'
import { addNodeRecords } from '../../../src/chains/record-nodes.ts'
import { newId } from '../../../src/ids.ts'
import { setOperator } from '../../../src/members/operators.ts'
import { listStoreMembers } from '../../../src/members/rows.ts'
import { insertSettler } from '../../../src/payments/settlers/rows.ts'
import { creditByHand } from '../../support/by-hand.ts'
import { operator } from '../../support/operator.ts'
import { openStore, order } from '../../support/store.ts'
import { openAuthenticator } from './support/authenticator.ts'
import { type Enrolled, enrolWith, openConsole, openInvitedStore, tokenOf } from './support/console.ts'
import { listRoutes } from './support/routes.ts'

const secret = 'key-in-a-node-url'
const console = await openConsole({
  settings: { BASE_SEPOLIA_RPC_URLS: `alpha=http://127.0.0.1:9/${secret},beta=http://127.0.0.1:9/${secret}` },
})
const { ctx } = console.farthing
const home = await openInvitedStore(console)
const ops = await enrolWith(console, home.token, openAuthenticator(console.url, false))
const [{ id: operatorId } = assert.fail()] = await listStoreMembers(ctx.db, home.store.id)
await setOperator(ctx, operator, operatorId, true, new Date())
const other = await openInvitedStore(console)
const somebody = await enrolWith(console, other.token)

const screens = ['stores', 'stores/new', 'settlers', 'chains', 'queues', 'doctor', 'doctor?run=yes'] as const
const read = async ({ browser }: Enrolled, path: string) => {
  const answer = await browser.get(path)
  assert.equal(answer.statusCode, 200, `${path}: ${answer.body}`)
  return answer.body
}
const act = async ({ browser, authenticator }: Enrolled, action: string, path: string, values: object) => {
  const touch = await browser.confirm(authenticator, action, { ...values })
  return await browser.post(path, { ...values, touch })
}
const decide = (by: Enrolled, verb: string, storeId: string, more: object = {}) =>
  act(by, `store.${verb}`, `/operator/stores/${verb}`, { storeId, ...more })

test('to a member without the flag, owner or not, no screen of an operator exists and nothing can be done', async () => {
  const routes = listRoutes(console.app).filter(({ path }) => path.startsWith('/operator'))
  assert(routes.length >= 12, routes.map(({ path }) => path).join())
  for (const { method, path } of routes) {
    const url = path.replace(':id', other.store.id)
    const answer = await (method === 'GET' ? somebody.browser.get(url) : somebody.browser.post(url))
    assert.equal(answer.statusCode, 404, `${method} ${path}`)
  }
  const refused = await decide(somebody, 'suspend', home.store.id, { reason: 'Mine now.' })
  assert.equal(refused.statusCode, 404)
  assert(!(await read(somebody, `/stores/${other.store.id}/members`)).includes('/operator'))
  assert((await read(ops, `/stores/${home.store.id}/members`)).includes('/operator/stores'))
})

test('every screen opens, in both languages, and has a command that does the same', async () => {
  for (const [lang, word] of [
    ['en', 'Stores'],
    ['es', 'Tiendas'],
  ] as const)
    for (const screen of screens) {
      const body = await read(ops, `/operator/${screen}${screen.includes('?') ? '&' : '?'}lang=${lang}`)
      assert(body.includes(`lang="${lang}"`) && body.includes(word), `${screen} ${lang}`)
      assert.match(body, /data-copy="(farthing-admin |curl )/, screen)
      assert(!/\{\w+\}|undefined|\[object/.test(body.replace(/<(script|style)[\s\S]*?<\/\1>/g, '')), screen)
    }
  await ops.browser.get('/operator/stores?lang=en')
})

test('an operator sees every store’s name and health, and nothing of its payments', async () => {
  const shop = await openStore(console.farthing)
  await ctx.db.query("update stores set name = 'Quiet & <b>Sons</b>' where id = $1", [shop.id])
  const { id, checkoutUrl } = await shop.create({ orderId: 'order-77123', priceAmount: '4711.00' })
  const paymentId = await creditByHand(console.farthing, id)
  const list = await read(ops, '/operator/stores?q=quiet')
  assert(list.includes('Quiet &#38; &#60;b&#62;Sons') && list.includes('No owner'))
  assert(!list.includes(other.store.id), 'only what was searched for')
  const detail = await read(ops, `/operator/stores/${shop.id}`)
  for (const body of [list, detail, await read(ops, '/operator/queues')])
    for (const hidden of [id, checkoutUrl, 'order-77123', '4711', paymentId])
      assert(!body.includes(hidden), hidden)
  assert((await read(ops, `/operator/stores?q=${shop.id}`)).includes('Quiet'))
  assert((await read(ops, '/operator/stores?standing=waiting')).includes('No store matches'))
  assert.equal((await ops.browser.get(`/operator/stores/${newId('st', '00', new Date())}`)).statusCode, 404)
})

test('an operator approves, suspends and resumes, each by a touch for exactly that; the log names them', async () => {
  const { store } = await openInvitedStore(console, {})
  await ctx.db.query("update stores set admission = 'waiting', revision = revision + 1 where id = $1", [
    store.id,
  ])
  assert.match(await read(ops, '/operator/stores'), /1 waiting for you/)
  assert.equal((await store.call('POST', '/api/v1/checkouts', order)).statusCode, 403)
  const touched = await ops.browser.confirm(ops.authenticator, 'store.approve', { storeId: home.store.id })
  for (const touch of [undefined, touched])
    assert(
      (await ops.browser.post('/operator/stores/approve', { storeId: store.id, touch })).statusCode >= 403,
      'a touch for another store is none',
    )
  assert.equal((await decide(ops, 'approve', store.id)).statusCode, 303)
  await store.create()
  assert.equal((await decide(ops, 'suspend', store.id, { reason: '' })).statusCode, 422)
  assert.equal((await decide(ops, 'suspend', store.id, { reason: 'Ask <us>.' })).statusCode, 303)
  assert((await read(ops, `/operator/stores/${store.id}`)).includes('Ask &#60;us&#62;.'))
  assert.equal((await store.call('GET', '/api/v1/store')).json<Store>().suspendedReason, 'Ask <us>.')
  assert.equal((await store.call('POST', '/api/v1/checkouts', order)).statusCode, 403)
  assert.equal((await decide(ops, 'resume', store.id)).statusCode, 303)
  const events = (await store.events()).filter(({ type }) => type.startsWith('store.'))
  assert.deepEqual(
    events.map(({ type }) => type),
    ['store.approved', 'store.suspended', 'store.resumed'],
  )
  for (const { actor } of events) assert.deepEqual(actor, { type: 'operator', id: operatorId, name: 'Olga' })
})

test('an operator creates a store with a link for its owner, and makes another link while there is none', async () => {
  const values = { storeName: 'Fresh', mode: 'test', name: 'Ola', email: '' }
  const made = await act(ops, 'store.create', '/operator/stores', values)
  assert.equal(made.statusCode, 200, made.body)
  const linkIn = (body: string) =>
    tokenOf(/http:\/\/localhost:\d+\/enrol#[\w-]+/.exec(body)?.[0] ?? assert.fail(body))
  const [row = assert.fail()] = await ctx.db.query<{ id: string }>(
    "select id from stores where name = 'Fresh'",
  )
  const invite = { storeId: row.id, name: 'Ola', email: '' }
  const again = await act(ops, 'store.invite', '/operator/stores/invite', invite)
  const ola = await enrolWith(console, linkIn(again.body))
  assert.equal((await ola.browser.get(`/stores/${row.id}/members`)).statusCode, 200)
  await assert.rejects(enrolWith(console, linkIn(made.body)), 'the later link replaced the first')
  const taken = await act(ops, 'store.invite', '/operator/stores/invite', invite)
  assert.equal(taken.statusCode, 409, 'a store that has an owner is theirs')
  assert.equal((await ops.browser.get(`/stores/${row.id}/members`)).statusCode, 404)
})

test('settlers, chains and queues show what the database knows; the doctor says what to do and leaks no node’s key', async () => {
  const caip2 = 'eip155:84532'
  await insertSettler(ctx.db, caip2, '0x70997970c51812dc3a010c7d01b50e0d17dc79c8', 0)
  await ctx.db.query('update settlers set balance_wei = 1500000000000000000, balance_at = clock()')
  await ctx.db.query(
    `insert into followers (network, head_number, head_time, head_seen_at, safe_number, finalized_number)
     values ($1, 1234, clock(), clock() - interval '90 seconds', 1200, 1000)`,
    [caip2],
  )
  const seen = { network: 'BASE_SEPOLIA', provider: 'alpha', answered: 300, failed: 100 }
  await addNodeRecords(ctx.db, [seen])
  await addNodeRecords(ctx.db, [{ ...seen, answered: 0 }])
  await ctx.db.query(
    "insert into node_faults (network, provider, fault, faults, last_at) values ($1, 'beta', 'a block that nobody else has', 2, clock())",
    [caip2],
  )
  assert.match(await read(ops, '/operator/settlers'), /1\.50 ETH|1\.500000 ETH|1\.5 ETH/)
  await ctx.db.query('update settlers set stopped_at = clock()')
  assert.match(await read(ops, '/operator/settlers'), /class="chip bad">Stopped: its key is used elsewhere</)
  const chains = await read(ops, '/operator/chains')
  for (const part of ['1,234', '34 blocks', '200 (40%)', 'a block that nobody else has'])
    assert(chains.includes(part), `${part}: ${chains}`)
  assert.match(await read(ops, '/operator/queues'), /Decisions of stores/)
  const doctor = await read(ops, '/operator/doctor?run=yes')
  assert.match(doctor, /Problems found/)
  assert.match(doctor, /BASE_SEPOLIA_RPC_URLS/)
  for (const body of [chains, doctor]) assert(!body.includes(secret))
})
