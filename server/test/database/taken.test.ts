/**
 * Whoever has taken `serve` or `work` has its settings and its files, and runs any SQL as its database role. What the
 * security model says they can do is done here, so that it is no better than the truth; what it says they cannot do is
 * tried. The rights of each role, column by column, are in roles.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WebhookEndpointSecret } from '@farthing/sdk'
import { applyDecisions } from '../../src/checkouts/payments/apply-decisions.ts'
import { insertDecision } from '../../src/checkouts/payments/request-decision.ts'
import { type Database, sqlState } from '../../src/database/db.ts'
import type { Secret } from '../../src/events/webhooks/endpoint.ts'
import { openSecret } from '../../src/events/webhooks/seal-secrets.ts'
import { type EndpointId, newId } from '../../src/ids.ts'
import { placeOf } from '../../src/mails/mail.ts'
import { takeMail } from '../../src/mails/send.ts'
import { inviteAsOperator } from '../../src/members/invite.ts'
import { replaceRates } from '../../src/rates/rows.ts'
import { sources } from '../../src/rates/sources.ts'
import { readSecretsKeys } from '../../src/secrets/key-file.ts'
import { unseal } from '../../src/secrets/seal.ts'
import { hashSecret } from '../../src/stores/api-keys.ts'
import { enrolWith, openConsole } from '../http/console/support/console.ts'
import { openGuardedStore, read } from '../http/console/support/wallets.ts'
import { completeByHand, creditByHand } from '../support/by-hand.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { operator } from '../support/operator.ts'
import { openStore, type StoreClient, send } from '../support/store.ts'

const console = await openConsole({
  settings: { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'farthing@pay.example' },
})
const { farthing } = console
const { ctx, databaseUrl } = farthing
const [serve, work] = [openAs('serve', databaseUrl), openAs('work', databaseUrl)]
/** Both processes hold the key that opens webhook secrets and mails. */
const keys = readSecretsKeys(ctx.config.secretsKeyFile)
const thiefWallet = newPayer().address

async function assertRefused(db: Database, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await assert.rejects(db.query(statement), { code: '42501' }, statement)
}

/** A live store with an owner, the strictest kind, with an endpoint. */
async function openVictim() {
  const wallet = newPayer().address
  const guarded = await openGuardedStore(console, { evmWallet: wallet })
  const made = await guarded.store.call('POST', '/api/v1/webhook-endpoints', {
    url: 'https://hooks.example/',
  })
  return { ...guarded, wallet, endpoint: made.json<WebhookEndpointSecret>() }
}

/** What a payer is asked to pay, and to whom. */
async function readTerms(checkoutId: string): Promise<{ payTo: string; amount: string }> {
  const answer = await send(farthing.app, 'POST', `/api/v1/checkouts/${checkoutId}`)
  assert.equal(answer.statusCode, 402, answer.body)
  return answer.json().accepts[0]
}

async function readStatus({ call }: StoreClient, id: string) {
  return (await call('GET', `/api/v1/checkouts/${id}`)).json()
}

async function readWebhookSecrets(db: Database, { id }: WebhookEndpointSecret): Promise<string[]> {
  const [row] = await db.query<{ secrets: Secret[] }>('select secrets from webhook_endpoints where id = $1', [
    id,
  ])
  return (row ?? assert.fail()).secrets.map((one) => openSecret(keys, id as EndpointId, one))
}

test('a taken serve makes checkouts that pay to another wallet, and keys; where owners confirm wallets it leaves none behind', async () => {
  const { store, paidTo, endpoint } = await openVictim()
  const { id } = await store.create()
  const before = (await store.events()).length
  // One checkout: a copy with another address.
  const copy = newId('ch', '00', new Date())
  await serve.query(
    `insert into checkouts select $2, store_id, order_id, price_amount, price_currency, success_redirect_url,
       replace(options::text, options -> 0 ->> 'payTo', $3)::json, rate, finality, status, version, created_at, expires_at,
       page_version, cancel_url from checkouts where id = $1`,
    [id, copy, thiefWallet],
  )
  assert.equal((await readTerms(copy)).payTo, thiefWallet)
  // Those that an honest serve makes later: a wallet can be written down, but not put to use.
  const walletId = newId('wal', '00', new Date())
  const plant = (registration: string) =>
    serve.query(
      `insert into wallets (id, store_id, family, address, custodial_type, created_at, registration)
       overriding system value values ($1, $2, 'EVM', $3, 'NON_CUSTODIAL', clock(), ${registration})`,
      [walletId, store.id, thiefWallet],
    )
  const isRefused = (error: unknown) => sqlState(error) === '42501'
  const honest = await paidTo()
  await assert.rejects(plant('default'), isRefused)
  await assert.rejects(plant('1000000'), isRefused)
  await plant('0')
  await assert.rejects(
    serve.query('update wallets set registration = default where id = $1', [walletId]),
    isRefused,
  )
  await serve.query('update wallets set retired_at = clock() where id = $1', [walletId])
  await assert.rejects(
    serve.query('update wallets set retired_at = null where id = $1', [walletId]),
    isRefused,
  )
  // Nor can it make up a change that the owners would go back from, to the thief's wallet.
  const forge = (made: string) =>
    serve.query(
      `insert into wallet_changes (id, store_id, family, kind, wallet_id, actor, asked_at, made, made_at, previous_id)
       values ($1, $2, 'EVM', 'use', $3, '{}', clock(), ${made}, $3)`,
      [newId('wch', '00', new Date()), store.id, walletId],
    )
  await assert.rejects(forge('9, clock()'), isRefused)
  await forge('null, null')
  await assert.rejects(
    serve.query('update wallet_changes set made = 9, made_at = clock() where wallet_id = $1', [walletId]),
    isRefused,
  )
  await serve.query('update stores set revision = revision + 1 where id = $1', [store.id])
  assert.equal(await paidTo(), honest)
  assert.equal((await store.events()).length - 2, before, 'the two new checkouts alone')
  // Where a key is enough, so is serve, without a word to anybody.
  const open = await openStore(farthing, { mode: 'test' })
  await serve.query(
    `insert into wallets (id, store_id, family, address, custodial_type, created_at)
     values ($1, $2, 'EVM', $3, 'NON_CUSTODIAL', clock())`,
    [newId('wal', '00', new Date()), open.id, thiefWallet],
  )
  // A key of its own, which outlives the break-in, and the secret that signs the store's webhooks.
  const [keyId, secret] = [`00${'1'.repeat(16)}`, 'q'.repeat(52)]
  await serve.query(
    'insert into api_keys (id, store_id, secret_hash, created_at) values ($1, $2, $3, clock())',
    [keyId, store.id, hashSecret(secret)],
  )
  const headers = { 'x-api-key': `sk_live_${keyId}_${secret}` }
  const listed = await send(farthing.app, 'GET', '/api/v1/keys', undefined, headers)
  assert(listed.statusCode === 200 && listed.body.includes(keyId), 'and the list of keys shows it')
  assert.deepEqual(await readWebhookSecrets(serve, endpoint), [endpoint.secret])
})

test('a taken serve has a store’s own payment accepted for any of its checkouts, under a false name, and cancels open ones', async () => {
  const { store } = await openVictim()
  const dear = await store.create({ priceAmount: '5000.00' })
  // Its own small transfer to the store's wallet will do.
  const paymentId = await creditByHand(farthing, (await store.create({ priceAmount: '0.01' })).id)
  const actor = { type: 'member', id: 'mem_forged', name: 'Olga' } as const
  await insertDecision(
    serve,
    {
      ...{ id: newId('dec', '00', new Date()), paymentId, actor, kind: 'accept', createdAt: new Date() },
      ...{ storeId: store.store.id, checkoutId: dear.id, note: null },
    },
    1,
  )
  assert.equal(await applyDecisions({ ...ctx, db: work }, new Date()), 1)
  const { status, payment } = await readStatus(store, dear.id)
  assert.equal(status, 'COMPLETED')
  assert.equal(payment.amount, '10001', 'the books show what really came')
  const told = (await store.events()).find(({ type }) => type === 'payment.accepted')
  assert.deepEqual(told?.actor, actor)
  const [open, claimed] = [await store.create(), await store.create()]
  await serve.query("update checkouts set status = 'CANCELED' where id = $1", [open.id])
  await serve.query("update checkouts set status = 'PROCESSING' where id = $1", [claimed.id])
  assert.equal((await readStatus(store, open.id)).status, 'CANCELED')
})

test('a taken serve makes no checkout paid, redirects none that exists, and reaches no member', async () => {
  const { store, wallet } = await openVictim()
  const { id } = await store.create()
  const event = (type: string) =>
    `insert into events (id, store_id, type, data, created_at) values ('evt_1', '${store.id}', '${type}', '{}', clock())`
  await assertRefused(serve, [
    `update checkouts set status = 'COMPLETED' where id = '${id}'`,
    `update checkouts set options = '[]' where id = '${id}'`,
    'insert into credits default values',
    'insert into transactions default values',
    'select bytes from broadcasts',
    ...['checkout.completed', 'payment.accepted', 'wallet.confirmed', 'wallet.undone', 'member.invited'].map(
      event,
    ),
    `update stores set wallet_changes = 'key' where id = '${store.id}'`,
    'select 1 from sessions',
    'select 1 from passkeys',
    'insert into invitations default values',
    "update memberships set role = 'owner'",
    'select sealed from mails',
  ])
  assert.equal((await readTerms(id)).payTo, wallet)
})

test('a taken work makes a checkout paid without money, with a payment that no chain has', async () => {
  const { store, endpoint } = await openVictim()
  const [bare, dressed] = [await store.create(), await store.create()]
  await work.query("update checkouts set status = 'COMPLETED', version = 2 where id = $1", [bare.id])
  await work.query(
    `insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
     values ($1, $2, 'checkout.completed', $3, 2, '{}', clock())`,
    [newId('evt', '00', new Date()), store.id, bare.id],
  )
  assert((await store.events()).some(({ type }) => type === 'checkout.completed'))
  const seen = await readStatus(store, bare.id)
  assert.deepEqual([seen.status, seen.payment], ['COMPLETED', null], 'nothing was paid, and it shows')
  // With a forged payment it does not show here: only the chain, and the wallet's balance, know better.
  const hash = await completeByHand({ ...farthing, ctx: { ...ctx, db: work } }, dressed.id)
  const forged = await readStatus(store, dressed.id)
  assert.deepEqual([forged.status, forged.payment.transaction], ['COMPLETED', hash])
  assert.deepEqual(await readWebhookSecrets(work, endpoint), [endpoint.secret])
  await work.query('delete from deliveries where store_id = $1', [store.id])
})

test('a taken work makes prices in other currencies worthless by a rate of its own', async () => {
  const store = await openStore(farthing)
  const [source = assert.fail()] = sources
  const perBase = new Map([
    ['USD', '1'],
    ['EUR', '1000000'],
  ])
  await replaceRates(work, source, { asOf: new Date(), perBase }, new Date())
  const { id } = await store.create({ priceAmount: '900.00', priceCurrency: 'EUR' })
  assert.equal((await readTerms(id)).amount, '900', 'less than a tenth of a cent')
})

test('a taken work reads the links in waiting mails, and becomes whom they invite', async () => {
  const store = await openStore(farthing)
  const olga = { name: 'Olga', email: 'olga@shop.example', role: 'owner' } as const
  await inviteAsOperator(ctx, store.store.id, operator, olga, new Date())
  let link = ''
  for (let mail = await takeMail(work, 60); mail && !link; mail = await takeMail(work, 60)) {
    const { to, text } = JSON.parse(unseal(keys, placeOf(mail.id), mail))
    if (to === olga.email) link = /#([A-Za-z0-9_-]{43})/.exec(text)?.[1] ?? ''
  }
  const { browser } = await enrolWith(console, link)
  assert((await read(browser, '/account')).includes('Shop'))
  assert(
    (await store.events()).some(({ type }) => type === 'member.joined'),
    'the store is told that somebody joined',
  )
})

test('a taken work redirects no money, and makes no wallet, checkout, key, member or session', async () => {
  const { store, wallet, paidTo } = await openVictim()
  const { id } = await store.create()
  await assertRefused(work, [
    'insert into wallets default values',
    'update wallets set registration = default',
    'insert into wallet_changes default values',
    'insert into checkouts default values',
    `update checkouts set options = '[]' where id = '${id}'`,
    'insert into decisions default values',
    'insert into api_keys default values',
    'select secret_hash from api_keys',
    'insert into sessions default values',
    'insert into invitations default values',
    'select name from members',
    'update webhook_endpoints set url = url',
    'update events set data = data',
    'delete from events',
  ])
  assert.deepEqual([(await readTerms(id)).payTo, await paidTo()], [wallet, wallet])
})
