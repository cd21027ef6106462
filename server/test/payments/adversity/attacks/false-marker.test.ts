/**
 * Attack: one provider says that a settler of ours sent a stranger's transaction, with the marker of the attacker's
 * checkout in it, so that somebody else's transfer pays that checkout. After a restore, the same with a payment whose
 * nonce is bound to another checkout.
 * What should hold: a marker counts only while a restore is reconciled, only if enough providers tell it alike, and never
 * against a bound nonce.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { Hex } from 'viem'
import { transferCalldata } from '../../../../src/chains/evm/eip3009.ts'
import { markerOf } from '../../../../src/ids.ts'
import { makeBoundNonce } from '../../../../src/payments/nonces.ts'
import { openRails } from '../../../../src/payments/rails.ts'
import { startReconciling } from '../../../../src/payments/reconcile.ts'
import { encodeTransfer, newPayer, signAuthorization } from '../../../support/chain/evm-payment.ts'
import { payTo } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'
import { openNodes } from './support/two-nodes.ts'

const stranger: Hex = '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f'
type Nodes = Awaited<ReturnType<typeof openNodes>>
type Signed = Awaited<ReturnType<typeof signAuthorization>>

/** These providers say of every transaction that a settler sent it, with this checkout's marker. */
function lieAboutMarker(shop: Nodes, liars: readonly number[], signed: Signed, checkoutId: string): void {
  const { authorization, signature } = signed
  const { from, to, nonce } = authorization
  const input = transferCalldata(
    {
      from: from.toLowerCase() as Hex,
      to: to.toLowerCase() as Hex,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
      nonce,
    },
    signature,
    markerOf(checkoutId),
  )
  for (const liar of liars) {
    const node = shop.nodes[liar] ?? assert.fail()
    node.lie = ({ method }, result) =>
      method === 'eth_getTransactionByHash' && result
        ? { ...(result as object), from: shop.signers[0]?.address, to: shop.chain.token, input }
        : result
  }
}

for (const [providers, liars] of [
  [2, [0]],
  [2, [1]],
  [3, [0]],
  [3, [2]],
  [4, [0, 1]],
] as const)
  test(`of ${providers} providers, ${liars.join(' and ')} cannot give a stranger’s transfer to a checkout`, async () => {
    const shop = await openNodes(providers)
    const victim = newPayer()
    await shop.chain.mint(victim.address, 5_000_000_000n)
    await shop.mine()
    const id = await shop.create('4321.00')
    // Somebody pays the wallet outside Farthing: another facilitator lands an authorization of that amount.
    const signed = await signAuthorization({
      key: victim.key,
      domain: shop.chain.domain,
      to: payTo,
      value: 4_321_000_000n,
      validBefore: BigInt(Math.floor(Date.now() / 1_000) + 250),
    })
    lieAboutMarker(shop, liars, signed, id)
    await shop.chain.send({ to: shop.chain.token, data: encodeTransfer(signed), from: stranger })
    for (let i = 0; i < 15; i++) await shop.mine()
    assert.equal((await shop.read(id)).status, 'OPEN')
    const credits = await shop.ctx.db.query(
      'select checkout_id, finalized_at is not null as is_final from credits',
    )
    assert.deepEqual(credits, [{ checkout_id: null, is_final: true }])
  })

/** Pays a checkout, and puts the database back to the moment before that. */
async function payAndRestore(shop: Nodes, id: string, nonce: Hex | undefined): Promise<Signed> {
  const payer = await shop.fund()
  const header = await shop.sign(id, payer, nonce ? { nonce } : {})
  const answer = shop.pay(id, header)
  await until('claimed', async () => (await shop.read(id)).status === 'PROCESSING')
  await shop.send()
  await shop.mine()
  assert.equal((await answer).statusCode, 200)
  await shop.ctx.db.transaction(async (tx) => {
    for (const table of ['credits', 'transaction_calls', 'broadcasts', 'transactions', 'authorizations'])
      await tx.query(`delete from ${table}`)
    await tx.query("update checkouts set status = 'OPEN', version = 1")
    await tx.query('delete from events where checkout_version > 1')
    await tx.query('delete from blocks where number > 1')
    await tx.query('update followers set head_number = (select max(number) from blocks)')
  })
  return JSON.parse(Buffer.from(header, 'base64').toString()).payload
}

async function reconcile(shop: Nodes): Promise<void> {
  const rail = openRails(shop.ctx).get(shop.chain.network.caip2) ?? assert.fail()
  await startReconciling(shop.ctx, [rail])
}

for (const [providers, liars] of [
  [3, [0]],
  [3, [1]],
  [4, [3]],
] as const)
  for (const isBound of [true, false])
    test(`after a restore, ${liars} of ${providers} providers cannot move a payment${isBound ? ' with a bound nonce' : ''} to another checkout, and it pays its own`, async () => {
      const shop = await openNodes(providers)
      await shop.mine()
      const [own, others] = [await shop.create('7.00'), await shop.create('7.00')]
      const signed = await payAndRestore(
        shop,
        own,
        isBound ? makeBoundNonce(own, randomBytes(12)) : undefined,
      )
      lieAboutMarker(shop, liars, signed, others)
      await reconcile(shop)
      await shop.follow()
      await shop.mine(3)
      assert.equal((await shop.read(others)).status, 'OPEN')
      assert.equal((await shop.read(own)).status, 'COMPLETED')
    })

test('after a restore, a marker of another checkout does not move a payment whose nonce is bound, whoever tells it', async () => {
  const shop = await openNodes(2)
  await shop.mine()
  const [own, others] = [await shop.create('7.00'), await shop.create('7.00')]
  const signed = await payAndRestore(shop, own, makeBoundNonce(own, randomBytes(12)))
  lieAboutMarker(shop, [0, 1], signed, others)
  await reconcile(shop)
  await shop.follow()
  await shop.mine(3)
  assert.equal((await shop.read(others)).status, 'OPEN')
})

test('after a restore, two providers that contradict each other about a marker decide nothing, and the payment waits', async () => {
  const shop = await openNodes(2)
  await shop.mine()
  const [own, others] = [await shop.create('7.00'), await shop.create('7.00')]
  const signed = await payAndRestore(shop, own, undefined)
  lieAboutMarker(shop, [0], signed, others)
  await reconcile(shop)
  await assert.rejects(shop.follow(), /Too few nodes agree/)
  assert.deepEqual(
    [await shop.read(own), await shop.read(others)].map(({ status }) => status),
    ['OPEN', 'OPEN'],
  )
  assert.equal((await shop.pay(own)).statusCode, 503)
  shop.first.lie = (_, result) => result
  await shop.follow()
  assert.equal((await shop.read(own)).status, 'COMPLETED')
})
