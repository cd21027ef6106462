/**
 * What a thief gets with a store's key, preset by preset: what the security model says is lost is taken here, and what it
 * says is safe is tried. The store is live and has an owner.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiKeySecret, Checkout, CreateApiKey, WebhookEndpointSecret } from '@farthing/sdk'
import { openConsole } from '../http/console/support/console.ts'
import { type Guarded, openGuardedStore, readPayTo } from '../http/console/support/wallets.ts'
import { fillPath, type Operation, operations } from '../http/support/document.ts'
import { completeByHand, creditByHand } from '../support/by-hand.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { startDeciding } from '../support/decide.ts'
import { dumpRows } from '../support/dump.ts'
import { type Answer, order, type StoreClient, send, solanaWallets } from '../support/store.ts'

const console = await openConsole()
const { farthing } = console
startDeciding(farthing)
const { db } = farthing.ctx
const thiefWallet = newPayer().address
const keyed = operations.filter(({ isKeyed }) => isKeyed)

type Robbed = Guarded & {
  readonly wallet: string
  readonly paidId: string
  readonly openId: string
  /** Money that belongs to no checkout yet. */
  readonly strayId: string
  readonly endpoint: WebhookEndpointSecret
  readonly stolen: ApiKeySecret
  thief(method: Operation['method'], path: string, body?: unknown): Promise<Answer>
  /** Calls an operation as the thief, with what the store really has. */
  attempt(operation: Operation): Promise<Answer>
}

/** A store with a paid checkout, an open one, a payment to decide about and an endpoint, and a key of it that was stolen. */
async function openRobbed(input: CreateApiKey): Promise<Robbed> {
  const wallet = newPayer().address
  const guarded = await openGuardedStore(console, { evmWallet: wallet })
  const { store } = guarded
  const [paidId, openId] = [(await store.create()).id, (await store.create()).id]
  await completeByHand(farthing, paidId)
  const strayId = await creditByHand(farthing, openId)
  const made = await store.call('POST', '/api/v1/webhook-endpoints', { url: 'https://hooks.example/' })
  const stolen = (await store.call('POST', '/api/v1/keys', input)).json<ApiKeySecret>()
  const thief: Robbed['thief'] = (method, path, body) =>
    send(farthing.app, method, path, body, { 'x-api-key': stolen.key })
  const [owned] = await guarded.list()
  const endpoint = made.json<WebhookEndpointSecret>()
  const ids: Readonly<Record<string, string>> = {
    storeId: store.id,
    checkoutId: openId,
    paymentId: strayId,
    endpointId: endpoint.id,
    walletId: owned?.id ?? '',
    keyId: store.key.split('_')[2] ?? '',
    deliveryId: `dlv_00${'0'.repeat(26)}`,
  }
  const attempt = (operation: Operation) =>
    thief(
      operation.method,
      fillPath(operation.path, ids),
      operation.takesBody ? bodies[operation.id] : undefined,
    )
  return { ...guarded, wallet, paidId, openId, strayId, endpoint, stolen, thief, attempt }
}

const bodies: Readonly<Record<string, unknown>> = {
  createCheckout: order,
  updateStore: { name: 'Taken over' },
  updateWallet: { sharedElsewhere: true },
  acceptPayment: {},
  createWebhookEndpoint: { url: 'https://thief.example/' },
  updateWebhookEndpoint: { status: 'disabled' },
  createKey: {},
  rotateKey: {},
  rollWebhookSecret: {},
  redeliverSince: { after: '1-0', include: 'all' },
  proveWallet: { signature: '0x00' },
  registerEvmWallet: { walletAddress: thiefWallet, custodialType: 'CUSTODIAL' },
  registerSolanaWallet: { walletAddress: solanaWallets[0], custodialType: 'CUSTODIAL' },
}

async function done(answer: Promise<Answer>): Promise<Answer> {
  const { statusCode, body } = await answer
  assert(statusCode < 300, `${statusCode} ${body}`)
  return await answer
}

/** What no key may touch: what payers signed, what the settlers sent, and where checkouts that exist are paid. */
async function readMoney({ id }: StoreClient): Promise<unknown> {
  return await Promise.all([
    db.query('select * from authorizations where store_id = $1', [id]),
    db.query(
      'select payment_id, amount, pay_to, transaction_hash from credits where store_id = $1 order by 1',
      [id],
    ),
    db.query('select id, options::text from checkouts where store_id = $1 and status = $2', [
      id,
      'COMPLETED',
    ]),
  ])
}

test('with a stolen read key everything of the store is read and nothing is changed', async () => {
  const robbed = await openRobbed({ preset: 'read' })
  const before = await dumpRows(db)
  for (const operation of keyed.filter(({ method }) => method !== 'GET'))
    assert.equal((await robbed.attempt(operation)).statusCode, 403, operation.id)
  assert.equal(await dumpRows(db), before)
  for (const [path, seen] of [
    [`/api/v1/checkouts/${robbed.paidId}`, order.orderId],
    ['/api/v1/payments', robbed.strayId],
    ['/api/v1/webhook-endpoints', robbed.endpoint.url],
    ['/api/v1/keys', robbed.stolen.id],
    [`/api/v1/stores/${robbed.store.id}/wallets`, robbed.wallet],
  ] as const) {
    const { body } = await done(robbed.thief('GET', path))
    assert(body.includes(seen), path)
    // Not even whoever reads everything can sign as the store or act with another of its keys.
    assert(!body.includes(robbed.endpoint.secret))
    assert(!body.includes(robbed.store.key.split('_')[3] ?? assert.fail()))
  }
})

test('with a stolen create key checkouts are made, read and canceled, at any price for any order; nothing else', async () => {
  const robbed = await openRobbed({ preset: 'create' })
  for (const operation of keyed.filter(({ scope }) => scope !== null && !scope.startsWith('checkouts:')))
    assert.equal((await robbed.attempt(operation)).statusCode, 403, operation.id)
  const money = await readMoney(robbed.store)
  // A cent for somebody's order: a store that looks only at the order's id would ship for it.
  const cheap = (
    await done(robbed.thief('POST', '/api/v1/checkouts', { ...order, priceAmount: '0.01' }))
  ).json<Checkout>()
  assert.deepEqual([cheap.orderId, cheap.priceAmount], [order.orderId, '0.01'])
  assert.equal(await readPayTo(console, cheap.id), robbed.wallet)
  assert.equal((await done(robbed.thief('GET', '/api/v1/checkouts'))).json().data.length, 3)
  const canceled = await done(robbed.thief('POST', `/api/v1/checkouts/${robbed.openId}/cancel`))
  assert.equal(canceled.json().status, 'CANCELED')
  assert.equal((await robbed.thief('POST', `/api/v1/checkouts/${robbed.paidId}/cancel`)).statusCode, 409)
  assert.deepEqual(await readMoney(robbed.store), money)
  const told = (await robbed.store.events()).filter(({ actor }) => actor?.id === robbed.stolen.id)
  assert.deepEqual(
    told.map(({ type }) => type),
    ['checkout.created', 'checkout.canceled'],
  )
})

test('with a stolen full key the store is renamed, locked out and spied on, and no new checkout is paid elsewhere', async () => {
  const robbed = await openRobbed({ preset: 'full' })
  const { store, thief } = robbed
  const money = await readMoney(store)
  const wallets = `/api/v1/stores/${store.id}/wallets`
  const body = { walletAddress: thiefWallet, custodialType: 'NON_CUSTODIAL' }
  assert.equal((await done(thief('POST', `${wallets}/evm`, body))).json().confirmationRequired, true)
  const current = (await robbed.list()).find((each) => each.current) ?? assert.fail()
  await done(thief('POST', `${wallets}/${current.id}/retire`))
  assert.equal(await robbed.paidTo(), robbed.wallet)
  assert.equal((await thief('PATCH', `/api/v1/stores/${store.id}`, { walletChanges: 'key' })).statusCode, 422)

  // What the page shows, what counts as paid, who hears of it: all of this is lost.
  const page = { name: 'Taken over', supportEmail: 'thief@evil.example' }
  assert.equal((await done(thief('PATCH', `/api/v1/stores/${store.id}`, page))).json().name, 'Taken over')
  await done(thief('POST', '/api/v1/webhook-endpoints', { url: 'https://thief.example/' }))
  await done(thief('DELETE', `/api/v1/webhook-endpoints/${robbed.endpoint.id}`))
  const accepted = await done(
    thief('POST', `/api/v1/payments/${robbed.strayId}/accept`, { checkoutId: robbed.openId }),
  )
  assert.equal(accepted.json().disposition, 'exact')
  assert.equal((await done(thief('GET', `/api/v1/checkouts/${robbed.openId}`))).json().status, 'COMPLETED')
  const another = (await done(thief('POST', '/api/v1/keys', {}))).json<ApiKeySecret>()
  await done(thief('DELETE', `/api/v1/keys/${store.key.split('_')[2]}`))
  assert.equal((await store.call('POST', '/api/v1/checkouts', order)).statusCode, 401)

  // Revoking the stolen key is not enough: what it made goes on.
  await done(
    send(farthing.app, 'DELETE', `/api/v1/keys/${robbed.stolen.id}`, undefined, { 'x-api-key': another.key }),
  )
  const after = await done(
    send(farthing.app, 'POST', '/api/v1/checkouts', order, { 'x-api-key': another.key }),
  )
  assert.equal(await readPayTo(console, after.json().id), robbed.wallet)
  const [authorizations, credits, paid] = (await readMoney(store)) as unknown[][]
  assert.deepEqual([authorizations, credits], (money as unknown[][]).slice(0, 2))
  assert.equal(
    paid?.length,
    2,
    'the one that was paid, as it was, and the one that the thief accepted a payment for',
  )
  assert.deepEqual(
    paid?.filter((row) => (row as { id: string }).id === robbed.paidId),
    (money as unknown[][])[2],
  )
  const told = await db.query<{ type: string }>(
    "select type from events where store_id = $1 and actor ->> 'id' = $2 order by position",
    [store.id, robbed.stolen.id],
  )
  assert.deepEqual(
    told.map(({ type }) => type),
    [
      ...[
        'wallet.registered',
        'wallet.refused',
        'wallet.updated',
        'store.updated',
        'webhook_endpoint.created',
      ],
      ...['webhook_endpoint.deleted', 'payment.accepted', 'key.created', 'key.revoked'],
    ],
  )
})
