/** One payment: what happened to it, what is left to do, and canceling. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { completeByHand, creditByHand, payer } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole({ settings: { FIXED_RATES: 'EUR=0.8' } })
const { farthing } = console

async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  return { store, owner, base: `/stores/${store.id}` }
}

test('a paid checkout shows its steps with their times and records, its money and its facts', async () => {
  const { store, owner, base } = await openShop()
  const { id } = await store.create({
    orderId: 'tea <1>',
    priceAmount: '8',
    priceCurrency: 'EUR',
    description: 'Two cups',
    metadata: { table: '7' },
  })
  const transaction = await completeByHand(farthing, id)
  await farthing.ctx.db.query(
    'update credits set safe_at = clock(), finalized_at = clock() where checkout_id = $1',
    [id],
  )
  await store.events()
  const { body, statusCode } = await owner.browser.get(`${base}/checkouts/${id}?details=shown`)
  assert.equal(statusCode, 200)
  const steps = [...body.matchAll(/<li[^>]*><p class="row apart"><span><strong>([^<]+)/g)].map(
    ([, each]) => each,
  )
  assert.deepEqual(steps, ['Created', 'Signed', 'In a block', 'Safe', 'Final'])
  for (const each of [
    '€8.00',
    '10.00 USDC',
    'Nothing left to do.',
    '1 EUR = 1.25 USD',
    'Two cups',
    'table',
    'Raw JSON',
  ])
    assert(body.includes(each), each)
  assert(body.includes(`&#34;transaction&#34;: &#34;${transaction}&#34;`) && body.includes(payer))
  assert(body.includes(`/api/v1/checkouts/${id}`) && !body.includes('tea <1>'))
  assert(!body.includes('/cancel"'), 'what is paid cannot be canceled')
  const spanish = await owner.browser.get(`${base}/checkouts/${id}?lang=es`)
  assert(spanish.body.includes('Qué pasó') && spanish.body.includes('Definitivo'))
})

test('an owner cancels an open checkout, once, under their name; a viewer cannot, and a paid one stays paid', async () => {
  const { store, owner, base } = await openShop()
  const viewer = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Vera', role: 'viewer' }))
  const [open, paid] = [await store.create(), await store.create()]
  await completeByHand(farthing, paid.id)
  const path = `${base}/checkouts/${open.id}`
  assert(!(await viewer.browser.get(path)).body.includes('Cancel this checkout'))
  assert.equal((await viewer.browser.post(`${path}/cancel`)).statusCode, 403)
  assert((await owner.browser.get(path)).body.includes('Cancel this checkout'))
  for (const id of [open.id, open.id, paid.id])
    assert.equal((await owner.browser.post(`${base}/checkouts/${id}/cancel`)).statusCode, 303)
  const status = async (id: string) => (await store.call('GET', `/api/v1/checkouts/${id}`)).json().status
  assert.deepEqual([await status(open.id), await status(paid.id)], ['CANCELED', 'COMPLETED'])
  const told = (await store.events()).filter(({ type }) => type === 'checkout.canceled')
  assert.deepEqual(
    told.map(({ checkoutId, actor }) => [checkoutId, actor?.type, actor?.name]),
    [[open.id, 'member', 'Olga']],
  )
  const { body } = await owner.browser.get(path)
  assert(body.includes('Canceled') && body.includes('Olga'))
})

test('money without a checkout has a screen of its own, and another store’s is not found', async () => {
  const { store, owner, base } = await openShop()
  const { id } = await store.create()
  const paymentId = await creditByHand(farthing, id)
  const { body } = await owner.browser.get(`${base}/payments/${paymentId}`)
  for (const each of ['Unmatched', 'This needs you.', 'In a block', paymentId])
    assert(body.includes(each), each)
  const stranger = await openShop()
  for (const path of [`checkouts/${id}`, `payments/${paymentId}`, 'checkouts/x', 'payments/x'])
    assert.equal((await stranger.owner.browser.get(`${stranger.base}/${path}`)).statusCode, 404, path)
  assert.equal((await stranger.owner.browser.post(`${stranger.base}/checkouts/${id}/cancel`)).statusCode, 404)
})
