import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hex } from 'viem'
import type { Payer } from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'
import { blacklist, reorgFrom } from './chain-faults.ts'
import type { Answer } from './client.ts'
import { copyDatabase } from './database-copy.ts'
import { type Deployment, openDeployment, payTo } from './deployment.ts'
import { runProgram, until } from './processes.ts'
import { rounds } from './rounds.ts'

type Paid = { readonly id: string; readonly header: string; readonly answer: Answer }

async function payNew(deployment: Deployment, payer: Payer): Promise<Paid> {
  const { id, header } = await deployment.order(payer)
  return await payKnown(deployment, { id, header })
}

async function payKnown(
  deployment: Deployment,
  { id, header }: { id: string; header: string },
): Promise<Paid> {
  const answer = await deployment.pay(id, header)
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return { id, header, answer }
}

async function killAll(deployment: Deployment): Promise<void> {
  await Promise.all([deployment.stop('serve', 'SIGKILL'), deployment.stop('work', 'SIGKILL')])
}

test('a database restored to an earlier point loses no payment and charges nobody twice', async (t) => {
  for (const _ of rounds(t, 'restores', 1, 20)) {
    const chain = await openChain({ blockTimeSeconds: 1 })
    const deployment = await openDeployment(chain, { payers: 16 })
    const before = await Promise.all([0, 1, 2, 3].map((i) => payNew(deployment, deployment.payer(i))))
    const open = await Promise.all([4, 5].map((i) => deployment.order(deployment.payer(i))))

    // In the copy this one is claimed but unsent; later it is refused, and paid with another signature.
    const turncoat = deployment.payer(6)
    const refused = await deployment.order(turncoat)
    await deployment.stop('work', 'SIGKILL')
    const refusing = deployment.pay(refused.id, refused.header)
    await deployment.untilState(refused.header, 'claimed')
    // These are on their way when the machine crashes.
    const moving = await Promise.all([7, 8, 9].map((i) => deployment.order(deployment.payer(i))))
    const paying = moving.map((order) => payKnown(deployment, order))
    await deployment.untilState(moving[0]?.header ?? '', 'claimed')
    await killAll(deployment)
    const copy = await copyDatabase(deployment)

    await blacklist(chain, turncoat.address, true)
    await startAll(deployment)
    const moved = await Promise.all(paying)
    assert.equal((await refusing).status, 402)
    await blacklist(chain, turncoat.address, false)
    const header = await deployment.sign(refused.id, turncoat)
    const turned = await payKnown(deployment, { id: refused.id, header })
    const lately = await Promise.all(open.map((order) => payKnown(deployment, order)))
    const lost = await Promise.all([10, 11].map((i) => payNew(deployment, deployment.payer(i))))
    const cursor = String(
      (await deployment.request('/api/v1/events?limit=1', { headers: { 'x-api-key': deployment.key } }))?.body
        .cursor,
    )
    await deployment.check()
    const minedBefore = new Set(
      (await deployment.db.query<{ hash: Hex }>('select hash from broadcasts')).map(({ hash }) => hash),
    )
    const charged = (await chain.transferLogs({ to: payTo })).length

    await killAll(deployment)
    await copy.putBack()
    deployment.answers.splice(0)
    const died = await runProgram(['reconcile', '--yes'], deployment.environment, 'reconcile-before-epoch')
    assert.equal(died.child.signalCode, 'SIGKILL')
    await reconcile(deployment)
    await deployment.moveClock(11)
    await deployment.start('serve')
    // Until the chain is read these are OPEN, and nobody is asked to sign for a checkout that may have been paid.
    for (const { id } of lately) {
      const asked = await deployment.ask(id)
      assert.deepEqual([asked?.status, asked?.code], [503, 'settlement_unavailable'])
    }
    await deployment.start('work')

    // Every paid checkout is paid again as soon as the chain has been read.
    for (const { id, header, answer } of [...before, ...moved, ...lately, turned]) {
      const again = await deployment.pay(id, header)
      assert.equal(again.status, 200, JSON.stringify(again.body))
      assert.equal(again.transaction, answer.transaction)
    }
    // Checkouts created after the copy are unknown, and their money is on the store's list of unmatched payments.
    for (const { id, header } of lost) assert.equal((await deployment.ask(id, header))?.status, 404)
    const unmatched = await until('the lost payments are found', async () => {
      const found = await deployment.db.query<{ transaction_hash: Hex }>(
        'select transaction_hash from credits where orphaned_at is null and checkout_id is null',
      )
      return found.length >= lost.length ? found : null
    })
    assert.deepEqual(
      unmatched.map(({ transaction_hash }) => transaction_hash).sort(),
      lost.map(({ answer }) => answer.transaction).sort(),
    )
    const restarted = await deployment.request(`/api/v1/events?after=${cursor}`, {
      headers: { 'x-api-key': deployment.key },
    })
    assert.equal(restarted?.code, 'log_restarted')

    // No payment is accepted while one from before may still be on its way.
    const fresh = await deployment.create()
    const waiting = await deployment.ask(fresh)
    assert.deepEqual([waiting?.status, waiting?.code], [503, 'settlement_unavailable'])
    for (const { header } of [...before, ...lost]) {
      const stolen = await deployment.ask(fresh, header)
      assert.deepEqual([stolen?.status, stolen?.code], [409, 'authorization_used'])
    }
    assert.equal((await chain.transferLogs({ to: payTo })).length, charged)
    await endWaiting(deployment)
    await payAgain(deployment, fresh, deployment.payer(12))
    assert.equal((await chain.transferLogs({ to: payTo })).length, charged + 1)
    await checkBut(deployment, minedBefore)
    await deployment.end()
  }
})

test('a nonce whose bytes were lost and that a reorganisation then took back is filled', async () => {
  const chain = await openChain({ blockTimeSeconds: 1 })
  const deployment = await openDeployment(chain)
  const { settler } = deployment
  await payNew(deployment, deployment.payer(0))
  const order = await deployment.order(deployment.payer(1))
  await killAll(deployment)
  const copy = await copyDatabase(deployment)
  await startAll(deployment)
  const { answer } = await payKnown(deployment, order)
  await deployment.check()

  await killAll(deployment)
  await copy.putBack()
  deployment.answers.splice(0)
  await reconcile(deployment)
  const { blockNumber } = await chain.client.getTransactionReceipt({ hash: answer.transaction as Hex })
  await reorgFrom(chain, blockNumber)
  assert.equal(await chain.client.getTransactionCount({ address: settler }), 1)
  await startAll(deployment)
  await until('the nonce is filled', async () => {
    return (await chain.client.getTransactionCount({ address: settler })) === 2
  })
  await endWaiting(deployment)
  await payAgain(deployment, order.id, deployment.payer(1))
  assert.equal((await chain.transferLogs({ to: payTo })).length, 2)
  await deployment.check()
})

/** Starts the killed processes again, once their leases have expired. */
async function startAll(deployment: Deployment): Promise<void> {
  await deployment.moveClock(11)
  await Promise.all([deployment.start('serve'), deployment.start('work')])
}

/** Reconciles as if a minute ago, so that the waiting ends within the time that a payer may sign for now. */
async function reconcile(deployment: Deployment): Promise<void> {
  await deployment.moveClock(-60)
  await runProgram(['reconcile', '--yes'], deployment.environment)
  await deployment.moveClock(60)
}

/** Moves the chain to a time when nothing from before the restore can still be on its way. */
async function endWaiting({ db, chain }: Deployment): Promise<void> {
  const [restore] = await db.query<{ end: Date }>(
    "select started_at + interval '361 seconds' as end from restores where finished_at is null",
  )
  assert(restore)
  await chain.setNextBlockTimestamp(BigInt(Math.ceil(restore.end.getTime() / 1_000)))
}

/** Signs for the longest allowed time, because the chain's clock is ahead of ours. */
async function payAgain(deployment: Deployment, id: string, payer: Payer): Promise<void> {
  const validBefore = BigInt(Math.floor(Date.now() / 1_000) + 355)
  await payKnown(deployment, { id, header: await deployment.sign(id, payer, { validBefore }) })
}

/** Checks everything, except that the bytes of transactions sent after the copy are gone. */
async function checkBut(deployment: Deployment, minedBefore: ReadonlySet<Hex>): Promise<void> {
  const isKnownLoss = (sentence: string) =>
    /^I6 \S+ was mined but is not in broadcasts$/.test(sentence) &&
    minedBefore.has(sentence.split(' ')[1] as Hex)
  await deployment.check().catch((error: { actual?: unknown }) => {
    assert(Array.isArray(error.actual), String(error))
    assert.deepEqual(
      error.actual.filter((sentence) => !isKnownLoss(sentence)),
      [],
    )
  })
}
