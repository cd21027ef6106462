/** People and their passkeys, through the console without a browser: what each step does, and what it refuses. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildConsole } from '../../../src/http/console/app.ts'
import { inviteAsOperator } from '../../../src/members/invite.ts'
import { removeAsOperator } from '../../../src/members/remove.ts'
import { listStoreMembers } from '../../../src/members/rows.ts'
import { hashToken } from '../../../src/members/token.ts'
import { operator } from '../../support/operator.ts'
import { openAuthenticator } from './support/authenticator.ts'
import {
  enrolWith,
  inviteBy,
  openConsole,
  openInvitedStore,
  signInWith,
  TestBrowser,
  tokenOf,
} from './support/console.ts'

const console = await openConsole()
const { farthing, url } = console
const { ctx } = farthing

test('an invitation is used up by the passkey, not by looking at it', async () => {
  const { store, token } = await openInvitedStore(console)
  const browser = new TestBrowser(console)
  await browser.get('/enrol')
  for (let i = 0; i < 3; i++) {
    const seen = (await browser.done('/enrol/options', { invitation: token })).json()
    assert.deepEqual([seen.name, seen.role, seen.isRecovery], ['Olga', 'owner', false])
  }
  const { options } = (await browser.done('/enrol/options', { invitation: token })).json()
  await browser.done('/enrol', { invitation: token, answer: openAuthenticator(url).create(options) })
  assert.match((await browser.get('/account')).body, /You are an owner/)
  const again = await browser.post('/enrol/options', { invitation: token })
  assert.equal(again.statusCode, 410)
  const events = (await store.events()).filter(({ type }) => type.startsWith('member.'))
  assert.deepEqual(
    events.map(({ type, actor }) => [type, actor?.type, actor?.name]),
    [
      ['member.invited', 'operator', 'test'],
      ['member.joined', 'member', 'Olga'],
    ],
  )
})

test('of two browsers that use one invitation at once, one gets in', async () => {
  const { token } = await openInvitedStore(console)
  const tries = await Promise.all(
    [0, 1].map(async () => {
      const browser = new TestBrowser(console)
      await browser.get('/enrol')
      const { options } = (await browser.done('/enrol/options', { invitation: token })).json()
      return { browser, answer: openAuthenticator(url).create(options) }
    }),
  )
  const answers = await Promise.all(
    tries.map(({ browser, answer }) => browser.post('/enrol', { invitation: token, answer })),
  )
  assert.deepEqual(answers.map(({ statusCode }) => statusCode).sort(), [200, 410])
})

test('an invitation that has expired, or was replaced by another, opens nothing', async () => {
  const first = await openInvitedStore(console)
  const browser = new TestBrowser(console)
  await browser.get('/enrol')
  const { options } = (await browser.done('/enrol/options', { invitation: first.token })).json()
  await ctx.db.query(
    "update invitations set expires_at = clock() - interval '1 second' where store_id = $1",
    [first.store.id],
  )
  const answer = openAuthenticator(url).create(options)
  assert.equal((await browser.post('/enrol', { invitation: first.token, answer })).statusCode, 410)
  assert.equal((await browser.post('/enrol/options', { invitation: first.token })).statusCode, 410)

  const second = await openInvitedStore(console)
  const { link } = await inviteAsOperator(
    ctx,
    second.store.store.id,
    operator,
    { name: 'Olga', email: null, role: 'owner' },
    new Date(),
  )
  assert.equal((await browser.post('/enrol/options', { invitation: second.token })).statusCode, 410)
  await enrolWith(console, tokenOf(link))
})

test('an operator invites the first owner of a store, and nobody to one that has an owner', async () => {
  const { store, token } = await openInvitedStore(console)
  await enrolWith(console, token)
  const invite = (role: 'owner' | 'viewer') =>
    inviteAsOperator(ctx, store.store.id, operator, { name: 'Eve', email: null, role }, new Date())
  await assert.rejects(invite('owner'), { reason: 'has_owner' })
  await assert.rejects(invite('viewer'), { reason: 'has_owner' })
})

test('each sign-in has a token of its own, and a session ends when it is told to, is idle, or is old', async () => {
  const { token } = await openInvitedStore(console)
  const { browser, authenticator } = await enrolWith(console, token)
  const other = await signInWith(console, authenticator)
  assert.notEqual(other.cookie, browser.cookie)
  const isIn = async (each: TestBrowser) => (await each.get('/account')).statusCode === 200
  const [, sessionId] = /name="sessionId" value="(ses_\w+)"/.exec((await browser.get('/account')).body) ?? []
  assert.equal((await browser.post('/sessions/end', { sessionId })).statusCode, 303)
  assert.equal(await isIn(other), false)
  assert.equal(await isIn(browser), true)

  for (const column of ['seen_at', 'expires_at']) {
    const late = await signInWith(console, authenticator)
    const hash = hashToken(late.cookie.split('=')[1] ?? '')
    const ago = column === 'seen_at' ? "interval '12 hours 1 second'" : "interval '1 second'"
    await ctx.db.query(`update sessions set ${column} = clock() - ${ago} where token_hash = $1`, [hash])
    assert.equal(await isIn(late), false, column)
  }
  await browser.done('/sign-out')
  assert.equal(await isIn(browser), false)
})

test('nothing of a session, an invitation or a challenge is stored but its hash', async () => {
  const { token } = await openInvitedStore(console)
  const { browser } = await enrolWith(console, token)
  const { options } = (await browser.done('/confirm', { action: 'passkey.add', values: {} })).json()
  const secrets = [token, browser.cookie.split('=')[1] ?? '', options.challenge]
  for (const table of ['sessions', 'invitations', 'challenges']) {
    const text = JSON.stringify(await ctx.db.query(`select t::text from ${table} t`))
    for (const secret of secrets) assert(!text.includes(secret), `${table} has ${secret}`)
  }
})

test('a second passkey needs the first, both sign in, and the last one cannot be removed', async () => {
  const { store, token } = await openInvitedStore(console)
  const { browser, authenticator } = await enrolWith(console, token)
  const second = openAuthenticator(url)
  const { options } = (await browser.done('/passkeys/options')).json()
  const answer = second.create(options)
  assert.equal((await browser.post('/passkeys', { name: 'Key', answer })).statusCode, 403)
  const touch = await browser.confirm(authenticator, 'passkey.add', {})
  await browser.done('/passkeys', { name: 'Key', answer, touch })
  const elsewhere = await signInWith(console, second)

  const ids = [...(await browser.get('/account')).body.matchAll(/name="passkeyId" value="(pk_\w+)"/g)].map(
    ([, id]) => id,
  )
  assert.equal(ids.length, 2)
  const remove = async (passkeyId: string | undefined, by: typeof authenticator) => {
    const asked = await browser.confirm(by, 'passkey.remove', { passkeyId })
    return (await browser.post('/passkeys/remove', { passkeyId, touch: asked })).statusCode
  }
  assert.equal(await remove(ids[1], authenticator), 303)
  assert.equal((await elsewhere.get('/account')).statusCode, 303, 'what the passkey opened is closed with it')
  assert.equal(await remove(ids[0], authenticator), 409)
  const types = (await store.events()).map(({ type }) => type)
  assert.deepEqual(types.slice(-2), ['member.passkey_added', 'member.passkey_removed'])
})

test('an owner invites, helps with a lost passkey, and removes; nobody else does', async () => {
  const { store, token } = await openInvitedStore(console)
  const owner = await enrolWith(console, token)
  const guest = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'manager' }))
  const path = `/stores/${store.id}/members`
  const page = (await owner.browser.get(path)).body
  const [, memberId = ''] = /name="memberId" value="(mem_\w+)"/.exec(page) ?? []
  const values = { storeId: store.id, memberId }

  for (const [action, to] of [
    ['member.recover', `${path}/recover`],
    ['member.remove', `${path}/remove`],
  ] as const) {
    const touch = await guest.browser.confirm(guest.authenticator, action, values)
    assert.equal((await guest.browser.post(to, { memberId, touch })).statusCode, 403)
  }

  const touch = await owner.browser.confirm(owner.authenticator, 'member.recover', values)
  const answer = await owner.browser.done(`${path}/recover`, { memberId, touch })
  const link = /#([A-Za-z0-9_-]{43})/.exec(answer.body)?.[1] ?? ''
  assert.equal(
    (await guest.browser.get('/account')).statusCode,
    200,
    'a link that nobody has used changes nothing',
  )
  const back = await enrolWith(console, link)
  assert.equal((await guest.browser.get('/account')).statusCode, 303, 'recovery ends the sessions')
  await assert.rejects(signInWith(console, guest.authenticator), /401/)

  const removing = await owner.browser.confirm(owner.authenticator, 'member.remove', values)
  await owner.browser.done(`${path}/remove`, { memberId, touch: removing })
  assert.equal((await back.browser.get('/account')).statusCode, 303)
  await assert.rejects(signInWith(console, back.authenticator), /401/)
  const told = (await store.events()).map(({ type, actor }) => [type, actor?.type, actor?.name])
  assert.deepEqual(told.slice(-7), [
    ['member.invited', 'operator', 'test'],
    ['member.joined', 'member', 'Olga'],
    ['member.invited', 'member', 'Olga'],
    ['member.joined', 'member', 'Max'],
    ['member.invited', 'member', 'Olga'],
    ['member.recovered', 'member', 'Max'],
    ['member.removed', 'member', 'Olga'],
  ])
})

test('the last owner cannot leave in the console, and an operator who removes them leaves a trace', async () => {
  const { store, token } = await openInvitedStore(console)
  const owner = await enrolWith(console, token)
  const [{ id: memberId } = assert.fail()] = await listStoreMembers(ctx.db, store.id)
  const touch = await owner.browser.confirm(owner.authenticator, 'member.remove', {
    storeId: store.id,
    memberId,
  })
  const path = `/stores/${store.id}/members/remove`
  assert.equal((await owner.browser.post(path, { memberId, touch })).statusCode, 409)
  await removeAsOperator(ctx, store.store.id, operator, memberId, new Date())
  assert.equal((await owner.browser.get('/account')).statusCode, 303)
  assert.equal((await store.events()).at(-1)?.type, 'member.removed')
})

test('a member joins another store with the passkey they have, and then only its owner could take them over', async () => {
  const { store, token } = await openInvitedStore(console)
  const owner = await enrolWith(console, token)
  const max = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'viewer' }))
  const { id: memberId } =
    (await listStoreMembers(ctx.db, store.id)).find(({ name }) => name === 'Max') ?? assert.fail()
  const recover = async () => {
    const touch = await owner.browser.confirm(owner.authenticator, 'member.recover', {
      storeId: store.id,
      memberId,
    })
    return await owner.browser.post(`/stores/${store.id}/members/recover`, { memberId, touch })
  }
  const early = /#([A-Za-z0-9_-]{43})/.exec((await recover()).body)?.[1] ?? ''
  const other = await openInvitedStore(console)
  const join = async (invitation: string) => {
    const touch = await max.browser.confirm(max.authenticator, 'invitation.accept', { invitation })
    return (await max.browser.post('/enrol/join', { invitation, touch })).statusCode
  }
  assert.equal(await join(early), 410, 'a link that replaces passkeys makes nobody a member')
  assert.equal(await join(other.token), 200)
  assert.equal(await join(other.token), 410)
  assert.match((await max.browser.get('/account')).body, /You are an owner[\s\S]*Passkeys/)
  assert.deepEqual((await listStoreMembers(ctx.db, other.store.id))[0]?.id, memberId)

  assert.equal((await max.browser.post('/enrol/options', { invitation: early })).statusCode, 410)
  assert.equal((await recover()).statusCode, 409)
  assert.equal(
    await join(await inviteBy(owner, store.id, { name: 'Max', role: 'owner' })),
    409,
    'no second role',
  )
})

test('an owner who was removed from one store does not come back by a link that they made for its owner in another', async () => {
  const [first, second] = [await openInvitedStore(console), await openInvitedStore(console)]
  const olga = await enrolWith(console, first.token)
  const join = async ({ browser, authenticator }: typeof olga, invitation: string) => {
    const touch = await browser.confirm(authenticator, 'invitation.accept', { invitation })
    assert.equal((await browser.post('/enrol/join', { invitation, touch })).statusCode, 200)
  }
  await join(olga, second.token)
  const max = await enrolWith(console, await inviteBy(olga, first.store.id, { name: 'Max', role: 'owner' }))
  await join(max, await inviteBy(olga, second.store.id, { name: 'Max', role: 'viewer' }))
  const idOf = async (wanted: string) =>
    (await listStoreMembers(ctx.db, first.store.id)).find(({ name }) => name === wanted)?.id ?? assert.fail()
  const [olgaId, maxId] = [await idOf('Olga'), await idOf('Max')]

  const recovering = await olga.browser.confirm(olga.authenticator, 'member.recover', {
    storeId: second.store.id,
    memberId: maxId,
  })
  const made = await olga.browser.post(`/stores/${second.store.id}/members/recover`, {
    memberId: maxId,
    touch: recovering,
  })
  const invitation = /#([A-Za-z0-9_-]{43})/.exec(made.body)?.[1] ?? assert.fail(made.body)
  const removing = await max.browser.confirm(max.authenticator, 'member.remove', {
    storeId: first.store.id,
    memberId: olgaId,
  })
  await max.browser.done(`/stores/${first.store.id}/members/remove`, { memberId: olgaId, touch: removing })
  assert.equal((await olga.browser.post('/enrol/options', { invitation })).statusCode, 410)
  await assert.rejects(enrolWith(console, invitation))
  assert.equal((await max.browser.get('/account')).statusCode, 200)
})

test('a state-changing request needs our own page: by Sec-Fetch-Site, or by Origin where there is none', async () => {
  const { token } = await openInvitedStore(console)
  const { browser } = await enrolWith(console, token)
  const status = async (headers: Readonly<Record<string, string>>) =>
    (await browser.post('/confirm', { action: 'passkey.add', values: {} }, headers)).statusCode
  assert.equal(await status({}), 403)
  assert.equal(await status({ origin: url }), 200)
  for (const site of ['same-site', 'cross-site', 'none', ''])
    assert.equal(await status({ 'sec-fetch-site': site, origin: url }), 403, site)
  for (const origin of ['null', `${url}.evil.example`, 'http://localhost', ''])
    assert.equal(await status({ origin }), 403, origin)
})

test('a form of another site, which comes without the cookie, gives the browser no other one', async () => {
  const answer = await console.app.inject({
    method: 'POST',
    url: '/sign-out',
    payload: 'formToken=x',
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'cross-site' },
  })
  assert.equal(answer.statusCode, 403)
  assert.equal(answer.headers['set-cookie'], undefined)
})

test('pages carry the policy, and the cookie no script can read', async () => {
  const answer = await new TestBrowser(console).get('/sign-in')
  const { headers } = answer
  assert.match(String(headers['content-security-policy']), /default-src 'none'.*trusted-types 'none'/)
  assert.equal(headers['referrer-policy'], 'same-origin')
  assert.match(String(headers['set-cookie']), /^farthing=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
  const secure = buildConsole(
    { ...ctx, config: { ...ctx.config, consoleUrl: 'https://console.example' } },
    { isDraining: false },
    { ctx, examine: async () => [] },
  )
  const safe = await secure.inject('/sign-in')
  assert.match(
    String(safe.headers['set-cookie']),
    /^__Host-farthing=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  )
  await secure.close()
})

test('an address gets thirty attempts a minute', async () => {
  const browser = new TestBrowser(console)
  await browser.get('/sign-in')
  const statuses = []
  for (let i = 0; i < 31; i++) statuses.push((await browser.post('/sign-in', { answer: {} })).statusCode)
  assert.deepEqual([...new Set(statuses.slice(0, 30))], [401])
  assert.equal(statuses[30], 429)
})
