/** Refunds in the console: what is left, whose turn it is, who may do what, and what is refused in words. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { newId } from '../../../src/ids.ts'
import { atEnd } from '../../support/at-end.ts'
import { completeByHand, creditByHand, payer } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { type Enrolled, enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole()
const { farthing } = console
const { db } = farthing.ctx

/** A store with a proven wallet, and a checkout of 12.50 that a payer signed for and that is final. */
async function openShop(at = console) {
  const { farthing } = at
  const { db } = farthing.ctx
  const { store, token } = await openInvitedStore(at, { evmWallet: newPayer().address })
  const owner = await enrolWith(at, token)
  await db.query('update wallets set proven_at = clock() where store_id = $1', [store.id])
  const { id: checkoutId } = await store.create({ orderId: 'tea <1>' })
  await completeByHand(farthing, checkoutId)
  const paymentId = newId('pay', '00', new Date())
  await db.query(
    `update credits set payment_id = $2, pay_to = lower(pay_to), safe_at = clock(), finalized_at = clock(),
       witnessed_at = clock() where checkout_id = $1`,
    [checkoutId, paymentId],
  )
  const base = `/stores/${store.id}`
  const form = `${base}/payments/${paymentId}/refund`
  const ask = async (fields: Readonly<Record<string, string>>, by: Enrolled = owner, path = form) => {
    const page = await by.browser.get(form)
    const [, key = newKey()] = /name="key" value="(\w+)"/.exec(page.body) ?? []
    return await by.browser.post(path, { key, amount: '12.50', reason: '', way: 'signed', ...fields })
  }
  return { store, owner, checkoutId, paymentId, base, form, ask }
}

const newKey = () => 'k'.repeat(26)

/** A page's text, without its markup. */
function wordsOf(body: string): string {
  return body
    .replaceAll(/<(script|style)[\s\S]*?<\/\1>/g, '')
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ')
}

test('half goes back, then the rest; what is left is shown, a third is refused in words, and canceling frees it', async () => {
  const { store, owner, checkoutId, paymentId, base, form, ask } = await openShop()
  const empty = await owner.browser.get(`${base}/refunds`)
  assert(empty.body.includes('No refunds yet'))
  const before = wordsOf((await owner.browser.get(`${base}/checkouts/${checkoutId}`)).body)
  assert(before.includes('Refund up to 12.50 USDC'), before)
  const offered = (await owner.browser.get(form)).body
  assert(offered.includes('value="12.50"') && wordsOf(offered).includes('Left to refund 12.50 USDC'))
  assert(wordsOf(offered).replaceAll(' ', '').includes(payer.replaceAll(' ', '')), 'it goes to the payer')

  const half = await ask({ amount: '6,25', reason: ' Size 42\r\nwas sold out <b> ' })
  assert.equal(half.statusCode, 303, half.body)
  const one = await owner.browser.get(String(half.headers.location))
  for (const each of [
    '6.25 USDC',
    'Your turn.',
    'Size 42 was sold out &#60;b&#62;',
    'Olga',
    'farthing refund sign rf_',
  ])
    assert(one.body.includes(each), each)
  assert(one.body.includes(paymentId) && !one.body.includes('tea <1>'))
  assert.match(
    one.body,
    /data-sign="EVM"[^>]* data-recipient="0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65" data-units="6250000"/,
  )

  const key = newKey()
  const rest = await Promise.all([ask({ key, amount: '6.25' }), ask({ key, amount: '6.25' })])
  assert.equal(rest[0].statusCode, 303, rest[0].body)
  assert.equal(rest[1].headers.location, rest[0].headers.location, 'a double click makes one refund')
  const spent = wordsOf((await owner.browser.get(form)).body)
  assert(spent.includes('All of this payment has been refunded, or is reserved for a refund.'), spent)
  const third = await ask({ key: 'c'.repeat(26), amount: '1' })
  assert.equal(third.statusCode, 409)
  assert.match(third.body, /role="alert">That is more than what is left of this payment\./)

  const list = wordsOf((await owner.browser.get(`${base}/refunds?status=REQUESTED`)).body)
  assert.equal(list.match(/You: sign it/g)?.length, 2, list)
  assert(wordsOf((await owner.browser.get(base)).body).includes('Finish 2 refunds'))
  const spanish = await owner.browser.get(`${base}/refunds?lang=es`)
  assert(spanish.body.includes('A usted: firmarlo') && spanish.body.includes('Reembolsos'))
  await owner.browser.get(`${base}?lang=en`)

  const canceled = await owner.browser.post(`${String(half.headers.location)}/cancel`)
  assert.equal(canceled.statusCode, 303)
  const after = await owner.browser.get(String(half.headers.location))
  assert(after.body.includes('It was canceled. No money moved.') && !after.body.includes('data-sign'))
  assert(
    wordsOf((await owner.browser.get(`${base}/checkouts/${checkoutId}`)).body).includes(
      'Refund up to 6.25 USDC',
    ),
  )
  const told = (await store.events()).filter(({ type }) => type.startsWith('refund.'))
  assert.deepEqual(
    told.map(({ type, actor }) => [type, actor?.type, actor?.name]),
    [
      ['refund.requested', 'member', 'Olga'],
      ['refund.requested', 'member', 'Olga'],
      ['refund.canceled', 'member', 'Olga'],
    ],
  )
  assert.match((await owner.browser.get(`${base}/activity?kind=refund`)).body, /canceled a refund/)
})

test('a refund that could be thousands or decimals is refused in words, and what the form offers is not', async () => {
  const { owner, paymentId, form, ask } = await openShop()
  await db.query('update credits set amount = 5000123000 where payment_id = $1', [paymentId])
  for (const amount of ['1,500', '1.500']) {
    const { statusCode, body } = await ask({ amount })
    assert.equal(statusCode, 409, amount)
    assert.match(body, /role="alert">This amount can be read in two ways/)
  }
  const [, offered = ''] = /name="amount" value="([^"]+)"/.exec((await owner.browser.get(form)).body) ?? []
  assert.equal(offered, '5000.1230')
  const made = await ask({ amount: offered })
  assert.equal(made.statusCode, 303, made.body)
})

test('what cannot be refunded says why: not final and until when, a wallet that is not proven, money taken back', async () => {
  const { store, owner, paymentId, form, ask } = await openShop()
  const says = async (words: RegExp) => {
    assert.match(wordsOf((await owner.browser.get(form)).body), words)
    const { statusCode, headers } = await ask({ key: newKey() })
    assert.equal(statusCode, 409, String(headers.location))
  }
  await db.query('update credits set finalized_at = null where payment_id = $1', [paymentId])
  await says(/not final yet.* from about \d/)
  await db.query('update credits set finalized_at = clock() where payment_id = $1', [paymentId])
  await db.query('update wallets set proven_at = null where store_id = $1', [store.id])
  await says(/has not proven that it owns the wallet .* Prove the wallet/)
  await db.query('update wallets set proven_at = clock() where store_id = $1', [store.id])
  await db.query('update credits set orphaned_at = clock(), reversed_at = clock() where payment_id = $1', [
    paymentId,
  ])
  await says(/The chain took this payment back/)
  const { rows } = { rows: await db.query('select 1 as one from refunds where store_id = $1', [store.id]) }
  assert.equal(rows.length, 0)
})

test('money that nobody signed for goes to whom the buyer names, and never by default to its sender', async () => {
  const { store, owner, base } = await openShop()
  const { id } = await store.create()
  const paymentId = await creditByHand(farthing, id)
  await db.query('update credits set finalized_at = clock(), safe_at = clock() where payment_id = $1', [
    paymentId,
  ])
  const form = `${base}/payments/${paymentId}/refund`
  const { body } = await owner.browser.get(form)
  assert(body.includes('A link for the buyer') && !body.includes('>The payer<'))
  const made = await owner.browser.post(form, { key: newKey(), amount: '1', reason: '', way: 'signed' })
  const one = await owner.browser.get(String(made.headers.location))
  assert(one.body.includes('Not known yet') && !one.body.includes('data-sign'), one.body)
  const [row] = await db.query<{ recipient: string | null }>(
    'select recipient from refunds where payment_id = $1',
    [paymentId],
  )
  assert.equal(row?.recipient, null)
})

test('the buyer names an address by a link, and a touch with their code confirms exactly that one', async () => {
  const { store, owner, base } = await openShop()
  const { id: checkoutId } = await store.create()
  const paymentId = await creditByHand(farthing, checkoutId)
  await db.query('update credits set finalized_at = clock(), safe_at = clock() where payment_id = $1', [
    paymentId,
  ])
  const asked = { key: newKey(), amount: '1', reason: '', way: 'self-sent' }
  const made = await owner.browser.post(`${base}/payments/${paymentId}/refund`, asked)
  const path = String(made.headers.location)
  assert.match(
    (await owner.browser.get(`${base}/inbox`)).body,
    new RegExp(`${paymentId}/refund">Refund it instead`),
  )
  const link = await owner.browser.post(`${path}/address-request`)
  assert.match(link.body, /<code class="link"[^>]*>http[^<]+\/pay\/refund\/00_[A-Za-z0-9_-]{43}</)
  assert((await owner.browser.get(path)).body.includes('They open the link and name an address.'))
  const address = newPayer().address
  await db.query(
    `update address_requests set address = lower($2), code = 'ACDE3467', browser_hash = sha256('x'), named_at = clock()
     where refund_id = $1`,
    [path.split('/').at(-1), address],
  )
  const named = await owner.browser.get(path)
  assert(
    named.body.includes(address) && !named.body.includes('ACDE'),
    'the owner asks the buyer for the code',
  )
  const confirm = async (values: { address: string; code: string }, sent = values) => {
    const refundId = path.split('/').at(-1) ?? ''
    const touched = { storeId: store.id, refundId, ...values }
    const touch = await owner.browser.confirm(owner.authenticator, 'refund.confirm', touched)
    return await owner.browser.post(`${path}/confirm`, { ...sent, touch })
  }
  const right = { address, code: 'acde-3467' }
  assert.equal((await owner.browser.post(`${path}/confirm`, right)).statusCode, 403)
  assert.equal((await confirm({ ...right, address: payer }, right)).statusCode, 409)
  const wrong = await confirm({ address, code: 'ACDE-3469' })
  assert.equal(wrong.statusCode, 409)
  assert.match(wrong.body, /role="alert">This is not the code that the buyer was given/)
  assert.equal((await confirm({ ...right, address: payer })).statusCode, 409)
  assert.equal((await confirm(right)).statusCode, 303)
  const pay = await owner.browser.get(path)
  assert(pay.body.includes('Name the transaction') && pay.body.includes('/declare'))
  const nonsense = await owner.browser.post(`${path}/transaction`, { transaction: 'abc' })
  assert.match(nonsense.body, /role="alert">This is not a transaction on that network/)
  assert.equal((await owner.browser.post(`${path}/declare`, { reference: 'by bank' })).statusCode, 403)
  const values = { storeId: store.id, refundId: path.split('/').at(-1) ?? '', reference: 'by bank <i>' }
  const touch = await owner.browser.confirm(owner.authenticator, 'refund.declare', values)
  assert.equal((await owner.browser.post(`${path}/declare`, { ...values, touch })).statusCode, 303)
  const declared = await owner.browser.get(path)
  assert(declared.body.includes('by bank &#60;i&#62;') && declared.body.includes('Farthing has not seen it.'))
})

test('a manager says who gets another’s refund, or that it was paid, of none: they could name themselves', async () => {
  const { store, owner, base } = await openShop()
  const manager = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'manager' }))
  const { id: checkoutId } = await store.create()
  const paymentId = await creditByHand(farthing, checkoutId)
  await db.query('update credits set finalized_at = clock(), safe_at = clock() where payment_id = $1', [
    paymentId,
  ])
  const asked = { key: newKey(), amount: '1', reason: '', way: 'self-sent' }
  const made = await owner.browser.post(`${base}/payments/${paymentId}/refund`, asked)
  const path = String(made.headers.location)
  const refundId = path.split('/').at(-1) ?? ''
  assert.equal((await manager.browser.post(`${path}/address-request`)).statusCode, 200)
  const address = newPayer().address
  await db.query(
    `update address_requests set address = lower($2), code = 'ACDE3467', browser_hash = sha256('x'), named_at = clock()
     where refund_id = $1`,
    [refundId, address],
  )
  const confirm = async ({ browser, authenticator }: typeof owner) => {
    const values = { storeId: store.id, refundId, address, code: 'ACDE-3467' }
    const touch = await browser.confirm(authenticator, 'refund.confirm', values)
    return await browser.post(`${path}/confirm`, { ...values, touch })
  }
  const shown = await manager.browser.get(path)
  assert(wordsOf(shown.body).replaceAll(' ', '').includes(address))
  assert(!shown.body.includes('/confirm"'), 'no form that would be refused')
  const refused = await confirm(manager)
  assert.equal(refused.statusCode, 409)
  assert.match(refused.body, /so an owner has to do this/)
  assert.equal((await confirm(owner)).statusCode, 303)

  const declare = async ({ browser, authenticator }: typeof owner) => {
    const values = { storeId: store.id, refundId, reference: 'by bank' }
    const touch = await browser.confirm(authenticator, 'refund.declare', values)
    return (await browser.post(`${path}/declare`, { ...values, touch })).statusCode
  }
  assert(!(await manager.browser.get(path)).body.includes('/declare"'))
  assert.equal(await declare(manager), 409)
  assert.equal(await declare(owner), 303)
})

test('no node is asked about a refund while anything of the store is locked', async () => {
  let [asked, unlocked] = [0, 0]
  let look = async () => false
  const node = createServer(async (_, response) => {
    asked++
    if (await look()) unlocked++
    response.writeHead(500).end()
  })
  const port = await new Promise((resolve) =>
    node.listen(0, '127.0.0.1', () => resolve((node.address() as AddressInfo).port)),
  )
  atEnd(() => void node.close())
  const other = await openConsole({ settings: { BASE_MAINNET_RPC_URLS: `http://127.0.0.1:${port}` } })
  const { store, ask } = await openShop(other)
  look = async () => {
    const rows = await other.farthing.ctx.db.query(
      'select 1 as one from stores where id = $1 for update skip locked',
      [store.id],
    )
    return rows.length === 1
  }
  asked = 0
  await ask({ amount: '1' })
  assert(asked > 0)
  assert.equal(unlocked, asked)
})

test('a stolen cookie refunds the signing payer and nobody else: another address takes a touch for exactly that', async () => {
  const { store, owner, paymentId, form, ask } = await openShop()
  const address = newPayer().address
  const values = {
    key: newKey(),
    ...{ amount: '2', unit: 'token', recipient: address, reason: 'lost wallet', way: 'signed' },
  }
  for (const path of [form, `${form}/address`]) {
    const { statusCode, headers } = await ask(values, owner, path)
    assert.equal(statusCode, path === form ? 303 : 403)
    if (path === form) assert((await owner.browser.get(String(headers.location))).body.includes(payer))
  }
  const touchFor = (changes: Readonly<Record<string, string>>) =>
    owner.browser.confirm(owner.authenticator, 'refund.create', {
      ...{ storeId: store.id, paymentId, ...values, key: 'a'.repeat(26), ...changes },
    })
  const send = async (touch: unknown) =>
    await owner.browser.post(`${form}/address`, { ...values, key: 'a'.repeat(26), touch })
  for (const changes of [
    { recipient: payer },
    { amount: '12.50' },
    { unit: 'EUR' },
    { paymentId: 'pay_other' },
    { storeId: 'st_x' },
  ])
    assert.equal((await send(await touchFor(changes))).statusCode, 409, JSON.stringify(changes))
  const touch = await touchFor({})
  const made = await send(touch)
  assert.equal(made.statusCode, 303, made.body)
  assert((await owner.browser.get(String(made.headers.location))).body.includes(address))
  assert.equal((await send(touch)).statusCode, 409, 'a touch counts once')
})

test('managers refund up to what owners set, by a touch, within 24 hours; others only look', async () => {
  const { store, owner, base, form, ask } = await openShop()
  const manager = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'manager' }))
  const viewer = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Vera', role: 'viewer' }))
  const setLimit = async (limit: string) => {
    const touch = await owner.browser.confirm(owner.authenticator, 'refund.limit', {
      storeId: store.id,
      limit,
    })
    return await owner.browser.post(`${base}/members/refund-limit`, { limit, touch })
  }
  assert(
    wordsOf((await manager.browser.get(form)).body).includes('In this store only owners refund payments.'),
  )
  assert.equal((await ask({ key: 'b'.repeat(26), amount: '1' }, manager)).statusCode, 409)
  assert.equal((await owner.browser.post(`${base}/members/refund-limit`, { limit: '5' })).statusCode, 403)
  for (const limit of ['-1', '1e9', 'x', '']) assert.equal((await setLimit(limit)).statusCode, 422, limit)
  assert.equal((await setLimit('5')).statusCode, 303)
  assert.match((await manager.browser.get(`${base}/members`)).body, /may refund 5 within 24 hours/)
  assert.equal((await store.call('GET', `/api/v1/stores/${store.id}`)).json().managerRefundLimit, '5')
  assert.equal((await ask({ amount: '3' }, manager)).statusCode, 303)
  const above = await ask({ amount: '2.01' }, manager)
  assert.equal(above.statusCode, 409)
  assert.match(above.body, /a manager may refund 5 within 24 hours/)
  assert.equal((await ask({ amount: '2' }, manager)).statusCode, 303)
  assert.equal((await ask({ amount: '1' }, owner)).statusCode, 303, 'owners have no limit')
  const seen = await viewer.browser.get(`${base}/refunds`)
  const [, one = ''] = /href="([^"]+\/refunds\/rf_\w+)"/.exec(seen.body) ?? []
  const looked = await viewer.browser.get(one)
  assert(looked.body.includes('Owners and managers do this.') && !/data-sign|\/cancel"/.test(looked.body))
  const [told] = (await store.events()).filter(({ type }) => type === 'store.updated')
  assert.equal(told?.actor?.name, 'Olga')
})

test('another store’s refunds and payments are not there', async () => {
  const [mine, theirs] = [await openShop(), await openShop()]
  const made = await theirs.ask({ amount: '1' })
  const [id = ''] = /rf_\w+/.exec(String(made.headers.location)) ?? []
  const { browser } = mine.owner
  for (const path of [`refunds/${id}`, 'refunds/x', `payments/${theirs.paymentId}/refund`])
    assert.equal((await browser.get(`${mine.base}/${path}`)).statusCode, 404, path)
  assert.equal((await browser.post(`${mine.base}/refunds/${id}/cancel`)).statusCode, 404)
  const asked = { key: newKey(), amount: '1', reason: '', way: 'signed' }
  assert.equal(
    (await browser.post(`${mine.base}/payments/${theirs.paymentId}/refund`, asked)).statusCode,
    404,
  )
  assert(!(await browser.get(`${mine.base}/refunds`)).body.includes(id))
})
