import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { Refund } from '@farthing/sdk'
import type { TypedDataDefinition } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { CrashPoint } from '../../../src/crash.ts'
import { fundedKey } from '../../support/chain/evm.ts'
import { openChain } from '../../support/chain/open.ts'
import { reached, throughDeaths } from './deaths.ts'
import { type Deployment, openDeployment, payTo } from './deployment.ts'
import { until } from './processes.ts'
import { rounds } from './rounds.ts'

/** The key of the store's wallet. */
const wallet = privateKeyToAccount(fundedKey(3))
const servePoints = [
  ['prepare-before-commit', 'prepare-after-commit'],
  ['sign-before-commit', 'sign-after-commit'],
] as const
const workPoints = [
  'send-before-commit',
  'send-after-commit',
  'block-before-commit',
  'watch-before-commit',
  'watch-after-commit',
] as const satisfies readonly CrashPoint[]

/** A payment of 1.00 that is final. */
async function pay(deployment: Deployment, round: number): Promise<string> {
  const { id, header } = await deployment.order(deployment.payer(round))
  assert.equal((await deployment.pay(id, header)).status, 200)
  await deployment.chain.mine(9)
  return await until('the payment is final', async () => {
    const [row] = await deployment.db.query<{ id: string }>(
      'select payment_id as id from credits where checkout_id = $1 and finalized_at is not null',
      [id],
    )
    return row?.id
  })
}

/** Repeats a request, as the docs say, until it has an answer that is not about us. */
async function post<Body>(
  deployment: Deployment,
  path: string,
  body: object = {},
  key = randomUUID(),
): Promise<Body> {
  const headers = {
    'x-api-key': deployment.key,
    'content-type': 'application/json',
    'idempotency-key': key,
  }
  const init = { method: 'POST', headers, body: JSON.stringify(body) }
  const answer = await until(path, async () => {
    const given = await deployment.request(path, init)
    return given && given.status < 500 ? given : null
  })
  assert(answer.status < 300, JSON.stringify(answer.body))
  return answer.body as Body
}

test('killed at any point of its way, a refund is prepared, signed, sent, found and reported once', async (t) => {
  assert.equal(wallet.address, payTo)
  const chain = await openChain({ blockTimeSeconds: 1 })
  const deployment = await openDeployment(chain, { payers: 20 })
  await deployment.db.query('update wallets set proven_at = clock()')
  for (const round of rounds(t, 'rounds', 2, 20)) {
    const paymentId = await pay(deployment, round)
    const payer = deployment.payer(round)
    const before = await chain.balance(payer.address)
    const { id } = await post<Refund>(deployment, `/api/v1/payments/${paymentId}/refunds`)
    const prepare = () =>
      post<{ typedData: TypedDataDefinition }>(deployment, `/api/v1/refunds/${id}/prepare`)
    const { typedData } = await throughDeaths(deployment, 'serve', servePoints[0], prepare)
    assert.deepEqual((await prepare()).typedData, typedData)
    const signature = await wallet.signTypedData(typedData)
    await deployment.stop('work')
    const present = () => post<Refund>(deployment, `/api/v1/refunds/${id}/signature`, { signature })
    await throughDeaths(deployment, 'serve', servePoints[1], present)
    await throughDeaths(deployment, 'work', workPoints, () =>
      until('the refund completes', async () => {
        const [row] = await deployment.db.query<{ status: string }>(
          'select status from refunds where id = $1',
          [id],
        )
        return row?.status === 'COMPLETED'
      }),
    )
    assert.equal((await present()).status, 'COMPLETED')
    assert.equal((await chain.balance(payer.address)) - before, 1_000_000n)
    assert.equal((await chain.transferLogs({ from: payTo, to: payer.address })).length, 1)
    const told = await deployment.db.query<{ type: string }>(
      `select type from events where data -> 'refund' ->> 'id' = $1 order by position`,
      [id],
    )
    assert.deepEqual(
      told.map(({ type }) => type),
      ['refund.requested', 'refund.completed'],
    )
  }
  await deployment.check()
})

test('every crash point of a refund was reached', () => {
  const missed = [...servePoints.flat(), ...workPoints].filter((point) => (reached.get(point) ?? 0) < 2)
  assert.deepEqual(missed, [])
})
