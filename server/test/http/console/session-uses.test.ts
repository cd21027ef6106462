/** What a session leaves behind of where it was used: for its member to see, in the logs of their stores, and by mail. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Mail, placeOf } from '../../../src/mails/mail.ts'
import { inviteAsOperator } from '../../../src/members/invite.ts'
import { readSecretsKeys } from '../../../src/secrets/key-file.ts'
import { unseal } from '../../../src/secrets/seal.ts'
import { dumpRows } from '../../support/dump.ts'
import { operator } from '../../support/operator.ts'
import { openStore, type StoreClient } from '../../support/store.ts'
import { type Enrolled, enrolWith, openConsole, signInWith, TestBrowser, tokenOf } from './support/console.ts'

const console = await openConsole({
  settings: {
    SMTP_URL: 'smtp://127.0.0.1:1',
    MAIL_FROM: 'farthing@pay.example',
    TRUSTED_PROXIES: '10.0.0.0/8',
  },
})
const { farthing } = console
const { ctx } = farthing

const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0'
const chrome =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36'

type Owned = Enrolled & { readonly store: StoreClient; readonly email: string }

/** An owner with an address, who enrolled with a browser of the tests at 10.0. */
async function openOwned(): Promise<Owned> {
  const store = await openStore(farthing, { evmWallet: null })
  const email = `${store.id}@shop.example`
  const invitee = { name: 'Olga', email, role: 'owner' } as const
  const { link } = await inviteAsOperator(ctx, store.store.id, operator, invitee, ctx.now())
  return { ...(await enrolWith(console, tokenOf(link))), store, email }
}

/** Somebody with the owner's cookie. */
function steal({ browser }: Enrolled, address: string, userAgent?: string): TestBrowser {
  const thief = new TestBrowser(console)
  thief.cookie = browser.cookie
  thief.remoteAddress = address
  if (userAgent !== undefined) thief.headers = { 'user-agent': userAgent }
  return thief
}

async function told({ store, email }: Owned): Promise<{ types: string[]; mails: Mail[] }> {
  const types = (await store.events())
    .map(({ type }) => type)
    .filter((type) => type === 'member.signed_in' || type === 'member.session_moved')
  const keys = readSecretsKeys(ctx.config.secretsKeyFile)
  const rows = await ctx.db.query<{ id: string; keyId: string; sealed: string }>(
    'select id, key_id as "keyId", sealed from mails order by id',
  )
  const mails = rows
    .map((row) => JSON.parse(unseal(keys, placeOf(row.id), row)) as Mail)
    .filter(({ to, text }) => to === email && text.includes('Address: '))
  return { types, mails }
}

async function passMinutes(minutes: number): Promise<void> {
  farthing.clock.now = new Date(ctx.now().getTime() + minutes * 60_000)
}

test('a stolen cookie leaves the thief’s address and browser on the owner’s page, however often the owner comes back', async () => {
  const owner = await openOwned()
  const thief = steal(owner, '198.51.100.7', firefox)
  assert.equal((await thief.get(`/stores/${owner.store.id}/payments`)).statusCode, 200)
  for (let i = 0; i < 5; i++) {
    await passMinutes(6)
    await owner.browser.get('/account')
  }
  const english = (await owner.browser.get('/account?lang=en')).body
  assert.match(english, /Also used with Firefox on Linux from 198\.51\.100\.7/)
  assert.match(
    (await owner.browser.get('/account?lang=es')).body,
    /Usada también con Firefox en Linux desde 198\.51\.100\.7/,
  )
  const { types, mails } = await told(owner)
  assert.deepEqual(types, ['member.session_moved'])
  assert.match(mails[0]?.text ?? '', /Address: 198\.51\.100\.7/)
  assert.equal(mails.length, 1)
})

for (const [what, address, headers] of [
  ['says that a screen loads itself again', '198.51.100.8', { 'user-agent': firefox, 'x-refresh': '1' }],
  ['copies the browser’s name and has another network', '198.51.100.9', {}],
  ['has another browser in the same network', '10.0.200.200', { 'user-agent': chrome }],
  ['sends no name of a browser', '10.0.200.201', { 'user-agent': '' }],
  ['claims to be behind the owner’s address', '198.51.100.10', { 'x-forwarded-for': '10.0.0.1' }],
  ['comes by IPv6', '2001:db8:1:2::3', {}],
] as const)
  test(`it is told once that a session is used elsewhere, also if the thief ${what}`, async () => {
    const owner = await openOwned()
    const thief = steal(owner, address)
    thief.headers = headers
    for (let i = 0; i < 3; i++) await thief.get('/account')
    await passMinutes(6)
    await thief.get('/account')
    await owner.browser.get('/account')
    await thief.get('/account')
    const { types, mails } = await told(owner)
    assert.deepEqual([types, mails.length], [['member.session_moved'], 1])
    assert((await owner.browser.get('/account')).body.includes(`from ${address}`))
  })

test('many requests of owner and thief at once tell it once, and lose neither of them', async () => {
  const owner = await openOwned()
  const thief = steal(owner, '198.51.100.20', firefox)
  await Promise.all(
    Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? owner.browser : thief).get('/account')),
  )
  assert.deepEqual((await told(owner)).types, ['member.session_moved'])
  const page = (await owner.browser.get('/account')).body
  assert(page.includes(owner.browser.remoteAddress) && page.includes('198.51.100.20'))
})

test('an address that changes inside a network, and a browser’s new version, are told to nobody', async () => {
  const owner = await openOwned()
  const first = steal(owner, '198.51.100.30', chrome)
  await first.get('/account')
  assert.equal((await told(owner)).types.length, 1)
  owner.browser.remoteAddress = '10.0.99.1'
  await owner.browser.get('/account')
  const again = await signInWith(console, owner.authenticator, withHeaders(chrome, '198.51.9.1'))
  await steal({ ...owner, browser: again }, '198.51.9.2', chrome.replace('141.0.0.0', '142.0.1.7')).get(
    '/account',
  )
  assert.equal((await told(owner)).types.length, 1)
})

function withHeaders(userAgent: string, address: string): TestBrowser {
  const browser = new TestBrowser(console)
  browser.headers = { 'user-agent': userAgent }
  browser.remoteAddress = address
  return browser
}

test('a sign-in from a new browser or network is in the store’s log and mailed to the member, once', async () => {
  const owner = await openOwned()
  for (const [userAgent, address] of [
    [firefox, '10.0.77.1'],
    [firefox, '203.0.113.5'],
    [firefox, '203.0.113.5'],
    [chrome, '203.0.113.5'],
  ] as const)
    await signInWith(console, owner.authenticator, withHeaders(userAgent, address))
  const { types, mails } = await told(owner)
  assert.deepEqual(types, ['member.signed_in', 'member.signed_in', 'member.signed_in'])
  assert.deepEqual(
    mails.map(({ subject, text }) => [subject, text.split('\n')[0]]),
    Array(3).fill(['Your account was used from a new place', 'Olga signed in from a new browser or network']),
  )
  assert.deepEqual(mails.map(({ text }) => /Address: (.*)/.exec(text)?.[1]).sort(), [
    '10.0.77.1',
    '203.0.113.5',
    '203.0.113.5',
  ])
})

test('a thief who is somewhere else with every request fills neither the log nor the mailbox, and writes no word of a mail', async () => {
  const owner = await openOwned()
  const thief = steal(owner, '198.51.100.40')
  for (let i = 0; i < 30; i++) {
    thief.headers = { 'user-agent': `Visit evil.example ${String.fromCharCode(97 + (i % 26)).repeat(i + 1)}` }
    await thief.get('/account')
  }
  const { types, mails } = await told(owner)
  assert.deepEqual([types.length, mails.length], [5, 5])
  for (const { subject, text } of mails) assert.doesNotMatch(subject + text, /evil/)
  const page = (await owner.browser.get('/account')).body
  assert.equal(page.match(/198\.51\.100\.40/g)?.length, 9, 'and it takes a bounded place')
  assert.doesNotMatch(page, /evil/)
  const later = withHeaders(thief.headers['user-agent'] ?? '', thief.remoteAddress)
  await signInWith(console, owner.authenticator, later)
  assert.deepEqual(
    (await told(owner)).types.slice(5),
    ['member.signed_in'],
    'nor does it become known unseen',
  )
})

test('the addresses go with the session, and no event has them', async () => {
  const owner = await openOwned()
  await steal(owner, '198.51.100.50', firefox).get('/account')
  assert((await dumpRows(ctx.db)).includes('198.51.100.50'))
  await owner.browser.done('/sign-out')
  assert(!(await dumpRows(ctx.db)).includes('198.51.100.50'))
})
