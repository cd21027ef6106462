/** One share of links per member, however many stores they have, and no word of a store in any subject. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import { type Mail, placeOf } from '../../src/mails/mail.ts'
import { mailAlerts } from '../../src/members/alert.ts'
import { listStoreMembers } from '../../src/members/rows.ts'
import { readSecretsKeys } from '../../src/secrets/key-file.ts'
import { unseal } from '../../src/secrets/seal.ts'
import { decideStanding } from '../../src/stores/standing.ts'
import {
  type Enrolled,
  enrolWith,
  inviteBy,
  openConsole,
  openInvitedStore,
} from '../http/console/support/console.ts'
import { operator } from '../support/operator.ts'
import { type StoreClient, wallets } from '../support/store.ts'

const console = await openConsole({
  settings: { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'farthing@pay.example' },
})
const { ctx } = console.farthing
const perDay = 20

async function openTeam() {
  const { store, token } = await openInvitedStore(console)
  return { store, owner: await enrolWith(console, token) }
}

/** With the passkey that they have. */
async function join({ browser, authenticator }: Enrolled, invitation: string): Promise<void> {
  const touch = await browser.confirm(authenticator, 'invitation.accept', { invitation })
  await browser.done('/enrol/join', { invitation, touch })
}

/** Invites people by mail, and returns how many of the links were mailed. */
async function inviteMany(by: Enrolled, { id }: StoreClient, count: number): Promise<number> {
  const before = await linksMailed()
  for (let i = 0; i < count; i++)
    await inviteBy(by, id, { name: `Max ${i}`, role: 'viewer', email: `max${i}@shop.example` })
  return (await linksMailed()) - before
}

async function linksMailed(): Promise<number> {
  return (await ctx.db.query("select id from mails where about like 'inv%'")).length
}

async function memberIn({ store }: StoreClient, name: string) {
  const members = await listStoreMembers(ctx.db, store.id)
  return members.find((each) => each.name === name) ?? assert.fail(`no ${name}`)
}

test('a member with three stores has as many links mailed in a day as with one; another member has their own, and tomorrow is another day', async () => {
  const { store, owner } = await openTeam()
  const more = [await openInvitedStore(console), await openInvitedStore(console)]
  for (const { token } of more) await join(owner, token)
  const stores = [store, ...more.map((each) => each.store)]
  let mailed = 0
  for (const each of stores) mailed += await inviteMany(owner, each, 9)
  assert.equal(mailed, perDay)
  const other = await openTeam()
  assert.equal(await inviteMany(other.owner, other.store, 1), 1)
  await ctx.db.query('update member_mail_counts set day = day - 1')
  assert.equal(await inviteMany(owner, store, 1), 1)
})

test('two owners of one store have its one share, and neither has more of it in a store of their own', async () => {
  const { store, owner } = await openTeam()
  const second = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Eva', role: 'owner' }))
  assert.equal(await inviteMany(owner, store, 12), 12)
  assert.equal(await inviteMany(second, store, 12), perDay - 12)
  const own = await openInvitedStore(console)
  await join(second, own.token)
  assert.equal(await inviteMany(second, own.store, 2), 0)
})

test('whoever leaves a store, or leaves and joins again, has used up what they have used up', async () => {
  const { store, owner } = await openTeam()
  const second = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Eva', role: 'owner' }))
  const own = await openInvitedStore(console)
  await join(second, own.token)
  assert.equal(await inviteMany(second, store, 15), 15)
  const eva = await memberIn(store, 'Eva')
  const touch = await owner.browser.confirm(owner.authenticator, 'member.remove', {
    storeId: store.id,
    memberId: eva.id,
  })
  await owner.browser.done(`/stores/${store.id}/members/remove`, { memberId: eva.id, touch })
  assert.equal(await inviteMany(second, own.store, 3), 3)
  await join(second, await inviteBy(owner, store.id, { name: 'Eva', role: 'owner' }))
  assert.equal(await inviteMany(second, store, 4), 2)
  assert.equal(await inviteMany(second, own.store, 1), 0)
  // As somebody new to us they have no more of the store's.
  const third = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Ada', role: 'owner' }))
  assert.equal(await inviteMany(third, store, 4), 0)
})

test('a share that one of several owners has used up leaves the link to be shown, and counts for no store twice', async () => {
  const { store, owner } = await openTeam()
  assert.equal(await inviteMany(owner, store, perDay), perDay)
  const other = await openTeam()
  await join(owner, await inviteBy(other.owner, other.store.id, { name: 'Olga', role: 'manager' }))
  // A manager of the other store takes nothing of its owner's share.
  assert.equal(await inviteMany(other.owner, other.store, 1), 1)
})

/** What a phisher would have in a headline. */
const words = 'ZZCALL-5550100'

async function readMails(): Promise<Mail[]> {
  const keys = readSecretsKeys(ctx.config.secretsKeyFile)
  const rows = await ctx.db.query<{ id: string; keyId: string; sealed: string }>(
    'select id, key_id as "keyId", sealed from mails order by id',
  )
  return rows.map((row) => JSON.parse(unseal(keys, placeOf(row.id), row)))
}

async function causeEveryMail() {
  const { store, owner } = await openTeam()
  await ctx.db.query('update stores set name = $2 where id = $1', [store.id, words])
  await ctx.db.query('update members set name = $1, email = $2 where id = $3', [
    words,
    'victim@bank.example',
    (await memberIn(store, 'Olga')).id,
  ])
  const key = (await store.call('POST', '/api/v1/keys', { label: words })).json<{ key: string }>()
  const invited = await inviteBy(owner, store.id, { name: words, role: 'owner', email: 'v2@bank.example' })
  await enrolWith(console, invited)
  const { id: memberId } =
    (await listStoreMembers(ctx.db, store.store.id)).find(({ email }) => email === 'v2@bank.example') ??
    assert.fail()
  for (const [path, action, values] of [
    ['role', 'member.role', { memberId, role: 'manager' }],
    ['recover', 'member.recover', { memberId }],
    ['remove', 'member.remove', { memberId }],
  ] as const) {
    const touch = await owner.browser.confirm(owner.authenticator, action, { storeId: store.id, ...values })
    await owner.browser.done(`/stores/${store.id}/members/${path}`, { ...values, touch })
  }
  const wallet = { walletAddress: wallets[0], custodialType: 'CUSTODIAL' }
  const path = `/api/v1/stores/${store.id}/wallets/evm`
  const answer = await console.farthing.app.inject({
    method: 'POST',
    url: path,
    headers: { 'x-api-key': key.key },
    payload: wallet,
  })
  assert.equal(answer.statusCode, 201, answer.body)
  for (const decision of [{ verb: 'suspend', reason: 'spam' }, { verb: 'resume' }] as const)
    await ctx.db.transaction((tx) =>
      decideStanding(ctx, tx, { storeId: store.store.id, actor: operator, decision, now: new Date() }),
    )
  await assignWaitingSequences(ctx)
  await mailAlerts(ctx, ctx.now())
  await ctx.db.query(
    `insert into webhook_endpoints (id, store_id, url, types, is_ordered, secrets, created_at, failing_since)
     values ('we_' || $1, $1, $2, '{}', false, '[]', clock(), clock() - interval '16 minutes')`,
    [store.id, `https://${words}.example/a`],
  )
  await ctx.db.query(
    "update alert_cursors set failing_until = clock() - interval '1 day' where store_id = $1",
    [store.id],
  )
  await mailAlerts(ctx, ctx.now())
  return store
}

test('no subject of any mail has a word that the store, its members or its keys chose', async () => {
  await ctx.db.query('delete from mails')
  const store = await causeEveryMail()
  const mails = await readMails()
  const subjects = new Set(mails.map(({ subject }) => subject))
  assert.deepEqual(
    [...subjects].sort(),
    [
      `The members of your store changed (${store.id})`,
      `The operator decided about your store (${store.id})`,
      `The wallets of your store changed (${store.id})`,
      `Webhooks of your store do not arrive (${store.id})`,
      'Your invitation to a store',
      'Your link for a new passkey',
    ].sort(),
  )
  assert(
    mails.every(({ text }) => text.includes(words)),
    'the mails are about this store',
  )
})
