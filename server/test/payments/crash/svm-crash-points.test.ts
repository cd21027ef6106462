import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findTokenAccount } from '../../../src/chains/svm/transfer.ts'
import { crashPoints } from '../../../src/crash.ts'
import { openChain } from '../../support/chain/open.ts'
import { reached, throughDeaths } from './deaths.ts'
import { until } from './processes.ts'
import { rounds } from './rounds.ts'
import { openSvmDeployment, type SvmDeployment } from './svm-deployment.ts'

/**
 * As on EVM chains: a payment survives a series of crashes, and the books are compared with the chain afterwards.
 * Blocks come slowly, so that a blockhash outlives a few starts.
 */
async function openOwn(finalizedAfter = 8): Promise<SvmDeployment> {
  return await openSvmDeployment(await openChain({ network: 'SOLANA_LOCAL', slotMs: 600, finalizedAfter }))
}

describe('killed at any point, a payment on Solana ends as it must', { concurrency: 2 }, () => {
  test('in serve: a checkout is created once and paid once', async (t) => {
    const deployment = await openOwn()
    for (const _ of rounds(t, 'rounds', 1, 50)) {
      const payer = await deployment.chain.payer()
      const id = await throughDeaths(deployment, 'serve', ['create-before', 'create-after'], () =>
        deployment.create(),
      )
      await throughDeaths(
        deployment,
        'serve',
        ['verify-before', 'claim-before', 'claim-after', 'answer-before'],
        () => deployment.payUntilPaid(id, payer),
      )
      const next = await deployment.create()
      await throughDeaths(deployment, 'serve', ['wait-before'], () => deployment.payUntilPaid(next, payer))
      await deployment.check()
    }
  })

  test('in work: simulated, signed, sent, seen and final, with a crash at each step', async (t) => {
    const deployment = await openOwn()
    for (const _ of rounds(t, 'rounds', 1, 50)) {
      const payer = await deployment.chain.payer()
      const id = await deployment.create()
      await throughDeaths(
        deployment,
        'work',
        [
          'simulate-before',
          'simulate-after',
          'send-before-commit',
          'send-after-commit',
          'broadcast-before-note',
          'block-before-commit',
          'block-after-commit',
          'finality-before-commit',
          'finality-after-commit',
        ],
        () => deployment.payUntilPaid(id, payer),
      )
      const next = await deployment.create()
      await throughDeaths(deployment, 'work', ['broadcast-after-note'], () =>
        deployment.payUntilPaid(next, payer),
      )
      assert.equal((await deployment.read(id)).status, 'COMPLETED')
      await deployment.check()
    }
  })

  test('in work: refused in simulation, expired by age, and taken back by a fork', async (t) => {
    const deployment = await openOwn(40)
    const { chain } = deployment
    for (const _ of rounds(t, 'rounds', 1, 50)) {
      const poor = await chain.payer()
      const refusedId = await deployment.create()
      const refusedHeader = await deployment.sign(refusedId, poor)
      // Killed rather than stopped, so that its settler still counts as running.
      await deployment.stop('work', 'SIGKILL')
      const asking = deployment.pay(refusedId, refusedHeader)
      await deployment.untilState(refusedId, 'claimed')
      const found = chain.account(await findTokenAccount(poor.address, chain.mint))
      assert(found.exists)
      const emptied = new Uint8Array(found.data)
      emptied.fill(0, 64, 72)
      chain.plant({ ...found, data: emptied })
      const refused = await throughDeaths(
        deployment,
        'work',
        ['reject-before-commit', 'reject-after-commit'],
        () => asking,
      )
      assert.equal(refused.status, 402)
      await deployment.check()

      const payer = await chain.payer()
      const id = await deployment.create()
      await deployment.untilReady()
      chain.meddle(({ method }) => (method === 'sendTransaction' ? 'drop' : null))
      const paying = deployment.pay(id, await deployment.sign(id, payer))
      await deployment.untilState(id, 'sent')
      chain.mine(270)
      const dead = await throughDeaths(
        deployment,
        'work',
        ['bury-before-commit', 'bury-after-commit'],
        () => paying,
      )
      chain.meddle(null)
      assert.deepEqual([dead.status, dead.body.error], [402, 'blockhash_expired'])
      await deployment.payUntilPaid(id, payer)
      await deployment.check()

      const again = await deployment.create()
      const header = await deployment.sign(again, payer)
      // Its blockhash is from a block that the fork leaves in place.
      chain.mine(20)
      assert.equal((await deployment.pay(again, header)).status, 200)
      await deployment.stop('work')
      chain.meddle(({ method }) => (method === 'sendTransaction' ? 'drop' : null))
      const paidIn = await deployment.slotOf(again)
      // Counted at the last moment: slots pass while we ask in which one it was paid.
      chain.fork(chain.slot() - paidIn + 1)
      await throughDeaths(deployment, 'work', ['orphan-before-commit', 'orphan-after-commit'], async () => {
        await until('the store is notified that the payment is gone', async () =>
          (await deployment.events(again)).includes('payment.reorged'),
        )
      })
      chain.meddle(null)
      await until(
        'the checkout is paid again',
        async () => (await deployment.read(again)).status === 'COMPLETED',
      )
      await deployment.check()
    }
  })
})

/** Points that exist only on chains with account nonces and blocks read one by one, or are not part of a payment. */
const elsewhere =
  /^(replace|fill|adopt|sequence|expire|decide|reconcile|prepare|sign|watch|hold|retention|book)-|^wait-after$/

test('every crash point of a payment was reached', () => {
  assert.deepEqual(
    crashPoints.filter((point) => !elsewhere.test(point) && !reached.has(point)),
    [],
  )
})
