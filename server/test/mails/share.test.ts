/** Mails of one store leave those of another alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inviteAsOperator } from '../../src/members/invite.ts'
import { enrolWith, inviteBy, openConsole, tokenOf } from '../http/console/support/console.ts'
import { operator } from '../support/operator.ts'
import { openStore, type StoreClient, wallets } from '../support/store.ts'

const console = await openConsole({
  settings: { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'farthing@pay.example' },
})
const { ctx } = console.farthing

async function invite({ store }: StoreClient) {
  const invitee = { name: 'Olga', email: 'olga@shop.example', role: 'owner' } as const
  return await inviteAsOperator(ctx, store.id, operator, invitee, new Date())
}

/** As if `work` had sent them. */
async function sendAll(): Promise<void> {
  await ctx.db.query('delete from mails')
}

async function mailsAbout(store: StoreClient): Promise<number> {
  return (await ctx.db.query('select id from mails where about = $1', [store.id])).length
}

async function registerWallet(store: StoreClient): Promise<void> {
  const wallet = { walletAddress: wallets[0], custodialType: 'CUSTODIAL' }
  const answer = await store.call('POST', `/api/v1/stores/${store.id}/wallets/evm`, wallet)
  assert.equal(answer.statusCode, 201, answer.body)
}

test('the 21st invitation of a store in a day is made and not mailed, also if the others are sent; another store’s is, and so is tomorrow’s', async () => {
  const store = await openStore(console.farthing, { evmWallet: null })
  const mailed = []
  for (let i = 0; i < 20; i++) mailed.push((await invite(store)).isMailed)
  assert.deepEqual(new Set(mailed), new Set([true]))
  await sendAll()
  const { link, isMailed } = await invite(store)
  assert.equal(isMailed, false)
  const other = await openStore(console.farthing, { evmWallet: null })
  assert.equal((await invite(other)).isMailed, true)
  await ctx.db.query('update mail_counts set day = day - 1')
  assert.equal((await invite(store)).isMailed, true)
  await sendAll()
  assert.match(link, /\/enrol#/)
})

test('an owner who invites more people than are mailed in a day gets their links all the same', async () => {
  const store = await openStore(console.farthing, { evmWallet: null })
  const owner = await enrolWith(console, tokenOf((await invite(store)).link))
  await sendAll()
  for (let i = 0; i < 20; i++)
    await inviteBy(owner, store.id, { name: `Max ${i}`, role: 'viewer', email: `max${i}@shop.example` })
  const links = await ctx.db.query("select id from mails where about like 'inv%'")
  assert.equal(links.length, 19)
  await sendAll()
})

test('owners are told of a change of wallet or of members although another store’s mails fill the queue', async () => {
  const [greedy, store] = [
    await openStore(console.farthing, { evmWallet: null }),
    await openStore(console.farthing, { evmWallet: null }),
  ]
  const owner = await enrolWith(console, tokenOf((await invite(store)).link))
  await sendAll()
  for (let i = 0; i < 21; i++) await invite(greedy)
  await ctx.db.query(
    `insert into mails (id, about, key_id, sealed, due_at, created_at)
     select 'mail_' || n, $1, 'k', 'x', clock() + interval '1 day', clock() from generate_series(1, 1000) n`,
    [greedy.id],
  )
  assert.equal((await invite(greedy)).isMailed, false)
  const before = await mailsAbout(store)
  await registerWallet(store)
  assert.equal(await mailsAbout(store), before + 1)
  await inviteBy(owner, store.id, { name: 'Max', role: 'viewer', email: '' })
  assert.equal(await mailsAbout(store), before + 2)
  await sendAll()
})

test('a store that has used up its mails about members still hears of its wallets', async () => {
  const store = await openStore(console.farthing, { evmWallet: null })
  const owner = await enrolWith(console, tokenOf((await invite(store)).link))
  await ctx.db.query("update mail_counts set count = 200 where store_id = $1 and kind = 'member'", [store.id])
  await sendAll()
  await inviteBy(owner, store.id, { name: 'Max', role: 'viewer', email: '' })
  assert.equal(await mailsAbout(store), 0)
  await registerWallet(store)
  assert.equal(await mailsAbout(store), 1)
})
