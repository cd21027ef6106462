/** Strangers who open stores: what they get, how often, and that there is never half of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '@farthing/sdk'
import { privateKeyToAccount } from 'viem/accounts'
import type { StoreId } from '../../../src/ids.ts'
import { createKey } from '../../../src/stores/api-keys.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { byOperator } from '../../support/operator.ts'
import { order, send, wallets } from '../../support/store.ts'
import { until } from '../../support/until.ts'
import { type Authenticator, openAuthenticator } from './support/authenticator.ts'
import { openConsole, TestBrowser } from './support/console.ts'

const approval = await openConsole({ settings: { SIGN_UP: 'approval', SIGN_UPS_PER_BLOCK: '3' } })
const { ctx } = approval.farthing
const stranger = { name: 'Sam', storeName: 'Sam’s shop', walletAddress: wallets[0] }

async function openStranger(console = approval) {
  const browser = new TestBrowser(console)
  // Each stranger has a block of addresses to themselves, unless a test says otherwise.
  Object.assign(browser, { remoteAddress: browser.remoteAddress.replace(/^10\.0\.0\.(\d+)$/, '10.1.$1.1') })
  await browser.get('/sign-up')
  return browser
}

async function askOptions(browser: TestBrowser, applicant: object = stranger) {
  return (await browser.done('/sign-up/options', { ...applicant })).json()
}

async function signUp(
  browser: TestBrowser,
  applicant: object = stranger,
  authenticator: Authenticator = openAuthenticator(browser.url),
) {
  const { memberId, options } = await askOptions(browser, applicant)
  return await browser.post('/sign-up', { ...applicant, memberId, answer: authenticator.create(options) })
}

type Owned = {
  id: StoreId
  mode: string
  admission: string
  signed_up: boolean
  address: string
  current: boolean
}

const listOwned = (name: string) =>
  ctx.db.query<Owned>(
    `select s.id, s.mode, s.admission, s.signed_up, w.address, w.registration > 0 as current
     from stores s join wallets w on w.store_id = s.id where s.name = $1 order by s.mode`,
    [name],
  )

/** How many rows there are of everything that a sign-up makes. */
async function countAll(console = approval): Promise<string> {
  const tables = [
    'members',
    'memberships',
    'passkeys',
    'stores',
    'event_counters',
    'wallets',
    'wallet_changes',
  ]
  const [row] = await console.farthing.ctx.db.query<{ counts: string }>(
    `select concat_ws(' ', ${[...tables, 'events', 'sessions', 'sign_ups'].map((each) => `(select count(*) from ${each})`).join(', ')}) as counts`,
  )
  return row?.counts ?? ''
}

async function callAs(storeId: StoreId, console = approval) {
  const { text } = await createKey(console.farthing.ctx, storeId, byOperator, {}, new Date())
  const headers = { 'x-api-key': text }
  return (method: 'GET' | 'POST', path: string, body?: unknown) =>
    send(console.farthing.app, method, path, body, headers)
}

test('where nobody may sign up there is nothing to see', async () => {
  const closed = await openConsole()
  const browser = new TestBrowser(closed)
  assert.equal((await browser.get('/sign-up')).statusCode, 404)
  await browser.get('/sign-in')
  assert.equal((await browser.post('/sign-up/options', stranger)).statusCode, 404)
  assert(!(await browser.get('/sign-in')).body.includes('/sign-up'))
})

test('a stranger gets a test store that works and a live one that waits, owns both, and is signed in', async () => {
  const browser = await openStranger()
  assert((await browser.get('/sign-in')).body.includes('href="/sign-up"'))
  const done = await signUp(browser)
  const home = await browser.get('/account')
  assert.equal(home.statusCode, 200)
  assert(home.body.includes('Sam’s shop'))
  const owned = await listOwned('Sam’s shop')
  assert.deepEqual(
    owned.map(({ id: _id, ...rest }) => rest),
    [
      { mode: 'live', admission: 'waiting', signed_up: true, address: wallets[0], current: true },
      { mode: 'test', admission: 'approved', signed_up: true, address: wallets[0], current: true },
    ],
  )
  const [live = assert.fail(), tried = assert.fail()] = owned
  assert.deepEqual(done.json(), { to: `/stores/${live.id}/start` })
  const start = (await browser.get(`/stores/${live.id}/start`)).body
  assert(!start.includes('/wallets/seen'), 'their own wallet is no news to them')
  assert.equal((await (await callAs(tried.id))('POST', '/api/v1/checkouts', order)).statusCode, 201)
  const refused = await (await callAs(live.id))('POST', '/api/v1/checkouts', order)
  assert.equal(refused.json().code, 'store_inactive')
  const log = await ctx.db.query<{ type: string; actor: string }>(
    "select type, actor ->> 'name' as actor from events where store_id = $1 order by type",
    [live.id],
  )
  assert.deepEqual(log.slice(-2), [
    { type: 'member.joined', actor: 'Sam' },
    { type: 'wallet.registered', actor: 'Sam' },
  ])
  assert.equal((await browser.get('/sign-up')).statusCode, 303, 'who is signed in has a store')
})

test('a passkey’s answer works once, for exactly what was entered, in the browser that asked', async () => {
  const before = await countAll()
  const [browser, other] = [await openStranger(), await openStranger()]
  const authenticator = openAuthenticator(browser.url)
  const { memberId, options } = await askOptions(browser)
  const answer = authenticator.create(options)
  const sent = { ...stranger, memberId, answer }
  for (const change of [
    { walletAddress: wallets[1] },
    { name: 'Eve' },
    { storeName: 'Other' },
    { memberId: memberId.replace(/.$/, (last: string) => (last === '0' ? '1' : '0')) },
  ])
    assert.equal((await browser.post('/sign-up', { ...sent, ...change })).statusCode, 409)
  assert.equal((await other.post('/sign-up', sent)).statusCode, 409)
  assert.equal(await countAll(), before)
  const answers = await Promise.all([1, 2, 3].map(() => browser.post('/sign-up', sent)))
  assert.deepEqual(answers.map(({ statusCode }) => statusCode).sort(), [200, 409, 409])
  const third = await openStranger()
  const again = await askOptions(third)
  const known = { ...stranger, memberId: again.memberId, answer: authenticator.create(again.options) }
  assert.equal((await third.post('/sign-up', known)).statusCode, 401, 'a passkey belongs to one member')
})

test('what cannot be a store or a wallet is refused before a passkey is made', async () => {
  const before = await countAll()
  const browser = await openStranger()
  for (const change of [
    { storeName: '' },
    { storeName: `x${String.fromCharCode(0x202e)}y` },
    { name: 'x'.repeat(101) },
    { walletAddress: '' },
    { walletAddress: '0x123' },
    { walletAddress: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' },
  ]) {
    const { statusCode, body } = await browser.post('/sign-up/options', { ...stranger, ...change })
    assert.equal(statusCode, 422, `${JSON.stringify(change)}: ${body}`)
  }
  assert.equal(await countAll(), before)
})

test('one block of addresses signs up so many per day, however many ask at once', async () => {
  const browsers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => openStranger()))
  for (const [i, browser] of browsers.entries()) Object.assign(browser, { remoteAddress: `192.0.2.${i + 1}` })
  const applicant = { ...stranger, storeName: 'Flood' }
  const answers = await Promise.all(browsers.map((browser) => signUp(browser, applicant)))
  assert.deepEqual(answers.map(({ statusCode }) => statusCode).sort(), [200, 200, 200, 429, 429, 429])
  assert.equal((await listOwned('Flood')).length, 6)
  const late = await openStranger()
  Object.assign(late, { remoteAddress: '192.0.2.99' })
  assert.equal(
    (await late.post('/sign-up/options', stranger)).statusCode,
    429,
    'and is told before the passkey',
  )
  await ctx.db.query('update sign_ups set day = day - 1')
  assert.equal((await signUp(late, applicant)).statusCode, 200, 'the next day counts anew')
})

test('all together sign up so many per day', async () => {
  const small = await openConsole({ settings: { SIGN_UP: 'approval', SIGN_UPS_PER_DAY: '2' } })
  const statuses: number[] = []
  for (let i = 0; i < 2; i++) statuses.push((await signUp(await openStranger(small))).statusCode)
  const last = await openStranger(small)
  statuses.push((await last.post('/sign-up/options', stranger)).statusCode)
  assert.deepEqual(statuses, [200, 200, 429])
})

test('a sign-up that is killed in the middle leaves nothing, and can be repeated', async () => {
  const browser = await openStranger()
  const { memberId, options } = await askOptions(browser)
  const sent = { ...stranger, memberId, answer: openAuthenticator(browser.url).create(options) }
  const before = await countAll()
  let killed: Promise<{ statusCode: number }> | undefined
  await ctx.db.transaction(async (tx) => {
    await tx.query('set local idle_in_transaction_session_timeout = 0')
    // The session is the last thing that a sign-up writes. It waits here, with all the rest written.
    await tx.query('lock table sessions in share row exclusive mode')
    const [{ pid } = assert.fail()] = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
    killed = browser.post('/sign-up', sent)
    await until('the sign-up waits', async () => {
      // Not in the transaction: it would only ever see the connections that were open at its first look.
      const ended = await ctx.db.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where $1::int = any (pg_blocking_pids(pid))`,
        [pid],
      )
      return ended.length > 0
    })
  })
  assert(((await killed)?.statusCode ?? 0) >= 500)
  assert.equal(await countAll(), before)
  assert.equal((await browser.post('/sign-up', sent)).statusCode, 200)
})

test('where sign-up is open, the live store works once it has proven its wallet, and a proof for the test store is none', async () => {
  const open = await openConsole({ settings: { SIGN_UP: 'open' } })
  const holder = newPayer()
  const done = await signUp(await openStranger(open), { ...stranger, walletAddress: holder.address })
  assert.equal(done.statusCode, 200, done.body)
  const stores = await open.farthing.ctx.db.query<{ id: StoreId; mode: string }>(
    'select id, mode from stores',
  )
  const prove = async (mode: string) => {
    const { id } = stores.find((each) => each.mode === mode) ?? assert.fail()
    const call = await callAs(id, open)
    const [wallet] = (await call('GET', `/api/v1/stores/${id}/wallets`)).json().data
    const path = `/api/v1/stores/${id}/wallets/${wallet.id}`
    const { message } = (await call('POST', `${path}/challenge`)).json()
    const signature = await privateKeyToAccount(holder.key).signMessage({ message })
    assert.equal((await call('POST', `${path}/prove`, { signature })).statusCode, 200)
  }
  const { id } = stores.find(({ mode }) => mode === 'live') ?? assert.fail()
  const call = await callAs(id, open)
  await prove('test')
  assert.equal((await call('POST', '/api/v1/checkouts', order)).json().code, 'store_inactive')
  await prove('live')
  assert.equal((await call('POST', '/api/v1/checkouts', order)).statusCode, 201)
  assert.equal((await call('GET', '/api/v1/store')).json<Store>().standing, 'approved')
})
