/** What one store's own requests write into the log for good has a limit per hour, in the database. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiKeySecret, ProblemDetails } from '@farthing/sdk'
import type { LightMyRequestResponse } from 'fastify'
import { privateKeyToAccount } from 'viem/accounts'
import { appendEvent, bytesPerHour, newEvent, unprovenBytesPerHour } from '../../src/events/append.ts'
import type { MemberId } from '../../src/ids.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from '../http/console/support/console.ts'
import { openNeighbour } from '../support/app.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { operator } from '../support/operator.ts'
import { openStore, type StoreClient, send } from '../support/store.ts'

// As if there were no limit of changes per hour, which each process counts for itself.
const console = await openConsole({ settings: { UNPROVEN_CHECKOUTS_PER_HOUR: '100000' } })
const { farthing } = console
const { ctx } = farthing
const { db } = ctx

async function asStranger(shop: StoreClient): Promise<void> {
  await db.query('update stores set signed_up = true where id = $1', [shop.id])
}

async function bytesWritten({ id }: StoreClient): Promise<number> {
  const [row] = await db.query<{ bytes: string }>(
    'select coalesce(sum(octet_length(data::text)), 0) as bytes from events where store_id = $1',
    [id],
  )
  return Number.parseInt(row?.bytes ?? '0', 10)
}

/** As if the store's requests had written so much this hour. */
async function useUp({ id }: StoreClient, bytes: number): Promise<void> {
  await db.query(
    `insert into event_bytes (store_id, slot, hour, bytes) values ($1, 0, date_trunc('hour', clock()), $2)
     on conflict (store_id, slot) do update set hour = excluded.hour, bytes = excluded.bytes`,
    [id, bytes],
  )
}

const passAnHour = () => db.query("update event_bytes set hour = hour - interval '1 hour'")

function assertRefused(answer: LightMyRequestResponse): ProblemDetails {
  const problem = answer.json<ProblemDetails>()
  assert.deepEqual([answer.statusCode, problem.code], [429, 'rate_limited'], answer.body)
  return problem
}

/** As large as an event can be made by this request. */
function change(shop: StoreClient, i: number, app = farthing.app) {
  const body = {
    name: `${i} ${'n'.repeat(80)}`,
    supportUrl: `https://shop.example/${i}/${'u'.repeat(400)}`,
    logoUrl: `data:image/png;base64,${Buffer.alloc(8_000, i).toString('base64')}`,
  }
  return send(app, 'PATCH', `/api/v1/stores/${shop.id}`, body, { 'x-api-key': shop.key })
}

test('a store that has proven nothing writes a quarter of a megabyte per hour, by however many requests and processes at once, and others write on', async () => {
  const [shop, other] = [await openStore(farthing), await openStore(farthing)]
  await asStranger(shop)
  const apps = [farthing.app, await openNeighbour(farthing)]
  const before = await bytesWritten(shop)
  const answers = []
  for (let round = 0; round < 12; round++)
    answers.push(
      ...(await Promise.all(
        Array.from({ length: 40 }, (_, i) => change(shop, round * 40 + i, apps[i % 2] ?? farthing.app)),
      )),
    )
  const refused = answers.filter(({ statusCode }) => statusCode !== 200)
  assert(refused.length > 0 && refused.length < answers.length, `${refused.length} of ${answers.length}`)
  for (const answer of refused) {
    const { detail } = assertRefused(answer)
    assert.match(detail, /next hour.*proven a wallet/s)
    const seconds = Number.parseInt(String(answer.headers['retry-after']), 10)
    assert(seconds > 0 && seconds <= 3_600, String(seconds))
  }
  const written = (await bytesWritten(shop)) - before
  // What transactions that are under way at the same time write is not seen by each other: two in each process.
  assert(written > 0.9 * unprovenBytesPerHour && written <= unprovenBytesPerHour + 4 * 2_000, String(written))
  const [{ rows } = { rows: 0 }] = await db.query<{ rows: number }>(
    'select count(*)::integer as rows from event_bytes where store_id = $1',
    [shop.id],
  )
  assert(rows <= 4, `${rows} rows to add up`)
  assert.equal((await change(other, 1)).statusCode, 200)
  await passAnHour()
  assert.equal((await change(shop, 1_000)).statusCode, 200)
})

test('beyond its share a store changes nothing by any key or route, and is paid, cancels, revokes and proves its wallet', async () => {
  const holder = newPayer()
  const shop = await openStore(farthing, { evmWallet: holder.address })
  const spare = (await shop.call('POST', '/api/v1/keys', {})).json<ApiKeySecret>()
  const { id } = await shop.create()
  await asStranger(shop)
  await useUp(shop, unprovenBytesPerHour)
  const hook = { url: 'https://hooks.shop.example/a' }
  for (const [method, path, body] of [
    ['PATCH', `/api/v1/stores/${shop.id}`, { name: 'Other' }],
    ['POST', '/api/v1/keys', {}],
    ['POST', '/api/v1/webhook-endpoints', hook],
  ] as const) {
    const answer = await shop.call(method, path, body)
    assertRefused(answer)
    const other = await send(farthing.app, method, path, body, { 'x-api-key': spare.key })
    assertRefused(other)
  }
  assert.equal((await shop.call('GET', '/api/v1/store')).json<{ name: string }>().name, 'Shop')
  // A payer asks for the terms and the checkout ends as ever.
  assert.equal((await send(farthing.app, 'POST', `/api/v1/checkouts/${id}`)).statusCode, 402)
  assert.equal((await shop.call('POST', `/api/v1/checkouts/${id}/cancel`)).statusCode, 200)
  assert.equal((await shop.call('DELETE', `/api/v1/keys/${spare.id}`)).statusCode, 200)
  const [wallet] = await db.query<{ id: string }>('select id from wallets where store_id = $1', [shop.id])
  const at = `/api/v1/stores/${shop.id}/wallets/${wallet?.id}`
  const { message } = (await shop.call('POST', `${at}/challenge`)).json<{ message: string }>()
  const signature = await privateKeyToAccount(holder.key).signMessage({ message })
  const proven = await shop.call('POST', `${at}/prove`, { signature })
  assert.equal(proven.statusCode, 200, proven.body)
  // Now it has the share of every other store.
  assert.equal((await change(shop, 1)).statusCode, 200)
  await useUp(shop, bytesPerHour)
  assertRefused(await change(shop, 2))
})

test('the share is the same in the console, where members are still removed', async () => {
  const { store, token } = await openInvitedStore(console)
  const owner = await enrolWith(console, token)
  await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'viewer' }))
  const [max] = await db.query<{ id: string }>(
    "select m.id from members m join memberships s on s.member_id = m.id where s.store_id = $1 and m.name = 'Max'",
    [store.id],
  )
  await useUp(store, bytesPerHour)
  const values = { name: 'Eva', role: 'viewer', email: '' }
  const invite = await owner.browser.confirm(owner.authenticator, 'member.invite', {
    storeId: store.id,
    ...values,
  })
  const refused = await owner.browser.post(`/stores/${store.id}/members`, { ...values, touch: invite })
  assert.equal(refused.statusCode, 429, refused.body)
  const touch = await owner.browser.confirm(owner.authenticator, 'member.remove', {
    storeId: store.id,
    memberId: max?.id,
  })
  await owner.browser.done(`/stores/${store.id}/members/remove`, { memberId: max?.id, touch })
})

test('what an operator, a chain or time causes is written whatever the store has used up', async () => {
  const shop = await openStore(farthing)
  await useUp(shop, bytesPerHour)
  const data = { store: (await shop.call('GET', '/api/v1/store')).json() }
  const append = (actor: Parameters<typeof newEvent>[2]) =>
    appendEvent(
      db,
      newEvent(ctx, shop.store.id, actor, { type: 'store.updated', data: data as never }, new Date()),
    )
  await append(operator)
  await append(null)
  await assert.rejects(append({ type: 'key', id: 'key', name: null }), /events in its log/)
  await assert.rejects(append({ type: 'member', id: 'mem_x' as MemberId, name: null }), /events in its log/)
})

test('two transactions of a store that write at the same time wait neither for each other nor for each other’s rows', async () => {
  const shop = await openStore(farthing)
  const data = { store: (await shop.call('GET', '/api/v1/store')).json() }
  const append = (tx: Parameters<typeof appendEvent>[0]) =>
    appendEvent(
      tx,
      newEvent(
        ctx,
        shop.store.id,
        { type: 'key', id: 'k', name: null },
        { type: 'store.updated', data: data as never },
        new Date(),
      ),
    )
  await db.transaction(async (first) => {
    await append(first)
    await db.transaction(async (second) => {
      await append(second)
      await append(second)
    })
    await append(first)
  })
  const rows = await db.query('select slot from event_bytes where store_id = $1', [shop.id])
  assert.equal(rows.length, 2)
})
