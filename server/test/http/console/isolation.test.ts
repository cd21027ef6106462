/** Fifty stores, each with people: to a member of one, the others and everything in them do not exist. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listStoreMembers } from '../../../src/members/rows.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'
import { listRoutes } from './support/routes.ts'

const storesMin = 50
const console = await openConsole()
const { ctx } = console.farthing

const home = await openInvitedStore(console)
const owner = await enrolWith(console, home.token)
const others = await Promise.all(Array.from({ length: storesMin }, () => openInvitedStore(console)))
const neighbour = others[0] ?? assert.fail()
const stranger = await enrolWith(console, neighbour.token)
await inviteBy(stranger, neighbour.store.id, { name: 'Next', role: 'viewer' })

const routes = listRoutes(console.app).filter(({ path }) => path.includes(':storeId'))

test('every route that names a store answers 404 for every other store', async () => {
  assert(routes.length >= 6, JSON.stringify(routes))
  for (const { store } of others) {
    for (const { method, path } of routes) {
      const url = path.replace(':storeId', store.id)
      const answer = method === 'POST' ? await owner.browser.post(url) : await owner.browser.get(url)
      assert.equal(answer.statusCode, 404, `${method} ${url}`)
    }
  }
})

test('another store’s members, invitations, passkeys and sessions do not exist either', async () => {
  const storeId = home.store.id
  const members = `/stores/${storeId}/members`
  const [{ id: memberId } = assert.fail()] = await listStoreMembers(ctx.db, neighbour.store.id)
  const find = async (table: string, column: string, value: string) =>
    (await ctx.db.query<{ id: string }>(`select id from ${table} where ${column} = $1 limit 1`, [value]))[0]
      ?.id
  const passkeyId = await find('passkeys', 'member_id', memberId)
  const sessionId = await find('sessions', 'member_id', memberId)
  const invitationId = await find('invitations', 'store_id', neighbour.store.id)
  const confirmed: readonly [action: string, path: string, values: Readonly<Record<string, unknown>>][] = [
    ['member.recover', `${members}/recover`, { storeId, memberId }],
    ['member.remove', `${members}/remove`, { storeId, memberId }],
    ['member.role', `${members}/role`, { storeId, memberId, role: 'viewer' }],
    ['passkey.remove', '/passkeys/remove', { passkeyId }],
  ]
  for (const [action, path, values] of confirmed) {
    const touch = await owner.browser.confirm(owner.authenticator, action, values)
    assert.equal((await owner.browser.post(path, { ...values, touch })).statusCode, 404, action)
  }
  assert.equal((await owner.browser.post(`${members}/withdraw`, { invitationId })).statusCode, 404)
  assert.equal((await owner.browser.post('/sessions/end', { sessionId })).statusCode, 404)
  assert.equal((await stranger.browser.get('/account')).statusCode, 200)
})
