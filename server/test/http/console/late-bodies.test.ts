/**
 * Whoever loses a session or a role can do nothing from then on, whatever they had begun: forms whose headers came before
 * and whose bodies come after, and changes that are under way.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../../src/ids.ts'
import { creditByHand } from '../../support/by-hand.ts'
import { dumpRows } from '../../support/dump.ts'
import { type Held, holdBody, isSomebodyWaiting } from '../../support/late-body.ts'
import { wallets } from '../../support/store.ts'
import { until } from '../../support/until.ts'
import { type Enrolled, enrolWith, inviteBy, openConsole, TestBrowser } from './support/console.ts'
import { listRoutes } from './support/routes.ts'
import { openGuardedStore } from './support/wallets.ts'

const console = await openConsole({ listens: true })
const { db } = console.farthing.ctx
const { store, owner } = await openGuardedStore(console, { evmWallet: wallets[0] })

/** Routes that prove who somebody is instead of asking who they are, or that a link's token opens. */
const open = /^\/(enrol|sign-in|sign-up|recover|oidc|stop-mails)(\/|$)/
const routes = listRoutes(console.app)
  .filter(({ method, path }) => method === 'POST' && !open.test(path))
  .map(({ path }) => path)

async function newOwner(): Promise<Enrolled & { readonly memberId: string }> {
  const max = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'owner' }))
  const [row] = await db.query<{ id: string }>(
    'select member_id as id from passkeys where credential_id = $1',
    [max.authenticator.id],
  )
  return { ...max, memberId: row?.id ?? assert.fail() }
}

const { host, port } = new URL(console.url)

async function hold(browser: TestBrowser, path: string): Promise<Held> {
  const headers = { Host: host, Cookie: browser.cookie, 'Sec-Fetch-Site': 'same-origin' }
  const fields = { formToken: browser.formToken, name: 'Late', step: 'all', key: 'a'.repeat(26) }
  return await holdBody(port, 'POST', path, headers, fields)
}

const values: Readonly<Record<string, string>> = {
  ':storeId': store.id,
  ':checkoutId': (await store.create()).id,
  ':paymentId': await creditByHand(console.farthing, (await store.create()).id),
  ':refundId': `rf_00${'0'.repeat(26)}`,
  ':walletId': newId('wal', '00', new Date()),
  ':linkId': newId('lnk', '00', new Date()),
  ':token': 'A'.repeat(43),
}
const fill = (path: string) => path.replaceAll(/:\w+/g, (name) => values[name] ?? assert.fail(name))

test('a form whose body comes after its session has ended does nothing, whatever the form', async () => {
  const max = await newOwner()
  const held = await Promise.all(routes.map((path) => hold(max.browser, fill(path))))
  const second = new TestBrowser(console)
  Object.assign(second, { cookie: max.browser.cookie, formToken: max.browser.formToken })
  await second.done('/sign-out')
  const before = await dumpRows(db)
  for (const [i, path] of routes.entries())
    assert.deepEqual([path, (await held[i]?.finish())?.status], [path, 401])
  assert.equal(await dumpRows(db), before)
})

test('a form whose body comes after its member was removed does nothing, whatever the form', async () => {
  const max = await newOwner()
  const inStore = routes.filter((path) => path.includes(':storeId'))
  const held = await Promise.all(inStore.map((path) => hold(max.browser, fill(path))))
  const remove = { storeId: store.id, memberId: max.memberId }
  const touch = await owner.browser.confirm(owner.authenticator, 'member.remove', remove)
  await owner.browser.done(`/stores/${store.id}/members/remove`, { ...remove, touch })
  const before = await dumpRows(db)
  for (const [i, path] of inStore.entries())
    assert.deepEqual([path, (await held[i]?.finish())?.status], [path, 401])
  assert.equal(await dumpRows(db), before)
})

/** What takes a right or a session away, and the changes that it must stop: by a touch, by a verb, and by one statement. */
const losses: Readonly<Record<string, (memberId: string) => readonly [sql: string, values: unknown[]]>> = {
  session: (memberId) => ['delete from sessions where member_id = $1', [memberId]],
  role: (memberId) => [
    "update memberships set role = 'viewer' where member_id = $1 and store_id = $2",
    [memberId, store.id],
  ],
}

for (const [what, loss] of Object.entries(losses))
  test(`a change that is under way while its member loses the ${what} is not made`, async () => {
    const invitee = { name: 'Eve', role: 'viewer', email: '' }
    const look = { name: 'Late', timeZone: 'UTC', reportCurrency: 'USD' }
    const link = { key: 'b'.repeat(26), title: 'tea', amount: '5', currency: 'USD', until: '7' }
    const { id: checkoutId } = await store.create()
    const paymentId = await creditByHand(console.farthing, checkoutId)
    const changes: readonly (readonly [path: string, fields: object, action?: string])[] = [
      ['/members', invitee, 'member.invite'],
      ['/branding', look],
      ['/new', link],
      [`/checkouts/${checkoutId}/cancel`, {}],
      ['/inbox/dismiss', { paymentId, note: 'late' }],
    ]
    for (const [path, fields, action] of changes) {
      // Changing roles takes the lock under which these two ask for theirs.
      if (what === 'role' && (action || path === '/branding')) continue
      const max = await newOwner()
      const touch =
        action && (await max.browser.confirm(max.authenticator, action, { storeId: store.id, ...fields }))
      const { answer, before } = await db.transaction(async (tx) => {
        const [sql, values] = loss(max.memberId)
        await tx.query(sql, values)
        const before = await dumpRows(tx)
        let isAnswered = false
        const answer = max.browser.post(`/stores/${store.id}${path}`, { ...fields, touch })
        void answer.finally(() => {
          isAnswered = true
        })
        await until('the change waits', async () => isAnswered || (await isSomebodyWaiting(db)))
        return { answer, before }
      })
      const { statusCode, body } = await answer
      assert.deepEqual([path, statusCode], [path, what === 'role' ? 403 : 401], body)
      assert.equal(await dumpRows(db), before, path)
    }
  })
