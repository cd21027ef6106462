import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forStore } from '../../src/http/console/visitor.ts'
import { openRails } from '../../src/payments/rails.ts'
import { signRefund } from '../../src/refunds/sign.ts'
import { registerWallet } from '../../src/stores/wallets.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { operator } from '../support/operator.ts'
import { openRefunding, signTyped } from './support/refunding.ts'

const shop = await openRefunding()
const { chain, refunds } = shop
const { db } = shop.ctx
const daySeconds = 24 * 3_600

/** A store's wallet that is a contract, which accepts what its owner signs. */
const owner = newPayer()
const wallet = await chain.deploy('OwnedWallet', [owner.address])

/** A final payment to that wallet. */
async function pay(): Promise<string> {
  const payer = await shop.fund()
  const id = await shop.create()
  await shop.idle()
  const answer = shop.pay({ checkoutId: id, header: await shop.sign(id, payer) } as never)
  for (;;) {
    await shop.send()
    await shop.mine()
    const [row] = await db.query<{ id: string }>(
      'select payment_id as id from credits where checkout_id = $1',
      [id],
    )
    if (!row) continue
    assert.equal((await answer).statusCode, 200)
    await shop.mine(9)
    return row.id
  }
}

await registerWallet(
  shop.ctx,
  shop.store.id,
  operator,
  'EVM',
  { walletAddress: wallet, custodialType: 'NON_CUSTODIAL' },
  shop.ctx.now(),
)
await db.query('update wallets set proven_at = clock()')
/** They are made before any test moves the clock: payers sign for minutes only. */
const payments = [await pay(), await pay()]
const next = () => payments.pop() ?? assert.fail()

test('the owners of a contract wallet take a day, sign twice, and it is sent once, after the payments', async () => {
  const paymentId = next()
  const { id } = await refunds.create(paymentId)
  const prepared = await refunds.prepare(id)
  const left = (prepared.expiresAt.getTime() - shop.ctx.now().getTime()) / 1_000
  assert(Math.abs(left - 7 * daySeconds) < 60, `${left} seconds`)
  await shop.pass(daySeconds)
  assert.deepEqual(await refunds.prepare(id), prepared, 'the owner who comes later signs the same')
  const stranger = await signTyped(prepared, newPayer().key)
  await assert.rejects(refunds.present(id, stranger), /does not accept this signature/)
  const signature = await signTyped(prepared, owner.key)
  const both = await Promise.all([refunds.present(id, signature), refunds.present(id, signature)])
  assert.deepEqual(
    both.map(({ status }) => status),
    ['SIGNED', 'SIGNED'],
  )
  await shop.land()
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
  await shop.pass(7 * daySeconds)
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
  const moved = await chain.transferLogs({ from: wallet })
  assert.equal(moved.length, 1)
})

test('in the console too, a contract wallet that failed on the chain lately is told that nothing of it is sent', async () => {
  const { id } = await refunds.create(next())
  const signature = await signTyped(await refunds.prepare(id), owner.key)
  await db.query('update authorizations set failed_at = clock() where payer = $1 and refund_id <> $2', [
    wallet.toLowerCase(),
    id,
  ])
  const console = { ...shop.ctx, db: openAs('console', shop.databaseUrl) }
  const mine = forStore(console, shop.store.id)
  await assert.rejects(
    signRefund(mine, openRails(console), shop.store.id, id, { signature }),
    /failed on the chain lately/,
  )
})
