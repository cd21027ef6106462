import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Link, StoreCheckout } from '@farthing/sdk'
import { cancelPaid } from '../../../src/checkouts/links/cancel-open.ts'
import { newInvoice, newLink } from '../../http/support/new-link.ts'
import { openTestApp } from '../../support/app.ts'
import { setStatus } from '../../support/by-hand.ts'
import { openAs } from '../../support/database.ts'
import { assertInvalid, assertProblem, openStore } from '../../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const shop = await openStore(farthing)

async function makeLink(body = newLink()): Promise<string> {
  return (await shop.call('POST', '/api/v1/links', body)).json<Link>().id
}

/** Creates a checkout of a link by hand. */
async function makeCheckout(linkId: string): Promise<string> {
  const { id } = await shop.create()
  await ctx.db.query('update checkouts set link_id = $2 where id = $1', [id, linkId])
  return id
}

async function update(linkId: string, body: object): Promise<Link> {
  const answer = await shop.call('PATCH', `/api/v1/links/${linkId}`, body)
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.json<Link>()
}

async function statusOf(checkoutId: string): Promise<string> {
  return (await shop.call('GET', `/api/v1/checkouts/${checkoutId}`)).json<StoreCheckout>().status
}

async function typesAbout(linkId: string): Promise<string[]> {
  const events = await shop.events()
  return events.flatMap(({ type, data }) => ('link' in data && data.link.id === linkId ? type : []))
}

test('what buyers see raises the revision and cancels what nobody has begun to pay; the rest does neither', async () => {
  const link = await makeLink()
  const [open, processing] = [await makeCheckout(link), await makeCheckout(link)]
  await setStatus(farthing, processing, 'PROCESSING')
  const until = new Date(Date.now() + 86_400_000).toISOString()
  assert.equal((await update(link, { until, metadata: { a: '1' } })).revision, 1)
  assert.equal(await statusOf(open), 'OPEN')
  assert.equal((await update(link, { priceAmount: '30.00' })).revision, 2)
  assert.deepEqual([await statusOf(open), await statusOf(processing)], ['CANCELED', 'PROCESSING'])
  const changed = await update(link, { minAmount: '1', maxAmount: '2', description: 'Row 7', title: 'Seats' })
  assert.deepEqual(
    [changed.revision, changed.priceAmount, changed.minAmount, changed.maxAmount, changed.description],
    [3, null, '1', '2', 'Row 7'],
  )
  assert.equal((await update(link, { description: null, metadata: {} })).description, undefined)
  const same = await update(link, { title: 'Seats' })
  assert.deepEqual([same.revision, same.metadata], [4, undefined])
  assert.deepEqual(await typesAbout(link), [
    'link.created',
    ...Array.from({ length: 4 }, () => 'link.updated'),
  ])
})

test('closing a link is final, told once, and cancels what nobody has begun to pay, with who asked for it', async () => {
  const link = await makeLink()
  const [open, other] = [await makeCheckout(link), (await shop.create()).id]
  assert.equal((await update(link, { status: 'CLOSED' })).status, 'CLOSED')
  assert.equal((await update(link, { status: 'CLOSED' })).status, 'CLOSED')
  assert.deepEqual([await statusOf(open), await statusOf(other)], ['CANCELED', 'OPEN'])
  assert.deepEqual(await typesAbout(link), ['link.created', 'link.closed'])
  const [canceled] = (await shop.events()).filter(
    ({ type, checkoutId }) => type === 'checkout.canceled' && checkoutId === open,
  )
  assert.equal(canceled?.actor?.type, 'key')
  assert.equal('checkout' in canceled.data && canceled.data.checkout?.linkId, link)
})

test('an invoice never changes, but can be payable for longer, get metadata, and be closed', async () => {
  const link = await makeLink(newInvoice('1'))
  const until = new Date(Date.now() + 86_400_000).toISOString()
  for (const [field, value] of Object.entries({ title: 'x', description: 'x', priceAmount: '1' }))
    assertInvalid(await shop.call('PATCH', `/api/v1/links/${link}`, { [field]: value }), `/${field}`)
  const changed = await update(link, { until, metadata: { sent: 'yes' } })
  assert.deepEqual([changed.revision, changed.until, changed.metadata], [1, until, { sent: 'yes' }])
  assert.equal((await update(link, { status: 'CLOSED' })).status, 'CLOSED')
})

test('mistakes and unknown links are refused, and change nothing', async () => {
  const link = await makeLink()
  const path = `/api/v1/links/${link}`
  assertInvalid(await shop.call('PATCH', path, { title: '', priceAmount: 'x' }), '/title', '/priceAmount')
  assertInvalid(await shop.call('PATCH', path, { maxAmount: '5' }), '/priceAmount')
  assertInvalid(await shop.call('PATCH', path, { until: '2020-01-01T00:00:00Z' }), '/until')
  assertInvalid(await shop.call('PATCH', path, { kind: 'many' }), '/kind')
  assertProblem(await shop.call('PATCH', '/api/v1/links/x', { title: 'x' }), 404, 'not_found')
  const other = await openStore(farthing)
  assertProblem(await other.call('PATCH', path, { title: 'x' }), 404, 'not_found')
  assert.deepEqual(await typesAbout(link), ['link.created'])
})

test('a change never waits for a payment: a checkout that is held is left to it', async () => {
  const link = await makeLink()
  const [held, open] = [await makeCheckout(link), await makeCheckout(link)]
  await ctx.db.transaction(async (tx) => {
    await tx.query('select 1 as one from checkouts where id = $1 for no key update', [held])
    await update(link, { status: 'CLOSED' })
  })
  assert.deepEqual([await statusOf(held), await statusOf(open)], ['OPEN', 'CANCELED'])
})

test('what is still open of a paid link is canceled by work, and nothing else', async () => {
  const work = { ...ctx, db: openAs('work', farthing.databaseUrl) }
  const [paid, unpaid] = [await makeLink(), await makeLink()]
  const [left, other] = [await makeCheckout(paid), await makeCheckout(unpaid)]
  await ctx.db.query('update links set paid_at = clock() where id = $1', [paid])
  await cancelPaid(work, new Date())
  assert.deepEqual([await statusOf(left), await statusOf(other)], ['CANCELED', 'OPEN'])
})
