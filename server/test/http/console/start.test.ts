/** First steps: ticked off by what has happened, skipped per member and browser, gone once nothing is left. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../../src/ids.ts'
import { completeByHand } from '../../support/by-hand.ts'
import { registerWallet, wallets } from '../../support/store.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore, type TestBrowser } from './support/console.ts'

const console = await openConsole()
const { farthing } = console
const { db } = farthing.ctx

async function openShop() {
  const { store, token } = await openInvitedStore(console)
  const owner = await enrolWith(console, token)
  return { store, owner, path: `/stores/${store.id}/start` }
}

async function readStates(browser: TestBrowser, path: string, cookie = '') {
  const { body, headers } = await console.app.inject({
    url: path,
    headers: { cookie: `${browser.cookie}; ${cookie}` },
    remoteAddress: browser.remoteAddress,
  })
  const states = [...body.matchAll(/<li(?: class="(\w+)")?><p class="row apart">.*?<\/p>/g)].map(
    ([line]) => /<span class="chip[^"]*">([^<]+)/.exec(line)?.[1] ?? '',
  )
  const set = [headers['set-cookie'] ?? []].flat().find((each) => each.startsWith('steps='))
  return { states, isLinked: body.includes('>First steps</a>'), set }
}

test('each step is ticked off by a fact, and the page leaves the navigation once all are', async () => {
  const { store, owner, path } = await openShop()
  const states = async () => (await readStates(owner.browser, path)).states
  await db.query('update api_keys set last_used_at = null where store_id = $1', [store.id])
  assert.deepEqual(await states(), ['Next', '', '', '', '', ''])
  await registerWallet(store, wallets[0])
  assert.equal((await states())[0], 'Next', 'no owner has confirmed it')
  await db.query('update wallets set registration = default where store_id = $1', [store.id])
  await db.query('update api_keys set last_used_at = null where store_id = $1', [store.id])
  assert.deepEqual(await states(), ['Done', 'Next', '', '', '', ''])
  await db.query("update wallets set custodial_type = 'CUSTODIAL' where store_id = $1", [store.id])
  assert.deepEqual(await states(), ['Done', 'Done', 'Next', '', '', ''], 'nobody can prove it')
  await db.query(
    "update wallets set custodial_type = 'NON_CUSTODIAL', proven_at = clock() where store_id = $1",
    [store.id],
  )
  assert.deepEqual(await states(), ['Done', 'Done', 'Next', '', '', ''])
  await db.query(
    `insert into recovery_codes (hash, member_id, created_at)
     select sha256(member_id::bytea), member_id, clock() from memberships where store_id = $1`,
    [store.id],
  )
  assert.deepEqual(await states(), ['Done', 'Done', 'Done', 'Next', '', ''])
  await completeByHand(farthing, (await store.create()).id)
  await db.query('update api_keys set last_used_at = clock() where store_id = $1', [store.id])
  const [event = assert.fail()] = await store.events()
  assert.deepEqual(await states(), ['Done', 'Done', 'Done', 'Done', 'Done', 'Next'])
  const endpoint = newId('we', '00', new Date())
  await db.query(
    `insert into webhook_endpoints (id, store_id, url, types, secrets, created_at)
     values ($1, $2, 'https://shop.example/hook', '{}', '[]', clock())`,
    [endpoint, store.id],
  )
  await db.query(
    `insert into deliveries (id, store_id, endpoint_id, event_id, sequence, state, run_at, finished_at)
     values ($1, $2, $3, $4, 1, 'delivered', clock(), clock())`,
    [newId('dlv', '00', new Date()), store.id, endpoint, event.id],
  )
  const last = await readStates(owner.browser, path)
  assert.deepEqual(last.states, Array(6).fill('Done'))
  assert.equal(last.isLinked, false)
  assert.match(last.set ?? '', /^steps=mem_\w+:all; Path=\/stores\/st_\w+; HttpOnly; SameSite=Lax; Max-Age=/)
})

test('a step is skipped for the member who skips it, and everything at once', async () => {
  const { store, owner, path } = await openShop()
  const max = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'manager' }))
  const skip = async (step: string) => {
    const { headers, statusCode } = await owner.browser.post(`${path}/skip`, { step })
    const set = [headers['set-cookie'] ?? []].flat().find((each) => each.startsWith('steps='))
    return { statusCode, cookie: set?.split(';')[0] ?? '' }
  }
  const one = await skip('wallet')
  const skipped = await readStates(owner.browser, path, one.cookie)
  assert.deepEqual([skipped.states.slice(0, 2), skipped.isLinked], [['Skipped', 'Next'], true])
  assert.equal((await readStates(max.browser, path, one.cookie)).states[0], 'Next')
  const every = await skip('all')
  assert.equal((await readStates(owner.browser, path, every.cookie)).isLinked, false)
  assert.equal((await skip('x')).statusCode, 422)
})
