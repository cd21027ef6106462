import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeTransfer, newPayer } from '../../support/chain/evm-payment.ts'
import { payTo } from '../../support/shop.ts'
import { endWaits } from './attacks/support/present.ts'
import { openDriven } from './driven.ts'

/**
 * The store's wallet is also paid through another service. Somebody presents an unbound authorization here and it lands
 * before we send it: it may have paid for something there.
 */
const shop = await openDriven()
const [wallet = assert.fail()] = await shop.ctx.db.query<{ id: string }>(
  'update wallets set shared_elsewhere = true where lower(address) = lower($1) returning id',
  [payTo],
)

async function landBeforeSend({ isBound, isPaying }: { isBound: boolean; isPaying: boolean }) {
  const payer = newPayer()
  await shop.chain.mint(payer.address, 1_000_000n)
  await shop.idle()
  const payment = await shop.prepareOne(payer, { isBound, validSeconds: 300 })
  const [answer] = await shop.present([payment])
  const [hash = assert.fail()] = await shop.submit([
    { to: shop.chain.token, data: encodeTransfer(payment.signed) },
  ])
  await shop.mine()
  if (!isPaying) await endWaits(shop)
  return { payment, answer: await answer, hash }
}

test('an unbound authorization that a stranger landed first does not pay at a shared wallet: 409, and the store decides', async () => {
  const { payment, answer, hash } = await landBeforeSend({ isBound: false, isPaying: false })
  assert.equal(answer?.statusCode, 409, answer?.body)
  assert.equal(answer.json().code, 'payment_not_applied')
  assert.equal(answer.json().payment.transaction, hash)
  assert.equal((await shop.read(payment.checkoutId)).status, 'PROCESSING')

  await shop.mine(12)
  await shop.bury()
  assert.equal((await shop.read(payment.checkoutId)).status, 'OPEN')
  assert.equal((await shop.pay(payment)).statusCode, 409, 'never 402: the money is in the wallet')
  const listed = await shop.request({
    url: '/api/v1/payments?disposition=unmatched',
    headers: { 'x-api-key': shop.key },
  })
  const [found] = listed.json().data
  assert.equal(found.transaction, hash)
  assert.deepEqual(
    found.hints.map(({ checkoutId }: { checkoutId: string }) => checkoutId),
    [payment.checkoutId],
  )
})

test('a bound authorization, and one at a wallet for this store alone, pays whoever lands it', async () => {
  const bound = await landBeforeSend({ isBound: true, isPaying: true })
  assert.equal(bound.answer?.statusCode, 200, bound.answer?.body)
  await shop.ctx.db.query('update wallets set shared_elsewhere = false where id = $1', [wallet.id])
  const alone = await landBeforeSend({ isBound: false, isPaying: true })
  assert.equal(alone.answer?.statusCode, 200, alone.answer?.body)
})
