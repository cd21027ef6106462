import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encodeTransfer, type Signed } from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'
import { openFaultyNode } from '../../support/faulty-node.ts'
import { halt, resume } from './chain-faults.ts'
import { type Deployment, openDeployment, payTo } from './deployment.ts'
import { endProgram, startProgram, until } from './processes.ts'
import { rounds } from './rounds.ts'

type Leases = { settler: string | null; follower: string | null; schedules: number }

/** Who holds which lease, by the database's clock. */
async function readLeases({ db }: Deployment): Promise<Leases> {
  const [leases] = await db.query<Leases>(
    `select (select lease_holder from settlers where leased_until > clock()) as settler,
       (select lease_holder from followers where leased_until > clock()) as follower,
       (select count(*)::int from schedules where leased_until > clock()) as schedules`,
  )
  return leases ?? assert.fail()
}

async function orderMany(deployment: Deployment, count: number) {
  return await Promise.all(Array.from({ length: count }, (_, i) => deployment.order(deployment.payer(i))))
}

async function payMany(deployment: Deployment, orders: Awaited<ReturnType<typeof orderMany>>): Promise<void> {
  for (const { status } of await Promise.all(orders.map(({ id, header }) => deployment.pay(id, header))))
    assert.equal(status, 200)
}

function startSecond({ environment, settlerKeysFile }: Deployment) {
  return startProgram(['work'], { ...environment, SETTLER_KEYS_FILE: settlerKeysFile })
}

describe('when a worker stops, another takes over', { concurrency: 2 }, () => {
  test('a worker stopped gently in the middle of payments holds no leases afterwards', async (t) => {
    const deployment = await openDeployment(await openChain({ blockTimeSeconds: 1 }))
    for (const round of rounds(t, 'stops', 3, 50)) {
      const orders = await orderMany(deployment, 6)
      const paying = payMany(deployment, orders)
      const { header } = orders[round % orders.length] ?? assert.fail()
      await (round % 2 === 0
        ? deployment.untilState(header, 'sent')
        : deployment.untilState(header, 'claimed', 'sent'))
      const { running } = deployment
      assert(running.work)
      assert.equal(await endProgram(running.work, 'SIGTERM'), 0)
      assert.deepEqual(await readLeases(deployment), { settler: null, follower: null, schedules: 0 })
      await deployment.start('work')
      await paying
    }
    await deployment.check()
  })

  test('a worker frozen past its lease uses no nonce of the worker that took over', async (t) => {
    const deployment = await openDeployment(await openChain({ blockTimeSeconds: 1 }))
    const { chain, running } = deployment
    const other = startSecond(deployment)
    for (const round of rounds(t, 'freezes', 1, 20)) {
      const [awake, frozen] = round % 2 === 0 ? [other, running.work] : [running.work, other]
      assert(awake && frozen)
      const { settler, follower } = await until('a worker holds both leases', async () => {
        const leases = await readLeases(deployment)
        return leases.settler && leases.follower ? leases : null
      })
      await halt(chain)
      const first = await orderMany(deployment, 3)
      const paying = payMany(deployment, first)
      await deployment.untilState(first[0]?.header ?? '', 'sent')
      frozen.child.kill('SIGSTOP')
      await resume(chain)
      await paying
      const second = await orderMany(deployment, 3)
      await payMany(deployment, second)
      const after = await readLeases(deployment)
      frozen.child.kill('SIGCONT')
      assert.notEqual(after.settler, null)
      if (round === 0) {
        assert.notEqual(after.settler, settler)
        assert.notEqual(after.follower, follower)
      }
      await payMany(deployment, await orderMany(deployment, 6))
      await deployment.check()
      assert.equal((await chain.transferLogs({ to: payTo })).length, 12 * (round + 1))
    }
  })

  test('a worker that was away for hundreds of blocks reads them all, even from a node that keeps few states', async () => {
    const chain = await openChain({ blockTimeSeconds: 1 })
    const node = await openFaultyNode(chain.url)
    let head = 0
    node.lie = ({ method, params }, result) => {
      const isOld = method === 'eth_getTransactionCount' && Number.parseInt(String(params[1]), 16) < head - 64
      return isOld ? new Error('missing trie node') : result
    }
    const deployment = await openDeployment(chain, { rpcUrls: [node.url] })
    const { id, header } = await deployment.order(deployment.payer(0))
    await deployment.stop('work', 'SIGKILL')
    const paying = deployment.pay(id, header)
    await deployment.untilState(header, 'claimed')
    // Someone else sends it.
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: Signed }
    await chain.perform({ to: chain.token, data: encodeTransfer(payload) })
    await chain.mine(250)
    head = Number(await chain.client.getBlockNumber())
    await deployment.moveClock(11)
    await deployment.start('work')
    assert.equal((await paying).status, 200)
    await deployment.check()
  })
})
