/** A receipt by mail: what arrives, and what nobody can do with it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { languages } from '../../../src/http/page/languages/choose.ts'
import { receiptSubjects } from '../../../src/mails/mail.ts'
import { forgetRecipients } from '../../../src/mails/recipients.ts'
import { openMailer } from '../../../src/mails/send.ts'
import { updateStore } from '../../../src/stores/update.ts'
import { numberAll, payOne, reverse } from '../../checkouts/buyer-receipts/support/receipts.ts'
import { headersOf, startMailServer, textOf } from '../../mails/mail-server.ts'
import { openTestApp } from '../../support/app.ts'
import { setStatus } from '../../support/by-hand.ts'
import { operator } from '../../support/operator.ts'
import { openStore, type StoreClient } from '../../support/store.ts'

const server = await startMailServer()
const farthing = await openTestApp({
  SMTP_URL: `smtp://farthing:p%40ss%20word@127.0.0.1:${server.port}`,
  MAIL_FROM: 'farthing@pay.example',
  LOG_LEVEL: 'debug',
})
const { ctx, logged } = farthing
const shop = await openStore(farthing)
const newAddress = () => `jane-${randomBytes(6).toString('hex')}@private.example`
let people = 0

async function paid(store: StoreClient = shop, orderId?: string): Promise<string> {
  const id = await payOne(farthing, store, orderId)
  await numberAll(farthing)
  return id
}

/** As a browser posts the form. Each comes from another address, unless it names one. */
async function ask(
  id: string,
  email: string,
  { query = '', from = `10.0.${++people >> 8}.${people & 255}`, headers = {} } = {},
): Promise<string> {
  const answer = await farthing.request({
    method: 'POST',
    url: `/c/${id}/receipt${query}`,
    remoteAddress: from,
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'same-origin',
      ...headers,
    },
    payload: new URLSearchParams({ email }).toString(),
  })
  return answer.statusCode === 303 ? String(answer.headers.location) : String(answer.statusCode)
}
const said = async (...asked: Parameters<typeof ask>) =>
  /said=(\w+)/.exec(await ask(...asked))?.[1] ?? 'nothing'

const waiting = async () => (await ctx.db.query('select id from mails')).length
async function sendAll() {
  const before = server.received.length
  const send = openMailer(ctx)
  while (await send());
  return server.received.slice(before)
}

test('in each language one mail arrives, with the facts, a link to the receipt and no other link; the address is gone', async () => {
  const languagesOf = new Map(languages.map((language) => [language.tag, language]))
  for (const [tag, { texts }] of languagesOf) {
    const id = await paid(shop, 'A-1273')
    const to = newAddress()
    assert.equal(await ask(id, to, { query: `?lang=${tag}` }), `/c/${id}/receipt?said=taken&lang=${tag}#mail`)
    const [mail, ...more] = await sendAll()
    assert(mail)
    assert.deepEqual([more.length, mail.to], [0, [to]])
    const text = textOf(mail)
    const number = (
      await (await farthing.request({ url: `/c/${id}/receipt` })).body.match(/20\d\d-\d{6}/)
    )?.[0]
    assert(number)
    for (const part of [number, 'A-1273', '12.50 USDC', 'Shop', texts.buyerReceipt.ignore])
      assert(text.includes(part), `${tag}: ${part}`)
    assert.deepEqual(text.match(/https?:\S+/g), [`https://pay.farthing.example/c/${id}/receipt?lang=${tag}`])
    const subject = Buffer.from(receiptSubjects[tag as keyof typeof receiptSubjects]).toString('base64')
    const given = headersOf(mail).get('subject') ?? ''
    assert(
      given === receiptSubjects[tag as keyof typeof receiptSubjects] ||
        given.includes(subject) ||
        /^=\?UTF-8\?Q\?/.test(given),
      given,
    )
    assert.equal(await waiting(), 0)
    const rows = await ctx.db.query('select recipient from mail_recipients')
    assert(!JSON.stringify(rows).includes(to))
    const page = await farthing.request({ url: `/c/${id}/receipt?said=taken&lang=${tag}` })
    assert(page.body.includes(texts.buyerReceipt.said.taken))
    assert(!page.body.includes(to))
  }
})

test('a stranger who asks hundreds of times, each time from another place and by many spellings, sends a victim one mail an hour from each store, and three in all', async () => {
  const one = await paid()
  const to = (i: number) => (i % 2 === 0 ? 'victim@bank.example' : `Victim+${i}@BANK.example`)
  const answers = new Set<string>()
  for (let i = 0; i < 100; i++) answers.add(await said(one, to(i)))
  assert.deepEqual(answers, new Set(['taken', 'unavailable']))
  assert.equal((await sendAll()).length, 1, 'one store leaves two to the others')
  const others = await Promise.all(Array.from({ length: 4 }, async () => paid(await openStore(farthing))))
  for (let i = 0; i < 200; i++) answers.add(await said(others[i % 4] ?? '', to(i)))
  assert.deepEqual(answers, new Set(['taken', 'unavailable']))
  assert.equal((await sendAll()).length, 2)
  // An hour later, and with a new receipt: one more.
  const later = await paid()
  await ctx.db.query("update mail_recipients set mailed_at = mailed_at - interval '59 minutes'")
  await forgetRecipients(ctx.db)
  assert.equal(await said(later, 'victim@bank.example'), 'taken')
  assert.equal((await sendAll()).length, 0)
  await ctx.db.query("update mail_recipients set mailed_at = mailed_at - interval '61 minutes'")
  assert.equal(await said(later, 'victim@bank.example'), 'taken')
  assert.equal((await sendAll()).length, 1)
  await ctx.db.query("update mail_recipients set mailed_at = mailed_at - interval '61 minutes'")
  await forgetRecipients(ctx.db)
  assert.deepEqual(await ctx.db.query('select recipient from mail_recipients'), [])
})

test('fifty requests at once for one address send one mail', async () => {
  const ids = await Promise.all(Array.from({ length: 10 }, () => payOne(farthing, shop)))
  await numberAll(farthing)
  const to = newAddress()
  await Promise.all(Array.from({ length: 50 }, (_, i) => ask(ids[i % 10] ?? '', to)))
  assert.equal((await sendAll()).length, 1)
})

test('one receipt is mailed five times at most, and one address asks twenty times an hour', async () => {
  const id = await paid()
  const answers = []
  for (let i = 0; i < 7; i++) answers.push(await said(id, newAddress()))
  assert.deepEqual(answers, [...Array(5).fill('taken'), 'unavailable', 'unavailable'])
  const many = []
  for (let i = 0; i < 21; i++)
    many.push(await said(i < 20 ? await paid() : id, newAddress(), { from: '192.0.2.7' }))
  assert.deepEqual(many, [...Array(20).fill('taken'), 'unavailable'])
  assert.equal((await sendAll()).length, 25)
})

test('a store’s share of the day holds, and is counted apart from its other mails', async () => {
  const busy = await openStore(farthing)
  await ctx.db.query(
    `insert into mail_counts (store_id, kind, day, count) values ($1, 'receipt', (clock() at time zone 'utc')::date, 199)`,
    [busy.id],
  )
  assert.equal(await said(await paid(busy), newAddress()), 'taken')
  assert.equal(await said(await paid(busy), newAddress()), 'unavailable')
  assert.equal(await said(await paid(), newAddress()), 'taken')
  assert.equal((await sendAll()).length, 2)
  const kinds = await ctx.db.query<{ kind: string }>('select distinct kind from mail_counts')
  assert.deepEqual(kinds, [{ kind: 'receipt' }])
})

test('all stores together mail 4,000 receipts a day, and an operator reads that in the log', async () => {
  const id = await paid(await openStore(farthing))
  await ctx.db.query("update deployment_mail_counts set count = count + 3999 - count where kind = 'receipt'")
  assert.equal(await said(id, newAddress()), 'taken')
  const before = logged.length
  assert.equal(await said(id, newAddress()), 'unavailable')
  assert.match(JSON.stringify(logged.slice(before)), /all stores together have used up the mails/)
  await ctx.db.query("update deployment_mail_counts set day = day - 1 where kind = 'receipt'")
  assert.equal(await said(id, newAddress()), 'taken')
  assert.equal((await sendAll()).length, 2)
})

test('a payment that the store accepted below what was due has its receipt on the page, and no mail', async () => {
  for (const [change, isMailed] of [
    ['amount = 10000, accepted_at = clock()', false],
    ['amount = amount - 1, accepted_at = clock()', false],
    ["asset = '0x0000000000000000000000000000000000000001', accepted_at = clock()", false],
    ['accepted_at = clock()', true],
    ['amount = amount + 1, accepted_at = clock()', true],
  ] as const) {
    const store = await openStore(farthing)
    const id = await payOne(farthing, store, 'Call +1 555 0100 to cancel')
    await ctx.db.query(`update credits set ${change} where checkout_id = $1`, [id])
    await numberAll(farthing)
    for (const url of [`/c/${id}`, `/c/${id}/receipt`]) {
      const { body } = await farthing.request({ url, headers: { accept: 'text/html' } })
      const [offered] = /#mail"|id="mail"|$/.exec(body) ?? []
      assert.equal(offered !== '', isMailed, `${url} ${change}`)
    }
    assert.equal(await said(id, newAddress()), isMailed ? 'taken' : 'unavailable', change)
    assert.equal((await sendAll()).length, isMailed ? 1 : 0)
  }
})

test('a mail that is not written counts neither for its receipt nor for its recipient', async () => {
  const id = await paid()
  const to = newAddress()
  const shares = await ctx.db.query(
    "update mail_counts set count = count + 1000000 where store_id = $1 and kind = 'receipt' returning 1 as one",
    [shop.store.id],
  )
  assert(shares.length > 0)
  for (let i = 0; i < 6; i++) assert.equal(await said(id, to), 'unavailable')
  await ctx.db.query(
    "update mail_counts set count = count - 1000000 where store_id = $1 and kind = 'receipt'",
    [shop.store.id],
  )
  assert.equal(await said(id, to), 'taken')
  assert.deepEqual(
    (await sendAll()).map((mail) => mail.to),
    [[to]],
  )
})

test('while the mail server is down, receipts stop at half of what links may fill', async () => {
  const id = await paid()
  await ctx.db.query(
    `insert into mails (id, about, key_id, sealed, due_at, created_at)
     select 'mail_' || i, 'x', 'x', 'x', clock() + interval '1 day', clock() from generate_series(1, 500) i`,
  )
  assert.equal(await said(id, newAddress()), 'unavailable')
  await ctx.db.query("delete from mails where about = 'x'")
})

test('no line break, second address or other trick in the address reaches the mail server', async () => {
  const id = await paid()
  for (const email of [
    'a@b.example\r\nBcc: victim@bank.example',
    'a@b.example\nSubject: win',
    'a@b.example%0d%0aBcc: v@b.example',
    'a@b.example,victim@bank.example',
    'a@b.example;victim@bank.example',
    '"a\r\nb"@c.example',
    '<a@b.example>',
    'Jane <a@b.example>',
    'a@b.example\u0000',
    'a@b\u2028.example',
    'a@[127.0.0.1]',
    'a@localhost',
    'a@b.example victim@bank.example',
    `${'a'.repeat(65)}@b.example`,
    `a@${`${'b'.repeat(60)}.`.repeat(5)}example`,
    '',
    'ünï@b.example',
  ])
    assert.equal(await said(id, email), 'wrong', JSON.stringify(email))
  assert.equal(await waiting(), 0)
})

test('a hostile name or order is one short line without a link, and never in the subject', async () => {
  const evil = await openStore(farthing)
  const name = 'Your bank: sign in at https://evil.example/login or mail me@evil.example'
  await updateStore(ctx, evil.store.id, operator, { name }, ctx.now())
  const id = await paid(evil, `http://evil.example/${'x'.repeat(80)}`)
  // Past every check.
  await ctx.db.query('update checkouts set order_id = order_id || $2 where id = $1', [
    id,
    '\r\n\r\nPay again: evil.example',
  ])
  assert.equal(await said(id, newAddress()), 'taken')
  const [mail] = await sendAll()
  assert(mail)
  const text = textOf(mail)
  assert.equal(headersOf(mail).get('subject'), 'Your receipt')
  const [link, ...more] =
    text.match(/[a-z0-9]+[.@][a-z0-9]+\.?[a-z0-9/]*|:\/\//gi)?.filter((each) => /evil|:\/\//.test(each)) ?? []
  assert.deepEqual([link, more], ['://', []], 'only the link to the receipt')
  assert.doesNotMatch(text, /Pay again/)
  for (const line of text.split('\n').filter((each) => /evil/.test(each))) assert([...line].length < 90, line)
})

test('a receipt that becomes void before its mail leaves is not mailed, nor is one in doubt', async () => {
  const id = await paid()
  assert.equal(await said(id, newAddress()), 'taken')
  assert.equal(await waiting(), 1)
  await reverse(farthing, id)
  await numberAll(farthing)
  assert.equal(await waiting(), 0)
  assert.deepEqual(await sendAll(), [])
  assert.equal(await said(id, newAddress()), 'unavailable')
  const doubted = await paid()
  await setStatus(farthing, doubted, 'PROCESSING')
  assert.equal(await said(doubted, newAddress()), 'unavailable')
  assert.equal(await said((await shop.create()).id, newAddress()), 'unavailable')
})

test('a mail and a reversal at once: the receipt is not mailed after it is void', async () => {
  for (let i = 0; i < 10; i++) {
    const id = await paid()
    await reverse(farthing, id)
    await Promise.all([ask(id, newAddress()), numberAll(farthing)])
    assert.equal(await waiting(), 0)
  }
})

test('test stores, suspended ones and those that a stranger opened mail nothing', async () => {
  const rehearsing = await openStore(farthing, { mode: 'test' })
  const id = await paid(rehearsing)
  assert(!(await farthing.request({ url: `/c/${id}/receipt` })).body.includes('Mail it to me'))
  assert.equal(await said(id, newAddress()), 'unavailable')
  for (const change of [
    "suspended_at = clock(), suspended_reason = 'spam'",
    'signed_up = true, proven_at = null',
  ]) {
    const strange = await openStore(farthing)
    const theirs = await paid(strange)
    await ctx.db.query(`update stores set ${change} where id = $1`, [strange.id])
    assert.equal(await said(theirs, newAddress()), 'unavailable', change)
  }
  assert.equal(await waiting(), 0)
})

test('another site cannot have mails sent, and a broken form is answered with a page', async () => {
  const id = await paid()
  assert.equal(await ask(id, newAddress(), { headers: { 'sec-fetch-site': 'cross-site' } }), '403')
  assert.equal(await ask(`ch_00${'0'.repeat(26)}`, newAddress()), '404')
  const large = await farthing.request({
    method: 'POST',
    url: `/c/${id}/receipt`,
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
    payload: `email=${'a'.repeat(2_000)}`,
  })
  assert.equal(large.statusCode, 413)
  assert.match(large.body, /^<!doctype html>/)
  assert.equal(await waiting(), 0)
})

test('no address is ever logged', () => {
  assert(logged.length > 0)
  assert.doesNotMatch(JSON.stringify(logged), /private\.example|victim/i)
})
