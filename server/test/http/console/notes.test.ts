/** Notes on payments: who writes and reads them, what is kept, and what a failed one leaves. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { completeByHand, creditByHand } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { startDeciding } from '../../support/decide.ts'
import { openBrowser } from '../page/support/browser.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'
import { openSignedIn } from './support/furnished.ts'

const console = await openConsole({ listens: true })
const { farthing } = console
startDeciding(farthing)
const chromium = await openBrowser()

async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  return { store, owner, path: `/stores/${store.id}` }
}

async function pay({ store }: Awaited<ReturnType<typeof openShop>>, orderId = '1271') {
  const { id: checkoutId } = await store.create({ orderId })
  await completeByHand(farthing, checkoutId)
  const [row] = await farthing.ctx.db.query<{ id: string }>(
    'select payment_id as id from credits where checkout_id = $1',
    [checkoutId],
  )
  return { checkoutId, paymentId: row?.id ?? assert.fail() }
}

test('a note is written, changed and removed on the payment’s screen, and says who wrote it', async () => {
  const shop = await openShop()
  const { checkoutId, paymentId } = await pay(shop)
  const page = await openSignedIn(chromium, console, shop.owner, { javaScriptEnabled: true })
  await page.goto(`${console.url}${shop.path}/checkouts/${checkoutId}`)
  const write = async (summary: string, text: string) => {
    await page.getByText(summary, { exact: true }).click()
    await page.getByLabel('Note for your team').fill(text)
    await page.getByRole('button', { name: 'Save the note' }).click()
    await page.waitForURL(/#note-/)
  }
  await write('Add a note', 'Sent on Friday, <b>by post</b>')
  await page.locator('.facts').getByText('Sent on Friday, <b>by post</b>').first().waitFor()
  await page
    .locator('.facts')
    .getByText(/^Olga, /)
    .waitFor()
  await write('Change the note', 'Collected')
  await page.locator('.facts .words').getByText('Collected').waitFor()
  assert.equal(await page.locator('.facts').getByText('Sent on Friday').count(), 0)
  await write('Change the note', '  ')
  await page.getByText('Add a note', { exact: true }).waitFor()
  const types = (await shop.store.events()).map(({ type }) => type).filter((type) => type === 'payment.noted')
  assert.equal(types.length, 3)
  assert.equal((await shop.store.call('GET', `/api/v1/payments/${paymentId}`)).json().note, undefined)
  await page.context().close()
})

test('money without a checkout has a note, and each payment of one checkout its own', async () => {
  const shop = await openShop()
  const { browser } = shop.owner
  const { checkoutId, paymentId } = await pay(shop)
  const strange = await creditByHand(farthing, checkoutId)
  const note = (id: string, text: string) => browser.post(`${shop.path}/payments/${id}/note`, { note: text })
  const alone = await note(strange, 'Whose is it?')
  assert.equal(alone.headers.location, `${shop.path}/payments/${strange}#note-${strange}`)
  assert((await browser.get(`${shop.path}/payments/${strange}`)).body.includes('Whose is it?'))
  await farthing.ctx.db.query(
    "update credits set checkout_id = $2, disposition = 'overpaid' where payment_id = $1",
    [strange, checkoutId],
  )
  const own = await note(paymentId, 'Line one\nline two')
  assert.equal(own.headers.location, `${shop.path}/checkouts/${checkoutId}#note-${paymentId}`)
  const { body } = await browser.get(`${shop.path}/checkouts/${checkoutId}`)
  assert(body.includes('Whose is it?') && body.includes('Line one line two'))
  assert.equal(body.split('>Change the note<').length, 3)
})

test('viewers read a note and write none; strangers do neither', async () => {
  const shop = await openShop()
  const { checkoutId, paymentId } = await pay(shop)
  const viewer = await enrolWith(
    console,
    await inviteBy(shop.owner, shop.store.id, { name: 'Vera', role: 'viewer' }),
  )
  const stranger = await openShop()
  const at = `${shop.path}/payments/${paymentId}/note`
  assert.equal((await shop.owner.browser.post(at, { note: 'For the team' })).statusCode, 303)
  const { body } = await viewer.browser.get(`${shop.path}/checkouts/${checkoutId}`)
  assert(body.includes('For the team') && !body.includes('Change the note'))
  assert.equal((await viewer.browser.post(at, { note: 'x' })).statusCode, 403)
  const theirs = `${stranger.path}/payments/${paymentId}/note`
  assert.equal((await stranger.owner.browser.post(theirs, { note: 'x' })).statusCode, 404)
  const none = `${shop.path}/payments/pay_x/note`
  assert.equal((await shop.owner.browser.post(none, { note: 'x' })).statusCode, 404)
  const kept = (await shop.store.call('GET', `/api/v1/payments/${paymentId}`)).json()
  assert.equal(kept.note.text, 'For the team')
})

test('a note that cannot be kept comes back with what was typed, and why', async () => {
  const shop = await openShop()
  const { checkoutId, paymentId } = await pay(shop)
  const strange = await creditByHand(farthing, checkoutId)
  for (const id of [paymentId, strange]) {
    const text = `${'é'.repeat(501)}<`
    const answer = await shop.owner.browser.post(`${shop.path}/payments/${id}/note`, { note: text })
    assert.equal(answer.statusCode, 422)
    const [, kept] = /<textarea[^>]*>([\s\S]*?)<\/textarea>/.exec(answer.body) ?? []
    assert.match(kept ?? '', /^é{501}&/)
    assert(answer.body.includes('The note is too long') && !answer.body.includes('data-live='))
  }
})
