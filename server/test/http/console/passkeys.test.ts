/** What an authenticator answers, and what is not believed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Authenticator, openAuthenticator } from './support/authenticator.ts'
import {
  type Enrolled,
  enrolWith,
  inviteBy,
  openConsole,
  openInvitedStore,
  signInWith,
  TestBrowser,
} from './support/console.ts'

const console = await openConsole()
const { url } = console
const { store, token } = await openInvitedStore(console)
const owner = await enrolWith(console, token)

async function askToSignIn(): Promise<{ browser: TestBrowser; options: { challenge: string } }> {
  const browser = new TestBrowser(console)
  await browser.get('/sign-in')
  return { browser, options: (await browser.done('/sign-in/options')).json().options }
}

type Quirks = Parameters<Authenticator['touch']>[1]
const quirks: readonly [what: string, quirks: Quirks][] = [
  ['from another origin', { origin: 'https://console.evil.example' }],
  ['from another port of this host', { origin: 'http://localhost:1' }],
  ['for another relying party', { rpId: 'evil.example' }],
  ['without verifying the person', { isUnverified: true }],
  ['to another question', { type: 'webauthn.create' }],
  ['with a counter that went back', { counter: 1 }],
]

for (const [what, quirk] of quirks) {
  test(`an answer ${what} is refused, and the passkey still works`, async () => {
    const { browser, options } = await askToSignIn()
    const answer = owner.authenticator.touch(options, quirk)
    assert.equal((await browser.post('/sign-in', { answer })).statusCode, 401)
    assert.equal((await browser.get('/account')).statusCode, 303)
    await signInWith(console, owner.authenticator)
  })
}

test('a new passkey from another origin, relying party or unverified person is refused', async () => {
  const invitation = await inviteBy(owner, store.id, { name: 'Max', role: 'viewer' })
  const browser = new TestBrowser(console)
  await browser.get('/enrol')
  for (const quirk of [
    { origin: 'https://evil.example' },
    { rpId: 'evil.example' },
    { isUnverified: true },
  ]) {
    const { options } = (await browser.done('/enrol/options', { invitation })).json()
    const answer = openAuthenticator(url).create(options, quirk)
    assert.equal((await browser.post('/enrol', { invitation, answer })).statusCode, 401)
  }
  await enrolWith(console, invitation)
})

test('a passkey that counts nothing signs in again and again', async () => {
  const invitation = await inviteBy(owner, store.id, { name: 'Synced', role: 'viewer' })
  const { authenticator } = await enrolWith(console, invitation, openAuthenticator(url, false))
  for (let i = 0; i < 3; i++) await signInWith(console, authenticator)
})

test('the passkey of one member cannot be enrolled for another', async () => {
  const invitation = await inviteBy(owner, store.id, { name: 'Twin', role: 'viewer' })
  await assert.rejects(enrolWith(console, invitation, owner.authenticator), /410/)
  await enrolWith(console, invitation)
})

test('a challenge works once, for the browser that asked, within five minutes', async () => {
  const { browser, options } = await askToSignIn()
  const stranger = await askToSignIn()
  const answer = owner.authenticator.touch(options)
  assert.equal((await stranger.browser.post('/sign-in', { answer })).statusCode, 409)
  await browser.done('/sign-in', { answer })
  await browser.get('/account')
  assert.equal(
    (await browser.post('/sign-in', { answer: owner.authenticator.touch(options) })).statusCode,
    409,
  )

  const late = await askToSignIn()
  await console.farthing.ctx.db.query('update challenges set expires_at = clock()')
  const tooLate = owner.authenticator.touch(late.options)
  assert.equal((await late.browser.post('/sign-in', { answer: tooLate })).statusCode, 409)
})

test('a touch for one action, value, session, member or store is worth nothing for another', async () => {
  const max = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Ma', role: 'owner' }))
  const members = `/stores/${store.id}/members`
  const invitee = { name: 'Eve', role: 'viewer', email: '' }
  const values = { storeId: store.id, ...invitee }
  const attempt = async ({ browser }: Enrolled, path: string, fields: object, touch: unknown) =>
    (await browser.post(path, { ...fields, touch })).statusCode
  const ask = (by: Enrolled, action: string, asked: object) =>
    by.browser.confirm(by.authenticator, action, { ...asked })

  assert.equal(await attempt(owner, members, invitee, undefined), 403)
  assert.equal(await attempt(owner, members, invitee, await ask(owner, 'member.remove', values)), 409)
  assert.equal(await attempt(owner, members, invitee, await ask(owner, 'passkey.add', {})), 409)
  const asked = await ask(owner, 'member.invite', values)
  assert.equal(await attempt(owner, members, { ...invitee, role: 'owner' }, asked), 409)
  assert.equal(await attempt(max, members, invitee, asked), 401)
  const elsewhere = {
    browser: await signInWith(console, owner.authenticator),
    authenticator: owner.authenticator,
  }
  assert.equal(await attempt(elsewhere, members, invitee, await ask(owner, 'member.invite', values)), 409)
  const other = await openInvitedStore(console)
  assert.equal(await attempt(owner, `/stores/${other.store.id}/members`, invitee, asked), 404)
  const good = await ask(owner, 'member.invite', values)
  assert.equal(await attempt(owner, members, invitee, good), 200)
  assert.equal(await attempt(owner, members, invitee, good), 409)
})
