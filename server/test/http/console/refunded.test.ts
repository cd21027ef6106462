/** What went back: said where the payment is shown, in the exports, and that takings on Home don't subtract it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../../src/ids.ts'
import { completeByHand, creditByHand } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { enrolWith, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole()
const { farthing } = console
const { db } = farthing.ctx

/** A store with a proven wallet, whose payments are final. */
async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const { browser } = await enrolWith(console, token)
  await db.query('update wallets set proven_at = clock() where store_id = $1', [store.id])
  const base = `/stores/${store.id}`
  /** A checkout of 12.50 that is paid. */
  const pay = async () => {
    const { id: checkoutId } = await store.create()
    await completeByHand(farthing, checkoutId)
    const paymentId = newId('pay', '00', new Date())
    await db.query(
      `update credits set payment_id = $2, pay_to = lower(pay_to), safe_at = clock(), finalized_at = clock(),
         witnessed_at = clock() where checkout_id = $1`,
      [checkoutId, paymentId],
    )
    return { checkoutId, paymentId }
  }
  /** Money without a checkout. */
  const payStray = async () => {
    const paymentId = await creditByHand(farthing, (await store.create()).id)
    await db.query(
      'update credits set safe_at = clock(), finalized_at = clock(), witnessed_at = clock() where payment_id = $1',
      [paymentId],
    )
    return paymentId
  }
  /** A refund that got as far as this. */
  const refund = async (paymentId: string, amount: string, status: string) => {
    const form = `${base}/payments/${paymentId}/refund`
    const [, key = ''] = /name="key" value="(\w+)"/.exec((await browser.get(form)).body) ?? []
    const { headers, body } = await browser.post(form, { key, amount, reason: '', way: 'self-sent' })
    const id = String(headers.location ?? assert.fail(body))
      .split('/')
      .at(-1)
    await db.query('update refunds set status = $2, completed_at = clock() where id = $1', [id, status])
  }
  const headline = async (path: string) => {
    const { body } = await browser.get(`${base}/${path}`)
    return /<div class="next"><p>(.*?)<\/p>/s.exec(body)?.[1]?.replaceAll(/<[^>]+>/g, '')
  }
  return { store, browser, base, pay, payStray, refund, headline }
}

test('a payment that was refunded says so and how much, not that the money is in the wallet', async () => {
  const { pay, refund, headline } = await openShop()
  const { checkoutId, paymentId } = await pay()
  const path = `checkouts/${checkoutId}`
  await refund(paymentId, '1', 'REQUESTED')
  assert.match((await headline(path)) ?? '', /The money is in your wallet/)
  await refund(paymentId, '4', 'COMPLETED')
  await refund(paymentId, '2.50', 'DECLARED')
  assert.equal(
    await headline(path),
    'Partly refunded. 6.50 USDC of it went back. The rest is in your wallet and can no longer be reversed.',
  )
  await db.query("update refunds set status = 'COMPLETED' where payment_id = $1", [paymentId])
  await refund(paymentId, '5', 'COMPLETED')
  assert.equal(await headline(path), 'Refunded. All of this payment went back: 12.50 USDC.')
  assert.match((await headline(`${path}?lang=es`)) ?? '', /^Reembolsado\. /)
})

test('money without a checkout says what became of it: refunded, put aside, or taken back by the chain', async () => {
  const { browser, base, payStray, refund, headline } = await openShop()
  const [part, whole, reversed] = [await payStray(), await payStray(), await payStray()]
  await refund(part, '1', 'COMPLETED')
  assert.match(
    (await headline(`payments/${part}`)) ?? '',
    /^This needs you\. .* 1\.00 USDC of it went back\./,
  )
  await refund(whole, '12.500001', 'COMPLETED')
  assert.match((await headline(`payments/${whole}`)) ?? '', /^Refunded\. /)
  assert((await browser.get(`${base}/payments/${whole}`)).body.includes('Decide in the inbox'))
  await db.query('update credits set dismissed_at = clock() where payment_id = any($1)', [[part, whole]])
  assert.match((await headline(`payments/${whole}`)) ?? '', /^Refunded\. /)
  assert.match(
    (await headline(`payments/${part}`)) ?? '',
    /^Nothing left to do\. .* 1\.00 USDC of it went back\./,
  )
  await db.query('update credits set orphaned_at = clock(), reversed_at = clock() where payment_id = $1', [
    reversed,
  ])
  assert.equal(
    await headline(`payments/${reversed}`),
    'Nothing to do. The chain took this payment back, so its money is not in your wallet.',
  )
})

test('lists, Home and the payment’s own screen say at a glance what went back, and nothing of refunds that wait', async () => {
  const { browser, base, pay, payStray, refund } = await openShop()
  const [whole, part, none] = [await pay(), await pay(), await pay()]
  const [stray, reversed] = [await payStray(), await payStray()]
  await refund(whole.paymentId, '12.50', 'COMPLETED')
  await refund(part.paymentId, '1', 'DECLARED')
  await refund(none.paymentId, '1', 'REQUESTED')
  await refund(stray, '12.500001', 'COMPLETED')
  await refund(reversed, '1', 'COMPLETED')
  await db.query('update credits set orphaned_at = clock(), reversed_at = clock() where payment_id = $1', [
    reversed,
  ])
  /** By where its row leads, the words of a payment's chips. */
  const wordsOn = async (path: string, row: string) => {
    const { body } = await browser.get(path)
    const words = new Map<string, string[]>()
    for (const text of body.split(row).slice(1)) {
      const [, href = ''] = /href="[^"]*\/([a-z]+_\w+)"/.exec(text) ?? []
      words.set(
        href,
        Array.from(text.matchAll(/class="chip[^"]*">([^<]+)</g), ([, word = '']) => word),
      )
    }
    return words
  }
  const checkouts = await wordsOn(`${base}/payments`, '<tr>')
  assert.deepEqual(checkouts.get(whole.checkoutId), ['Refunded'])
  assert.deepEqual(checkouts.get(part.checkoutId), ['Paid', 'Partly refunded'])
  assert.deepEqual(checkouts.get(none.checkoutId), ['Paid'])
  const money = await wordsOn(`${base}/payments?show=money&lang=es`, '<tr>')
  assert.deepEqual(money.get(whole.checkoutId), ['Reembolsado'])
  assert.deepEqual(money.get(part.checkoutId), ['Pagado', 'Reembolsado en parte'])
  assert.deepEqual(money.get(stray), ['Reembolsado'])
  assert.deepEqual(money.get(reversed), ['Sin cobro'])
  const home = await wordsOn(base, '<div><dt>')
  assert.deepEqual(home.get(whole.checkoutId), ['Refunded'])
  assert.deepEqual(home.get(part.checkoutId), ['Partly refunded'])
  assert.deepEqual(home.get(none.checkoutId), ['Paid'])
  assert.deepEqual(home.get(stray), ['Refunded'])
  assert.deepEqual(home.get(reversed), ['Reversed'])
  const own = await browser.get(`${base}/checkouts/${part.checkoutId}`)
  assert.match(own.body, /<h1.*Paid<.*Partly refunded<.*<\/h1>/)
})

test('both exports say in their last column what went back of each payment', async () => {
  const { store, browser, base, pay, refund } = await openShop()
  const [some, none] = [await pay(), await pay()]
  const { id: unpaid } = await store.create()
  await refund(some.paymentId, '4', 'COMPLETED')
  await refund(some.paymentId, '2.50', 'DECLARED')
  await refund(some.paymentId, '1', 'REQUESTED')
  const exported = async (query: string, id: (cells: string[]) => string | undefined) => {
    const { body } = await browser.get(`${base}/payments/export?${query}`)
    const [head = '', ...lines] = body.split('\r\n').slice(0, -1)
    assert(head.endsWith(',finality,refunded_amount'), head)
    return Object.fromEntries(lines.map((line) => [id(line.split(',')), line.split(',').at(-1)]))
  }
  assert.deepEqual(await exported('', ([id]) => id), {
    [some.checkoutId]: '6.50',
    [none.checkoutId]: '0.00',
    [unpaid]: '',
  })
  assert.deepEqual(await exported('show=money', ([, id]) => id), {
    [some.checkoutId]: '6.50',
    [none.checkoutId]: '0.00',
  })
})

test('Home says that takings are before refunds', async () => {
  const { browser, base, pay } = await openShop()
  await pay()
  assert((await browser.get(base)).body.includes('Refunds are not subtracted.'))
  assert((await browser.get(`${base}?lang=es`)).body.includes('Los reembolsos no están restados.'))
})
