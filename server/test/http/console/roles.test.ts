/** What each role may do in the console, tried on every route, and how roles change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeRoleAsOperator } from '../../../src/members/change-role.ts'
import { roles } from '../../../src/members/member.ts'
import { setOperator } from '../../../src/members/operators.ts'
import { mayAct, type Right } from '../../../src/members/rights.ts'
import { listStoreMembers } from '../../../src/members/rows.ts'
import { operator } from '../../support/operator.ts'
import {
  type Enrolled,
  enrolWith,
  inviteBy,
  openConsole,
  openInvitedStore,
  TestBrowser,
} from './support/console.ts'
import { listRoutes } from './support/routes.ts'

const console = await openConsole()
const { ctx } = console.farthing
const routes = listRoutes(console.app)

/** What each route of a store is for. */
const rightOf: Readonly<Record<string, Right>> = {
  'GET /activity': 'activity:read',
  'GET /developers': 'developers:read',
  'GET /developers/deliveries': 'developers:read',
  'GET /developers/deliveries/:deliveryId': 'developers:read',
  'POST /developers/deliveries/resend': 'webhooks:resend',
  'POST /developers/endpoints': 'webhooks:write',
  'GET /developers/endpoints/:endpointId': 'developers:read',
  'POST /developers/endpoints/delete': 'webhooks:write',
  'GET /developers/endpoints/new': 'webhooks:write',
  'POST /developers/endpoints/resend': 'webhooks:resend',
  'POST /developers/endpoints/roll': 'webhooks:write',
  'POST /developers/endpoints/switch': 'webhooks:write',
  'POST /developers/endpoints/test': 'webhooks:write',
  'POST /developers/endpoints/update': 'webhooks:write',
  'GET /developers/events': 'developers:read',
  'GET /developers/events/:eventId': 'developers:read',
  'POST /developers/keys': 'keys:write',
  'GET /developers/keys/new': 'keys:write',
  'POST /developers/keys/revoke': 'keys:write',
  'GET ': 'payments:read',
  'GET /live': 'payments:read',
  'GET /branding': 'branding:read',
  'GET /branding/preview': 'branding:read',
  'POST /branding': 'branding:write',
  'GET /new': 'checkouts:write',
  'POST /new': 'checkouts:write',
  'GET /links': 'payments:read',
  'GET /links/:linkId': 'payments:read',
  'POST /links/:linkId/close': 'checkouts:write',
  'GET /payments': 'payments:read',
  'GET /payments/export': 'payments:read',
  'GET /reports': 'payments:read',
  'GET /reports/audit': 'payments:read',
  'POST /reports/audit/explain': 'payments:write',
  'POST /reports/audit/recover': 'payments:write',
  'GET /reports/export': 'payments:read',
  'GET /reports/statement': 'payments:read',
  'GET /reports/mapping': 'payments:write',
  'POST /reports/mapping': 'payments:write',
  'POST /reports/mapping/delete': 'payments:write',
  'GET /payments/:paymentId': 'payments:read',
  'GET /checkouts/:checkoutId': 'payments:read',
  'POST /checkouts/:checkoutId/cancel': 'payments:write',
  'POST /payments/:paymentId/note': 'payments:write',
  'GET /inbox': 'payments:read',
  'POST /inbox/accept': 'payments:write',
  'POST /inbox/dismiss': 'payments:write',
  'POST /inbox/dismiss-all': 'payments:write',
  'POST /inbox/undo': 'payments:write',
  'GET /refunds': 'refunds:read',
  'GET /refunds/:refundId': 'refunds:read',
  'POST /refunds/:refundId/cancel': 'refunds:write',
  'POST /refunds/:refundId/address-request': 'refunds:write',
  'POST /refunds/:refundId/confirm': 'refunds:write',
  'POST /refunds/:refundId/declare': 'refunds:write',
  'POST /refunds/:refundId/transaction': 'refunds:write',
  'POST /refunds/:refundId/prepare': 'refunds:write',
  'POST /refunds/:refundId/signature': 'refunds:write',
  'GET /payments/:paymentId/refund': 'refunds:write',
  'POST /payments/:paymentId/refund': 'refunds:write',
  'POST /payments/:paymentId/refund/address': 'refunds:write',
  'POST /members/refund-limit': 'members:write',
  'GET /members': 'members:read',
  'POST /members': 'members:write',
  'POST /members/recover': 'members:write',
  'POST /members/remove': 'members:write',
  'POST /members/role': 'members:write',
  'POST /members/withdraw': 'members:write',
  'GET /start': 'wallets:read',
  'POST /start/skip': 'wallets:read',
  'GET /wallets': 'wallets:read',
  'GET /wallets/new': 'wallets:write',
  'POST /wallets/new': 'wallets:write',
  'POST /wallets/use': 'wallets:write',
  'POST /wallets/stop': 'wallets:write',
  'POST /wallets/custody': 'wallets:write',
  'GET /wallets/undo/:changeId': 'wallets:write',
  'GET /wallets/:walletId': 'wallets:read',
  'GET /wallets/:walletId/stop': 'wallets:write',
  'POST /wallets/:walletId/challenge': 'wallets:write',
  'POST /wallets/:walletId/message': 'wallets:write',
  'POST /wallets/:walletId/prove': 'wallets:write',
  'POST /wallets/:walletId/signature': 'wallets:write',
  'POST /wallets/confirm': 'wallets:write',
  'POST /wallets/refuse': 'wallets:write',
  'POST /wallets/setting': 'wallets:write',
  'POST /wallets/undo': 'wallets:write',
  'POST /wallets/seen': 'wallets:read',
}

test('the table of rights: managers and developers see members and wallets, owners change them', () => {
  const may = (right: Right) => roles.filter((role) => mayAct(role, right))
  assert.deepEqual(may('members:read'), ['owner', 'manager', 'developer'])
  assert.deepEqual(may('members:write'), ['owner'])
  assert.deepEqual(may('wallets:read'), ['owner', 'manager', 'developer'])
  assert.deepEqual(may('wallets:write'), ['owner'])
})

/** A store with one member of each role. */
async function openTeam() {
  const { store, token } = await openInvitedStore(console)
  const owner = await enrolWith(console, token)
  const people = { owner } as Record<(typeof roles)[number], Enrolled>
  for (const role of roles.filter((each) => each !== 'owner'))
    people[role] = await enrolWith(console, await inviteBy(owner, store.id, { name: role, role }))
  const idOf = async (wanted: string) =>
    (await listStoreMembers(ctx.db, store.id)).find(({ role, name }) => name === wanted || role === wanted)
      ?.id ?? assert.fail(`no ${wanted}`)
  return { store, people, idOf, path: `/stores/${store.id}/members` }
}

async function changeBy(
  { browser, authenticator }: Enrolled,
  storeId: string,
  memberId: string,
  role: string,
  touched: Readonly<Record<string, string>> = {},
): Promise<number> {
  const asked = { storeId, memberId, role, ...touched }
  const touch = await browser.confirm(authenticator, 'member.role', asked)
  return (await browser.post(`/stores/${storeId}/members/role`, { memberId, role, touch })).statusCode
}

test('every route of a store is open to exactly the roles of the table, and to nobody else, operators included', async () => {
  const { store, people } = await openTeam()
  const elsewhere = await openInvitedStore(console)
  const stranger = await enrolWith(console, elsewhere.token)
  const [{ id } = assert.fail()] = await listStoreMembers(ctx.db, elsewhere.store.id)
  await setOperator(ctx, operator, id, true, new Date())
  const inStore = routes.filter(({ path }) => path.includes(':storeId'))
  assert(inStore.length >= Object.keys(rightOf).length)
  for (const { method, path } of inStore) {
    const url = path.replace(':storeId', store.id)
    const ask = async (browser: TestBrowser) => {
      const { statusCode, body } = await (method === 'GET' ? browser.get(url) : browser.post(url))
      return statusCode === 403 && /Your role in this store/.test(body) ? 'role' : statusCode
    }
    const right = rightOf[`${method} ${path.replace('/stores/:storeId', '')}`]
    assert(right, `this test does not say what ${method} ${path} is for`)
    for (const role of roles) {
      // A stream does not end; frame/live.test.ts reads it.
      if (path.endsWith('/live') && mayAct(role, right)) continue
      // In a live store developers make no keys; developers.test.ts.
      if (path.endsWith('/keys/new') && role === 'developer') continue
      const isOpen = (await ask(people[role].browser)) !== 'role'
      assert.equal(isOpen, mayAct(role, right), `${role}: ${method} ${path}`)
    }
    assert.equal(await ask(stranger.browser), 404, `${method} ${path}`)
    const nobody = new TestBrowser(console)
    await nobody.get('/sign-in')
    assert.equal(await ask(nobody), method === 'GET' ? 303 : 401, `${method} ${path}`)
  }
})

test('every other route is open to every role', async () => {
  const { people } = await openTeam()
  for (const { method, path } of routes.filter(
    (each) => !/:|assets|^\/sign-out|^\/operator/.test(each.path),
  )) {
    for (const role of roles) {
      const { browser } = people[role]
      const { statusCode, body } = await (method === 'GET' ? browser.get(path) : browser.post(path))
      assert(
        statusCode !== 404 || path === '/confirm' || /sessions\/end|codes\/refuse|account\/alerts/.test(path),
        `${role}: ${method} ${path}`,
      )
      assert(!/Your role in this store/.test(body), `${role}: ${method} ${path}`)
    }
  }
})

test('an owner changes a role by a touch for exactly that, it counts at once, and the store is told', async () => {
  const { store, people, idOf, path } = await openTeam()
  const memberId = await idOf('viewer')
  const before = await people.viewer.browser.get(path)
  assert.equal(before.statusCode, 403)
  for (const touched of [{ role: 'manager' }, { memberId: await idOf('manager') }, { storeId: 'st_other' }])
    assert.equal(
      await changeBy(people.owner, store.id, memberId, 'developer', touched),
      409,
      JSON.stringify(touched),
    )
  assert.equal(
    (await people.owner.browser.post(`${path}/role`, { memberId, role: 'developer' })).statusCode,
    403,
  )
  assert.equal(await changeBy(people.manager, store.id, memberId, 'owner'), 403)
  assert.equal(await changeBy(people.owner, store.id, memberId, 'developer'), 303)
  assert.equal((await people.viewer.browser.get(path)).statusCode, 200)
  const told = (await store.events()).filter(({ type }) => type === 'member.role_changed')
  assert.deepEqual(
    told.map(({ actor, data }) => [actor?.type, actor?.name, data]),
    [['member', 'Olga', { member: { id: memberId, name: 'viewer', role: 'developer' } }]],
  )
})

test('two owners who demote each other at once leave one owner, and that one cannot be demoted', async () => {
  const { store, people, idOf } = await openTeam()
  assert.equal(await changeBy(people.owner, store.id, await idOf('manager'), 'owner'), 303)
  const [olga, second] = [await idOf('Olga'), await idOf('manager')]
  const statuses = await Promise.all([
    changeBy(people.owner, store.id, second, 'viewer'),
    changeBy(people.manager, store.id, olga, 'viewer'),
  ])
  assert.deepEqual(statuses.sort(), [303, 403])
  const owners = (await listStoreMembers(ctx.db, store.id)).filter(({ role }) => role === 'owner')
  assert.equal(owners.length, 1)
  const [last = assert.fail()] = owners
  const acting = last.id === olga ? people.owner : people.manager
  assert.equal(await changeBy(acting, store.id, last.id, 'viewer'), 409)
  const change = { memberId: last.id, role: 'viewer' } as const
  await assert.rejects(changeRoleAsOperator(ctx, store.store.id, operator, change, new Date()), {
    reason: 'last_owner',
  })
})

test('an owner who is demoted cannot come back by a link that they made before', async () => {
  const { store, people, idOf } = await openTeam()
  await changeBy(people.owner, store.id, await idOf('manager'), 'owner')
  const link = await inviteBy(people.manager, store.id, { name: 'Again', role: 'owner' })
  assert.equal(await changeBy(people.owner, store.id, await idOf('manager'), 'viewer'), 303)
  await assert.rejects(enrolWith(console, link), /410/)
})

test('a store’s owner cannot take over an operator by a new passkey', async () => {
  const { store, people, idOf, path } = await openTeam()
  const memberId = await idOf('developer')
  const recover = async () => {
    const touch = await people.owner.browser.confirm(people.owner.authenticator, 'member.recover', {
      storeId: store.id,
      memberId,
    })
    return await people.owner.browser.post(`${path}/recover`, { memberId, touch })
  }
  const early = /#([A-Za-z0-9_-]{43})/.exec((await recover()).body)?.[1] ?? assert.fail()
  await setOperator(ctx, operator, memberId, true, new Date())
  await assert.rejects(enrolWith(console, early), /410/)
  assert.equal((await recover()).statusCode, 409)
  await setOperator(ctx, operator, memberId, false, new Date())
  assert.equal((await recover()).statusCode, 200)
  const told = (await store.events()).map(({ type }) => type).filter((type) => type.includes('operator'))
  assert.deepEqual(told, ['member.operator_added', 'member.operator_removed'])
})
