/** A member's own address: only they make it theirs, by a link that was sent there, and nobody is flooded by asking. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { appendEvent, newEvent, systemActor } from '../../src/events/append.ts'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import type { StoreId } from '../../src/ids.ts'
import { type Mail, placeOf } from '../../src/mails/mail.ts'
import { openMailer } from '../../src/mails/send.ts'
import { firstPass, mailPayments } from '../../src/members/payment-mails.ts'
import { readSecretsKeys } from '../../src/secrets/key-file.ts'
import { unseal } from '../../src/secrets/seal.ts'
import { openAuthenticator } from '../http/console/support/authenticator.ts'
import {
  type Enrolled,
  enrolWith,
  inviteBy,
  openConsole,
  openInvitedStore,
  signInWith,
  TestBrowser,
} from '../http/console/support/console.ts'
import { openDevice } from '../http/console/support/device.ts'
import { openBrowser } from '../http/page/support/browser.ts'
import { startMailServer, textOf } from '../mails/mail-server.ts'
import { dumpRows } from '../support/dump.ts'
import { wallets } from '../support/store.ts'

const server = await startMailServer()
const console = await openConsole({
  listens: true,
  settings: {
    SIGN_UP: 'open',
    SIGN_UPS_PER_BLOCK: '50',
    SMTP_URL: `smtp://farthing:p%40ss%20word@127.0.0.1:${server.port}`,
    MAIL_FROM: 'farthing@pay.example',
    LOG_LEVEL: 'error',
  },
})
const { ctx } = console.farthing
const { db } = ctx
const send = openMailer(ctx)
let people = 0

async function sendAll(): Promise<void> {
  while (await send());
}

/** Somebody who signs up by herself, with the wallet of her live store proven. */
async function signUp(isProven = true): Promise<Enrolled & { readonly storeId: StoreId }> {
  const browser = new TestBrowser(console)
  await browser.get('/sign-up')
  const applicant = { storeName: `Shop ${++people}`, name: 'Sam', walletAddress: wallets[0] }
  const authenticator = openAuthenticator(console.url)
  const { memberId, options } = (await browser.done('/sign-up/options', applicant)).json()
  await browser.done('/sign-up', { ...applicant, memberId, answer: authenticator.create(options) })
  await browser.get('/account')
  const [store = assert.fail()] = await db.query<{ id: StoreId }>(
    "select s.id from stores s join memberships m on m.store_id = s.id where m.member_id = $1 and s.mode = 'live'",
    [memberId],
  )
  if (isProven) await db.query('update stores set proven_at = clock() where id = $1', [store.id])
  return { browser, authenticator, storeId: store.id }
}

/** Somebody whom the operator invited without an address. */
async function openOwner(): Promise<Enrolled & { readonly storeId: StoreId }> {
  const { store, token } = await openInvitedStore(console)
  return { ...(await enrolWith(console, token)), storeId: store.id as StoreId }
}

async function ask({ browser, authenticator }: Enrolled, email: string): Promise<number> {
  const touch = await browser.confirm(authenticator, 'email.change', { email })
  return (await browser.post('/account/email', { email, touch })).statusCode
}

/** The waiting mails to an address, oldest first. */
async function mailsTo(address: string): Promise<Mail[]> {
  const keys = readSecretsKeys(ctx.config.secretsKeyFile)
  const rows = await db.query<{ id: string; keyId: string; sealed: string }>(
    'select id, key_id as "keyId", sealed from mails order by id',
  )
  return rows
    .map((row) => JSON.parse(unseal(keys, placeOf(row.id), row)) as Mail)
    .filter(({ to }) => to === address)
}

async function pathTo(address: string): Promise<string> {
  const mail = (await mailsTo(address)).findLast(({ subject }) => subject === 'Confirm your address')
  return /(\/account\/email\/[A-Za-z0-9_-]{43})$/m.exec(mail?.text ?? '')?.[1] ?? assert.fail('no link')
}

async function emailOf({ authenticator }: Enrolled): Promise<string | null> {
  const [row = assert.fail()] = await db.query<{ email: string | null }>(
    'select email from members where id = (select member_id from passkeys where credential_id = $1)',
    [authenticator.id],
  )
  return row.email
}

const status = async (answer: Promise<{ readonly statusCode: number }>) => (await answer).statusCode

async function pay(storeId: StoreId): Promise<void> {
  const checkout = { id: 'ch_1', orderId: 'order-1', priceAmount: '12.50', priceCurrency: 'EUR' }
  const payment = { id: 'pay_1', network: 'eip155:8453', asset: wallets[0], amount: '13600000' }
  const told = { type: 'checkout.completed', data: { checkout, payment } as never } as const
  await db.transaction(async (tx) => {
    const event = newEvent(ctx, storeId, systemActor, told, ctx.now())
    await appendEvent(tx, { ...event, checkout: null })
    await tx.query("update events set checkout_id = 'ch_1', checkout_version = 1 where id = $1", [
      event.event_id,
    ])
  })
  await assignWaitingSequences(ctx)
}

async function mailAllPayments(): Promise<void> {
  const pass = firstPass()
  const none = async () => ({ decisions: 0, refunds: 0 })
  while (await mailPayments(ctx, ctx.now(), none, pass));
}

test('an owner who signed up enters an address, confirms it in her browser, and a payment’s mail arrives there', async () => {
  const chromium = await openBrowser()
  const { page, complaints } = await openDevice(chromium)
  await page.goto(`${console.url}/sign-up`)
  await page.locator('input[name=storeName]').fill('Wilma’s shop')
  await page.locator('input[name=name]').fill('Wilma')
  await page.locator('input[name=walletAddress]').fill(wallets[0])
  await page.getByRole('button', { name: 'Create a passkey and open the store' }).click()
  await page.waitForURL(`${console.url}/stores/**`)
  const [, storeId = ''] = /stores\/(\w+)/.exec(page.url()) ?? []
  await page.goto(`${console.url}/account`)
  await page.getByText('You can enter an address once a store of yours').waitFor()
  await db.query('update stores set proven_at = clock() where id = $1', [storeId])

  await page.reload()
  await page.getByText('You have no address here').waitFor()
  await page.getByLabel('New address').fill('wilma@shop.example')
  await page.getByRole('button', { name: 'Send the link' }).click()
  await page.getByText('A link was sent to wilma@shop.example').waitFor()
  await page.getByText('You have no address here').waitFor()
  await sendAll()
  const mail = server.received.find(({ to }) => to.includes('wilma@shop.example')) ?? assert.fail('no mail')
  const [link = ''] = /http:\S+\/account\/email\/\S+/.exec(textOf(mail)) ?? []

  await page.goto(link)
  await page.getByRole('heading', { name: 'Confirm your address' }).waitFor()
  await page.getByRole('button', { name: 'Yes, mail me there' }).click()
  await page.waitForURL(`${console.url}/account#email`)
  await page.getByText('Mails go to wilma@shop.example.').waitFor()
  // Her test store has the same name.
  const live = page.locator('form').filter({ has: page.locator(`input[value="${storeId}"]`) })
  await live.getByText('A mail for each payment').click()
  await live.getByRole('button', { name: 'Save' }).click()
  await live.getByRole('radio', { name: 'A mail for each payment' }).and(page.locator('[checked]')).waitFor()
  assert.deepEqual(complaints, [])

  await assignWaitingSequences(ctx)
  await mailAllPayments()
  await pay(storeId as StoreId)
  await mailAllPayments()
  await sendAll()
  const texts = server.received.filter(({ to }) => to.includes('wilma@shop.example')).map(textOf)
  assert(
    texts.some((text) => text.includes('EUR 12.50 paid for order “order-1”')),
    texts.join('\n'),
  )
  await page.context().close()
})

test('asking takes a touch for exactly that address, and changes nothing yet', async () => {
  const sam = await signUp()
  const email = 'touch@shop.example'
  const touch = await sam.browser.confirm(sam.authenticator, 'email.change', { email })
  assert.equal(await status(sam.browser.post('/account/email', { email })), 403)
  assert.equal(await status(sam.browser.post('/account/email', { email: 'eve@evil.example', touch })), 409)
  for (const wrong of ['', 'sam', 'sam@shop.example, eve@evil.example', 'a@b.example\nbcc: c@d.example'])
    assert.equal(await ask(sam, wrong), 422, wrong)
  assert.equal(await status(sam.browser.post('/account/email', { email, touch })), 303)
  assert.equal(await status(sam.browser.post('/account/email', { email, touch })), 409, 'one touch, one link')
  assert.equal(await emailOf(sam), null)
})

test('only the token’s hash is stored, and the mail has no word that the member or a store chose', async () => {
  const sam = await signUp()
  await ask(sam, 'words@shop.example')
  const [{ text, subject } = assert.fail(), ...more] = await mailsTo('words@shop.example')
  assert.deepEqual([more, subject], [[], 'Confirm your address'])
  assert.doesNotMatch(text, /Sam|Shop \d/)
  const [token = ''] = (await pathTo('words@shop.example')).split('/').slice(-1)
  assert(!(await dumpRows(db)).includes(token))
})

test('opening the link changes nothing, signed in or not: only its button, in the member’s own session, does, once', async () => {
  const sam = await signUp()
  await ask(sam, 'once@shop.example')
  const path = await pathTo('once@shop.example')
  const scanner = new TestBrowser(console)
  const { statusCode, headers } = await scanner.get(path)
  assert.equal(statusCode, 303)
  assert.equal(
    headers.location,
    `/sign-in?to=${encodeURIComponent(path)}`,
    'signing in leads back to the link',
  )
  await scanner.get('/sign-in')
  assert.equal(await status(scanner.post(path)), 401)
  const stranger = await signUp()
  assert.equal(await status(stranger.browser.get(path)), 410)
  assert.equal(await status(stranger.browser.post(path)), 410, 'another member')
  for (let i = 0; i < 2; i++) assert.equal(await status(sam.browser.get(path)), 200)
  const head = await console.app.inject({
    method: 'HEAD',
    url: path,
    headers: { cookie: sam.browser.cookie },
  })
  assert.equal(head.statusCode, 200)
  const unasked = { 'sec-fetch-site': 'cross-site' }
  assert.equal(await status(sam.browser.post(path, {}, unasked)), 403, 'another site')
  assert.equal(await status(sam.browser.post(path, { formToken: 'x' })), 403, 'no form of ours')
  assert.deepEqual([await emailOf(sam), await emailOf(stranger)], [null, null])

  const elsewhere = await signInWith(console, sam.authenticator)
  const answers = await Promise.all([1, 2, 3].map(() => status(elsewhere.post(path))))
  assert.deepEqual(answers.sort(), [303, 410, 410])
  assert.equal(await emailOf(sam), 'once@shop.example')
  for (const used of [path, `${path}x`, '/account/email/x', `/account/email/${'A'.repeat(43)}`]) {
    assert.equal(await status(sam.browser.get(used)), 410)
    assert.equal(await status(sam.browser.post(used)), 410)
  }
  const body = (await sam.browser.get('/account')).body
  assert.match(body, /Mails go to <bdi>once@shop\.example<\/bdi>/)
  await assignWaitingSequences(ctx)
  const types = await db.query<{ type: string }>('select type from events where store_id = $1 order by id', [
    sam.storeId,
  ])
  assert.equal(types.filter(({ type }) => type === 'member.email_changed').length, 1)
  assert.match(
    (await sam.browser.get(`/stores/${sam.storeId}/activity`)).body,
    /changed the address of their mails/,
  )
})

test('a link that expired, that a newer one replaced, or that a recovery ended confirms nothing', async () => {
  const sam = await signUp()
  await ask(sam, 'late@shop.example')
  const late = await pathTo('late@shop.example')
  await db.query("update email_changes set expires_at = clock() where email = 'late@shop.example'")
  for (const answer of [sam.browser.get(late), sam.browser.post(late)])
    assert.equal(await status(answer), 410)
  await ask(sam, 'first@shop.example')
  const first = await pathTo('first@shop.example')
  await ask(sam, 'second@shop.example')
  for (const answer of [sam.browser.get(first), sam.browser.post(first)])
    assert.equal(await status(answer), 410)
  assert.equal(await status(sam.browser.post(await pathTo('second@shop.example'))), 303)
  assert.equal(await emailOf(sam), 'second@shop.example')

  const owner = await openOwner()
  const max = await enrolWith(console, await inviteBy(owner, owner.storeId, { name: 'Max', role: 'viewer' }))
  await ask(max, 'thief@evil.example')
  const path = await pathTo('thief@evil.example')
  const again = await recover(owner, max)
  assert.equal(await status(again.browser.post(path)), 410)
  assert.equal(await emailOf(again), null)
})

/** An owner replaces a member's passkeys. */
async function recover(owner: Enrolled & { readonly storeId: StoreId }, member: Enrolled): Promise<Enrolled> {
  const memberId = await idOf(member)
  const { storeId } = owner
  const touch = await owner.browser.confirm(owner.authenticator, 'member.recover', { storeId, memberId })
  const { body } = await owner.browser.done(`/stores/${storeId}/members/recover`, { memberId, touch })
  return await enrolWith(console, /#([A-Za-z0-9_-]{43})/.exec(body)?.[1] ?? assert.fail(body))
}

async function idOf({ authenticator }: Enrolled): Promise<string> {
  const [row = assert.fail()] = await db.query<{ id: string }>(
    'select member_id as id from passkeys where credential_id = $1',
    [authenticator.id],
  )
  return row.id
}

test('the address before is told when another takes its place, even if other changes have used up the day’s mails', async () => {
  const sam = await signUp()
  await ask(sam, 'before@shop.example')
  await sam.browser.done(await pathTo('before@shop.example'))
  await db.query(
    `insert into mail_counts (store_id, kind, day, count) values ($1, 'member', (clock() at time zone 'utc')::date, 1000000)
     on conflict (store_id, kind) do update set count = excluded.count`,
    [sam.storeId],
  )
  await ask(sam, 'thief@evil.example')
  await sam.browser.done(await pathTo('thief@evil.example'))
  const told = (await mailsTo('before@shop.example')).map(({ text }) => text.split('\n')[0])
  assert.equal(told.at(-1), 'Sam changed the address that their mails go to')
  assert.equal(await emailOf(sam), 'thief@evil.example')
})

test('a link for a lost passkey is not mailed to an address that the member entered', async () => {
  const owner = await openOwner()
  const invited = { name: 'Max', role: 'viewer', email: 'max@shop.example' }
  const max = await enrolWith(console, await inviteBy(owner, owner.storeId, invited))
  const isLink = ({ subject }: Mail) => subject === 'Your link for a new passkey'
  const again = await recover(owner, max)
  assert.equal((await mailsTo('max@shop.example')).filter(isLink).length, 1, 'where an owner invited them')
  await ask(again, 'own@evil.example')
  await again.browser.done(await pathTo('own@evil.example'))
  await recover(owner, again)
  for (const address of ['own@evil.example', 'max@shop.example'])
    assert.equal((await mailsTo(address)).filter(isLink).length, address.startsWith('max') ? 1 : 0)
})

test('a member asks for three links a day, and an address gets three an hour, whoever asks', async () => {
  const sam = await signUp()
  const asked: number[] = []
  for (let i = 0; i < 4; i++) asked.push(await ask(sam, `sam${i}@shop.example`))
  assert.deepEqual(asked, [303, 303, 303, 429])
  await sam.browser.done(await pathTo('sam2@shop.example'))
  assert.equal(await ask(sam, 'sam4@shop.example'), 429, 'confirming one gives no more')
  assert.equal(await emailOf(sam), 'sam2@shop.example')
  await db.query('update email_changes set day = day - 1')
  assert.equal(await ask(sam, 'sam4@shop.example'), 303)

  const victim: number[] = []
  const spellings = [
    'victim@bank.example',
    'Victim@Bank.example',
    'victim+1@bank.example',
    'victim@bank.example',
  ]
  for (const address of spellings) victim.push(await ask(await signUp(), address))
  assert.deepEqual(victim, [303, 303, 303, 429])
  await db.query("update mail_recipients set mailed_at = mailed_at - interval '1 hour'")
  assert.equal(await ask(await signUp(), 'victim@bank.example'), 303)
})

test('links are within the share that invitations use, and what is refused leaves the link before as it was', async () => {
  const owner = await openOwner()
  await ask(owner, 'kept@shop.example')
  const path = await pathTo('kept@shop.example')
  const max = await enrolWith(console, await inviteBy(owner, owner.storeId, { name: 'Max', role: 'viewer' }))
  await db.query("update mail_counts set count = 20 where store_id = $1 and kind = 'link'", [owner.storeId])
  for (const member of [owner, max]) assert.equal(await ask(member, 'full@shop.example'), 429)
  await db.query("update mail_counts set count = 1 where store_id = $1 and kind = 'link'", [owner.storeId])
  await db.query('update member_mail_counts set count = 20 where member_id = $1', [await idOf(owner)])
  assert.equal(await ask(max, 'full@shop.example'), 429, 'the owners’ share counts too')
  assert.deepEqual(await mailsTo('full@shop.example'), [])
  assert.equal(await status(owner.browser.post(path)), 303)
})

test('a member none of whose stores may mail strangers has nothing sent: unproven, suspended, or in none', async () => {
  const sam = await signUp(false)
  const touch = async () => await ask(sam, 'nothing@shop.example')
  const form = 'action="/account/email"'
  assert.equal(await touch(), 409)
  assert(!(await sam.browser.get('/account')).body.includes(form))
  await db.query(
    "update stores set proven_at = clock(), suspended_at = clock(), suspended_reason = 'x' where id = $1",
    [sam.storeId],
  )
  assert.equal(await touch(), 409)
  await db.query('update stores set suspended_at = null, suspended_reason = null where id = $1', [
    sam.storeId,
  ])
  assert((await sam.browser.get('/account')).body.includes(form))
  await db.query('delete from memberships where member_id = $1', [await idOf(sam)])
  assert.equal(await touch(), 409)
  assert.deepEqual(await mailsTo('nothing@shop.example'), [])
})

test('without a mail server nobody is asked for an address, and in Spanish the member is asked in Spanish', async () => {
  const silent = await openConsole()
  const { token } = await openInvitedStore(silent)
  const olga = await enrolWith(silent, token)
  assert(!(await olga.browser.get('/account')).body.includes('/account/email'))
  assert.equal(await ask(olga, 'olga@shop.example'), 404)

  const sam = await signUp()
  sam.browser.headers = { 'accept-language': 'es' }
  await ask(sam, 'es@shop.example')
  assert.match((await sam.browser.get('/account')).body, /Se envió un enlace a <bdi>es@shop\.example/)
  assert.match((await sam.browser.get(await pathTo('es@shop.example'))).body, /Sí, enviarlos allí/)
})
