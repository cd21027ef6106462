/** How often nodes are asked about a reference: often while somebody looks at its checkout, and rarely otherwise. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { test } from 'node:test'
import { openSvmChain } from '../../../src/chains/svm/chain.ts'
import { toBase58 } from '../../../src/chains/svm/message.ts'
import { insertReference, openReferences } from '../../../src/payments/svm/references.ts'
import { openTestApp } from '../../support/app.ts'
import { openSvm } from '../../support/chain/svm.ts'
import { openFaultyNode } from '../../support/faulty-node.ts'
import { svmPayTo } from '../../support/shop.ts'
import { openStore } from '../../support/store.ts'
import { until } from '../../support/until.ts'

const svm = await openSvm({ network: 'SOLANA_DEVNET' })
const node = await openFaultyNode(svm.url)
const farthing = await openTestApp({ NETWORKS: 'BASE_SEPOLIA' })
const { ctx, request: ask } = farthing
const { db } = ctx
const address = await farthing.app.listen({ port: 0, host: '127.0.0.1' })
const store = await openStore(farthing, { mode: 'test' })
const { caip2: network } = svm.network
await db.query(
  'insert into followers (network, head_number, head_time, head_seen_at) values ($1, 1, clock(), clock())',
  [network],
)
const chain = openSvmChain(svm.network, [{ provider: 'one', url: node.url }], ctx.now)
const lookForReferences = openReferences(
  ctx,
  chain,
  async () => {},
  () => {},
)

async function reserve(): Promise<string> {
  const { id: checkoutId } = await store.create()
  const wanted = { checkoutId, network, asset: svm.mint, payTo: svmPayTo, price: 1_000_000n }
  assert(await insertReference(db, wanted, toBase58(randomBytes(32)), 30))
  return checkoutId
}

/** As if it had been reserved and asked about so long ago. */
async function set(checkoutId: string, secondsOld: number, askedSecondsAgo: number): Promise<void> {
  await db.query(
    `update reserved_amounts set reserved_at = clock() - make_interval(secs => $2),
       looked_at = clock() - make_interval(secs => $3) where checkout_id = $1`,
    [checkoutId, secondsOld, askedSecondsAgo],
  )
}

/** Whether nodes are asked about it now. */
async function isAsked(): Promise<boolean> {
  const count = () => node.asked.get('getSignaturesForAddress') ?? 0
  const before = count()
  await lookForReferences()
  assert(count() - before <= 1)
  return count() > before
}

const forget = (checkoutId: string) =>
  db.query('update reserved_amounts set freed_at = clock() where checkout_id = $1', [checkoutId])

test('nodes are asked about a new reference at once, and every two seconds at first', async () => {
  const id = await reserve()
  assert.equal(await isAsked(), true)
  assert.equal(await isAsked(), false)
  await set(id, 10, 2)
  assert.equal(await isAsked(), true)
  await forget(id)
})

test('however old, a reference of an open checkout is asked about once a minute, and no more often', async () => {
  const id = await reserve()
  for (const days of [1, 6]) {
    await set(id, days * 86_400, 50)
    assert.equal(await isAsked(), false)
    await set(id, days * 86_400, 60)
    assert.equal(await isAsked(), true)
  }
  await forget(id)
})

test('after its checkout ended, a reference is asked about ever more rarely', async () => {
  const id = await reserve()
  await db.query(
    "update reserved_amounts set cools_until = clock() + interval '1 day' where checkout_id = $1",
    [id],
  )
  await set(id, 36_000, 3_500)
  assert.equal(await isAsked(), false)
  await set(id, 36_000, 3_600)
  assert.equal(await isAsked(), true)
  await forget(id)
})

test('somebody who comes back to a checkout has its reference asked about at once, though not every time', async () => {
  const id = await reserve()
  const look = async () => assert.equal((await ask({ url: `/c/${id}/status` })).statusCode, 200)
  await set(id, 3_600, 11)
  assert.equal(await isAsked(), false)
  await look()
  await until('it is asked about', isAsked)
  await set(id, 3_600, 1)
  await look()
  assert.equal(await isAsked(), false)
  await forget(id)
})

/** Whether nodes are asked about it once some seconds have passed. */
async function isAskedLater(): Promise<boolean> {
  const { clock } = farthing
  clock.now = new Date((clock.now ?? new Date()).getTime() + 3_000)
  return await isAsked()
}

test('while a page is open, its reference is asked about every few seconds, for a quarter of an hour', async () => {
  const id = await reserve()
  await set(id, 3_600, 11)
  const close = await openPage(id)
  await until('it is asked about', isAskedLater)
  await set(id, 3_600, 11)
  await until('it is asked about again', isAskedLater)
  farthing.clock.now = new Date(Date.now() + 1_200_000)
  const other = await reserve()
  await set(other, 3_600, 11)
  const closeOther = await openPage(other)
  await set(id, 3_600, 20)
  // One look is for all pages.
  await until('the other is asked about', isAskedLater)
  assert.equal(await isAsked(), false)
  farthing.clock.now = null
  close()
  closeOther()
  for (const one of [id, other]) await forget(one)
})

test('a page that reconnects by itself keeps nothing awake', async () => {
  const [id, other] = [await reserve(), await reserve()]
  for (const one of [id, other]) await set(one, 3_600, 11)
  const close = await openPage(id, { 'last-event-id': '1' })
  const closeOther = await openPage(other)
  await until('the other is asked about', isAskedLater)
  assert.equal(await isAsked(), false)
  farthing.clock.now = null
  close()
  closeOther()
})

/** Opens the page's connection. Returns what closes it. */
async function openPage(id: string, headers: Record<string, string> = {}): Promise<() => void> {
  const asked = request(`${address}/c/${id}/live`, { headers, agent: false })
  await new Promise((resolve, reject) => {
    asked.once('response', (response) => resolve(response.once('error', () => {}).resume()))
    asked.once('error', reject).end()
  })
  asked.on('error', () => {})
  return () => asked.destroy()
}
