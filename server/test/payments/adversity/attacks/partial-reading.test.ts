/**
 * Attack: a node omits one payment of a batch when its block is first read. The other payments get lower positions
 * within the transaction, which clash with those of the complete second reading, so that no block becomes safe any
 * more. The same with payments that only their nonces tell apart, as of an agent that pays for two calls.
 * What should hold: the second reading corrects the first.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atEnd } from '../../../support/at-end.ts'
import { newPayer } from '../../../support/chain/evm-payment.ts'
import { until } from '../../../support/until.ts'
import { endWaits } from './support/present.ts'
import { openNodes, openTwoNodes } from './support/two-nodes.ts'

/** Each payment of a batch has two logs: AuthorizationUsed and Transfer. */
const logsPerPayment = 2
const blocksToFinal = 12
const shop = await openTwoNodes()

/** Makes the first node omit the first payment of a batch of this size, once. */
function hideOnce(payments: number): { readonly isHidden: boolean } {
  const state = { isHidden: false }
  shop.first.lie = ({ method }, result) => {
    if (method !== 'eth_getLogs' || state.isHidden) return result
    const logs = result as unknown[]
    if (logs.length < payments * logsPerPayment) return result
    state.isHidden = true
    return logs.slice(logsPerPayment)
  }
  return state
}

test('a payment that the first reading of its block missed is completed by the second', async () => {
  const payers = Array.from({ length: 3 }, newPayer)
  await shop.chain.mint(
    payers.map(({ address }) => address),
    1_000_000n,
  )
  await shop.follow()
  const ids: string[] = []
  atEnd(() => endWaits(shop))
  for (const payer of payers) {
    const id = await shop.create()
    ids.push(id)
    void shop.pay(id, await shop.sign(id, payer))
    await until('claimed', async () => (await shop.read(id)).status === 'PROCESSING')
  }
  const hiding = hideOnce(payers.length)
  await shop.send()
  await shop.mine()
  assert(hiding.isHidden)

  await assert.doesNotReject(shop.mine(blocksToFinal), 'the follower cannot go on')
  const statuses = await Promise.all(ids.map(async (id) => (await shop.read(id)).status))
  assert.deepEqual(statuses, ['COMPLETED', 'COMPLETED', 'COMPLETED'])
})

for (const providers of [2, 3, 4])
  for (const left of ['the first', 'the last'] as const)
    test(`${left} of two equal payments of one payer, which one provider of ${providers} left out while the others were silent, is completed too`, async () => {
      const shop = await openNodes(providers)
      const others = shop.nodes.slice(1)
      atEnd(() => endWaits(shop))
      const payer = await shop.fund()
      await shop.follow()
      const claim = async () => {
        const id = await shop.create()
        void shop.pay(id, await shop.sign(id, payer))
        await until('claimed', async () => (await shop.read(id)).status === 'PROCESSING')
        return id
      }
      // A payer with a settled payment may have two on their way.
      await claim()
      await shop.send()
      await shop.mine()
      const ids = [await claim(), await claim()]
      await shop.send()
      for (const node of others) node.fail('refused')
      const state = { isHidden: false }
      shop.first.lie = ({ method }, result) => {
        const logs = result as unknown[]
        if (method !== 'eth_getLogs' || logs.length !== 2 * logsPerPayment) return result
        state.isHidden = true
        return left === 'the first' ? logs.slice(logsPerPayment) : logs.slice(0, logsPerPayment)
      }
      await shop.mine()
      assert(state.isHidden)
      shop.first.lie = (_, result) => result
      for (const node of others) node.heal()
      for (let i = 0; i < blocksToFinal; i++) {
        // Providers that have failed are asked again after a moment.
        shop.clock.now = new Date(Date.now() + 6_000 * (i + 1))
        await shop.mine()
      }
      const read = await Promise.all(ids.map((id) => shop.read(id)))
      assert.deepEqual(
        read.map(({ status, payment }) => [status, payment?.finality]),
        [
          ['COMPLETED', 'finalized'],
          ['COMPLETED', 'finalized'],
        ],
      )
    })
