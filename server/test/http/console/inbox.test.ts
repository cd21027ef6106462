/** Money that completed no checkout: why, what it may have been for, accepting and dismissing it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { newId } from '../../../src/ids.ts'
import { completeByHand, creditByHand, letTimePass, payer, setStatus } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { applyHeld } from '../../support/decide.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole()
const { farthing } = console
const { db } = farthing.ctx

async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  return { store, owner, path: `/stores/${store.id}/inbox` }
}

/** Money for a checkout that did not complete it: `more` units above what it asked for. */
async function creditFor(checkoutId: string, disposition: string, more = 0): Promise<string> {
  const hash = `0x${randomBytes(32).toString('hex')}`
  const paymentId = newId('pay', '00', new Date())
  await db.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time, included_at)
     select o.network, $2, 0, $3, 1, clock(), $2, 0, lower(o.asset), $4, lower(o."payTo"), o.amount + $6, c.store_id,
       c.id, $5, clock(), clock()
     from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
     where c.id = $1 limit 1`,
    [checkoutId, hash, paymentId, payer.toLowerCase(), disposition, more],
  )
  return paymentId
}

test('every payment says in words why it completed nothing, and the navigation counts them', async () => {
  const { store, owner, path } = await openShop()
  const empty = await owner.browser.get(path)
  assert(empty.body.includes('Nothing to decide') && !empty.body.includes('to decide</span>'))
  const orders = ['short', 'over', 'old', 'twice', 'gone'] as const
  const made = new Map<string, string>()
  for (const orderId of orders)
    made.set(orderId, (await store.create({ orderId, priceAmount: '41', priceCurrency: 'USD' })).id)
  const idOf = (order: string) => made.get(order) ?? assert.fail()
  await creditFor(idOf('short'), 'underpaid', -1_000_000)
  await creditFor(idOf('over'), 'overpaid', 500_000)
  await letTimePass(farthing, idOf('old'))
  await setStatus(farthing, idOf('old'), 'EXPIRED')
  await creditFor(idOf('old'), 'late')
  await completeByHand(farthing, idOf('twice'))
  await creditFor(idOf('twice'), 'overpaid')
  await setStatus(farthing, idOf('gone'), 'CANCELED')
  await creditFor(idOf('gone'), 'late')
  const { body } = await owner.browser.get(path)
  const whys = [...body.matchAll(/<span class="what soft">(.*?)<\/span>/g)].map(([, why = '']) =>
    why.replaceAll(/<[^>]+>/g, ''),
  )
  assert.equal(whys.length, 5)
  for (const why of [
    /^gone was canceled$/,
    /^twice was paid already$/,
    /^old had expired \d+ \w+ earlier$/,
    /^over asked for 41.00 USDC; this is 0.50 USDC too much$/,
    /^short asked for 41.00 USDC; 1.00 USDC is missing$/,
  ])
    assert(
      whys.some((each) => why.test(each)),
      `${why}: ${whys}`,
    )
  assert.match(body, /<span class="unseen"> 5 to decide<\/span>/)
  assert(body.includes('cannot pay it too') && body.includes('/accept'))
  const spanish = await owner.browser.get(`${path}?lang=es`)
  assert(spanish.body.includes('faltan 1,00 USDC') && spanish.body.includes('5 por decidir'))
})

test('a payment to decide is not hidden by two hundred newer ones that were put aside', async () => {
  const { store, owner, path } = await openShop()
  const { id } = await store.create({ orderId: 'waiting', priceAmount: '41', priceCurrency: 'USD' })
  await creditFor(id, 'underpaid', -1_000_000)
  for (let i = 0; i < 200; i++) await creditFor(id, 'underpaid', -2_000_000)
  await db.query('update credits set dismissed_at = clock() where store_id = $1 and amount = 39000000', [
    store.id,
  ])
  const { body } = await owner.browser.get(path)
  assert.match(body, /<span class="unseen"> 1 to decide<\/span>/)
  assert(body.includes('1.00 USDC is missing'))
})

test('any number of transfers below a cent hides nothing: they are in the list of payments alone', async () => {
  const { store, owner, path } = await openShop()
  const { id } = await store.create()
  const paymentId = await creditByHand(farthing, id)
  const dust: string[] = []
  for (let i = 0; i < 25; i++) dust.push(await creditByHand(farthing, id))
  await db.query('update credits set amount = 9999 where payment_id = any($1)', [dust])
  const { body } = await owner.browser.get(path)
  assert(body.includes(`id="${paymentId}"`))
  assert.match(body, /<span class="unseen"> 1 to decide<\/span>/)
  assert((await owner.browser.get(`/stores/${store.id}`)).body.includes('Decide on a payment'))
  const [one = assert.fail()] = dust
  assert((await owner.browser.get(`/stores/${store.id}/payments?show=money`)).body.includes(one))
  const page = await owner.browser.get(`/stores/${store.id}/payments/${one}`)
  assert(page.body.includes('less than a cent') && !page.body.includes('This needs you.'))
  await db.query('update credits set amount = 10000 where payment_id = $1', [one])
  assert((await owner.browser.get(path)).body.includes(`id="${one}"`), 'a cent is money')
})

test('a payment’s own link to the inbox opens it, however many are newer, until it is decided', async () => {
  const { store, owner, path } = await openShop()
  const { id } = await store.create()
  const paymentId = await creditByHand(farthing, id)
  for (let i = 0; i < 25; i++) await creditByHand(farthing, id)
  const isIn = (body: string) => body.includes(`id="${paymentId}" open`)
  assert(!(await owner.browser.get(path)).body.includes(paymentId))
  const page = await owner.browser.get(`/stores/${store.id}/payments/${paymentId}`)
  assert(page.body.includes(`href="${path}?payment=${paymentId}#${paymentId}"`))
  assert(isIn((await owner.browser.get(`${path}?payment=${paymentId}`)).body))
  const found = await owner.browser.get(`${path}?payment=${paymentId}&find=nothing`)
  assert(found.body.includes('There is no unpaid checkout'))
  const stranger = await openShop()
  assert(!isIn((await stranger.owner.browser.get(`${stranger.path}?payment=${paymentId}`)).body))
  await owner.browser.post(`${path}/dismiss`, { paymentId })
  assert.equal(await applyHeld(farthing), 1)
  assert(!isIn((await owner.browser.get(`${path}?payment=${paymentId}`)).body))
})

test('only checkouts that asked for about the amount are offered, none chosen; one is found by its order and accepted', async () => {
  const { store, owner, path } = await openShop()
  const make = (orderId: string, priceAmount: string) =>
    store.create({ orderId, priceAmount, priceCurrency: 'USD' })
  const [plain, near, far, found] = [
    await make('plain', '48'),
    await make('near', '53'),
    await make('far', '54'),
    await make('found <b>', '9'),
  ]
  await db.query("update checkouts set created_at = clock() - interval '3 hours' where id = $1", [found.id])
  const paymentId = await creditByHand(farthing, plain.id)
  await db.query('update credits set amount = amount - 1 where payment_id = $1', [paymentId])
  const { body } = await owner.browser.get(path)
  const choices = [...body.matchAll(/<label class="choice">.*?<\/label>/g)].map(([each]) => each)
  assert.equal(choices.length, 2, 'a tenth more than what came, and no more')
  assert(choices[0]?.includes(plain.id) && choices[0].includes('the same amount'))
  assert(choices[1]?.includes(near.id) && choices[1].includes('asked for 53.00 USDC'))
  assert(!body.includes(far.id) && !body.includes(' checked') && !/likely/i.test(body))
  const searched = await owner.browser.get(
    `${path}?payment=${paymentId}&find=${encodeURIComponent('found <b>')}`,
  )
  assert(searched.body.includes(`value="${found.id}"`) && !searched.body.includes('found <b>'))
  assert(!searched.body.includes(' checked'))
  const missing = await owner.browser.get(`${path}?payment=${paymentId}&find=nothing`)
  assert(missing.body.includes('There is no unpaid checkout'))
  const accepted = await owner.browser.post(`${path}/accept`, { paymentId, checkoutId: found.id })
  assert.equal(accepted.headers.location, `${path}?payment=${paymentId}#${paymentId}`)
  assert.equal(await applyHeld(farthing), 1)
  assert.equal((await store.call('GET', `/api/v1/checkouts/${found.id}`)).json().status, 'COMPLETED')
  const told = (await store.events()).filter(({ type }) => type === 'payment.accepted')
  assert.deepEqual(
    told.map(({ actor }) => [actor?.type, actor?.name]),
    [['member', 'Olga']],
  )
  const decided = await owner.browser.get(path)
  assert.match(decided.body, /Recently decided.*accepted for.*found &#60;b&#62;.*Olga/s)
  const again = await owner.browser.post(`${path}/accept`, { paymentId, checkoutId: plain.id })
  assert.match(String(again.headers.location), /said=payment_not_open$/)
})

test('what a buyer named is labelled as that: it comes first nowhere, and with another amount it is only said', async () => {
  const { store, owner, path } = await openShop()
  const make = (orderId: string, priceAmount: string) =>
    store.create({ orderId, priceAmount, priceCurrency: 'USD' })
  const [asked, named, wrong] = [
    await make('asked', '48'),
    await make('named', '49'),
    await make('wr"ong<i>', '9'),
  ]
  const paymentId = await creditByHand(farthing, asked.id)
  for (const { id } of [named, wrong])
    await db.query(
      `insert into payment_hints (payment_id, checkout_id, disposition, created_at) values ($1, $2, 'unmatched', clock())`,
      [paymentId, id],
    )
  const { body } = await owner.browser.get(path)
  const choices = [...body.matchAll(/<label class="choice">.*?<\/label>/g)].map(([each]) => each)
  assert.equal(choices.length, 2)
  assert(choices[0]?.includes(asked.id) && !choices[0].includes('Named on the page'))
  assert(choices[1]?.includes(named.id) && choices[1].includes('Named on the page. Anyone can name'))
  assert(!body.includes(`value="${wrong.id}"`) && !body.includes('wr"ong<i>'))
  assert.match(
    body.replaceAll(/<[^>]+>/g, ''),
    /Named on the page of wr&#34;ong&#60;i&#62;, which asked for 9.00 USDC/,
  )
  const spanish = await owner.browser.get(`${path}?lang=es`)
  assert(spanish.body.includes('Indicada en la página') && !/probable/i.test(spanish.body))
})

test('a title says what was paid of what was asked, also once that is accepted and more money came', async () => {
  const { store, owner, path } = await openShop()
  const { id } = await store.create({ orderId: '1271', priceAmount: '19.50', priceCurrency: 'USD' })
  const title = async () => {
    const { body } = await owner.browser.get(`/stores/${store.id}/checkouts/${id}`)
    return /<h1 class="price">(.*?)<\/h1>/s.exec(body)?.[1]?.replaceAll(/<[^>]+>/g, '')
  }
  assert.equal(await title(), 'US$19.50 Open')
  const paymentId = await creditFor(id, 'underpaid', -3_315_000)
  assert.equal(await title(), '16.185 USDC of US$19.50 Underpaid')
  await owner.browser.post(`${path}/accept`, { paymentId })
  assert.equal(await applyHeld(farthing), 1)
  assert.equal(await title(), '16.185 USDC of US$19.50 Paid')
  await creditFor(id, 'overpaid', -16_185_000)
  assert.equal(await title(), '16.185 USDC of US$19.50 Paid')
})

test('a payment is put aside with a note under the member’s name; who may only look decides nothing', async () => {
  const { store, owner, path } = await openShop()
  const viewer = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Vera', role: 'viewer' }))
  const { id } = await store.create()
  const paymentId = await creditByHand(farthing, id)
  const seen = await viewer.browser.get(path)
  assert(seen.body.includes('Owners and managers decide') && !seen.body.includes('/dismiss"'))
  for (const verb of ['accept', 'dismiss'])
    assert.equal(
      (await viewer.browser.post(`${path}/${verb}`, { paymentId, checkoutId: id })).statusCode,
      403,
    )
  const long = await owner.browser.post(`${path}/dismiss`, { paymentId, note: 'é'.repeat(501) })
  assert.match(String(long.headers.location), /said=note$/)
  const done = await owner.browser.post(`${path}/dismiss`, { paymentId, note: ' my own\r\ntest ' })
  assert.equal(done.headers.location, `${path}?payment=${paymentId}#${paymentId}`)
  assert.equal(await applyHeld(farthing), 1)
  const payment = (await store.call('GET', `/api/v1/payments/${paymentId}`)).json()
  assert.deepEqual([payment.note.text, payment.note.actor.name], ['my own test', 'Olga'])
  await store.events()
  assert.match((await owner.browser.get(path)).body, /put aside.*Olga.*my own test/s)
})

test('another store’s payments and checkouts cannot be decided about', async () => {
  const [mine, theirs] = [await openShop(), await openShop()]
  const [own, other] = [await mine.store.create(), await theirs.store.create()]
  const [paymentId, theirId] = [await creditByHand(farthing, own.id), await creditByHand(farthing, other.id)]
  assert(!(await mine.owner.browser.get(mine.path)).body.includes(theirId))
  for (const asked of [
    { paymentId: theirId, checkoutId: own.id },
    { paymentId, checkoutId: other.id },
    { paymentId, checkoutId: 'x' },
    {},
  ]) {
    const { headers } = await mine.owner.browser.post(`${mine.path}/accept`, asked)
    assert.match(String(headers.location), /said=not_found$/, JSON.stringify(asked))
  }
})

async function receiveMany(storeId: string, checkoutId: string, count: number): Promise<void> {
  await db.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time, included_at)
     select o.network, '0x' || md5($1 || i), 0, 'pay_00' || lpad(i::text, 26, '0'), 1, clock(), '0x' || md5($1 || i), 0,
       lower(o.asset), $3, lower(o."payTo"), o.amount - 1, $2, $1, case when i % 50 = 0 then 'late' else 'underpaid' end,
       clock(), clock()
     from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text),
       generate_series(1, $4::integer) i where c.id = $1 and o.network = (c.options->0->>'network')`,
    [checkoutId, storeId, payer.toLowerCase(), count],
  )
}

test('of 5,000 payments every page goes on where the last one ended, also those of one kind', async () => {
  const { store, owner, path } = await openShop()
  const { id } = await store.create({ orderId: 'many' })
  await receiveMany(store.id, id, 5_000)
  const walk = async (query: string) => {
    const seen: string[] = []
    for (let next: string | undefined = `${path}?${query}`; next !== undefined; ) {
      const { body } = await owner.browser.get(next.replaceAll('&#38;', '&').replaceAll('&amp;', '&'))
      seen.push(...[...body.matchAll(/<details class="item" id="(\w+)"/g)].map(([, each = '']) => each))
      next = /href="([^"]*before=[^"]*)">Older/.exec(body)?.[1]
    }
    return seen
  }
  const idOf = (i: number) => `pay_00${`${i}`.padStart(26, '0')}`
  const late = Array.from({ length: 100 }, (_, i) => idOf(5_000 - 50 * i))
  assert.deepEqual(await walk('kind=late'), late)
  const oldest = Array.from({ length: 190 }, (_, i) => idOf(190 - i))
  assert.deepEqual(await walk(`before=${idOf(191)}`), oldest)
  assert((await owner.browser.get(`${path}?kind=unmatched`)).body.includes('Nothing here'))
  assert((await owner.browser.get(`${path}?kind=<b>&network=x&before=%00&payment='`)).statusCode < 500)
})

test('a filter is put aside in one go: 200 at most, nothing that came later, undone together', async () => {
  const { store, owner, path } = await openShop()
  const { id } = await store.create({ orderId: 'many' })
  await receiveMany(store.id, id, 250)
  const { body } = await owner.browser.get(`${path}?kind=underpaid`)
  assert(body.includes('Put the newest 200 aside'))
  assert(!(await owner.browser.get(path)).body.includes('dismiss-all'), 'only what a filter shows')
  const [, newest = ''] = /name="newest" value="(\w+)"/.exec(body) ?? []
  const later = await creditFor(id, 'underpaid', -2)
  const all = { kind: 'underpaid', newest }
  for (const wrong of ['', 'x', '~'])
    assert.match(
      String((await owner.browser.post(`${path}/dismiss-all`, { ...all, newest: wrong })).headers.location),
      /said=not_found$/,
    )
  for (const kind of ['', 'x'])
    assert.match(
      String((await owner.browser.post(`${path}/dismiss-all`, { kind, newest })).headers.location),
      /said=not_found$/,
      'nothing without a filter that is known',
    )
  const dismiss = () => owner.browser.post(`${path}/dismiss-all`, all)
  await Promise.all([dismiss(), dismiss()])
  const held = await db.query<{ together: string; paymentId: string }>(
    'select together, payment_id as "paymentId" from decisions where store_id = $1 and decided_at is null',
    [store.id],
  )
  assert.equal(held.length, 200, 'twice is once')
  assert(!held.some(({ paymentId }) => paymentId === later))
  const after = await owner.browser.get(`${path}?kind=underpaid`)
  assert(after.body.includes('Undo all') && after.body.includes('class="item decided"'))
  for (const together of new Set(held.map((each) => each.together)))
    await owner.browser.post(`${path}/undo`, { together })
  assert.equal(await applyHeld(farthing), 0)
  await dismiss()
  assert.equal(await applyHeld(farthing), 100)
  assert.equal(await applyHeld(farthing), 100)
  assert.equal(await applyHeld(farthing), 0)
  const dismissed = await db.query(
    'select 1 as one from credits where store_id = $1 and dismissed_at is not null',
    [store.id],
  )
  assert.equal(dismissed.length, 200)
})

test('a store holds 500 decisions back at most, and keys decide meanwhile', async () => {
  const { store, owner, path } = await openShop()
  const { id } = await store.create({ orderId: 'full' })
  await receiveMany(store.id, id, 3)
  await db.query(
    `insert into decisions (id, store_id, payment_id, kind, actor, created_at, due_at, together, session_id)
     select 'dec_held' || i || $1, $1, 'pay_' || i, 'dismiss', '{}', clock(), clock() + interval '1 day', 'x', 'x'
     from generate_series(1, 500) i`,
    [store.id],
  )
  const refused = await owner.browser.post(`${path}/dismiss`, { paymentId: `pay_00${'1'.padStart(26, '0')}` })
  assert.match(String(refused.headers.location), /said=rate_limited$/)
  assert((await owner.browser.get(path)).statusCode === 200)
  await db.query('delete from decisions where store_id = $1', [store.id])
})
