import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData } from 'viem'
import { acceptPayment } from '../../src/checkouts/payments/decide.ts'
import { newId } from '../../src/ids.ts'
import { reverseGone } from '../../src/payments/evm/look-up.ts'
import { openDriven } from '../payments/adversity/driven.ts'
import { tokenAbi } from '../support/chain/evm.ts'
import { payTo } from '../support/shop.ts'

const shop = await openDriven()
const { db } = shop.ctx
const sender = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'
await shop.chain.mint(sender, 50_000_000n)
await shop.mine(3)

/** A payment of this amount is accepted for the checkout, and the chain takes it back for good. Returns the statuses. */
async function acceptAndLose(id: string, units: bigint): Promise<string[]> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [payTo, units] })
  await shop.chain.send({ to: shop.chain.token, data, from: sender })
  await shop.mine()
  const [row] = await db.query<{ id: string }>('select payment_id as id from credits where amount = $1', [
    `${units}`,
  ])
  const now = new Date()
  const decision = {
    ...{ id: newId('dec', '00', now), storeId: shop.store.id, paymentId: row?.id ?? assert.fail() },
    ...{ kind: 'accept' as const, checkoutId: id, note: null, createdAt: now },
    actor: { type: 'member', id: 'mem_1', name: 'Ada' } as const,
  }
  await db.transaction((tx) => acceptPayment(shop.ctx, tx, decision, now))
  const statuses = [(await shop.read(id)).status]
  await shop.chain.reorg(1)
  await shop.mine()
  statuses.push((await shop.read(id)).status)
  await shop.chain.pass(shop.chain.network.negativeSeconds)
  await shop.mine()
  await db.query(
    "update credits set orphaned_at = orphaned_at - interval '31 minutes' where orphaned_at is not null",
  )
  await reverseGone(shop.ctx, shop.engine.chain, shop.engine.look)
  return [...statuses, (await shop.read(id)).status]
}

test('a canceled checkout whose accepted payment the chain takes back is canceled again, and invites nobody to pay', async () => {
  const id = await shop.create('10.00')
  const canceled = await shop.request({
    method: 'POST',
    url: `/api/v1/checkouts/${id}/cancel`,
    headers: { 'x-api-key': shop.key },
  })
  assert.equal(canceled.statusCode, 200, canceled.body)
  assert.deepEqual(await acceptAndLose(id, 9_000_000n), ['COMPLETED', 'PROCESSING', 'CANCELED'])
  await shop.send()
  assert.equal((await shop.request({ method: 'POST', url: `/api/v1/checkouts/${id}` })).statusCode, 410)
})

test('one that was open is open again', async () => {
  const id = await shop.create('10.00')
  assert.deepEqual(await acceptAndLose(id, 8_000_000n), ['COMPLETED', 'PROCESSING', 'OPEN'])
})
