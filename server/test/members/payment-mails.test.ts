/** Mails about payments: each payment at most once, as each member chose, and stopped by a link that does nothing else. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '@farthing/sdk'
import { appendEvent, newEvent, systemActor } from '../../src/events/append.ts'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import type { StoreId } from '../../src/ids.ts'
import { type Mail, placeOf } from '../../src/mails/mail.ts'
import { openMailer } from '../../src/mails/send.ts'
import { writeMail } from '../../src/mails/write.ts'
import { inviteAsOperator } from '../../src/members/invite.ts'
import type { Role } from '../../src/members/member.ts'
import { firstPass, mailPayments, mailsPerHour } from '../../src/members/payment-mails.ts'
import { removeAsOperator } from '../../src/members/remove.ts'
import { readSecretsKeys } from '../../src/secrets/key-file.ts'
import { unseal } from '../../src/secrets/seal.ts'
import { enrolWith, openConsole, tokenOf } from '../http/console/support/console.ts'
import { headersOf, startMailServer, textOf } from '../mails/mail-server.ts'
import { operator } from '../support/operator.ts'
import { openStore } from '../support/store.ts'

const server = await startMailServer()
const console = await openConsole({
  settings: {
    SMTP_URL: `smtp://farthing:p%40ss%20word@127.0.0.1:${server.port}`,
    MAIL_FROM: 'farthing@pay.example',
    LOG_LEVEL: 'error',
  },
})
const { ctx } = console.farthing
const waiting = async () => ({ decisions: 2, refunds: 1 })
/** One pass over all members, which ends. */
async function run() {
  const pass = firstPass()
  for (let i = 0; i < 20; i++) if (!(await mailPayments(ctx, ctx.now(), waiting, pass))) return
  assert.fail('the pass does not end')
}

async function openMember(role: Role = 'owner') {
  const store = await openStore(console.farthing, { evmWallet: null })
  const storeId = store.store.id as StoreId
  const email = `${role}-${storeId}@shop.example`
  const { link } = await inviteAsOperator(
    ctx,
    storeId,
    operator,
    { name: 'Olga', email, role: 'owner' },
    ctx.now(),
  )
  const member = await enrolWith(console, tokenOf(link))
  await ctx.db.query('update memberships set role = $2 where store_id = $1', [storeId, role])
  await assignWaitingSequences(ctx)
  await run()
  const choose = async (payments: string) => {
    const values = { storeId, payments }
    const touch = await member.browser.confirm(member.authenticator, 'alerts.choose', values)
    const answer = await member.browser.post('/account/alerts', { ...values, touch })
    await run()
    return answer.statusCode
  }
  return { storeId, email, choose, ...member }
}

let orders = 0

/** Appends events as payments do. `at` is when they happened. */
async function pay(
  storeId: StoreId,
  count = 1,
  given: { orderId?: string; at?: Date; type?: Event['type'] } = {},
) {
  for (let i = 0; i < count; i++) {
    const checkoutId = `ch_test${++orders}`
    const type = given.type ?? 'checkout.completed'
    const checkout = {
      id: checkoutId,
      orderId: given.orderId ?? `order-${orders}`,
      priceAmount: '12.50',
      priceCurrency: 'EUR',
    }
    const data = {
      checkout,
      payment: {
        id: `pay_${orders}`,
        network: 'eip155:8453',
        asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
        amount: '13600000',
      },
    }
    await ctx.db.transaction(async (tx) => {
      const told = { type, data: data as never } as Parameters<typeof newEvent>[3]
      const event = newEvent(ctx, storeId, systemActor, told, given.at ?? ctx.now())
      await appendEvent(tx, { ...event, checkout: null })
      await tx.query('update events set checkout_id = $2, checkout_version = 1 where id = $1', [
        event.event_id,
        checkoutId,
      ])
    })
  }
  await assignWaitingSequences(ctx)
}

/** The waiting mails about payments to an address, oldest first. */
async function mailsTo(email: string): Promise<Mail[]> {
  const keys = readSecretsKeys(ctx.config.secretsKeyFile)
  const rows = await ctx.db.query<{ id: string; keyId: string; sealed: string }>(
    'select id, key_id as "keyId", sealed from mails order by id',
  )
  return rows
    .map((row) => JSON.parse(unseal(keys, placeOf(row.id), row)) as Mail)
    .filter(({ to, stopUrl }) => to === email && stopUrl !== undefined)
}

const firstLines = async (email: string) => (await mailsTo(email)).map(({ text }) => text.split('\n')[0])

const makeDue = (storeId: StoreId) =>
  ctx.db.query('update payment_mail_cursors set daily_at = clock() where store_id = $1', [storeId])

async function passAnHour() {
  await ctx.db.query("update mail_recipients set mailed_at = mailed_at - interval '1 hour'")
  await ctx.db.query('update payment_mail_cursors set quiet_until = null')
}

/** As if `work` had sent them. */
const sendAll = () => ctx.db.query('delete from mails')

/** Adds members to a store, before all others in the order of ids, who want a mail for each payment. */
async function addCrowd(storeId: StoreId, count: number) {
  await ctx.db.query(
    `insert into members (id, name, email, created_at)
     select 'mem_00' || lpad(n::text, 4, '0') || right($1, 4), 'C', 'c' || n || '-' || $1 || '@shop.example', clock()
     from generate_series(1, $2) n`,
    [storeId, count],
  )
  await ctx.db.query(
    `insert into memberships (store_id, member_id, role, created_at, payment_mails)
     select $1, 'mem_00' || lpad(n::text, 4, '0') || right($1, 4), 'viewer', clock(), 'every'
     from generate_series(1, $2) n`,
    [storeId, count],
  )
  await run()
}

const yesterday = () => new Date(ctx.now().getTime() - 24 * 3_600_000)

test('an owner with an address gets one mail a day, with sums and what waits, and none where nothing happened', async () => {
  const { storeId, email } = await openMember()
  await makeDue(storeId)
  await run()
  assert.deepEqual(await mailsTo(email), [])
  await pay(storeId, 2, { at: yesterday() })
  await pay(storeId, 1, { at: yesterday(), type: 'payment.late' })
  await pay(storeId)
  await run()
  assert.deepEqual(await mailsTo(email), [], 'not before its hour')
  await makeDue(storeId)
  await Promise.all([run(), run(), run()])
  const [mail, ...more] = await mailsTo(email)
  assert.deepEqual(more, [])
  const text = mail?.text ?? ''
  assert.match(
    text,
    /^2 orders were paid: EUR 25\.00\.\n1 payment arrived late, short, too high or for no order\.\n/,
  )
  assert.match(text, /2 payments need a decision\.\n1 refund waits to be signed\.\n/)
  assert.equal(mail?.subject, `Payments to your store (${storeId})`)
  await run()
  assert.equal((await mailsTo(email)).length, 1)
  const [{ hours } = { hours: 0 }] = await ctx.db.query<{ hours: number }>(
    "select extract(hour from daily_at at time zone 'utc')::integer as hours from payment_mail_cursors where store_id = $1 and daily_at > clock()",
    [storeId],
  )
  assert.equal(hours, 8)
})

test('a member who chose it gets a mail for each payment, once, and above the limit one mail for all of them', async () => {
  const { storeId, email, choose } = await openMember('manager')
  await pay(storeId)
  await run()
  assert.deepEqual(await mailsTo(email), [], 'others than owners get nothing unless they choose')
  assert.equal(await choose('every'), 303)
  await pay(storeId, 1, { orderId: 'first' })
  await Promise.all([run(), run(), run()])
  assert.deepEqual(await firstLines(email), ['EUR 12.50 paid for order “first”'])
  await pay(storeId, mailsPerHour - 1)
  await run()
  assert.equal((await mailsTo(email)).length, mailsPerHour)
  await pay(storeId, 3)
  await run()
  await pay(storeId, 5)
  await run()
  const lines = await mailsTo(email)
  assert.equal(lines.length, mailsPerHour + 1)
  assert.match(
    lines.at(-1)?.text ?? '',
    /^These came in too quickly for a mail each\.\n\n3 orders were paid: EUR 37\.50\./,
  )
  await passAnHour()
  await run()
  assert.equal((await mailsTo(email)).length, mailsPerHour + 1 + 5)
})

test('one store’s flood leaves an address half of its mails, and all stores together do not exceed them', async () => {
  const one = await openMember()
  const two = await openMember()
  await one.choose('none')
  await ctx.db.query('delete from memberships where store_id = $1', [two.storeId])
  await ctx.db.query(
    `insert into memberships (store_id, member_id, role, created_at, payment_mails)
     select $2, member_id, 'viewer', clock(), 'every' from memberships where store_id = $1`,
    [one.storeId, two.storeId],
  )
  await ctx.db.query("update memberships set payment_mails = 'every' where store_id = $1", [one.storeId])
  await run()
  await sendAll()
  await pay(two.storeId, 5)
  await run()
  await pay(two.storeId, 500)
  await run()
  const flood = (await mailsTo(one.email)).length
  assert.equal(flood, 5 + 1, 'one mail for all of them, and the hour of this store is used up')
  await pay(one.storeId, mailsPerHour)
  await run()
  assert.equal((await mailsTo(one.email)).length, flood + mailsPerHour, 'each payment of the other by itself')
  await ctx.db.query('update mail_recipients set mails = $1 where mails > $2', [
    2 * mailsPerHour,
    mailsPerHour,
  ])
  await ctx.db.query('update payment_mail_cursors set quiet_until = null')
  await pay(one.storeId, 2)
  await run()
  await pay(one.storeId, 2)
  await run()
  assert.equal((await mailsTo(one.email)).length, flood + mailsPerHour + 1)
})

test('a process that dies while it writes mails has told nothing, and the next one tells each payment once', async () => {
  const { storeId, email, choose } = await openMember()
  await choose('every')
  await pay(storeId, 3)
  await ctx.db.query(
    `create function die() returns trigger language plpgsql as $$ begin
       if (select count(*) from mails where about = new.about) = 2 then raise exception 'killed'; end if;
       return new; end $$`,
  )
  await ctx.db.query('create trigger die before insert on mails for each row execute function die()')
  await run()
  await ctx.db.query('drop trigger die on mails')
  assert.deepEqual(await mailsTo(email), [])
  await passAnHour()
  await run()
  await run()
  assert.equal((await mailsTo(email)).length, 3)
})

test('mails that cannot be written now are written later', async () => {
  const { storeId, email, choose } = await openMember()
  await choose('every')
  await pay(storeId, 2)
  await ctx.db.query(
    "insert into mail_counts (store_id, kind, day, count) values ($1, 'payment', (clock() at time zone 'utc')::date, 999)",
    [storeId],
  )
  await run()
  await run()
  assert.equal((await mailsTo(email)).length, 1)
  await ctx.db.query('delete from mail_counts where store_id = $1', [storeId])
  await passAnHour()
  await run()
  assert.equal((await mailsTo(email)).length, 2)
})

test('a hundred members whose hour is used up, or whose store is busy with other events, keep nobody from their mails', async () => {
  await sendAll()
  const crowded = await openMember()
  await crowded.choose('none')
  await addCrowd(crowded.storeId, 100)
  const later = await openMember()
  await pay(crowded.storeId, mailsPerHour + 1)
  await run()
  const [{ count } = assert.fail()] = await ctx.db.query<{ count: number }>(
    'select count(*)::integer as count from mails where about = $1',
    [crowded.storeId],
  )
  assert.equal(count, 100, 'each one mail for all payments')
  await sendAll()
  await pay(crowded.storeId)
  await pay(later.storeId, 1, { at: yesterday() })
  await makeDue(later.storeId)
  await run()
  assert.equal((await mailsTo(later.email)).length, 1)
  const [{ due } = assert.fail()] = await ctx.db.query<{ due: number }>(
    `select count(*)::integer as due from payment_mail_cursors where store_id = $1 and sequence is not null
       and quiet_until is distinct from date_trunc('hour', clock()) + interval '1 hour'`,
    [crowded.storeId],
  )
  assert.equal(due, 0, 'nothing is tried again within the hour')

  await passAnHour()
  await run()
  await sendAll()
  await pay(later.storeId, 1, { at: yesterday() })
  await makeDue(later.storeId)
  const pass = firstPass()
  let calls = 0
  do await pay(crowded.storeId, 1, { type: 'checkout.created' })
  while ((await mailPayments(ctx, ctx.now(), waiting, pass)) && ++calls < 10)
  assert(calls < 10, 'a busy store is looked at once in a pass')
  assert.equal((await mailsTo(later.email)).length, 1)
  await ctx.db.query("update memberships set payment_mails = 'none' where store_id = $1", [crowded.storeId])
  await run()
  await sendAll()
})

test('a member who cannot be told, or whom another process is telling, keeps nobody from their mails', async () => {
  await sendAll()
  const broken = await openMember()
  const fine = await openMember()
  for (const each of [broken, fine]) await each.choose('every')
  await ctx.db.query(
    `create function refuse() returns trigger language plpgsql as $$ begin
       if new.about = '${broken.storeId}' then raise exception 'broken'; end if; return new; end $$`,
  )
  await ctx.db.query('create trigger refuse before insert on mails for each row execute function refuse()')
  for (const each of [broken, fine]) await pay(each.storeId)
  await run()
  assert.equal((await mailsTo(fine.email)).length, 1)
  const { logged } = console.farthing
  const failures = () =>
    logged.filter((line) => JSON.stringify(line).includes('could not mail a member about payments')).length
  const before = failures()
  assert(before > 0)
  await run()
  assert.equal(failures(), before, 'not tried again within the hour')
  await ctx.db.query('drop trigger refuse on mails')
  await passAnHour()
  await pay(fine.storeId)
  await ctx.db.transaction(async (tx) => {
    await tx.query('select 1 from payment_mail_cursors where store_id = $1 for update', [broken.storeId])
    await run()
    assert.equal((await mailsTo(fine.email)).length, 2)
    assert.deepEqual(await mailsTo(broken.email), [])
  })
  await run()
  assert.equal((await mailsTo(broken.email)).length, 1)
  assert.equal(failures(), before)
})

test('while a store is suspended it causes no mails; once it no longer is, its members are told what happened', async () => {
  const { storeId, email, choose } = await openMember()
  await choose('every')
  await ctx.db.query("update stores set suspended_at = clock(), suspended_reason = 'spam' where id = $1", [
    storeId,
  ])
  await pay(storeId)
  await run()
  assert.deepEqual(await mailsTo(email), [])
  await ctx.db.query('update stores set suspended_at = null, suspended_reason = null where id = $1', [
    storeId,
  ])
  await run()
  assert.equal((await mailsTo(email)).length, 1)
})

test('stores that enter the same address for many members send it no more than twice what one member gets', async () => {
  await sendAll()
  const opened = [await openMember(), await openMember(), await openMember()]
  const spellings = ['victim@bank.example', 'Victim@BANK.example', 'victim+3@bank.example']
  for (const [place, { storeId, choose }] of opened.entries()) {
    await choose('every')
    await ctx.db.query(
      'update members set email = $2 where id = (select member_id from memberships where store_id = $1)',
      [storeId, spellings[place]],
    )
    await pay(storeId, 15)
  }
  await Promise.all([run(), run()])
  await run()
  const received = async () => (await Promise.all(spellings.map(mailsTo))).flat().length
  assert.equal(await received(), 15 + 15 + 1)
  // One mail a day counts too.
  const [daily = assert.fail()] = opened
  await ctx.db.query("update memberships set payment_mails = 'daily' where store_id = $1", [daily.storeId])
  await pay(daily.storeId, 1, { at: yesterday() })
  await makeDue(daily.storeId)
  await run()
  assert.equal(await received(), 15 + 15 + 1 + 1)
  for (const { storeId } of opened.slice(2)) await pay(storeId)
  await run()
  assert.equal(await received(), 15 + 15 + 1 + 1)
  await sendAll()
  await passAnHour()
  await run()
  assert((await received()) > 0, 'what was put off is told later')
})

test('mails about payments leave room for receipts, and those of one store for those of others', async () => {
  await sendAll()
  const fill = (about: string, count: number) =>
    ctx.db.query(
      `insert into mails (id, about, key_id, sealed, due_at, created_at)
       select 'mail_' || $1 || n, $1, 'k', 'x', clock() + interval '1 day', clock() from generate_series(1, $2) n`,
      [about, count],
    )
  const count = async () => (await ctx.db.query('select 1 as one from mails')).length
  const [one, two] = [await openMember(), await openMember()]
  for (const { choose } of [one, two]) await choose('every')
  for (const { storeId } of [one, two]) await pay(storeId, 3)
  await sendAll()
  await fill(one.storeId, 99)
  await run()
  assert.equal(await count(), 100 + 3, 'one more of the full store, and all of the other')
  await sendAll()
  await fill('others', 250)
  await pay(two.storeId)
  await run()
  assert.equal(await count(), 250)
  const receipt = { to: 'jane@private.example', subject: 'Your receipt', text: 'Paid.' } as const
  const isWritten = await ctx.db.transaction((tx) =>
    writeMail(ctx, tx, { kind: 'receipt', storeId: two.storeId }, receipt, ctx.now()),
  )
  assert(isWritten)
  await sendAll()
  await run()
  assert.equal((await mailsTo(two.email)).length, 1, 'at once when there is room')
  await passAnHour()
  await run()
  assert.equal((await mailsTo(one.email)).length, 2)
})

test('the link in an earlier mail does not stop the mails of a member who has chosen them again', async () => {
  await sendAll()
  const { storeId, email, choose } = await openMember()
  await choose('every')
  await pay(storeId)
  await run()
  const [mail = assert.fail('no mail')] = await mailsTo(email)
  const stop = async ({ stopUrl = '' }: Mail) =>
    (await console.app.inject({ method: 'POST', url: new URL(stopUrl).pathname })).statusCode
  await choose('daily')
  assert.equal(await stop(mail), 200, 'another choice leaves the link as it is')
  assert.equal(await choose('every'), 303)
  assert.equal(await stop(mail), 404)
  await pay(storeId)
  await run()
  const [, next = assert.fail('no mail')] = await mailsTo(email)
  assert.equal(await stop(next), 200)
})

test('who left, has no address or wants none is told nothing, also not later', async () => {
  const gone = await openMember()
  const silent = await openMember()
  await silent.choose('none')
  for (const { storeId } of [gone, silent]) await pay(storeId, 2, { at: yesterday() })
  const [{ id } = assert.fail()] = await ctx.db.query<{ id: string }>(
    'select member_id as id from memberships where store_id = $1',
    [gone.storeId],
  )
  await removeAsOperator(ctx, gone.storeId, operator, id, ctx.now())
  for (const { storeId } of [gone, silent]) await makeDue(storeId)
  await run()
  await silent.choose('daily')
  await makeDue(silent.storeId)
  await run()
  assert.deepEqual(await mailsTo(gone.email), [])
  assert.deepEqual(await mailsTo(silent.email), [])
  assert.deepEqual(
    await ctx.db.query('select 1 from payment_mail_cursors where store_id = $1', [gone.storeId]),
    [],
  )
})

test('nobody chooses for another, nor without a touch', async () => {
  const { storeId, browser, authenticator } = await openMember('viewer')
  const other = await openMember()
  const values = { storeId, payments: 'every' }
  assert.equal((await browser.post('/account/alerts', values)).statusCode, 403)
  const touch = await browser.confirm(authenticator, 'alerts.choose', values)
  assert.equal(
    (await browser.post('/account/alerts', { ...values, payments: 'none', touch })).statusCode,
    409,
  )
  const theirs = { storeId: other.storeId, payments: 'none' }
  const stolen = await browser.confirm(authenticator, 'alerts.choose', theirs)
  assert.equal((await browser.post('/account/alerts', { ...theirs, touch: stolen })).statusCode, 404)
  assert.equal((await browser.post('/account/alerts', { storeId, payments: 'all' })).statusCode, 422)
})

test('the link in a mail stops these mails without a sign-in, by one click too, and does nothing else', async () => {
  const { storeId, email, choose, browser } = await openMember()
  await choose('every')
  await pay(storeId, 1, { orderId: 'a\r\nBcc: victim@bank.example\r\n\r\nhttps://evil.example' })
  await run()
  const mailer = openMailer(ctx)
  while (await mailer());
  const arrived = server.received.filter(({ to }) => to.includes(email)).at(-1) ?? assert.fail('no mail')
  assert(!/evil\.example|victim/.test(textOf(arrived)))
  const headers = headersOf(arrived)
  assert.equal(headers.get('list-unsubscribe-post'), 'List-Unsubscribe=One-Click')
  const url = /^<(.*)>$/.exec(headers.get('list-unsubscribe') ?? '')?.[1] ?? assert.fail('no link')
  assert(textOf(arrived).includes(url))
  const path = new URL(url).pathname
  const anybody = (
    method: 'GET' | 'POST',
    to: string,
    payload = '',
    type = 'application/x-www-form-urlencoded',
  ) =>
    console.app.inject({
      method,
      url: to,
      ...(method === 'POST' && { payload, headers: { 'content-type': type } }),
    })
  const chosen = async () =>
    (
      await ctx.db.query<{ payment_mails: string }>(
        'select payment_mails from memberships where store_id = $1',
        [storeId],
      )
    )[0]?.payment_mails
  assert.equal((await anybody('GET', path)).statusCode, 200)
  assert.equal(await chosen(), 'every', 'a scanner that opens the link changes nothing')
  assert.equal((await anybody('POST', `/stop-mails/${crypto.randomUUID()}`)).statusCode, 404)
  assert.equal((await anybody('POST', '/stop-mails/x')).statusCode, 404)
  assert.match(`${(await anybody('GET', '/account')).headers.location}`, /^\/sign-in\b/)
  const boundary = 'b'
  const multipart = `--${boundary}\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--${boundary}--\r\n`
  assert.equal(
    (await anybody('POST', path, multipart, `multipart/form-data; boundary=${boundary}`)).statusCode,
    200,
  )
  assert.equal(await chosen(), 'none')
  const stopped = await anybody('POST', path, 'List-Unsubscribe=One-Click')
  assert.equal(stopped.statusCode, 200, 'again')
  assert.equal(stopped.headers['set-cookie'], undefined)
  assert(!stopped.body.includes(storeId) && !stopped.body.includes(email))
  assert.equal((await browser.get('/account')).statusCode, 200)
  await pay(storeId)
  await run()
  assert.equal((await mailsTo(email)).length, 0)
})
