/** Which transaction a refund that the store pays by itself is named after, without a chain. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { openRails } from '../../src/payments/rails.ts'
import { cancelRefund } from '../../src/refunds/cancel.ts'
import { proveBy, refute, takeNamed } from '../../src/refunds/prove-sent.ts'
import { nameTransaction } from '../../src/refunds/self-sent.ts'
import { openTestApp } from '../support/app.ts'
import { actor, openShopOfPaid } from './support/paid.ts'
import { assertRefuses } from './support/refunds.ts'

const farthing = await openTestApp()
const { ctx, work, shop, openPaid } = await openShopOfPaid(farthing)
const rails = openRails(ctx)
const name = (id: string, transaction: string) =>
  nameTransaction(ctx, rails, shop.store.id, id, { transaction, actor })
/** Takes a refund with a named transaction, as the loop does that looks for it. */
async function take(id: string, network: string) {
  const [named] = await takeNamed(work.db, network, { secondsMin: 0, secondsMax: 0 }, 1)
  assert(named?.id === id)
  return named
}
const hash = () => `0x${randomBytes(32).toString('hex')}`

test('once a transfer proves the refund no other transaction can be named, also before its status says so', async () => {
  const { ask } = await openPaid()
  const { id, network } = await ask({ way: 'self-sent' })
  await name(id, hash())
  const named = await take(id, network)
  assert.equal(
    await work.db.transaction((tx) =>
      proveBy(work, tx, named, { block: hash(), place: 3, from: '0xw', at: new Date(), logIndex: 3 }),
    ),
    'proven',
  )
  const readRow = () => farthing.ctx.db.query('select * from refunds where id = $1', [id])
  const proven = await readRow()
  await assertRefuses(name(id, hash()), 'refund_in_progress')
  assert.deepEqual(await readRow(), proven)
})

test('a canceled refund does not say why the transaction that was named for it did not prove it', async () => {
  const { ask } = await openPaid()
  const { id, network } = await ask({ way: 'self-sent' })
  await name(id, hash())
  await refute(work, await take(id, network), 'no_transfer')
  const canceled = await cancelRefund(ctx, shop.store.id, actor, id, new Date())
  assert.deepEqual([canceled.status, canceled.failure], ['CANCELED', null])
})
