import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Link, StoreCheckout } from '@farthing/sdk'
import { decideStanding } from '../../../src/stores/standing.ts'
import { openNeighbour, openTestApp } from '../../support/app.ts'
import { atEnd } from '../../support/at-end.ts'
import { letTimePass, setStatus } from '../../support/by-hand.ts'
import { dumpRows } from '../../support/dump.ts'
import { operator } from '../../support/operator.ts'
import { assertProblem, openStore, registerWallet, wallets } from '../../support/store.ts'
import { newInvoice, newLink } from '../support/new-link.ts'
import { checkoutIn, makeLink, openBuyer } from './support/buyer.ts'

const farthing = await openTestApp({ FIXED_RATES: 'EUR=0.5', UNPROVEN_CHECKOUTS_PER_HOUR: '3' })
const { ctx, clock } = farthing
const shop = await openStore(farthing)
const buyer = openBuyer(farthing.app)
const many = () => makeLink(shop, newLink({ kind: 'many' }))

const read = async (id: string) => (await shop.call('GET', `/api/v1/checkouts/${id}`)).json<StoreCheckout>()
const list = async ({ id }: Link) =>
  (await shop.call('GET', `/api/v1/checkouts?linkId=${id}`)).json<{ data: StoreCheckout[] }>().data
const patch = async ({ id }: Link, body: object) => await shop.call('PATCH', `/api/v1/links/${id}`, body)

/** Going on is refused, the page says so with this text, and no checkout is made. */
async function assertRefused(link: Link, quote: string, says: RegExp, status = 422): Promise<void> {
  const before = (await list(link)).length
  const answer = await buyer.open(link, quote)
  assert.equal(answer.statusCode, status, answer.body)
  assert.match(answer.body, says)
  assert.equal((await list(link)).length, before)
}

const outdated = /open for a while/

test('opening a link writes nothing, whoever opens it and however often', async () => {
  const links = [await makeLink(shop), await many(), await makeLink(shop, newInvoice('1'))]
  const before = await dumpRows(ctx.db)
  for (const link of links) {
    for (const method of ['GET', 'HEAD'] as const)
      for (const accept of ['text/html', '*/*', 'application/json', 'image/*'])
        await farthing.request({ method, url: new URL(link.url).pathname, headers: { accept } })
    await buyer.visit(link)
  }
  assert.equal(await dumpRows(ctx.db), before)
})

test('going on makes the checkout of the quote, once, as the link says', async () => {
  const link = await makeLink(
    shop,
    newLink({ kind: 'many', priceCurrency: 'EUR', metadata: { row: '7' }, title: 'Seats' }),
  )
  const quote = await buyer.quote(link)
  const answers = await Promise.all(Array.from({ length: 5 }, () => buyer.open(link, quote)))
  const [id, ...others] = new Set(answers.map(checkoutIn))
  assert.deepEqual(others, [])
  assert.equal(quote.split('.')[0], id)
  const checkout = await read(id ?? '')
  assert.deepEqual(
    [checkout.linkId, checkout.orderId, checkout.description, checkout.priceAmount, checkout.priceCurrency],
    [link.id, `${link.id}-1`, 'Seats', '25.00', 'EUR'],
  )
  assert.deepEqual([checkout.metadata, checkout.rate?.source], [{ row: '7' }, 'fixed'])
  const created = (await shop.events()).find(
    ({ type, checkoutId }) => type === 'checkout.created' && checkoutId === id,
  )
  assert.equal(created?.actor, null)
  assert(created && 'checkout' in created.data && created.data.checkout?.linkId === link.id)
  assert.equal((await read(await buyer.goOn(link))).orderId, `${link.id}-2`)
})

test('an invoice’s number is the order, and what is paid is its total', async () => {
  const link = await makeLink(shop, newInvoice('2026-17'))
  const { orderId, priceAmount } = await read(await buyer.goOn(link))
  assert.deepEqual([orderId, priceAmount], ['2026-17', '64.74'])
})

test('a hundred browsers that open a once link at the same moment share one checkout', async () => {
  const link = await makeLink(shop)
  const browsers = Array.from({ length: 100 }, (_, i) => openBuyer(farthing.app, `198.51.100.${i}`))
  const ids = await Promise.all(browsers.map((browser) => browser.goOn(link)))
  assert.equal(new Set(ids).size, 1)
  assert.equal((await list(link)).length, 1)
  assert.equal((await shop.call('GET', `/api/v1/links/${link.id}`)).json<Link>().checkoutId, ids[0])
})

test('two processes that open a once link at the same moment share one checkout', async () => {
  const link = await makeLink(shop)
  const other = openBuyer(await openNeighbour(farthing), '192.0.2.2')
  const quotes = await Promise.all([...Array(10)].map((_, i) => (i % 2 ? other : buyer).quote(link)))
  const answers = await Promise.all(quotes.map((quote, i) => (i % 2 ? other : buyer).open(link, quote)))
  assert.equal(new Set(answers.map(checkoutIn)).size, 1)
  assert.equal((await list(link)).length, 1)
})

test('a many link makes a checkout for each quote', async () => {
  const link = await many()
  const ids = await Promise.all([1, 2, 3].map(() => buyer.goOn(link)))
  assert.equal(new Set(ids).size, 3)
  assert.deepEqual(
    new Set((await list(link)).map(({ orderId }) => orderId)),
    new Set([1, 2, 3].map((n) => `${link.id}-${n}`)),
  )
})

test('the checkout of a once link is replaced when it is expired or canceled, and only then', async () => {
  const link = await makeLink(shop)
  const first = await buyer.goOn(link)
  for (const status of ['PROCESSING', 'COMPLETED', 'OPEN']) {
    await setStatus(farthing, first, status)
    assert.equal(await buyer.goOn(link), first, status)
  }
  // Its time is over, but the chain may still show a payment that was in time.
  await letTimePass(farthing, first)
  assert.equal(await buyer.goOn(link), first)
  await setStatus(farthing, first, 'EXPIRED')
  const second = await buyer.goOn(link)
  assert.notEqual(second, first)
  await shop.call('POST', `/api/v1/checkouts/${second}/cancel`)
  assert(![first, second].includes(await buyer.goOn(link)))
})

test('a forged, cut, mixed or foreign quote makes nothing', async () => {
  const [link, other] = [await many(), await many()]
  const quote = await buyer.quote(link)
  const [id = '', body = '', mac = ''] = quote.split('.')
  const said = JSON.parse(Buffer.from(body, 'base64url').toString())
  const forge = (change: object) =>
    [id, Buffer.from(JSON.stringify({ ...said, ...change })).toString('base64url'), mac].join('.')
  const [otherId = ''] = (await buyer.quote(link)).split('.')
  const abroad = await openStore(farthing)
  const foreign = [
    await buyer.quote(other),
    await buyer.quote(await makeLink(abroad, newLink({ kind: 'many' }))),
  ]
  const forged = [
    ...[
      '',
      '.',
      '..',
      id,
      `${id}.${body}`,
      `${quote}.x`,
      `${id}.${body}.`,
      `${id}.${body}.${mac.slice(0, -2)}`,
    ],
    ...['%', 'x'.repeat(600), `${id}.bm8.${mac}`, quote.replace('.', '\0')],
    `${id}.${body}.${randomBytes(32).toString('base64url')}`,
    [otherId, body, mac].join('.'),
    ...[{ priceAmount: '0.01' }, { priceAmount: null }, { until: '2100-01-01T00:00:00Z' }].map(forge),
    forge({ rate: { source: 'fixed', perBase: '1', usdPerBase: '0.01', asOf: new Date() } }),
    ...foreign,
  ]
  for (const text of forged) await assertRefused(link, text, outdated)
  assert.equal(await buyer.goOn(link), (await list(link))[0]?.id)
})

test('a quote is good for five minutes; its checkout is found for longer', async () => {
  const link = await many()
  const [one, two] = [await buyer.quote(link), await buyer.quote(link)]
  const id = checkoutIn(await buyer.open(link, one))
  clock.now = new Date(Date.now() + 301_000)
  await assertRefused(link, two, outdated)
  assert.equal(checkoutIn(await buyer.open(link, one)), id)
  clock.now = null
})

test('a change of title, price or wallet after the quote makes it worthless', async () => {
  const link = await many()
  for (const change of [{ title: 'Other' }, { priceAmount: '30.00' }, { minAmount: '1', maxAmount: '2' }]) {
    const quote = await buyer.quote(link)
    assert.equal((await patch(link, change)).statusCode, 200)
    await assertRefused(link, quote, outdated)
  }
  const store = await openStore(farthing)
  const theirs = await makeLink(store, newLink({ kind: 'many' }))
  const quote = await buyer.quote(theirs)
  await registerWallet(store, wallets[1])
  assert.equal((await buyer.open(theirs, quote)).statusCode, 422)
  assert.equal((await buyer.open(theirs, await buyer.quote(theirs))).statusCode, 303)
})

test('a link that is closed, ended or paid after the quote makes nothing and says so', async () => {
  const closed = await many()
  const quote = await buyer.quote(closed)
  await patch(closed, { status: 'CLOSED' })
  await assertRefused(closed, quote, /This link is closed/, 200)
  const ended = await many()
  const late = await buyer.quote(ended)
  await ctx.db.query("update links set until = clock() - interval '1 second' where id = $1", [ended.id])
  await assertRefused(ended, late, /This link has ended/, 200)
  const paid = await makeLink(shop)
  const second = await buyer.quote(paid)
  await ctx.db.query('update links set paid_at = clock() where id = $1', [paid.id])
  await assertRefused(paid, second, /This has been paid/, 200)
})

test('a store that is suspended after the quote makes nothing, and its link says that it can’t be paid', async () => {
  const seller = await openStore(farthing)
  const link = await makeLink(seller)
  const quote = await buyer.quote(link)
  const decision = { verb: 'suspend', reason: 'Sells what it does not have.' } as const
  await ctx.db.transaction((tx) =>
    decideStanding(ctx, tx, { storeId: seller.store.id, actor: operator, decision, now: ctx.now() }),
  )
  assert.equal((await buyer.open(link, quote)).statusCode, 403)
  const { body, statusCode } = await buyer.visit(link)
  assert.equal(statusCode, 200)
  assert.match(body, /can’t be paid right now/)
  assert.equal((await seller.call('GET', `/api/v1/checkouts?linkId=${link.id}`)).json().data.length, 0)
})

test('while a restored database is compared with the chains, no checkout is made', async () => {
  const link = await many()
  const quote = await buyer.quote(link)
  await ctx.db.query("insert into restores (network, started_at) values ('eip155:8453', clock())")
  assert.equal((await buyer.open(link, quote)).statusCode, 503)
  await ctx.db.query('update restores set finished_at = clock()')
  assert.equal((await buyer.open(link, quote)).statusCode, 303)
})

test('the buyer chooses an amount within the limits, with a point or a comma', async () => {
  const link = await makeLink(
    shop,
    newLink({ kind: 'many', priceAmount: undefined, minAmount: '5', maxAmount: '50' }),
  )
  for (const [typed, amount] of [
    ['5', '5'],
    ['50.00', '50.00'],
    [' 12,50 ', '12.50'],
  ] as const)
    assert.equal((await read(await buyer.goOn(link, { amount: typed }))).priceAmount, amount)
  for (const amount of ['', '4.99', '50.01', '-5', '1e1', 'x', '5.0000001', '0x10', '５', "'"]) {
    const answer = await buyer.open(link, await buyer.quote(link), { amount })
    assert.equal(answer.statusCode, 422, amount)
    assert.match(answer.body, /Enter an amount between/)
  }
  const fixed = await many()
  assert.equal((await read(await buyer.goOn(fixed, { amount: '1' }))).priceAmount, '25.00')
})

test('at most 200 checkouts of a link are open: the oldest that nobody has begun to pay makes room', async () => {
  const link = await many()
  const browsers = Array.from({ length: 10 }, (_, i) => openBuyer(farthing.app, `203.0.113.${i}`))
  const [reserved = '', oldest = ''] = [await buyer.goOn(link), await buyer.goOn(link)]
  await ctx.db.query(
    `insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at)
     values ($1, 'eip155:8453', 'a', 'p', 1, 1, clock())`,
    [reserved],
  )
  for (let round = 0; round < 20; round++) await Promise.all(browsers.map((each) => each.goOn(link)))
  const [count] = await ctx.db.query(
    "select count(*)::int as open from checkouts where link_id = $1 and status = 'OPEN'",
    [link.id],
  )
  assert.deepEqual(count, { open: 200 })
  assert.deepEqual([(await read(reserved)).status, (await read(oldest)).status], ['OPEN', 'CANCELED'])
})

test('one address opens 200 links in an hour', async () => {
  const [link, crowd] = [await makeLink(shop), openBuyer(farthing.app, '2001:db8::1')]
  const quote = await crowd.quote(link)
  for (let round = 0; round < 20; round++)
    await Promise.all([...Array(10)].map(() => crowd.open(link, quote)))
  assert.equal((await crowd.open(link, quote)).statusCode, 429)
  assert.equal((await buyer.open(link, quote)).statusCode, 303)
})

test('strangers who open an unproven store’s links don’t use up what the store may make itself', async () => {
  const seller = await openStore(farthing)
  await ctx.db.query('update stores set signed_up = true, revision = revision + 1 where id = $1', [seller.id])
  const link = await makeLink(seller, newLink({ kind: 'many' }))
  for (let i = 0; i < 3; i++) await buyer.goOn(link)
  assert.equal((await buyer.open(link, await buyer.quote(link))).statusCode, 429)
  for (let i = 0; i < 3; i++) await seller.create()
  const refused = await seller.call('POST', '/api/v1/checkouts', {
    ...{ orderId: 'x', priceAmount: '1', priceCurrency: 'USD' },
  })
  assertProblem(refused, 429, 'rate_limited')
})

test('another site’s form opens no link', async () => {
  const link = await makeLink(shop)
  const answer = await farthing.request({
    method: 'POST',
    url: `${new URL(link.url).pathname}/open`,
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'cross-site' },
    payload: String(new URLSearchParams({ quote: await buyer.quote(link) })),
  })
  assertProblem(answer, 403, 'cross_site')
})

test('an unknown link is not found, and one of another cell is elsewhere', async () => {
  const unknown = { url: `https://pay.farthing.example/c/l/lnk_00${'0'.repeat(26)}` }
  const elsewhere = { url: `https://pay.farthing.example/c/l/lnk_zz${'0'.repeat(26)}` }
  for (const url of [unknown.url, 'https://pay.farthing.example/c/l/x', `${unknown.url}%00`])
    assert.equal((await buyer.visit({ url })).statusCode, 404, url)
  assert.equal((await buyer.open(unknown, 'x')).statusCode, 404)
  assert.equal((await buyer.visit(elsewhere)).statusCode, 421)
})

test('quotes outlive a change of the deployment’s key, and end with the key that made them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-quotes-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'keys')
  const line = (id: string) => `${id} ${randomBytes(32).toString('base64')}`
  const [old, fresh] = [line('old'), line('fresh')]
  await writeFile(file, old)
  const other = await openTestApp({ SECRETS_KEY_FILE: file })
  const store = await openStore(other)
  const visitor = openBuyer(other.app)
  const link = await makeLink(store, newLink({ kind: 'many' }))
  const quotes = [await visitor.quote(link), await visitor.quote(link)]
  await writeFile(file, `${fresh}\n${old}`)
  assert.equal((await visitor.open(link, quotes[0] ?? '')).statusCode, 303)
  await writeFile(file, fresh)
  assert.equal((await visitor.open(link, quotes[1] ?? '')).statusCode, 422)
  assert.equal((await visitor.open(link, await visitor.quote(link))).statusCode, 303)
})
