/** A payment that is accepted for an earlier checkout of a `once` link. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Link, StoreCheckout } from '@farthing/sdk'
import { makeLink, openBuyer } from '../../http/links/support/buyer.ts'
import { newLink } from '../../http/support/new-link.ts'
import { openTestApp } from '../../support/app.ts'
import { creditByHand, setStatus } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { startDeciding } from '../../support/decide.ts'
import { assertProblem, openStore } from '../../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing
startDeciding(farthing)
const buyer = openBuyer(farthing.app)

/** A link with a late payment of an expired checkout. */
async function openLate(change: object = {}) {
  const shop = await openStore(farthing, { evmWallet: newPayer().address })
  const link = await makeLink(shop, newLink(change))
  const earlier = await buyer.goOn(link)
  await setStatus(farthing, earlier, 'EXPIRED')
  const paymentId = await creditByHand(farthing, earlier)
  // Final, so that accepting it completes the checkout at once.
  await ctx.db.query('update credits set finalized_at = clock(), safe_at = clock(), witnessed_at = clock()')
  const statusOf = async (id: string) =>
    (await shop.call('GET', `/api/v1/checkouts/${id}`)).json<StoreCheckout>().status
  return {
    link,
    earlier,
    statusOf,
    readLink: async () => (await shop.call('GET', `/api/v1/links/${link.id}`)).json<Link>(),
    accept: () => shop.call('POST', `/api/v1/payments/${paymentId}/accept`, { checkoutId: earlier }),
  }
}

test('the live checkout is canceled, and the link is paid', async () => {
  const { link, earlier, accept, statusOf, readLink } = await openLate()
  const live = await buyer.goOn(link)
  assert.notEqual(live, earlier)
  const answer = await accept()
  assert.equal(answer.statusCode, 200, answer.body)
  assert.deepEqual([await statusOf(earlier), await statusOf(live)], ['COMPLETED', 'CANCELED'])
  assert.equal((await readLink()).status, 'PAID')
})

test('while the live checkout is being paid or is paid, the late payment is refused and nothing changes', async () => {
  for (const [status, code] of [
    ['PROCESSING', 'payment_in_progress'],
    ['COMPLETED', 'already_paid'],
  ] as const) {
    const { link, earlier, accept, statusOf } = await openLate()
    const live = await buyer.goOn(link)
    await setStatus(farthing, live, status)
    assertProblem(await accept(), 409, code)
    assert.deepEqual([await statusOf(earlier), await statusOf(live)], ['EXPIRED', status])
  }
})

test('a link without a live checkout is paid by the late payment', async () => {
  const { link, earlier, accept, statusOf, readLink } = await openLate()
  const live = await buyer.goOn(link)
  await setStatus(farthing, live, 'CANCELED')
  assert.equal((await accept()).statusCode, 200)
  assert.deepEqual([await statusOf(earlier), await statusOf(live)], ['COMPLETED', 'CANCELED'])
  assert.equal((await readLink()).status, 'PAID')
})

test('buyers of a many link keep their checkouts', async () => {
  const { link, earlier, accept, statusOf } = await openLate({ kind: 'many' })
  const live = await buyer.goOn(link)
  assert.equal((await accept()).statusCode, 200)
  assert.deepEqual([await statusOf(earlier), await statusOf(live)], ['COMPLETED', 'OPEN'])
})

test('a buyer who pays the live checkout at the same moment waits for the decision, and finds it canceled', async () => {
  const { link, accept, statusOf } = await openLate()
  const live = await buyer.goOn(link)
  const answers = await Promise.all([accept(), buyer.goOn(link), buyer.goOn(link)])
  assert.equal(answers[0].statusCode, 200, answers[0].body)
  assert.equal(await statusOf(live), 'CANCELED')
})
