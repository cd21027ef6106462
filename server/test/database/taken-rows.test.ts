/** Whoever has the console's role, the operator's role, or a copy of the database: what the security model says they get. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WebhookEndpointSecret } from '@farthing/sdk'
import type { Database } from '../../src/database/db.ts'
import { scopeToStore } from '../../src/database/scope.ts'
import { newId } from '../../src/ids.ts'
import { inviteAsOperator } from '../../src/members/invite.ts'
import { hashToken, newToken } from '../../src/members/token.ts'
import type { Authenticator } from '../http/console/support/authenticator.ts'
import { enrolWith, openConsole, openInvitedStore, TestBrowser } from '../http/console/support/console.ts'
import { b, isStatus, openGuardedStore, read } from '../http/console/support/wallets.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { dumpRows } from '../support/dump.ts'
import { operator } from '../support/operator.ts'
import { openStore, registerWallet, send } from '../support/store.ts'

const console = await openConsole({
  settings: { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'farthing@pay.example' },
})
const { farthing } = console
const { ctx, databaseUrl } = farthing
const taken = openAs('console', databaseUrl)

async function readOwner(storeId: string): Promise<string> {
  const [row] = await taken.query<{ id: string }>(
    "select member_id as id from memberships where store_id = $1 and role = 'owner'",
    [storeId],
  )
  return row?.id ?? assert.fail()
}

/** What the role sees of a store's wallets in a transaction that names a store. */
async function countWallets(db: Database, named: string, storeId: string): Promise<number> {
  return await db.transaction(async (tx) => {
    await tx.query("select set_config('farthing.store', $1, true)", [named])
    return (await tx.query('select 1 as one from wallets where store_id = $1', [storeId])).length
  })
}

test('a taken console is any member of any store, and its touches count', async () => {
  const guarded = await openGuardedStore(console)
  const { store } = guarded
  // It names the store itself, so seeing one store at a time protects from our mistakes and not from a thief.
  assert.equal(await countWallets(taken, '', store.id), 0)
  assert.equal(await countWallets(taken, store.id, store.id), 1)
  const ownerId = await readOwner(store.id)
  // A session as the owner, and the thief's own passkey, which becomes the owner's.
  const thief = await enrolWith(console, (await openInvitedStore(console)).token)
  const token = newToken()
  await taken.query(
    `insert into sessions (id, token_hash, member_id, browser, address, created_at, seen_at, expires_at)
     values ($1, $2, $3, '', '', clock(), clock(), clock() + interval '7 days')`,
    [newId('ses', '00', new Date()), hashToken(token), ownerId],
  )
  await taken.query('update passkeys set member_id = $2 where credential_id = $1', [
    thief.authenticator.id,
    ownerId,
  ])
  const browser = new TestBrowser(console)
  browser.cookie = `farthing=${token}`
  assert((await read(browser, '/account')).includes('Olga'))
  await registerWallet(store, b)
  const authenticator: Authenticator = {
    ...thief.authenticator,
    touch(options) {
      const answer = thief.authenticator.touch(options)
      const userHandle = Buffer.from(ownerId).toString('base64url')
      return { ...answer, response: { ...answer.response, userHandle } }
    },
  }
  await isStatus(guarded.confirm(await guarded.newest(), { authenticator, browser }), 303)
  assert.equal(await guarded.paidTo(), b)
  const told = (await store.events()).find(({ type }) => type === 'wallet.confirmed')
  assert.equal(told?.actor?.id, ownerId, 'the log names the owner')
})

test('a taken console reads no key, redirects no wallet and marks nothing as paid', async () => {
  const { store } = await openGuardedStore(console)
  const { id } = await store.create()
  const named = scopeToStore(taken, store.id)
  for (const statement of [
    'select secret_hash from api_keys',
    "update api_keys set secret_hash = ''",
    'update api_keys set revoked_at = null, scopes = null',
    `update checkouts set status = 'COMPLETED' where id = '${id}'`,
    `update checkouts set options = '[]' where id = '${id}'`,
    'insert into credits default values',
    "update credits set disposition = 'exact'",
    'insert into authorizations default values',
    "update wallets set address = ''",
    'select bytes from broadcasts',
  ])
    await assert.rejects(named.query(statement), { code: '42501' }, statement)
  for (const table of ['api_keys', 'webhook_endpoints', 'checkouts', 'credits', 'deliveries', 'events'])
    assert.deepEqual(await taken.query(`select 1 as one from ${table}`), [], `${table}: no store is named`)
})

test('the operator’s role redirects a checkout that exists and writes any record', async () => {
  const db = openAs('operator', databaseUrl)
  const store = await openStore(farthing)
  const { id } = await store.create()
  const thiefWallet = newPayer().address
  await db.query(
    "update checkouts set options = replace(options::text, options -> 0 ->> 'payTo', $2)::json where id = $1",
    [id, thiefWallet],
  )
  const answer = await send(farthing.app, 'POST', `/api/v1/checkouts/${id}`)
  assert.equal(answer.json().accepts[0].payTo, thiefWallet)
  await db.query("update checkouts set status = 'COMPLETED' where id = $1", [id])
  await db.query('delete from events where store_id = $1', [store.id])
  assert.deepEqual(await store.events(), [])
})

test('a backup holds no key, session, link or webhook secret that could be used', async () => {
  const { store, token } = await openInvitedStore(console)
  const { browser } = await enrolWith(console, token)
  const made = await store.call('POST', '/api/v1/webhook-endpoints', { url: 'https://hooks.example/' })
  const other = await openStore(farthing)
  const max = { name: 'Max', email: 'max@shop.example', role: 'owner' } as const
  const { link } = await inviteAsOperator(ctx, other.store.id, operator, max, new Date())
  const backup = await dumpRows(ctx.db)
  const secrets = {
    key: store.key.split('_')[3] ?? '',
    session: browser.cookie.split('=')[1] ?? '',
    'used link': token,
    'open link': link.split('#')[1] ?? '',
    'webhook secret': made.json<WebhookEndpointSecret>().secret,
  }
  for (const [what, secret] of Object.entries(secrets)) {
    assert(secret.length > 10, what)
    assert(!backup.includes(secret), `the backup has the ${what}`)
  }
  assert(backup.includes(store.key.split('_')[2] ?? assert.fail()), 'ids are in it')
})
