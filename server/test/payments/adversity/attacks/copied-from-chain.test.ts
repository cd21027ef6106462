/**
 * Attack: somebody copies an authorization that has landed, and presents it for a checkout of the same price, while the
 * provider that is asked first is behind and says that its nonce is unused.
 * What should hold: what was on the chain before it was presented pays no checkout, unless its nonce is bound to that one.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { Hex } from 'viem'
import type { Lie } from '../../../../../chaos/harness/liar.ts'
import { makeBoundNonce } from '../../../../src/payments/nonces.ts'
import { encodeTransfer, newPayer, signAuthorization } from '../../../support/chain/evm-payment.ts'
import { payTo } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'
import { endWaits } from './support/present.ts'
import { openNodes } from './support/two-nodes.ts'

const stranger: Hex = '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f'
type Nodes = Awaited<ReturnType<typeof openNodes>>

/** Answers truthfully, as of some blocks ago. */
function behind(blocks: number): Lie {
  return async ({ method, params }, ask) => {
    const head = Number.parseInt(await ask<Hex>('eth_blockNumber'), 16) - blocks
    const at = `0x${head.toString(16)}`
    if (method === 'eth_blockNumber') return at
    const wanted = Number.parseInt(String(params[0]), 16)
    if (method === 'eth_getBlockByNumber' && wanted > head) return null
    if (method === 'eth_sendRawTransaction') return await ask(method, ...params)
    return await ask(
      method,
      ...params.map((param) => (param === 'latest' || param === 'pending' ? at : param)),
    )
  }
}

/** Somebody's authorization of 5.00 to the store's wallet, sent by a stranger. `nonce` is random unless given. */
async function landElsewhere(shop: Nodes, nonce?: Hex) {
  const victim = newPayer()
  await shop.chain.mint(victim.address, 5_000_000n)
  await shop.mine(4)
  await shop.send()
  const signed = await signAuthorization({
    key: victim.key,
    domain: shop.chain.domain,
    to: payTo,
    value: 5_000_000n,
    validBefore: BigInt(Math.floor(Date.now() / 1_000) + 250),
    ...(nonce && { nonce }),
  })
  await shop.chain.send({ to: shop.chain.token, data: encodeTransfer(signed), from: stranger })
  return signed
}

async function headerFor(shop: Nodes, id: string, signed: Awaited<ReturnType<typeof signAuthorization>>) {
  const { accepts, resource } = await shop.require(id)
  const payload = { x402Version: 2, payload: signed, resource, accepted: accepts[0] }
  return Buffer.from(JSON.stringify(payload)).toString('base64')
}

for (const [providers, isShared, lag] of [
  [2, false, 1],
  [3, false, 1],
  [3, true, 3],
  [4, false, 2],
] as const)
  test(`of ${providers} providers the first is ${lag} behind: a copied authorization pays nothing${isShared ? ' at a shared wallet' : ''}`, async () => {
    const shop = await openNodes(providers)
    if (isShared) await shop.ctx.db.query('update wallets set shared_elsewhere = true')
    const signed = await landElsewhere(shop)
    await shop.mine()
    const id = await shop.create('5.00')
    const header = await headerFor(shop, id, signed)
    shop.first.liar = behind(lag)
    const answer = await shop.pay(id, header)
    assert.equal(answer.statusCode, 402, answer.body)
    assert.match(answer.body, /nonce_already_used/)
    assert.equal((await shop.read(id)).status, 'OPEN')
  })

test('one that is not known as landed when it is presented pays nothing either, once its block is read', async () => {
  const shop = await openNodes(2)
  const signed = await landElsewhere(shop)
  await shop.chain.mine()
  const { timestamp } = await shop.chain.client.getBlock()
  const landedMs = Number.parseInt(`${timestamp}`, 10) * 1_000
  // Blocks have no fractions of a second, so what is presented within one may have been there first.
  await until('the block is a second old', async () => Date.now() > landedMs + 1_000)
  // Neither the provider nor our follower has the block yet.
  const id = await shop.create('5.00')
  const header = await headerFor(shop, id, signed)
  for (const node of shop.nodes) node.liar = behind(1)
  let status = 0
  const answer = shop.pay(id, header)
  void answer.then(({ statusCode }) => {
    status = statusCode
  })
  await until('claimed or answered', async () => status !== 0 || (await shop.read(id)).status !== 'OPEN')
  for (const node of shop.nodes) node.liar = null
  await shop.mine(14)
  await shop.bury()
  await endWaits(shop)
  assert.notEqual((await answer).statusCode, 200)
  assert.equal((await shop.read(id)).status, 'OPEN')
  const [found] = await shop.ctx.db.query<{ checkout_id: string | null; hint: string | null }>(
    `select k.checkout_id, (select h.checkout_id from payment_hints h where h.payment_id = k.payment_id) as hint
     from credits k where k.nonce = $1 and k.orphaned_at is null`,
    [signed.authorization.nonce],
  )
  assert.deepEqual(found, { checkout_id: null, hint: id })
})

test('one whose nonce is bound to the checkout pays it, although it landed before it was presented', async () => {
  const shop = await openNodes(2)
  const id = await shop.create('5.00')
  const signed = await landElsewhere(shop, makeBoundNonce(id, randomBytes(12)))
  await shop.mine()
  const answer = shop.pay(id, await headerFor(shop, id, signed))
  await until('claimed', async () => (await shop.read(id)).status !== 'OPEN')
  await shop.mine()
  assert.equal((await answer).statusCode, 200)
  assert.equal((await shop.read(id)).status, 'COMPLETED')
})
