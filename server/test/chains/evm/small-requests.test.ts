/** Two providers that take few calls per request and few blocks per question: the chain is followed through everything. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openDriven } from '../../payments/adversity/driven.ts'
import { until } from '../../support/until.ts'
import type { Policy } from '../support/policies.ts'
import { openProvider } from '../support/provider.ts'

const providers = [await openProvider(''), await openProvider('')]
const shop = await openDriven({ network: 'BASE_MAINNET', nodes: providers })
const readFollower = async () => {
  const [row] = await shop.ctx.db.query<{ head: string; safe: string }>(
    'select head_number as head, safe_number as safe from followers',
  )
  return { head: Number.parseInt(row?.head ?? '0', 10), safe: Number.parseInt(row?.safe ?? '0', 10) }
}
/** Finality is read every 16 seconds while nothing waits for it. */
let aheadSeconds = 0
const lookAtFinality = async () => {
  aheadSeconds += 20
  shop.clock.now = new Date(Date.now() + aheadSeconds * 1_000)
  await shop.mine()
  shop.clock.now = null
}

/** A payment that a reorganisation took back is sent again some seconds after it was sent, and this one waits for it. */
async function payOne(): Promise<void> {
  await shop.idle()
  const payments = await shop.prepare(1)
  const [answer] = await shop.present(payments)
  let status: number | null = null
  void answer?.then(({ statusCode }) => {
    status = statusCode
  })
  await until('answered', async () => {
    await shop.send()
    await shop.mine()
    return status !== null
  })
  assert.equal(status, 200)
}

// What was refused once is remembered, so each takes less than the one before.
const cases: readonly (readonly [Policy, readonly number[]])[] = [
  [{ callsMax: 10, refusal: 'status-200', blocksMax: 100 }, [3]],
  [{ callsMax: 10, refusal: 'one-error', blocksMax: 5 }, [1, 7]],
  [{ callsMax: 3, refusal: 'status-400', blocksMax: 5 }, [3, 20]],
  [{ callsMax: 2, refusal: 'status-413', blocksMax: 2 }, [2]],
  [{ callsMax: 1, refusal: 'status-400', blocksMax: 1 }, [3, 12]],
]
for (const [policy, depths] of cases) {
  const { callsMax, blocksMax } = policy
  test(`at most ${callsMax} calls and ${blocksMax} blocks: payments complete, reorganisations are followed, and blocks become safe`, async () => {
    for (const provider of providers) provider.policy = policy
    await shop.mine(40)
    await payOne()
    for (const depth of depths) {
      await shop.chain.reorg(depth)
      await shop.mine()
      await shop.mine()
      assert.equal((await readFollower()).head, Number(await shop.chain.client.getBlockNumber()), `${depth}`)
    }
    await payOne()
    const { safe } = await readFollower()
    await shop.mine(30)
    await lookAtFinality()
    await lookAtFinality()
    assert((await readFollower()).safe >= safe + 30)
  })
}
