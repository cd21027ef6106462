import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Hex } from 'viem'
import { crashPoints } from '../../../src/crash.ts'
import { makeBoundNonce } from '../../../src/payments/nonces.ts'
import { encodeTransfer, type Payer, type Signed } from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'
import { blacklist, halt, jumpPast, raiseBaseFee, reorgFrom, resume, untilPooled } from './chain-faults.ts'
import { reached, throughDeaths } from './deaths.ts'
import { type Deployment, openDeployment, payTo, readHeader } from './deployment.ts'
import { until } from './processes.ts'
import { renewing, rounds } from './rounds.ts'

/** Every payment here survives a series of crashes. Clients repeat the same header until they have an answer. */
function openOwn(): Promise<Deployment> {
  return openChain({ blockTimeSeconds: 1 }).then((chain) => openDeployment(chain))
}

describe('killed at any point, a payment ends as it must', { concurrency: 3 }, () => {
  test('in serve: a checkout is created once and paid once', async (t) => {
    const deployment = await openOwn()
    for (const round of rounds(t, 'rounds', 2, 50)) {
      const payer = deployment.payer(round)
      const id = await throughDeaths(deployment, 'serve', ['create-before', 'create-after'], () =>
        deployment.create(),
      )
      const header = await deployment.sign(id, payer)
      const answer = await throughDeaths(
        deployment,
        'serve',
        ['verify-before', 'claim-before', 'claim-after', 'answer-before'],
        () => deployment.pay(id, header),
      )
      assert.equal(answer.status, 200)
      assert.equal((await deployment.pay(id, header)).transaction, answer.transaction)
      const first = await deployment.order(payer)
      const second = await deployment.order(payer)
      const impatient = await throughDeaths(deployment, 'serve', ['wait-before'], () =>
        deployment.pay(first.id, first.header),
      )
      assert.equal(impatient.status, 200)
      await halt(deployment.chain)
      const waited = await throughDeaths(deployment, 'serve', ['wait-after'], async () => {
        const waiting = deployment.pay(second.id, second.header)
        await deployment.untilState(second.header, 'sent')
        await resume(deployment.chain)
        return await waiting
      })
      assert.equal(waited.status, 200)
      await deployment.check()
      const [made] = await deployment.db.query('select count(*)::int as checkouts from checkouts')
      assert.deepEqual(made, { checkouts: 3 * (round + 1) })
    }
  })

  test('in a lane, the follower and the event log: a payment is sent, found and reported once', async (t) => {
    const deployment = await openOwn()
    for (const round of rounds(t, 'rounds', 2, 50)) {
      const orders = await Promise.all([0, 1, 2].map((i) => deployment.order(deployment.payer(round + i))))
      const answers = await throughDeaths(
        deployment,
        'work',
        [
          'simulate-before',
          'simulate-after',
          'send-before-commit',
          'send-after-commit',
          'broadcast-before-note',
          'broadcast-after-note',
          'block-before-commit',
          'block-after-commit',
          'finality-before-commit',
          'finality-after-commit',
        ],
        () => Promise.all(orders.map(({ id, header }) => deployment.pay(id, header))),
      )
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200],
      )
      await deployment.check()
    }
  })

  test('while a payment is rejected, adopted or accepted, an event is numbered, and a checkout expires', async (t) => {
    const deploymentIn = renewing(20, openOwn)
    for (const round of rounds(t, 'rounds', 2, 50)) {
      const deployment = await deploymentIn(round)
      const { chain } = deployment
      const payer = await deployment.fund()
      // Good when it was claimed; by the time a lane checks it, the token refuses it.
      const refused = await deployment.order(payer)
      await deployment.stop('work', 'SIGKILL')
      await deployment.moveClock(11)
      const asking = deployment.pay(refused.id, refused.header)
      await deployment.untilState(refused.header, 'claimed')
      await blacklist(chain, payer.address, true)
      const answer = await throughDeaths(
        deployment,
        'work',
        ['reject-before-commit', 'reject-after-commit'],
        () => asking,
      )
      assert.equal(answer.status, 402)
      await blacklist(chain, payer.address, false)
      assert.equal((await deployment.pay(refused.id, await deployment.sign(refused.id, payer))).status, 200)

      // Someone else settled it before it was presented.
      const id = await deployment.create()
      const nonce = makeBoundNonce(id, randomBytes(12))
      const header = await deployment.sign(id, payer, { nonce })
      const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: Signed }
      await chain.perform({ to: chain.token, data: encodeTransfer(payload) })
      await until('the payment is seen', async () => {
        const found = await deployment.db.query('select nonce from credits where nonce = $1', [nonce])
        return found.length > 0
      })
      // Claimed while no worker runs, so that the first new block is read with the claim in place.
      await deployment.stop('work', 'SIGKILL')
      const presenting = deployment.pay(id, header)
      await deployment.untilState(header, 'claimed')
      const adopted = await throughDeaths(deployment, 'work', ['adopt-before-commit'], () => presenting)
      assert.equal(adopted.status, 200)

      const late = await throughDeaths(
        deployment,
        'work',
        ['sequence-before-commit', 'sequence-after-commit'],
        () => deployment.create(),
      )
      await throughDeaths(deployment, 'work', ['expire-before-commit', 'expire-after-commit'], () =>
        deployment.expireIn(late, 0),
      )
      await until('the checkout expires', async () => (await deployment.read(late)).status === 'EXPIRED')
      assert.equal((await deployment.pay(late)).status, 410)
      assert.deepEqual(await deployment.events(late), ['checkout.created', 'checkout.expired'])

      // Money without a checkout, which the store accepts for this one.
      await chain.mint(payTo, 1_234_567n + BigInt(round))
      const paymentId = await until('the money is seen', async () => {
        const [found] = await deployment.db.query<{ id: string }>(
          'select payment_id as id from credits where checkout_id is null and amount = $1',
          [`${1_234_567 + round}`],
        )
        return found?.id
      })
      const accepted = await throughDeaths(
        deployment,
        'work',
        ['decide-before-commit', 'decide-after-commit'],
        () => deployment.accept(paymentId, late),
      )
      assert.equal(accepted.body.checkoutId, late)
      assert.deepEqual((await deployment.events(late)).slice(2, 4), [
        'payment.accepted',
        'checkout.completed',
      ])
      await deployment.check()
    }
  })

  test('while a fee is raised, and while the chain takes a payment back', async (t) => {
    const deployment = await openOwn()
    const { chain, settler } = deployment
    for (const round of rounds(t, 'rounds', 2, 50)) {
      const cheap = await deployment.order(deployment.payer(round))
      await halt(chain)
      const paying = deployment.pay(cheap.id, cheap.header)
      await untilPooled(chain, settler)
      await deployment.stop('work', 'SIGKILL')
      await deployment.moveClock(11)
      await raiseBaseFee(chain, 50)
      await resume(chain)
      const replaced = await throughDeaths(
        deployment,
        'work',
        ['replace-before-commit', 'replace-after-commit'],
        () => paying,
      )
      assert.equal(replaced.status, 200)
      await deployment.check()

      const { blockNumber } = await chain.client.getTransactionReceipt({ hash: replaced.transaction as Hex })
      await deployment.stop('work')
      await reorgFrom(chain, blockNumber)
      await throughDeaths(
        deployment,
        'work',
        ['orphan-before-commit', 'orphan-after-commit', 'block-before-commit'],
        () => until('the checkout is paid again', async () => (await deployment.events(cheap.id)).length > 5),
      )
      assert.equal((await deployment.pay(cheap.id, cheap.header)).status, 200)
      assert.deepEqual(await deployment.events(cheap.id), [
        'checkout.created',
        'checkout.processing',
        'checkout.completed',
        'checkout.processing',
        'payment.reorged',
        'checkout.completed',
      ])
      await deployment.check()
    }
  })

  test('while a payment is given up for dead: its nonce is filled, and the payer pays once', async (t) => {
    const deploymentIn = renewing(5, openOwn)
    for (const round of rounds(t, 'rounds', 2, 50)) {
      const deployment = await deploymentIn(round)
      await buryAndPayAgain(deployment, deployment.payer(round))
    }
  })
})

async function buryAndPayAgain(deployment: Deployment, payer: Payer): Promise<void> {
  const { chain, settler } = deployment
  const { id, header } = await deployment.order(payer, { validBefore: await deployment.soon() })
  await halt(chain)
  const asking = deployment.pay(id, header)
  await untilPooled(chain, settler)
  await deployment.stop('work', 'SIGKILL')
  await deployment.moveClock(11)
  // Higher than a payment may cost, so that the signed transaction cannot be mined and is not worth replacing. The fee
  // falls by an eighth per block, so it takes a minute until that transaction could be mined after all.
  await raiseBaseFee(chain, 2_000)
  await jumpPast(chain, readHeader(header))
  await resume(chain)
  const answer = await throughDeaths(
    deployment,
    'work',
    ['bury-before-commit', 'bury-after-commit', 'fill-before-commit', 'fill-after-commit'],
    () => asking,
  )
  assert.equal(answer.status, 402)
  assert.equal(answer.body.error, 'authorization_expired')
  assert.equal((await deployment.pay(id, await deployment.sign(id, payer))).status, 200)
  await deployment.check()
}

test('every crash point was reached', () => {
  // Those of a restore, of a refund, of an owner in the directory and of retention have tests of their own.
  const elsewhere = /^(reconcile|prepare|sign|watch|hold|retention|book)-/
  const missed = crashPoints.filter((point) => !elsewhere.test(point) && !reached.has(point))
  assert.deepEqual(missed, [])
})
