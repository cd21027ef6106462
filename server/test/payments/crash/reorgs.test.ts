import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Hex } from 'viem'
import type { TestChain } from '../../support/chain/evm.ts'
import type { Payer } from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'
import { halt, jumpPast, raiseBaseFee, reorgFrom, resume, untilPooled } from './chain-faults.ts'
import { type Deployment, openDeployment, payTo, readHeader } from './deployment.ts'
import { until } from './processes.ts'
import { renewing, rounds } from './rounds.ts'

const deepest = 12

function openTimed(): Promise<TestChain> {
  return openChain({ blockTimeSeconds: 1 })
}

/** The payers' money is older than any reorganisation here: taking it back too would prove nothing. */
async function openAged(settlers = 1): Promise<Deployment> {
  const deployment = await openDeployment(await openTimed(), { payers: 24, settlers })
  await deployment.chain.mine(deepest)
  return deployment
}

describe('whatever the chain does, a payment is charged once', { concurrency: 2 }, () => {
  test(`reorganisations of 1 to ${deepest} blocks under load`, async (t) => {
    const deployment = await openAged(2)
    const { chain } = deployment
    const paid: { id: string; header: string }[] = []
    for (const round of rounds(t, 'reorganisations', 12, 200)) {
      const orders = await Promise.all(
        Array.from({ length: 4 }, (_, i) => deployment.order(deployment.payer(round * 4 + i))),
      )
      const paying = orders.map(({ id, header }) => deployment.pay(id, header))
      // Odd rounds reorganise once the first payment is answered, even ones while all are on their way.
      if (round % 2 === 1) await Promise.race(paying)
      else await deployment.untilState(orders[0]?.header ?? '', 'sent')
      await chain.reorg((round % deepest) + 1)
      for (const answer of await Promise.all(paying)) assert.equal(answer.status, 200)
      paid.push(...orders)
      if (round % 4 === 3) await deployment.check()
    }
    assert.equal((await chain.transferLogs({ to: payTo })).length, paid.length)
    for (const { id, header } of paid.slice(-deepest)) {
      const { status } = await deployment.pay(id, header)
      assert.equal(status, 200)
    }
  })

  test('a transaction that lands again in another place is the same payment, sent with the same bytes', async (t) => {
    const deployment = await openAged()
    const { chain, settler, db } = deployment
    for (const round of rounds(t, 'reorganisations', 1, 20)) {
      const { id, header } = await deployment.order(deployment.payer(round))
      const { transaction } = await deployment.pay(id, header)
      const hash = transaction as Hex
      const before = await chain.client.getTransactionReceipt({ hash })
      await halt(chain)
      await reorgFrom(chain, before.blockNumber)
      assert.equal(await untilPooled(chain, settler), hash)
      await sendAhead(chain)
      await resume(chain)
      const after = await until('the transaction is mined again', () =>
        chain.client.getTransactionReceipt({ hash }),
      )
      assert.notEqual(after.logs[0]?.logIndex, before.logs[0]?.logIndex)
      await until(
        'the checkout is completed again',
        async () => (await deployment.read(id)).status === 'COMPLETED',
      )
      await deployment.check()
      const credits = await db.query(
        'select payment_id, orphaned_at is null as is_live from credits where checkout_id = $1 order by included_at',
        [id],
      )
      assert.equal(credits.length, 2)
      assert.equal(new Set(credits.map((credit) => (credit as { payment_id: string }).payment_id)).size, 1)
    }
  })

  test('a payment that is taken back for good is reversed, and the checkout can be paid again', async () => {
    const deployment = await openAged()
    const { chain } = deployment
    const payer = deployment.payer(0)
    const { id, header } = await deployment.order(payer, { validBefore: await deployment.soon() })
    const { transaction } = await deployment.pay(id, header)
    const { blockNumber } = await chain.client.getTransactionReceipt({ hash: transaction as Hex })
    await halt(chain)
    await reorgFrom(chain, blockNumber)
    await jumpPast(chain, readHeader(header))
    await resume(chain)
    await until('the checkout is open again', async () => (await deployment.read(id)).status === 'OPEN')
    const refused = await deployment.pay(id, header)
    assert.deepEqual([refused.status, refused.body.error], [402, 'authorization_expired'])
    assert.equal((await deployment.pay(id, await deployment.sign(id, payer))).status, 200)
    assert.deepEqual(await deployment.events(id), [
      'checkout.created',
      'checkout.processing',
      'checkout.completed',
      'checkout.processing',
      'payment.reorged',
      'checkout.reopened',
      'payment.reversed',
      'checkout.processing',
      'checkout.completed',
    ])
    assert.equal((await chain.transferLogs({ from: payer.address, to: payTo })).length, 1)
    await deployment.check()
  })

  test('if the chain halts past validBefore, the payment ends unpaid and is never charged twice', async (t) => {
    const deploymentIn = renewing(5, openAged)
    for (const round of rounds(t, 'halts', 3, 50)) {
      const deployment = await deploymentIn(round)
      await haltPast(deployment, fates[round % fates.length] ?? 'pooled', deployment.payer(round))
      await deployment.check()
    }
  })

  test('a transaction that a node drops is sent again, and one that is too cheap is replaced at its nonce', async (t) => {
    // A raised base fee falls slowly, so a payment sent soon after it would not be too cheap.
    const deploymentIn = renewing(2, openAged)
    for (const round of rounds(t, 'dropped and cheap transactions', 2, 50)) {
      const deployment = await deploymentIn(round)
      const { chain, settler } = deployment
      const { id, header } = await deployment.order(deployment.payer(round))
      await halt(chain)
      const paying = deployment.pay(id, header)
      const hash = await untilPooled(chain, settler)
      const { nonce } = await chain.client.getTransaction({ hash })
      const isCheap = round % 2 === 1
      if (isCheap) {
        await raiseBaseFee(chain, 50)
      } else {
        await chain.dropTransaction(hash)
        assert.equal(await untilPooled(chain, settler), hash)
      }
      await resume(chain)
      const { status, transaction } = await paying
      assert.equal(status, 200)
      const mined = await chain.client.getTransaction({ hash: transaction as Hex })
      assert.equal(mined.nonce, nonce)
      assert.equal(mined.hash === hash, !isCheap)
      await deployment.check()
    }
  })
})

const fates = ['pooled', 'dropped', 'expired'] as const

/** Halts the chain with a payment in its pool, and resumes it once the payment's time has passed. */
async function haltPast(deployment: Deployment, fate: (typeof fates)[number], payer: Payer): Promise<void> {
  const { chain, settler } = deployment
  const { id, header } = await deployment.order(payer, { validBefore: await deployment.soon() })
  await halt(chain)
  const asking = deployment.pay(id, header)
  const hash = await untilPooled(chain, settler)
  if (fate === 'dropped') await chain.dropTransaction(hash)
  if (fate === 'expired') await deployment.expireIn(id, 0)
  await jumpPast(chain, readHeader(header))
  await resume(chain)
  const answer = await asking
  assert.equal(answer.status, fate === 'expired' ? 410 : 402)
  if (fate !== 'expired') {
    assert.equal(answer.body.error, 'authorization_expired')
    assert.equal((await deployment.pay(id, await deployment.sign(id, payer))).status, 200)
  }
  const charged = await chain.transferLogs({ from: payer.address, to: payTo })
  assert.equal(charged.length, fate === 'expired' ? 0 : 1)
}

/** Sends a mint that comes before everything else in its block. */
async function sendAhead(chain: TestChain): Promise<void> {
  await chain.client.sendTransaction({
    account: '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720',
    to: chain.token,
    data: '0x40c10f19000000000000000000000000a0ee7a142d267c1f36714e4a8f75612f20a797200000000000000000000000000000000000000000000000000000000000000001',
    gas: 200_000n,
    maxPriorityFeePerGas: 10n ** 10n,
    maxFeePerGas: 10n ** 12n,
    chain: null,
  })
}
