import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Link, Page } from '@farthing/sdk'
import { newInvoice, newLink } from '../http/support/new-link.ts'
import { openTestApp } from '../support/app.ts'
import { openAs } from '../support/database.ts'
import { assertInvalid, assertProblem, openStore } from '../support/store.ts'

const farthing = await openTestApp({ FIXED_RATES: 'EUR=0.8' })
const { ctx } = farthing
const shop = await openStore(farthing)
const path = '/api/v1/links'
const dayMs = 86_400_000
const inDays = (days: number) => new Date(Date.now() + days * dayMs).toISOString()

async function create(body: object, headers: Readonly<Record<string, string>> = {}): Promise<Link> {
  const answer = await shop.call('POST', path, body, headers)
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json<Link>()
}

test('a link is created with what was sent, and read and listed as it was answered', async () => {
  const until = inDays(30)
  const metadata = { row: '7', '': '' }
  delete (metadata as Record<string, string>)['']
  const answer = await shop.call('POST', path, newLink({ priceCurrency: 'eur', until, metadata }))
  const link = answer.json<Link>()
  assert.deepEqual(link, {
    id: link.id,
    url: `https://pay.farthing.example/c/l/${link.id}`,
    kind: 'once',
    status: 'ACTIVE',
    title: 'Two tickets',
    priceAmount: '25.00',
    priceCurrency: 'EUR',
    until,
    revision: 1,
    checkoutId: null,
    createdAt: link.createdAt,
    metadata: { row: '7' },
  })
  assert.equal(answer.headers.location, `https://farthing.example${path}/${link.id}`)
  assert.deepEqual((await shop.call('GET', `${path}/${link.id}`)).json(), link)
  assert.deepEqual((await shop.call('GET', `${path}?limit=1`)).json<Page<Link>>().data, [link])
  const [event] = (await shop.events()).filter(({ type }) => type === 'link.created')
  assert.deepEqual(event?.data, { link })
  assert.equal(event?.actor?.type, 'key')
})

test('a buyer may choose between two amounts, and a link may be for many', async () => {
  const chosen = newLink({ priceAmount: undefined, minAmount: '1', maxAmount: '50.5', kind: 'many' })
  const { priceAmount, minAmount, maxAmount, kind } = await create(chosen)
  assert.deepEqual([priceAmount, minAmount, maxAmount, kind], [null, '1', '50.5', 'many'])
})

test('what a link cannot be is refused where it stands', async () => {
  const refused = async (change: object, ...pointers: string[]) =>
    assertInvalid(await shop.call('POST', path, newLink(change)), ...pointers)
  await refused({ title: '' }, '/title')
  await refused({ title: 'a\u202eb', description: 'x'.repeat(1_001) }, '/title', '/description')
  await refused({ priceAmount: '0' }, '/priceAmount')
  await refused({ priceAmount: undefined }, '/priceAmount')
  await refused({ minAmount: '1', maxAmount: '2' }, '/minAmount', '/maxAmount')
  await refused({ priceAmount: undefined, minAmount: '2', maxAmount: '2.00' }, '/maxAmount')
  await refused({ priceAmount: undefined, minAmount: '10', maxAmount: '9' }, '/maxAmount')
  await refused({ priceAmount: undefined, minAmount: '1e3', maxAmount: '-1' }, '/minAmount', '/maxAmount')
  await refused({ priceCurrency: 'XYZ' }, '/priceCurrency')
  await refused({ until: inDays(401) }, '/until')
  await refused({ until: new Date(Date.now() - 1_000).toISOString() }, '/until')
  await refused({ until: 'tomorrow' }, '/until')
  await refused({ metadata: { key: '\u0000' } }, '/metadata/key')
  await refused({ invoice: (newInvoice('1') as { invoice: object }).invoice }, '/priceAmount')
  assertInvalid(await shop.call('POST', path, { ...newInvoice('1'), kind: 'many' }), '/kind')
  await create(newLink({ until: inDays(399.9) }))
})

test('an invoice asks for its gross total, and its number belongs to one link of the store', async () => {
  const link = await create(newInvoice('2026-1'))
  assert.equal(link.priceAmount, '64.74')
  assert.deepEqual(link.invoice?.taxes, [
    { taxRate: '10', net: '14.85', tax: '1.49', gross: '16.34' },
    { taxRate: '21', net: '40.00', tax: '8.40', gross: '48.40' },
  ])
  const again = await Promise.all(
    Array.from({ length: 5 }, () => shop.call('POST', path, newInvoice('2026-2'))),
  )
  assert.deepEqual(again.map(({ statusCode }) => statusCode).sort(), [201, 409, 409, 409, 409])
  for (const answer of again)
    if (answer.statusCode !== 201) assertProblem(answer, 409, 'invoice_number_taken')
  const other = await openStore(farthing)
  assert.equal((await other.call('POST', path, newInvoice('2026-1'))).statusCode, 201)
  const found = (await shop.call('GET', `${path}?invoiceNumber=2026-1`)).json<Page<Link>>()
  assert.deepEqual(found.data, [link])
})

test('the same Idempotency-Key creates one link, also at the same moment, and no other body', async () => {
  const headers = { 'idempotency-key': 'one' }
  const body = newInvoice('2026-3')
  const answers = await Promise.all(Array.from({ length: 10 }, () => shop.call('POST', path, body, headers)))
  assert.deepEqual(new Set(answers.map(({ statusCode }) => statusCode)), new Set([201]))
  assert.equal(new Set(answers.map((answer) => answer.json<Link>().id)).size, 1)
  assert.equal(answers.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length, 9)
  assertProblem(await shop.call('POST', path, newLink(), headers), 422, 'idempotency_key_reused')
  const events = (await shop.events()).filter(({ type }) => type === 'link.created')
  const ids = events.map(({ data }) => 'link' in data && data.link.id)
  assert.equal(ids.filter((id) => id === answers[0]?.json<Link>().id).length, 1)
})

test('links take the scopes of checkouts, a payable wallet, and a store that may create checkouts', async () => {
  const read = (await shop.call('POST', '/api/v1/keys', { preset: 'read' })).json().key
  assertProblem(await shop.call('POST', path, newLink(), { 'x-api-key': read }), 403, 'scope_required')
  assert.equal((await shop.call('GET', path, undefined, { 'x-api-key': read })).statusCode, 200)
  const walletless = await openStore(farthing, { evmWallet: null })
  assertProblem(await walletless.call('POST', path, newLink()), 409, 'wallet_required')
  const suspended = await openStore(farthing)
  await ctx.db.query('update stores set suspended_at = clock(), suspended_reason = $2 where id = $1', [
    suspended.id,
    'test',
  ])
  assertProblem(await suspended.call('POST', path, newLink()), 403, 'store_inactive')
})

test('a link’s status follows its time by the database’s clock, and lists find it by that', async () => {
  const other = await openStore(farthing)
  const made = await Promise.all([1, 2, 3].map(() => other.call('POST', path, newLink())))
  const [first, second, third] = made.map((answer) => answer.json<Link>().id)
  await ctx.db.query("update links set until = clock() - interval '1 ms' where id = $1", [first])
  await other.call('PATCH', `${path}/${second}`, { status: 'CLOSED' })
  const list = async (status: string) =>
    (await other.call('GET', `${path}?status=${status}`)).json<Page<Link>>().data.map(({ id }) => id)
  assert.deepEqual(
    [await list('ENDED'), await list('CLOSED'), await list('ACTIVE')],
    [[first], [second], [third]],
  )
  const pages: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Page<Link> = (
      await other.call('GET', `${path}?limit=2${cursor && `&cursor=${cursor}`}`)
    ).json()
    pages.push(...page.data.map(({ id }) => id))
    cursor = page.nextCursor
  }
  assert.deepEqual(pages, [first, second, third].sort().reverse())
  // What has ended can be made payable again.
  assert.equal(
    (await other.call('PATCH', `${path}/${first}`, { until: inDays(1) })).json<Link>().status,
    'ACTIVE',
  )
})

test('serve cannot say that a link is paid, and neither the console nor work reads the key of its quotes', async () => {
  const { id } = await create(newLink())
  const refused = { code: '42501' }
  const serve = openAs('serve', farthing.databaseUrl)
  await assert.rejects(serve.query('update links set paid_at = clock() where id = $1', [id]), refused)
  for (const role of ['work', 'console'] as const)
    await assert.rejects(openAs(role, farthing.databaseUrl).query('select quote_key from links'), refused)
})
