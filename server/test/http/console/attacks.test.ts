/**
 * Generated attacks: changed, repeated and swapped session tokens, form tokens, invitations and challenges, across
 * members, stores and actions. None may be accepted. And what a refusal's time tells.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { formTokenOf } from '../../../src/members/token.ts'
import { compareTimes, leakT } from '../../support/compare-times.ts'
import { openCount, runs } from '../../support/full.ts'
import { openAuthenticator } from './support/authenticator.ts'
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
const { ctx } = console.farthing

/** Three stores with an owner and a viewer each, one of whom signed out, and open and used invitations. */
const stores = await Promise.all(
  [0, 1, 2].map(async () => {
    const { store, token } = await openInvitedStore(console)
    const owner = await enrolWith(console, token)
    const viewer = await enrolWith(console, await inviteBy(owner, store.id, { name: 'V', role: 'viewer' }))
    const open = await inviteBy(owner, store.id, { name: 'Open', role: 'owner' })
    const left = await signInWith(console, owner.authenticator)
    const ended = left.cookie
    await left.done('/sign-out')
    return { store, owner, viewer, usedToken: token, openToken: open, ended }
  }),
)
const people: readonly Enrolled[] = stores.flatMap(({ owner, viewer }) => [owner, viewer])
const cookies = people.map(({ browser }) => browser.cookie)
const tokenOfCookie = (cookie: string) => cookie.slice(cookie.indexOf('=') + 1)

const base64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const character = fc.constantFrom(...base64, '=', ' ', ',', '"', '\0', 'é')
/** A token that is close to a good one and differs from it. */
const changed = (tokens: readonly string[]) =>
  fc
    .oneof(
      fc
        .tuple(fc.constantFrom(...tokens), fc.nat(43), fc.constantFrom(0, 1), character)
        .map(([token, at, taken, put]) => token.slice(0, at) + put + token.slice(at + taken)),
      fc.tuple(fc.constantFrom(...tokens), fc.nat(43)).map(([token, at]) => token.slice(0, at)),
      fc
        .tuple(fc.constantFrom(...tokens), fc.constantFrom(...tokens), fc.nat(43))
        .map(([a, b, at]) => a.slice(0, at) + b.slice(at)),
      fc.tuple(fc.constantFrom(...tokens), fc.constantFrom(...tokens)).map(([a, b]) => `${a}; farthing=${b}`),
      fc.constantFrom(...tokens).map((token) => token.toUpperCase()),
      fc.string(),
    )
    .filter((token) => !tokens.includes(token) && !tokens.includes(token.trim()))

type Asked = {
  readonly cookie: string
  readonly formToken: string
  readonly path: string
  readonly fields?: Readonly<Record<string, unknown>>
  readonly method?: 'GET' | 'POST'
}

/** Sends a request as nobody in particular, from an address that has sent none before. */
async function send({ cookie, formToken, path, fields = {}, method = 'POST' }: Asked): Promise<number> {
  const browser = new TestBrowser(console)
  Object.assign(browser, { cookie: /^[\x20-\x7e]*$/.test(cookie) ? cookie : '', formToken })
  return (method === 'GET' ? await browser.get(path) : await browser.post(path, fields)).statusCode
}

const sessions = cookies.map(tokenOfCookie)
const ended = stores.map((each) => each.ended)
const person = fc.nat(people.length - 1)
const place = fc.nat(stores.length - 1)
const paths = ['/sign-out', '/confirm', '/passkeys/options', '/passkeys', '/passkeys/remove', '/sessions/end']

/** What is tried, as a name and the request that must be refused. */
const attack: fc.Arbitrary<readonly [string, () => Promise<number>]> = fc.oneof(
  // A session token that is almost right, or was right once, with the form token that belongs to it.
  fc
    .tuple(
      fc.oneof(changed(sessions), fc.constantFrom(...ended.map(tokenOfCookie))),
      fc.constantFrom(...paths),
    )
    .map(
      ([token, path]) =>
        [
          'session',
          () => send({ cookie: `farthing=${token}`, formToken: formTokenOf(token), path }),
        ] as const,
    ),
  changed(sessions).map(
    (token) =>
      ['page', () => send({ cookie: `farthing=${token}`, formToken: '', path: '/', method: 'GET' })] as const,
  ),
  // A good session with a form token that is another's, almost right, or missing.
  fc
    .tuple(person, fc.oneof(changed(sessions.map(formTokenOf)), person), fc.constantFrom(...paths))
    .filter(([mine, token]) => mine !== token)
    .map(([mine, token, path]) => {
      const formToken = typeof token === 'number' ? formTokenOf(sessions[token] ?? '') : token
      return ['form token', () => send({ cookie: cookies[mine] ?? '', formToken, path })] as const
    }),
  // An invitation that is almost right, was used, or is another's, with a passkey that was made for an open one.
  fc
    .tuple(
      place,
      fc.oneof(
        changed(stores.map(({ openToken }) => openToken)),
        fc.constantFrom(...stores.flatMap(({ usedToken, openToken }) => [usedToken, openToken])),
      ),
      fc.boolean(),
    )
    .filter(([where, invitation]) => stores[where]?.openToken !== invitation)
    .map(([where, invitation, isLook]) => {
      const isOpen = stores.some(({ openToken }) => openToken === invitation)
      const path = isLook && !isOpen ? '/enrol/options' : '/enrol'
      const fields = { invitation, answer: made[where] }
      const formToken = formTokenOf(sessions[0] ?? '')
      return ['invitation', () => send({ cookie: cookies[0] ?? '', formToken, path, fields })] as const
    }),
  // A member of one store in another.
  fc
    .tuple(person, place, fc.constantFrom('', '/recover', '/remove', '/role', '/withdraw'), fc.boolean())
    .filter(([who, where]) => Math.floor(who / 2) !== where)
    .map(([who, where, verb, isRead]) => {
      const path = `/stores/${stores[where]?.store.id}/members${isRead ? '' : verb}`
      const formToken = formTokenOf(sessions[who] ?? '')
      const fields = { name: 'Eve', role: 'owner', email: '', touch: spent[who] }
      return [
        'store',
        () => send({ cookie: cookies[who] ?? '', formToken, path, fields, method: isRead ? 'GET' : 'POST' }),
      ] as const
    }),
  // A touch that was used before, or was asked for by another member, for another action or with another value.
  fc
    .tuple(person, person, fc.nat(4), fc.constantFrom('viewer', 'manager', 'owner'))
    .map(([who, whose, kind, role]) => {
      const { store } = stores[Math.floor(who / 2)] ?? assert.fail()
      const path = [
        `/stores/${store.id}/members`,
        `/stores/${store.id}/members/remove`,
        `/stores/${store.id}/members/role`,
        '/passkeys/remove',
        '/passkeys',
      ][kind]
      const fields = {
        name: 'Eve',
        role,
        email: '',
        memberId: 'mem_1',
        passkeyId: 'pk_1',
        touch: spent[whose],
      }
      const formToken = formTokenOf(sessions[who] ?? '')
      return [
        'touch',
        () => send({ cookie: cookies[who] ?? '', formToken, path: path ?? '', fields }),
      ] as const
    }),
  // A passkey's answer to one purpose's challenge used for another.
  fc.tuple(person, fc.constantFrom('/sign-in', '/passkeys', '/enrol')).map(([who, path]) => {
    const formToken = formTokenOf(sessions[who] ?? '')
    const fields = { answer: spent[who], touch: spent[who], invitation: stores[0]?.openToken, name: 'Key' }
    return ['purpose', () => send({ cookie: cookies[who] ?? '', formToken, path, fields })] as const
  }),
)

/** Of each member: a touch for adding a passkey, which is open. It is good for nothing else. */
const spent: unknown[] = await Promise.all(
  people.map(({ browser, authenticator }) => browser.confirm(authenticator, 'passkey.add', {})),
)

/** For each open invitation a passkey that could be enrolled with it, by the first member's browser. */
const made: unknown[] = await Promise.all(
  stores.map(async ({ openToken: invitation }) => {
    const asked = await people[0]?.browser.done('/enrol/options', { invitation })
    return openAuthenticator(console.url).create(asked?.json().options)
  }),
)

/** Attacks that run at the same time, so that the database is not waited for one by one. */
const atOnce = 25

test('no changed, repeated or swapped token, invitation or challenge is accepted', async (t) => {
  const before = await count()
  const counted = openCount('attacks')
  await fc.assert(
    fc.asyncProperty(fc.array(attack, { minLength: atOnce, maxLength: atOnce }), async (attacks) => {
      await Promise.all(
        attacks.map(async ([kind, run]) => {
          counted.add()
          counted.add(kind)
          const status = await run()
          // A page without a session leads to the sign-in; everything else is refused.
          assert(status === 303 ? kind === 'page' : status >= 400 && status < 500, `${kind}: ${status}`)
        }),
      )
    }),
    runs(5_000 / atOnce, 200_000 / atOnce),
  )
  counted.say(t)
  assert.deepEqual(await count(), before, 'nothing was written')
  for (const { browser } of people) assert.equal((await browser.get('/account')).statusCode, 200)
  // What was swapped was good: each invitation and touch is accepted where it belongs.
  const [{ openToken: invitation } = assert.fail()] = stores
  const [{ browser } = assert.fail()] = people
  await browser.done('/enrol', { invitation, answer: made[0] })
})

/** Whatever an attack could have changed. */
async function count(): Promise<unknown> {
  const tables = ['members', 'memberships', 'invitations', 'passkeys', 'sessions', 'challenges', 'events']
  return await Promise.all(
    tables.map(async (table) => (await ctx.db.query(`select count(*) as count from ${table}`))[0]),
  )
}

/** The same token, wrong in its first character or only in its last. */
function wrong(token: string, isFirst: boolean): string {
  const swap = (text: string) => (text === 'A' ? 'B' : 'A')
  return isFirst ? swap(token[0] ?? '') + token.slice(1) : token.slice(0, -1) + swap(token.at(-1) ?? '')
}

const [session = ''] = sessions
const timed: readonly [what: string, ask: (isFirst: boolean) => Asked][] = [
  [
    'session token',
    (isFirst) => ({ cookie: `farthing=${wrong(session, isFirst)}`, formToken: '', path: '/', method: 'GET' }),
  ],
  [
    'form token',
    (isFirst) => ({
      cookie: cookies[0] ?? '',
      formToken: wrong(formTokenOf(session), isFirst),
      path: '/confirm',
    }),
  ],
  [
    'invitation',
    (isFirst) => ({
      cookie: cookies[0] ?? '',
      formToken: formTokenOf(session),
      path: '/enrol/options',
      fields: { invitation: wrong(stores[0]?.openToken ?? '', isFirst) },
    }),
  ],
]

for (const [what, ask] of timed) {
  test(`the time of a refusal does not tell how much of a ${what} was right`, async (t) => {
    const pairs = runs(600, 100_000).numRuns / 2
    const found = await compareTimes(pairs, (isFirst) => send(ask(isFirst)))
    t.diagnostic(JSON.stringify({ refusals: pairs * 2, t: Math.round(found * 100) / 100 }))
    assert(Math.abs(found) < leakT, `t = ${found}`)
  })
}

test('the time of a refused sign-in does not tell whether a passkey exists', async (t) => {
  const browser = new TestBrowser(console)
  await browser.get('/sign-in')
  const { options } = (await browser.done('/sign-in/options')).json()
  const known = people[0]?.authenticator.touch(options) ?? assert.fail()
  const unknown = openAuthenticator(console.url).touch(options)
  const broken = randomBytes(64).toString('base64url')
  const spoil = (answer: typeof known) => ({ ...answer, response: { ...answer.response, signature: broken } })
  const answers = [spoil(known), spoil(unknown)]
  const pairs = runs(600, 20_000).numRuns / 2
  const found = await compareTimes(pairs, async (isFirst) => {
    const fresh = new TestBrowser(console)
    Object.assign(fresh, { cookie: browser.cookie, formToken: browser.formToken })
    assert.equal((await fresh.post('/sign-in', { answer: answers[isFirst ? 0 : 1] })).statusCode, 401)
  })
  t.diagnostic(JSON.stringify({ refusals: pairs * 2, t: Math.round(found * 100) / 100 }))
  assert(Math.abs(found) < leakT, `t = ${found}`)
})
