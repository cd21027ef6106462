/** Mails that tell owners what needs them: each once, summed up, and only to those who want them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { appendEvent, newEvent, systemActor } from '../../src/events/append.ts'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import { type Mail, placeOf } from '../../src/mails/mail.ts'
import { mailAlerts } from '../../src/members/alert.ts'
import { inviteAsOperator } from '../../src/members/invite.ts'
import { readSecretsKeys } from '../../src/secrets/key-file.ts'
import { unseal } from '../../src/secrets/seal.ts'
import { enrolWith, openConsole, tokenOf } from '../http/console/support/console.ts'
import { operator } from '../support/operator.ts'
import { openStore } from '../support/store.ts'

const console = await openConsole({
  settings: { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'farthing@pay.example' },
})
const { ctx } = console.farthing

async function openOwned() {
  const store = await openStore(console.farthing, { evmWallet: null })
  const email = `${store.store.id}@shop.example`
  const { link } = await inviteAsOperator(
    ctx,
    store.store.id,
    operator,
    { name: 'Olga', email, role: 'owner' },
    ctx.now(),
  )
  const owner = await enrolWith(console, tokenOf(link))
  await assignWaitingSequences(ctx)
  await mailAlerts(ctx, ctx.now())
  return { id: store.store.id, email, owner }
}

async function happen(
  storeId: Awaited<ReturnType<typeof openOwned>>['id'],
  type: 'payment.unmatched' | 'payment.finalized',
) {
  await ctx.db.transaction(async (tx) => {
    await appendEvent(tx, newEvent(ctx, storeId, systemActor, { type, data: {} as never }, ctx.now()))
  })
  await assignWaitingSequences(ctx)
}

/** The first sentences of the alerts for an address, oldest first. */
async function mailsTo(email: string): Promise<string[]> {
  const keys = readSecretsKeys(ctx.config.secretsKeyFile)
  const waiting = await ctx.db.query<{ id: string; keyId: string; sealed: string }>(
    'select id, key_id as "keyId", sealed from mails order by id',
  )
  return waiting
    .map((row) => JSON.parse(unseal(keys, placeOf(row.id), row)) as Mail)
    .filter(({ to, text }) => to === email && text.includes('at most once per hour'))
    .map(({ text }) => text.split('.\n')[0] ?? '')
}

const passAnHour = (storeId: string) =>
  ctx.db.query("update alert_cursors set told_at = told_at - interval '61 minutes' where store_id = $1", [
    storeId,
  ])

test('money that completes no checkout is told once, and what follows within the hour together', async () => {
  const { id, email } = await openOwned()
  await happen(id, 'payment.finalized')
  await mailAlerts(ctx, ctx.now())
  assert.deepEqual(await mailsTo(email), [])
  await happen(id, 'payment.unmatched')
  await Promise.all([mailAlerts(ctx, ctx.now()), mailAlerts(ctx, ctx.now()), mailAlerts(ctx, ctx.now())])
  const first = '1 payment completed no checkout: late, short, too much or unexpected'
  assert.deepEqual(await mailsTo(email), [first])
  await happen(id, 'payment.unmatched')
  await happen(id, 'payment.unmatched')
  await mailAlerts(ctx, ctx.now())
  assert.deepEqual(await mailsTo(email), [first])
  await passAnHour(id)
  await mailAlerts(ctx, ctx.now())
  await mailAlerts(ctx, ctx.now())
  assert.deepEqual(
    (await mailsTo(email)).map((sentence) => sentence.split(':')[0]),
    ['1 payment completed no checkout', '2 payments completed no checkout'],
  )
})

test('an endpoint that fails for a quarter of an hour is told once per failure', async () => {
  const { id, email } = await openOwned()
  const fail = (minutes: number) =>
    ctx.db.query(
      `update webhook_endpoints set failing_since = clock() - make_interval(mins => $2) where store_id = $1`,
      [id, minutes],
    )
  await ctx.db.query(
    `insert into webhook_endpoints (id, store_id, url, types, is_ordered, secrets, created_at)
     values ('we_' || $1, $1, 'https://hooks.shop.example/a', '{}', false, '[]', clock())`,
    [id],
  )
  await ctx.db.query(
    "update alert_cursors set failing_until = clock() - interval '1 day' where store_id = $1",
    [id],
  )
  await fail(5)
  await mailAlerts(ctx, ctx.now())
  assert.deepEqual(await mailsTo(email), [])
  await fail(16)
  for (let i = 0; i < 3; i++) {
    await mailAlerts(ctx, ctx.now())
    await passAnHour(id)
  }
  assert.deepEqual(await mailsTo(email), ['hooks.shop.example has not taken webhooks for 15 minutes'])
})

test('an owner who switched a kind off is not mailed about it, and nobody switches for another', async () => {
  const { id, email, owner } = await openOwned()
  const other = await openOwned()
  assert.match((await owner.browser.get('/account')).body, /name="money" value="yes" checked/)
  const choose = async (touched: Readonly<Record<string, string>>, sent: object) => {
    const touch = await owner.browser.confirm(owner.authenticator, 'alerts.choose', touched)
    return (await owner.browser.post('/account/alerts', { ...sent, touch })).statusCode
  }
  const [all, some] = [
    { storeId: id, payments: 'daily', money: 'yes', webhooks: 'yes' },
    { storeId: id, payments: 'daily', webhooks: 'yes' },
  ]
  assert.equal((await owner.browser.post('/account/alerts', some)).statusCode, 403, 'it takes a touch')
  assert.equal(await choose(all, some), 409, 'for exactly that')
  assert.match((await owner.browser.get('/account')).body, /name="money" value="yes" checked/)
  assert.equal(await choose(some, some), 303)
  assert.equal(
    await choose({ storeId: other.id, payments: 'daily' }, { storeId: other.id, payments: 'daily' }),
    404,
  )
  assert.match((await owner.browser.get('/account')).body, /name="money" value="yes">/)
  await happen(id, 'payment.unmatched')
  await happen(other.id, 'payment.unmatched')
  await mailAlerts(ctx, ctx.now())
  assert.deepEqual(await mailsTo(email), [])
  assert.equal((await mailsTo(other.email)).length, 1)
})
