import assert from 'node:assert/strict'
import { test } from 'node:test'
import { erasedLike, isErased } from '../../src/chains/families.ts'
import { ledTo, post } from '../payments/transfers/support/hand-transfers.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { payTo } from '../support/shop.ts'
import { openRefunding } from './support/refunding.ts'

const shop = await openRefunding()

test('money that was minted to the wallet, as from another chain, is not taken for that of an erased payer: it can be refunded', async () => {
  const id = await shop.create('10.00')
  assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?way=send')
  const [wanted = assert.fail()] = await shop.ctx.db.query<{ amount: string }>(
    'select amount from reserved_amounts where checkout_id = $1',
    [id],
  )
  await shop.chain.mint(payTo, BigInt(wanted.amount))
  await shop.mine(12)
  const { status, payment } = await shop.read(id)
  assert.deepEqual([status, payment.payer], ['COMPLETED', `0x${'0'.repeat(40)}`])
  const [row = assert.fail()] = await shop.ctx.db.query<{ id: string }>(
    'select payment_id as id from credits where checkout_id = $1',
    [id],
  )
  const refund = await shop.refunds.create(row.id, { recipient: newPayer().address })
  assert.equal(refund.status, 'REQUESTED')
})

test('an erased payer is known as such, on either family', () => {
  for (const payer of [newPayer().address, '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'])
    assert(isErased(erasedLike(payer)) && !isErased(payer))
})
