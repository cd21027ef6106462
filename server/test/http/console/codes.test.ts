/** Recovery codes: what one opens, what it does not, and how a code that leaked is refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Mail, placeOf } from '../../../src/mails/mail.ts'
import { inviteAsOperator } from '../../../src/members/invite.ts'
import { readSecretsKeys } from '../../../src/secrets/key-file.ts'
import { unseal } from '../../../src/secrets/seal.ts'
import { dumpRows } from '../../support/dump.ts'
import { operator } from '../../support/operator.ts'
import { openStore, type StoreClient } from '../../support/store.ts'
import { type Authenticator, openAuthenticator } from './support/authenticator.ts'
import {
  type Enrolled,
  enrolWith,
  inviteBy,
  openConsole,
  signInWith,
  TestBrowser,
  tokenOf,
} from './support/console.ts'

const console = await openConsole({
  settings: { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'farthing@pay.example' },
})
const { farthing, url } = console
const { ctx } = farthing

type Owned = Enrolled & { readonly store: StoreClient; readonly email: string }

async function openOwned(mode: 'live' | 'test' = 'live'): Promise<Owned> {
  const store = await openStore(farthing, { evmWallet: null, mode })
  const email = `${store.id}@shop.example`
  const invitee = { name: 'Olga', email, role: 'owner' } as const
  const { link } = await inviteAsOperator(ctx, store.store.id, operator, invitee, ctx.now())
  return { ...(await enrolWith(console, tokenOf(link))), store, email }
}

async function makeCodes({ browser, authenticator }: Enrolled): Promise<string[]> {
  const touch = await browser.confirm(authenticator, 'codes.make', {})
  const { body } = await browser.done('/codes', { touch })
  return [...body.matchAll(/<code>([0-9A-Z-]{29})<\/code>/g)].map(([, code = '']) => code)
}

/** Somebody with a code and a device of their own. Fails with the status of what was refused. */
async function recoverWith(
  code: string,
  browser = new TestBrowser(console),
  authenticator = openAuthenticator(url),
): Promise<Enrolled> {
  await browser.get('/recover')
  const { options } = (await browser.done('/recover/options', { code })).json()
  await browser.done('/recover', { code, answer: authenticator.create(options) })
  await browser.get('/account')
  return { browser, authenticator }
}

/** Makes what happened older. */
async function passHours(hours: number): Promise<void> {
  await ctx.db.query('update passkeys set waits_until = waits_until - make_interval(mins => $1)', [
    hours * 60,
  ])
  await ctx.db.query('update recovery_codes set used_at = used_at - make_interval(mins => $1)', [hours * 60])
}

async function mailsTo(address: string): Promise<string[]> {
  const keys = readSecretsKeys(ctx.config.secretsKeyFile)
  const rows = await ctx.db.query<{ id: string; keyId: string; sealed: string }>(
    'select id, key_id as "keyId", sealed from mails order by id',
  )
  return rows
    .map((row) => JSON.parse(unseal(keys, placeOf(row.id), row)) as Mail)
    .flatMap(({ to, text }) => (to === address ? (text.split('\n')[0] ?? '') : []))
}

const typesOf = async (store: StoreClient) => (await store.events()).map(({ type }) => type)
const canTouch = async ({ browser }: Enrolled) =>
  (await browser.post('/confirm', { action: 'passkey.add', values: {} })).statusCode

async function invite(owner: Enrolled, store: StoreClient): Promise<number> {
  const values = { name: 'Eve', role: 'owner', email: '' }
  const asked = await owner.browser.post('/confirm', {
    action: 'member.invite',
    values: { storeId: store.id, ...values },
  })
  if (asked.statusCode !== 200) return asked.statusCode
  const touch = owner.authenticator.touch(asked.json().options)
  return (await owner.browser.post(`/stores/${store.id}/members`, { ...values, touch })).statusCode
}

test('codes are made by a touch, shown once, each different, and nothing of them is stored but the hash', async () => {
  const owner = await openOwned()
  assert.equal((await owner.browser.post('/codes')).statusCode, 403)
  const wrong = await owner.browser.confirm(owner.authenticator, 'passkey.add', {})
  assert.equal((await owner.browser.post('/codes', { touch: wrong })).statusCode, 409)
  const touch = await owner.browser.confirm(owner.authenticator, 'codes.make', {})
  const { body } = await owner.browser.done('/codes', { touch })
  const codes = [...body.matchAll(/<code>([0-9A-HJKMNP-TV-Z-]{29})<\/code>/g)].map(([, code = '']) => code)
  assert.deepEqual([codes.length, new Set(codes).size], [8, 8])
  assert.equal((await owner.browser.post('/codes', { touch })).statusCode, 409, 'and a touch makes one sheet')
  const rows = await dumpRows(ctx.db)
  for (const code of codes) {
    assert(!rows.includes(code) && !rows.includes(code.replaceAll('-', '')))
    assert(!(await owner.browser.get('/account')).body.includes(code))
  }
  assert.match((await owner.browser.get('/account')).body, /8 of 8 left/)
  assert.equal((await typesOf(owner.store)).at(-1), 'member.codes_made')
})

test('a code makes a passkey that opens sessions at once and confirms nothing for a day', async () => {
  const owner = await openOwned()
  const [code = ''] = await makeCodes(owner)
  const found = await recoverWith(code.replaceAll('-', ' ').toLowerCase())
  assert.match((await found.browser.get(`/stores/${owner.store.id}`)).body, /cannot confirm changes yet/)
  assert.deepEqual([await canTouch(found), await invite(found, owner.store)], [200, 409])
  await signInWith(console, found.authenticator)
  await passHours(23)
  assert.equal(await invite(found, owner.store), 409)
  await passHours(1.5)
  const again = { ...found, browser: await signInWith(console, found.authenticator) }
  assert.equal(await invite(again, owner.store), 200)
  assert.doesNotMatch(
    (await again.browser.get(`/stores/${owner.store.id}`)).body,
    /cannot confirm changes yet/,
  )
})

test('earlier passkeys go on working, and only they confirm until the day is over', async () => {
  const owner = await openOwned()
  const [code = ''] = await makeCodes(owner)
  const found = await recoverWith(code)
  const asked = (await owner.browser.done('/confirm', { action: 'passkey.add', values: {} })).json()
  const ids = asked.options.allowCredentials.map(({ id }: { id: string }) => id)
  assert.deepEqual(ids, [owner.authenticator.id])
  // A thief who answers with the waiting passkey all the same, for each thing that would make the code last.
  const attempts: [action: string, path: string, values: Record<string, string>][] = [
    ['codes.make', '/codes', {}],
    ['passkey.remove', '/passkeys/remove', { passkeyId: await idOf(owner.authenticator) }],
    ['member.invite', `/stores/${owner.store.id}/members`, { name: 'Eve', role: 'owner', email: '' }],
  ]
  for (const [action, path, values] of attempts) {
    const named = path.startsWith('/stores') ? { storeId: owner.store.id, ...values } : values
    const touch = await found.browser.confirm(found.authenticator, action, named)
    const answer = await found.browser.post(path, { ...values, touch })
    assert.deepEqual([path, answer.statusCode], [path, 409])
    assert.match(answer.body, /made with a recovery code less than 24 hours ago/)
  }
  const another = openAuthenticator(url)
  const { options } = (await found.browser.done('/passkeys/options')).json()
  const touch = await found.browser.confirm(found.authenticator, 'passkey.add', {})
  const made = { name: 'Key', answer: another.create(options), touch }
  assert.equal((await found.browser.post('/passkeys', made)).statusCode, 409)
  assert.equal(await invite(owner, owner.store), 200)
})

async function idOf({ id }: Authenticator): Promise<string> {
  const [row] = await ctx.db.query<{ id: string }>('select id from passkeys where credential_id = $1', [id])
  return row?.id ?? assert.fail()
}

test('a used code is told to the member and the other owners: in the log, by mail, and on every screen', async () => {
  const owner = await openOwned()
  const other = await enrolWith(
    console,
    await inviteBy(owner, owner.store.id, { name: 'Otto', role: 'owner', email: `otto-${owner.email}` }),
  )
  const viewer = await enrolWith(
    console,
    await inviteBy(owner, owner.store.id, { name: 'Vera', role: 'viewer' }),
  )
  const stranger = await openOwned()
  const [code = ''] = await makeCodes(owner)
  await recoverWith(code)
  assert.equal((await typesOf(owner.store)).at(-1), 'member.code_used')
  for (const address of [owner.email, `otto-${owner.email}`])
    assert.match((await mailsTo(address)).at(-1) ?? '', /^Olga used a recovery code to make a new passkey\./)
  assert.doesNotMatch((await mailsTo(stranger.email)).join(), /recovery code/)
  const read = async ({ browser }: Enrolled, path = `/stores/${owner.store.id}`) =>
    (await browser.get(path)).body
  for (const path of [`/stores/${owner.store.id}`, `/stores/${owner.store.id}/wallets`, '/account'])
    assert.match(await read(owner, path), /A passkey was made for you with a recovery code/)
  assert.match(await read(other), /made a passkey with a recovery code/)
  assert.match(
    (await owner.browser.get('/account?lang=es')).body,
    /Se creó una llave de acceso para usted con un código de recuperación/,
  )
  await owner.browser.get('/account?lang=en')
  assert.doesNotMatch(await read(viewer), /recovery code/)
  assert.doesNotMatch(await read(stranger, '/account'), /A passkey was made|made a passkey/)
})

test('the member refuses it in any other session, which ends the passkey, its sessions and all codes', async () => {
  const owner = await openOwned()
  const codes = await makeCodes(owner)
  const thief = await recoverWith(codes[0] ?? '')
  assert.equal((await thief.browser.post('/codes/refuse')).statusCode, 404, 'but a thief cannot')
  assert.equal((await thief.browser.get('/account')).statusCode, 200)
  assert.equal((await owner.browser.post('/codes/refuse')).statusCode, 303)
  assert.equal((await thief.browser.get('/account')).statusCode, 303)
  await assert.rejects(signInWith(console, thief.authenticator), /401/)
  for (const code of codes) await assert.rejects(recoverWith(code), /410/)
  assert.equal((await owner.browser.post('/codes/refuse')).statusCode, 404)
  assert.equal(await invite(owner, owner.store), 200)
  assert.deepEqual((await typesOf(owner.store)).slice(-3, -1), ['member.code_used', 'member.passkey_removed'])
})

test('a thief with the whole sheet cannot refuse the member, who comes in by another code', async () => {
  const owner = await openOwned()
  const codes = await makeCodes(owner)
  const [thief, member] = [await recoverWith(codes[0] ?? ''), await recoverWith(codes[1] ?? '')]
  for (const each of [thief, member]) assert.equal((await each.browser.post('/codes/refuse')).statusCode, 404)
  await recoverWith(codes[2] ?? '')
  await assert.rejects(recoverWith(codes[3] ?? ''), /429/, 'three a day')
  await passHours(25)
  await recoverWith(codes[3] ?? '')
})

test('a session of a waiting passkey ends no session that could refuse it, however often it signs in', async () => {
  const owner = await openOwned()
  const [code = ''] = await makeCodes(owner)
  const thief = await recoverWith(code)
  const { body } = await thief.browser.get('/account')
  const others = [...body.matchAll(/name="sessionId" value="(ses_\w+)"/g)].map(([, id = '']) => id)
  assert.equal(others.length, 1)
  for (const sessionId of others)
    assert.equal((await thief.browser.post('/sessions/end', { sessionId })).statusCode, 404)
  for (let i = 0; i < 21; i++) await signInWith(console, thief.authenticator)
  assert.equal((await owner.browser.get('/account')).statusCode, 200)
  // The sessions of waiting passkeys are the ones that make room, and may end each other.
  const last = await signInWith(console, thief.authenticator)
  const [listed = ''] = [
    ...(await last.get('/account')).body.matchAll(/name="sessionId" value="(ses_\w+)"/g),
  ].map(([, id = '']) => id)
  assert.equal((await last.post('/sessions/end', { sessionId: listed })).statusCode, 303)
  assert.equal((await owner.browser.post('/codes/refuse')).statusCode, 303)
  assert.equal((await last.get('/account')).statusCode, 303)
})

test('nobody withdraws the link with which another owner replaces their passkeys', async () => {
  const owner = await openOwned()
  const token = await inviteBy(owner, owner.store.id, { name: 'Otto', role: 'owner' })
  const otto = await enrolWith(console, token)
  const [code = ''] = await makeCodes(otto)
  const thief = await recoverWith(code)
  const path = `/stores/${owner.store.id}/members`
  const [, memberId = ''] =
    /name="memberId" value="(mem_\w+)"/.exec((await owner.browser.get(path)).body) ?? []
  const touch = await owner.browser.confirm(owner.authenticator, 'member.recover', {
    storeId: owner.store.id,
    memberId,
  })
  const { body } = await owner.browser.done(`${path}/recover`, { memberId, touch })
  const [, invitationId = ''] =
    /name="invitationId" value="(inv_\w+)"/.exec((await thief.browser.get(path)).body) ?? []
  assert.notEqual(invitationId, '')
  assert.equal((await thief.browser.post(`${path}/withdraw`, { invitationId })).statusCode, 404)
  await enrolWith(console, /#([A-Za-z0-9_-]{43})/.exec(body)?.[1] ?? '')
  assert.equal((await thief.browser.get('/account')).statusCode, 303)
})

test('a member with neither passkey nor session refuses with an unused code what another code of the sheet made', async () => {
  const owner = await openOwned()
  const codes = await makeCodes(owner)
  const form = new TestBrowser(console)
  const refuse = async (code: string) => {
    await form.get('/recover')
    return await form.post('/recover/refuse', { code })
  }
  assert.equal((await refuse(codes[7] ?? '')).statusCode, 409, 'nothing waits')
  const thieves = []
  for (const code of codes.slice(0, 3)) thieves.push(await recoverWith(code))
  await assert.rejects(recoverWith(codes[3] ?? ''), /429/)
  assert.equal((await refuse(codes[0] ?? '')).statusCode, 410, 'a used code refuses nothing')
  const refused = await refuse(codes[7] ?? '')
  assert.equal(refused.statusCode, 200)
  assert.match(refused.body, /The passkey was refused/)
  for (const thief of thieves) {
    assert.equal((await thief.browser.get('/account')).statusCode, 303)
    await assert.rejects(signInWith(console, thief.authenticator), /401/)
  }
  for (const code of codes.slice(4)) assert.equal((await refuse(code)).statusCode, 410)
  // What was there before goes on working.
  assert.equal(await invite(owner, owner.store), 200)
  assert.match((await mailsTo(owner.email)).join(), /Olga removed a passkey/)
})

test('a code after the day refuses nothing any more, and another member’s code never does', async () => {
  const [owner, other] = [await openOwned(), await openOwned()]
  const [codes, theirs] = [await makeCodes(owner), await makeCodes(other)]
  const found = await recoverWith(codes[0] ?? '')
  const form = new TestBrowser(console)
  await form.get('/recover')
  assert.equal((await form.post('/recover/refuse', { code: theirs[0] ?? '' })).statusCode, 409)
  await passHours(25)
  assert.equal((await form.post('/recover/refuse', { code: codes[1] ?? '' })).statusCode, 409)
  assert.equal((await found.browser.get('/account')).statusCode, 200)
})

test('an operator has no codes, and codes from before are worth nothing', async () => {
  const owner = await openOwned()
  const [code = ''] = await makeCodes(owner)
  await ctx.db.query(
    'update members set is_operator = true where id in (select member_id from memberships where store_id = $1)',
    [owner.store.store.id],
  )
  assert.doesNotMatch((await owner.browser.get('/account')).body, /data-confirm="codes.make"/)
  const touch = await owner.browser.confirm(owner.authenticator, 'codes.make', {})
  assert.equal((await owner.browser.post('/codes', { touch })).statusCode, 409)
  await assert.rejects(recoverWith(code), /409/)
})

test('a colleague who uses up the mails about members does not keep the news of a used code from an owner', async () => {
  const owner = await openOwned()
  const [code = ''] = await makeCodes(owner)
  // Making codes was mailed, so there is a row to fill up.
  const filled = await ctx.db.query(
    "update mail_counts set count = 1000000 where store_id = $1 and kind = 'member' returning 1 as one",
    [owner.store.store.id],
  )
  assert.equal(filled.length, 1)
  await recoverWith(code)
  assert.match((await mailsTo(owner.email)).at(-1) ?? '', /used a recovery code/)
})

test('another owner replaces the passkey or removes the member, and an owner’s link ends the codes', async () => {
  const owner = await openOwned()
  const max = await enrolWith(
    console,
    await inviteBy(owner, owner.store.id, { name: 'Max', role: 'manager' }),
  )
  const codes = await makeCodes(max)
  const thief = await recoverWith(codes[0] ?? '')
  const path = `/stores/${owner.store.id}/members`
  const [, memberId = ''] =
    /name="memberId" value="(mem_\w+)"/.exec((await owner.browser.get(path)).body) ?? []
  const values = { storeId: owner.store.id, memberId }
  const touch = await owner.browser.confirm(owner.authenticator, 'member.recover', values)
  const { body } = await owner.browser.done(`${path}/recover`, { memberId, touch })
  const back = await enrolWith(console, /#([A-Za-z0-9_-]{43})/.exec(body)?.[1] ?? '')
  assert.equal((await thief.browser.get('/account')).statusCode, 303)
  await assert.rejects(recoverWith(codes[1] ?? ''), /410/)
  // A member who was removed has no codes either.
  const [left = ''] = await makeCodes(back)
  const removing = await owner.browser.confirm(owner.authenticator, 'member.remove', values)
  await owner.browser.done(`${path}/remove`, { memberId, touch: removing })
  await assert.rejects(recoverWith(left), /410/)
})

test('a code works once, also if it is used many times at once, and new codes end the ones before', async () => {
  const owner = await openOwned()
  const [code = '', second = ''] = await makeCodes(owner)
  const tries = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const browser = new TestBrowser(console)
      await browser.get('/recover')
      const { options } = (await browser.done('/recover/options', { code })).json()
      return { browser, answer: openAuthenticator(url).create(options) }
    }),
  )
  const statuses = await Promise.all(
    tries.map(async ({ browser, answer }) => (await browser.post('/recover', { code, answer })).statusCode),
  )
  assert.deepEqual(statuses.sort(), [200, 410, 410, 410, 410, 410])
  await assert.rejects(recoverWith(code), /410/)
  const [third = ''] = await makeCodes(owner)
  await assert.rejects(recoverWith(second), /410/)
  await recoverWith(third)
})

test('a code opens its own member’s stores and no other, test or live', async () => {
  const [live, sandbox] = [await openOwned(), await openOwned('test')]
  const [code = ''] = await makeCodes(sandbox)
  const { browser } = await recoverWith(code)
  assert.equal((await browser.get(`/stores/${sandbox.store.id}`)).statusCode, 200)
  for (const path of ['', '/payments', '/members'])
    assert.equal((await browser.get(`/stores/${live.store.id}${path}`)).statusCode, 404)
})

test('an answer belongs to the code, the browser and five minutes', async () => {
  const owner = await openOwned()
  const [first = '', second = ''] = await makeCodes(owner)
  const [mine, theirs] = [new TestBrowser(console), new TestBrowser(console)]
  await Promise.all([mine.get('/recover'), theirs.get('/recover')])
  const open = async (code: string) => (await mine.done('/recover/options', { code })).json().options
  const answer = openAuthenticator(url).create(await open(first))
  assert.equal((await mine.post('/recover', { code: second, answer })).statusCode, 409)
  assert.equal((await theirs.post('/recover', { code: first, answer })).statusCode, 409)
  assert.equal((await mine.post('/recover', { code: first })).statusCode, 401)
  // What another challenge was for is worth nothing here, and the other way round.
  const enrolling = (await mine.post('/enrol', { invitation: 'a'.repeat(43), answer })).statusCode
  assert(enrolling === 409 || enrolling === 410, `${enrolling}`)
  assert.equal((await mine.post('/recover', { code: first, answer })).statusCode, 200)
  const late = new TestBrowser(console)
  await late.get('/recover')
  const { options } = (await late.done('/recover/options', { code: second })).json()
  await ctx.db.query('update challenges set expires_at = clock()')
  const tooLate = { code: second, answer: openAuthenticator(url).create(options) }
  assert.equal((await late.post('/recover', tooLate)).statusCode, 409)
  await recoverWith(second)
})

test('guesses and texts that are no code are refused alike, and only so often per address', async () => {
  const owner = await openOwned()
  const [code = ''] = await makeCodes(owner)
  const guesses: unknown[] = [
    ...[
      '',
      ' ',
      'x'.repeat(100_00),
      code.slice(1),
      `${code}0`,
      code.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
    ],
    ...['Ⅷ'.repeat(24), `${code.slice(0, -1)}'`, null, 7, [code], { code }, '0'.repeat(24)],
  ]
  for (const guess of guesses) {
    const browser = new TestBrowser(console)
    await browser.get('/recover')
    const { statusCode, body } = await browser.post('/recover/options', { code: guess })
    assert.deepEqual([guess, statusCode], [guess, 410])
    assert.match(body, /This code does not work/)
  }
  const browser = new TestBrowser(console)
  await browser.get('/recover')
  const statuses: number[] = []
  for (let i = 0; i < 12; i++)
    statuses.push((await browser.post('/recover/options', { code: '0'.repeat(24) })).statusCode)
  assert.deepEqual(statuses, [...Array(10).fill(410), 429, 429])
  // The right one is refused as long as a wrong one.
  assert.equal((await browser.post('/recover/options', { code })).statusCode, 429)
  await recoverWith(code)
})

test('the passkey of somebody else does not become a member’s by their code', async () => {
  const [owner, thief] = [await openOwned(), await openOwned()]
  const [code = ''] = await makeCodes(owner)
  await assert.rejects(recoverWith(code, undefined, thief.authenticator), /401/)
  await recoverWith(code)
})

test('a lone owner is told what to do: at the first steps, at home, and on the sign-in screen', async () => {
  const owner = await openOwned()
  const { browser } = owner
  const home = async () => (await browser.get(`/stores/${owner.store.id}`)).body
  const start = async () => (await browser.get(`/stores/${owner.store.id}/start`)).body
  assert.match(await home(), /Make a second way in/)
  assert.match(await start(), /A second way in.*You are the only owner, with one passkey/s)
  await makeCodes(owner)
  assert.doesNotMatch(await home(), /Make a second way in/)
  assert.match(await start(), /You have another passkey or recovery codes/)
  const lone = await openOwned()
  const other = await enrolWith(console, await inviteBy(lone, lone.store.id, { name: 'Otto', role: 'owner' }))
  for (const each of [lone, other])
    assert.doesNotMatch((await each.browser.get(`/stores/${lone.store.id}`)).body, /Make a second way in/)
  const { body } = await new TestBrowser(console).get('/sign-in')
  assert.match(body, /href="\/recover"/)
  assert.match(body, /ask the operator of this site/)
})
