/** Mails against a real mail server: what arrives, what is stored meanwhile, and what a dead server holds up. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { secretsCommand } from '../../src/commands/secrets.ts'
import type { MailSubject } from '../../src/mails/mail.ts'
import { openMailer, takeMail } from '../../src/mails/send.ts'
import { writeMail } from '../../src/mails/write.ts'
import { inviteAsOperator } from '../../src/members/invite.ts'
import { removeAsOperator } from '../../src/members/remove.ts'
import { listStoreMembers } from '../../src/members/rows.ts'
import { listLoops } from '../../src/worker.ts'
import { enrolWith, inviteBy, openConsole, tokenOf } from '../http/console/support/console.ts'
import { freePort } from '../support/free-port.ts'
import { operator } from '../support/operator.ts'
import { secretsKeyFile } from '../support/secrets-key.ts'
import { openStore } from '../support/store.ts'
import { headersOf, startMailServer, textOf } from './mail-server.ts'

const server = await startMailServer()
const smtpUrl = (host: string, port: number) => `smtp://farthing:p%40ss%20word@${host}:${port}`
const console = await openConsole({
  settings: {
    SMTP_URL: smtpUrl('127.0.0.1', server.port),
    MAIL_FROM: 'farthing@pay.example',
    LOG_LEVEL: 'warn',
  },
})
const { ctx, logged } = console.farthing
const storeId = (await openStore(console.farthing, { evmWallet: null })).store.id

/** Runs the worker's own loop until nothing is due. */
async function sendAll(mails = ctx): Promise<void> {
  const { run } = listLoops(mails, []).find(({ name }) => name === 'send-mails') ?? assert.fail('no loop')
  while (await run(() => {}));
}

function withServer(url: string): typeof ctx {
  return { ...ctx, config: { ...ctx.config, smtpUrl: url } }
}

/** Also with a subject that no mail of ours has. */
async function write({ subject, ...mail }: { to: string; subject: string; text: string }): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    assert.equal(
      await writeMail(
        ctx,
        tx,
        { kind: 'alert', storeId },
        { ...mail, subject: subject as MailSubject },
        new Date(),
      ),
      true,
    )
  })
}

async function waiting(): Promise<{ tries: number; row: string }[]> {
  return await ctx.db.query('select tries, m::text as row from mails m order by id')
}

test('an invitation is mailed with its link, which is stored sealed and only until then, and owners get the news', async () => {
  const store = await openStore(console.farthing, { evmWallet: null })
  const olga = { name: 'Olga Ñandú', email: 'olga@shop.example', role: 'owner' } as const
  const { link, isMailed } = await inviteAsOperator(ctx, store.store.id, operator, olga, new Date())
  assert.equal(isMailed, true)
  const [{ row } = assert.fail()] = await waiting()
  for (const secret of [tokenOf(link), 'olga@shop.example', 'Ñandú']) assert(!row.includes(secret), row)
  await sendAll()
  assert.deepEqual(await waiting(), [])
  const [mail = assert.fail()] = server.received
  assert.deepEqual([mail.to, mail.user], [['olga@shop.example'], 'farthing'])
  assert.match(textOf(mail), /^Hello Olga Ñandú,\r?\n\r?\nYou are invited to Shop \(owner\)/)
  assert(textOf(mail).includes(link))
  assert.match(headersOf(mail).get('from') ?? '', /<farthing@pay\.example>/)

  const owner = await enrolWith(console, tokenOf(link))
  await sendAll()
  const max = { name: 'Max', role: 'manager', email: 'max@shop.example' }
  await enrolWith(console, await inviteBy(owner, store.id, max))
  const { id } =
    (await listStoreMembers(ctx.db, store.id)).find(({ role }) => role === 'owner') ?? assert.fail()
  await removeAsOperator(ctx, store.store.id, operator, id, new Date())
  await sendAll()
  const told = server.received.slice(1).map((each) => `${each.to}: ${textOf(each).split(/\r?\n/)[0]}`)
  assert.deepEqual(told.sort(), [
    'max@shop.example: Hello Max,',
    'max@shop.example: Max joined (manager)',
    'olga@shop.example: Max joined (manager)',
    'olga@shop.example: Olga Ñandú joined (owner)',
    'olga@shop.example: Olga Ñandú made a link for Max (manager)',
    'olga@shop.example: The operator test removed Olga Ñandú (owner)',
  ])
})

test('nothing in a name or a subject adds a header or a recipient', async () => {
  server.received.splice(0)
  const hostile = [
    'Shop\r\nBcc: thief@evil.example',
    'Shop\nX-Evil: 1',
    'Shop\u2028Bcc: x',
    'Café ☕ \u0000\r\n\r\nbody',
  ]
  for (const subject of hostile)
    await write({ to: 'olga@shop.example', subject, text: 'Hi\r\n.\r\nRCPT TO:<thief@evil.example>\r\n' })
  await sendAll()
  assert.equal(server.received.length, hostile.length)
  for (const mail of server.received) {
    assert.deepEqual(mail.to, ['olga@shop.example'])
    const names = [...headersOf(mail).keys()].sort()
    assert.deepEqual(names, [
      'auto-submitted',
      'content-transfer-encoding',
      'content-type',
      'date',
      'from',
      'message-id',
      'mime-version',
      'subject',
      'to',
    ])
    assert.match(textOf(mail), /^Hi/)
  }
})

test('a dead mail server holds nothing up: the mail waits, is tried again, and is given up with a line that says what to do', async () => {
  const dead = withServer(smtpUrl('127.0.0.1', await freePort()))
  const store = await openStore(console.farthing, { evmWallet: null })
  const invitee = { name: 'Otto', email: 'otto@shop.example', role: 'owner' } as const
  const { link } = await inviteAsOperator(dead, store.store.id, operator, invitee, new Date())
  await sendAll(dead)
  assert.deepEqual(
    (await waiting()).map(({ tries }) => tries),
    [1],
  )
  await sendAll(dead)
  assert.deepEqual(
    (await waiting()).map(({ tries }) => tries),
    [1],
    'not again at once',
  )
  for (let i = 0; i < 9; i++) {
    await ctx.db.query('update mails set due_at = clock()')
    await sendAll(dead)
  }
  assert.deepEqual(await waiting(), [])
  const { level, msg, tries } = logged.at(-1) ?? assert.fail()
  assert.deepEqual([level, tries], ['error', 10])
  assert.match(String(msg), /gave up on a mail: check SMTP_URL/)
  assert(!JSON.stringify(logged).includes(tokenOf(link)), 'no link in the log')
  assert(!/otto@|p%40ss|p@ss/.test(JSON.stringify(logged)), 'no address and no password in the log')
  await enrolWith(console, tokenOf(link))
  await sendAll()
})

test('a mail that a process took and did not finish is sent by another, under the same id', async () => {
  server.received.splice(0)
  await write({ to: 'olga@shop.example', subject: 'Once', text: 'Hi' })
  const taken = (await takeMail(ctx.db, 30)) ?? assert.fail()
  assert.equal(await openMailer(ctx)(), false)
  await ctx.db.query('update mails set due_at = clock()')
  await sendAll()
  assert.equal(headersOf(server.received[0] ?? assert.fail()).get('message-id'), `<${taken.id}@pay.example>`)
})

test('a waiting mail survives `secrets rotate` and the end of the old key', async () => {
  server.received.splice(0)
  await write({ to: 'olga@shop.example', subject: 'Hi', text: 'Hi' })
  const old = await readFile(secretsKeyFile, 'utf8')
  const fresh = `fresh ${randomBytes(32).toString('base64')}\n`
  await writeFile(secretsKeyFile, fresh + old)
  await secretsCommand(ctx, ['rotate'], {})
  await writeFile(secretsKeyFile, fresh)
  await sendAll()
  assert.equal(server.received.length, 1)
})

test('to another machine no mail and no password goes without TLS, or by a certificate that proves nothing', async () => {
  // This address leads to loopback too, but does not say so.
  for (const { tls, says } of [
    { tls: false, says: /STARTTLS/ },
    { tls: true, says: /certificate/ },
  ]) {
    const other = await startMailServer({ tls })
    await write({ to: 'olga@shop.example', subject: 'Hi', text: 'Hi' })
    await sendAll(withServer(smtpUrl('0.0.0.0', other.port)))
    assert.deepEqual([other.asked.passwords, other.received.length], [0, 0])
    assert.match(JSON.stringify(logged.at(-1)?.err), says)
    assert(other.asked.sessions > 0)
    await ctx.db.query('delete from mails')
  }
})

test('no link and no alert is written while a thousand mails wait', async () => {
  await ctx.db.query(
    `insert into mails (id, about, key_id, sealed, due_at, created_at)
     select 'mail_' || n, 'x', 'k', 'x', clock() + interval '1 day', clock() from generate_series(1, 1000) n`,
  )
  const mail = { to: 'olga@shop.example', subject: 'Your link for a new passkey', text: 'Hi' } as const
  await ctx.db.transaction(async (tx) => {
    assert.equal(await writeMail(ctx, tx, { kind: 'alert', storeId }, mail, new Date()), false)
  })
  assert.match(String(logged.at(-1)?.msg), /too many mails are waiting/)
})
