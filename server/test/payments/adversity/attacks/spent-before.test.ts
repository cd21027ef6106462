/**
 * Attack: a payer cancels the nonces that it bound to checkouts, and presents them afterwards. That each of them never paid
 * takes a search through all blocks in which it could have, and providers limit how many blocks a question may be about.
 * What should hold: everybody else's dead payments are given up as usual, and in the end the attacker's are too.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encodeFunctionData } from 'viem'
import { openChain } from '../../../../src/chains/evm/chain.ts'
import { parseNode } from '../../../../src/config/parse.ts'
import { buryDead } from '../../../../src/payments/evm/bury-dead.ts'
import { openProvider } from '../../../chains/support/provider.ts'
import { type TestChain, tokenAbi } from '../../../support/chain/evm.ts'
import { signCancellation } from '../../../support/chain/evm-payment.ts'
import { type Driven, openDriven, type Prepared } from '../driven.ts'

/** More than are searched in one run. */
const decoys = 7

async function cancel({ domain, token }: TestChain, { payer, signed: { authorization } }: Prepared) {
  const signature = await signCancellation({ key: payer.key, domain, nonce: authorization.nonce })
  const args = [payer.address, authorization.nonce, signature] as const
  return { to: token, data: encodeFunctionData({ abi: tokenAbi, functionName: 'cancelAuthorization', args }) }
}

/** While nothing waits for it, finality is read every 16 seconds by our clock, so the test sets it ahead. */
async function lookAtFinality(shop: Driven, aheadSeconds: number) {
  shop.clock.now = new Date(Date.now() + aheadSeconds * 1_000)
  await shop.mine()
  shop.clock.now = null
}

describe('one payer’s canceled nonces do not keep others from signing again', { concurrency: 1 }, () => {
  for (const [blocksMax, isAnswered] of [
    [5, true],
    [500, true],
    [5, false],
  ] as const)
    test(`ranges of ${blocksMax} blocks, searches ${isAnswered ? 'answered' : 'never answered'}`, async () => {
      const shop = await openDriven()
      const { client, network } = shop.chain
      const provider = await openProvider(shop.chain.url, { blocksMax })
      const chain = openChain(network, [parseNode(provider.url)], shop.ctx.now)
      const canceled = await shop.prepare(decoys, undefined, { isBound: true, validSeconds: 150 })
      await shop.submit(await Promise.all(canceled.map((one) => cancel(shop.chain, one))))
      // Until the cancellations are final: what is read again would be found.
      await shop.mine(100)
      await lookAtFinality(shop, 20)
      await shop.idle()
      const answers = await shop.present(canceled)
      const dead = await shop.prepare(2, undefined, { validSeconds: 160 })
      const others = await shop.present(dead)
      await client.increaseTime({ seconds: 240 })
      await shop.mine(100)
      // Of blocks without payments only the last of each range is stored, and a search waits until one so late is safe.
      await shop.mine(10)
      // A payment is dead only so long after its window, by the chain's own time.
      await shop.chain.pass(network.negativeSeconds + 1)
      await lookAtFinality(shop, 40)
      if (!isAnswered)
        provider.answerCall = ({ method }) =>
          method === 'eth_getLogs' ? { code: -32603, message: 'internal error' } : null
      while ((await buryDead(shop.ctx, chain, shop.engine.look)) > 0);
      // The first answers may have been given while nothing was known yet.
      await Promise.all(others)
      for (const answer of await Promise.all(dead.map((one) => shop.pay(one))))
        assert.equal(answer.json().error, 'authorization_expired', answer.body)
      provider.answerCall = () => null
      while ((await buryDead(shop.ctx, chain, shop.engine.look)) > 0);
      await Promise.all(answers)
      for (const answer of await Promise.all(canceled.map((one) => shop.pay(one))))
        assert.equal(answer.json().error, 'nonce_spent_elsewhere', answer.body)
    })
})
