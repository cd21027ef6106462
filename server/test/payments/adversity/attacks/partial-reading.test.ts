/**
 * Attack: a node omits one payment of a batch when its block is first read. The other payments get lower positions
 * within the transaction, which clash with those of the complete second reading, so that no block becomes safe any
 * more.
 * What should hold: the second reading corrects the first.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atEnd } from '../../../support/at-end.ts'
import { newPayer } from '../../../support/chain/evm-payment.ts'
import { until } from '../../../support/until.ts'
import { endWaits } from './support/present.ts'
import { openTwoNodes } from './support/two-nodes.ts'

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
