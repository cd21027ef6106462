/** Home: what the store took, what needs somebody, and what to do first. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countRollups } from '../../../src/checkouts/rollups/count.ts'
import { readTakings } from '../../../src/checkouts/rollups/takings.ts'
import { addReceivers } from '../../../src/dev/demo.ts'
import { writeHistory } from '../../../src/dev/history.ts'
import { makeDemoOwner, makeSignInLink, offerSignIn } from '../../../src/dev/sign-in.ts'
import { assignWaitingSequences } from '../../../src/events/assign-sequence.ts'
import { buildConsole } from '../../../src/http/console/app.ts'
import { rangeOfDays, readSums } from '../../../src/movements/sums.ts'
import { networks } from '../../../src/networks.ts'
import { addDays, localTime } from '../../../src/zone.ts'
import { bookAll, booksOf, payFinal, tellOf } from '../../movements/support/books.ts'
import { wallet } from '../../support/app.ts'
import { refundByHand } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { operator } from '../../support/operator.ts'
import { registerWallet } from '../../support/store.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore, TestBrowser } from './support/console.ts'

const settings = { NETWORKS: 'LOCAL', LOCAL_RPC_URLS: 'http://127.0.0.1:1', FIXED_RATES: 'EUR=0.86' }
const console = await openConsole({ settings })
const { ctx } = console.farthing
const local = networks.find(({ id }) => id === 'LOCAL')
const [asset] = local?.assets ?? []
assert(local && asset)

/** What the screen says, without what surrounds it. */
const texts = (body: string) =>
  (/<main.*<\/main>/s.exec(body)?.[0] ?? '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&ensp;/g, ' ')
    .replace(/\s+/g, ' ')

test('an empty Home leads to the wallet, then to the first checkout, and shows it as soon as it is paid', async () => {
  const { store, token } = await openInvitedStore(console, { mode: 'test', evmWallet: null })
  const { browser } = await enrolWith(console, token)
  const read = async () => (await browser.get(`/stores/${store.id}?details=shown`)).body
  assert.match(await read(), new RegExp(`href="/stores/${store.id}/wallets/new">Add a wallet`))
  await registerWallet(store, wallet)
  const ready = texts(await read())
  assert.match(ready, /Nothing has been paid yet/)
  assert.match(ready, /curl -X POST/)
  // Not counted by anybody yet: the screen adds what its log says.
  const { id } = await store.create({ priceAmount: '12.50' })
  await store.call('POST', `/api/v1/checkouts/${id}/cancel`)
  await assignWaitingSequences(ctx)
  assert.match(texts(await read()), /Of 1 made in this period .*Canceled 1 · 100%/)
  while (await countRollups(ctx));
  assert.match(texts(await read()), /Of 1 made in this period .*Canceled 1 · 100%/)
})

test('Home says what was taken, compared with the time before, in the store’s currency and both languages', async () => {
  const { store, token } = await openInvitedStore(console, { mode: 'test', evmWallet: wallet })
  const { browser } = await enrolWith(console, token)
  const shop = {
    storeId: store.store.id,
    network: local.caip2,
    asset: asset.address,
    payTo: wallet,
    actor: operator,
  }
  await writeHistory(ctx, shop, 14)
  const hostile = '<script>alert("order")</script>'
  await ctx.db.query(
    `update checkouts set order_id = $2 where id = (select checkout_id from credits where store_id = $1
       order by payment_id desc limit 1)`,
    [store.id, hostile],
  )
  await addReceivers(ctx, store.store.id)
  await ctx.db.query("update webhook_endpoints set failing_since = clock() where url like '%mailing'")
  while ((await assignWaitingSequences(ctx)) > 0);
  while (await countRollups(ctx));
  const path = `/stores/${store.id}`
  const reporting = { id: store.store.id, timeZone: 'UTC', reportCurrency: 'USD' }
  const money = (millionths: bigint) =>
    new Intl.NumberFormat('en-GB', { style: 'currency', currency: 'USD' }).format(
      Number.parseInt(`${millionths}`, 10) / 1e6,
    )
  for (const period of ['today', 'week', 'month'] as const) {
    const { sum, before } = await readTakings(ctx, reporting, period, ctx.now())
    const { body, statusCode } = await browser.get(`${path}?period=${period}`)
    assert.equal(statusCode, 200)
    assert(texts(body).includes(money(sum.amount)), period)
    if (before.sum.amount > 0n) assert(texts(body).includes(money(before.sum.amount)), period)
  }
  // Ranges add up, by days and by months, and the screen shows their sum.
  const { day: today } = localTime(ctx.now(), 'UTC')
  const inRange = (from: number, to: number) =>
    readTakings(ctx, reporting, { from: addDays(today, -from), to: addDays(today, -to) }, ctx.now())
  const [all, older, newer] = [await inRange(120, 0), await inRange(120, 6), await inRange(5, 0)]
  assert(older.sum.amount > 0n && newer.sum.amount > 0n)
  assert.equal(older.sum.amount + newer.sum.amount, all.sum.amount)
  for (const { days, sum } of [all, older, newer])
    assert.equal(
      days.reduce((total, { amount }) => total + (amount ?? 0n), 0n),
      sum.amount,
    )
  assert.deepEqual([all.days.length <= 5, newer.days.length], [true, 6])
  const ranged = await browser.get(`${path}?from=${all.from}&to=${all.to}`)
  assert(
    texts(ranged.body).includes(money(all.sum.amount)) && texts(ranged.body).includes('Takings per month'),
  )
  assert.match(texts((await browser.get(`${path}?from=2026-02-30&to=x`)).body), /Taken this month/)

  const { body } = await browser.get(path)
  assert(body.includes('data-live='))
  assert.match(texts(body), /Decide on \d+ payments/)
  assert.match(texts(body), /127\.0\.0\.1:8402\/dev\/webhooks\/mailing has accepted nothing since/)
  assert.match(
    body,
    /<svg role="img" aria-label="Bar chart of takings per day, [^"]+ The best day was [^"]+">/,
  )
  assert.match(body, /<tbody><tr><th scope="row">/)
  assert.match(texts(body), /Order 1\d\d\d Paid/)
  assert(!body.includes(hostile) && body.includes('&#60;script&#62;'))
  assert.match((await browser.get(`${path}?lang=es`)).body, /Cobrado este mes/)
  assert.match(texts((await browser.get(`${path}?lang=en&period=nonsense`)).body), /Taken this month/)

  // In another currency: its own prices as they were, the rest by the rate, which the screen says.
  await ctx.db.query(
    "update stores set report_currency = 'EUR', time_zone = 'Asia/Kathmandu' where id = $1",
    [store.id],
  )
  const euros = texts((await browser.get(path)).body)
  assert.match(euros, /€[\d,.]+ of it was priced in other currencies and is converted at today’s rate/)
  await ctx.db.query("update stores set report_currency = 'CHF' where id = $1", [store.id])
  const francs = texts((await browser.get(path)).body)
  assert.match(francs, /Not in this sum: [\d,.]+ USDC, because there is no exchange rate to CHF/)
})

test('signing in by a link exists in dev alone, works once, and is refused where anything is at stake', async () => {
  const { store } = await openInvitedStore(console, { mode: 'test' })
  const link = new URL(await makeSignInLink(ctx, await makeDemoOwner(ctx, store.store.id)))
  const path = link.pathname + link.search
  assert.equal((await console.app.inject({ method: 'GET', url: path })).statusCode, 404)

  const dev = buildConsole(ctx, { isDraining: false }, { ctx, examine: async () => [] })
  offerSignIn(dev, ctx)
  const [first, second] = [1, 2].map(() => new TestBrowser({ ...console, app: dev }))
  assert(first && second)
  assert.equal((await first.get(path)).statusCode, 303)
  assert.equal((await first.get(`/stores/${store.id}`)).statusCode, 200)
  // The token in the link is worth nothing any more, neither there nor as a cookie.
  await second.get(path)
  assert.equal((await second.get(`/stores/${store.id}`)).statusCode, 303)
  second.cookie = `farthing=${link.searchParams.get('token')}`
  assert.equal((await second.get(`/stores/${store.id}`)).statusCode, 303)
  await dev.close()

  for (const change of [{ consoleUrl: 'https://console.example' }, { networks: ['LOCAL', 'BASE_MAINNET'] }]) {
    const elsewhere = { ...ctx, config: { ...ctx.config, ...change } }
    assert.throws(() => offerSignIn(console.app, elsewhere), /for the local chain on this machine only/)
    await assert.rejects(makeSignInLink(elsewhere, 'mem_x'), /for the local chain on this machine only/)
  }
})

test('what Home calls received, refunded and net is what the books add up to, to the unit', async () => {
  const { store, token } = await openInvitedStore(console, { mode: 'test', evmWallet: wallet })
  const { browser } = await enrolWith(console, token)
  const read = async () => texts((await browser.get(`/stores/${store.id}`)).body)
  const first = await payFinal(console.farthing, store, { priceAmount: '120.55' })
  assert.doesNotMatch(await read(), /Received, final/, 'nothing is booked')
  await payFinal(console.farthing, store, { priceAmount: '0.45' })
  await refundByHand(console.farthing, first.checkoutId, 'COMPLETED', 20)
  const [refund] = await ctx.db.query<{ id: string }>(
    "update refunds set finality = 'finalized' where checkout_id = $1 returning id",
    [first.checkoutId],
  )
  assert(refund)
  await tellOf(console.farthing, store.id, 'refund.finalized', { refund })
  await bookAll(ctx)
  assert.match(
    await read(),
    /Received, final US\$121\.00 Refunded -US\$24\.11 Net US\$96\.89 These three count/,
  )
  const { day } = localTime(ctx.now(), 'UTC')
  const range = rangeOfDays(day, day, 'UTC')
  const lines = await booksOf(console.farthing, store.id)
  assert(lines.every(({ bookedAt }) => bookedAt >= range.from && bookedAt < range.before))
  const millionths = lines.map(({ value }) =>
    BigInt((value ?? '').replace(/(\.\d*)$/, (part) => part.slice(1).padEnd(6, '0'))),
  )
  const sums = await readSums(ctx.db, store.store.id, range, 'USD')
  assert.equal(
    sums.net,
    millionths.reduce((sum, each) => sum + each, 0n),
  )
})

test('a viewer of a new store is asked for nothing, and its owner is not warned of a key that changed no wallet', async () => {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  await owner.browser.post(`/stores/${store.id}/wallets/setting`, {
    walletChanges: 'key',
    touch: await owner.browser.confirm(owner.authenticator, 'wallet.setting', {
      storeId: store.id,
      walletChanges: 'key',
    }),
  })
  const { body } = await owner.browser.get(`/stores/${store.id}/wallets`)
  assert(body.includes('<option value="key" selected'), body)
  assert(!body.includes('In this store a key is enough'))
  const viewer = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Vera', role: 'viewer' }))
  const home = texts((await viewer.browser.get(`/stores/${store.id}`)).body)
  assert(!/Needs you|Make a payment/.test(home), home)
  assert(home.includes('You see its payments here'))
})
