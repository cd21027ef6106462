/** Somebody else uses a settler's key: another deployment that was given the same one, a person, or a thief. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hex } from 'viem'
import { examine } from '../../../src/commands/doctor.ts'
import { stepLane } from '../../../src/payments/evm/lane.ts'
import { openMeasure } from '../../../src/payments/measure.ts'
import { listConnected, openRails } from '../../../src/payments/rails.ts'
import { drainSettler, insertSettler, listSettlers } from '../../../src/payments/settlers/rows.ts'
import { payTo } from '../../support/shop.ts'
import { assertPaid } from '../../support/watch.ts'
import { openDriven } from '../adversity/driven.ts'

const shop = await openDriven({ settlers: 2, settings: { LOG_LEVEL: 'info' } })
const { ctx, chain } = shop
const network = chain.network.caip2
const [lane = assert.fail(), other = assert.fail()] = shop.engine.lanes
const { address } = lane.signer

const step = async (which = lane) => {
  while (await stepLane(ctx, which));
}
type Sent = { settler: string; nonce: number; hash: Hex; bytes: Buffer; isMined: boolean }
const listSent = () =>
  ctx.db.query<Sent>(
    `select t.settler, t.nonce::integer, b.hash, b.bytes, t.mined_at is not null as "isMined" from transactions t
     join broadcasts b on b.network = t.network and b.settler = t.settler and b.nonce = t.nonce order by b.created_at`,
  )
/** Sends something worthless with the settler's key, for so much that nodes prefer it to ours. */
const useKey = async (nonce: number) => {
  const fee = 10n ** 12n
  const fees = { maxFeePerGas: fee, maxPriorityFeePerGas: fee, gas: 21_000n }
  await chain.client.sendTransaction({ account: address, to: address, nonce, chain: null, ...fees })
}
const letTimePass = () =>
  ctx.db.query("update transactions set mined_at = mined_at - interval '20 seconds' where cost_wei is null")
const stopLines = () => shop.logged.filter(({ msg }) => /not ours used a settler’s nonce/.test(String(msg)))
const wrongs = async () =>
  (await examine(ctx, async () => [])).filter(({ what, fix }) => what === 'LOCAL settlers' && fix !== null)
const stoppedMetric = async () => {
  await openMeasure(ctx, listConnected(openRails(ctx)))()
  const { values } = await ctx.metrics.settlerStopped.get()
  return values.find(({ labels }) => labels.settler === address)?.value
}
/** While nothing is in flight, the follower looks at the settlers every 16 seconds of the chain's time. */
const lookAtAll = async () => {
  await chain.pass(16)
  await shop.mine()
}
const stateOf = async () => (await listSettlers(ctx.db, network)).find((one) => one.address === address)

test('a foreign nonce stops its lane loudly, and another lane settles what it had in flight, each once', async () => {
  const prepared = await shop.prepare(4)
  const [displaced = assert.fail(), unmined = assert.fail(), ...later] = prepared
  const before = await chain.balance(payTo)
  const answers = [...(await shop.present([displaced]))]
  await step()
  answers.push(...(await shop.present([unmined])))
  await step()
  const [first = assert.fail(), second = assert.fail(), ...rest] = await listSent()
  assert.deepEqual([first.settler, second.settler, rest.length], [address, address, 0])

  await useKey(first.nonce)
  await chain.client.dropTransaction({ hash: second.hash })
  await shop.mine()
  await letTimePass()
  await step()
  assert.deepEqual(
    stopLines().map(({ settler, nonce }) => [settler, nonce]),
    [[address, first.nonce]],
  )
  assert.equal(await stoppedMetric(), 1)
  const [finding, ...others] = await wrongs()
  assert.deepEqual(others, [])
  assert.match(
    finding?.says ?? '',
    new RegExp(`^${address} is stopped: its nonce ${first.nonce} was used by`),
  )

  await step(other)
  const resent = (await listSent()).slice(2)
  assert.deepEqual(
    resent.map(({ settler }) => settler),
    [other.signer.address],
  )
  // What was broadcast may be mined after all, in the same block.
  await chain.client.sendRawTransaction({ serializedTransaction: `0x${second.bytes.toString('hex')}` })
  await shop.mine()
  for (const answer of await Promise.all(answers)) assertPaid(answer)
  for (const { signed } of [displaced, unmined])
    assert.equal(
      await chain.balance(signed.authorization.from),
      2_000_000n - BigInt(signed.authorization.value),
    )
  const worth = [displaced, unmined].reduce((sum, { signed }) => sum + BigInt(signed.authorization.value), 0n)
  assert.equal((await chain.balance(payTo)) - before, worth)

  const more = await shop.present(later)
  await shop.send()
  await shop.mine()
  for (const answer of await Promise.all(more)) assertPaid(answer)
  const newest = (await listSent()).slice(3)
  assert(newest.length > 0 && newest.every(({ settler }) => settler === other.signer.address))
  assert.equal(stopLines().length, 1)
})

test('a settler whose key was used while it was idle is stopped too, settles again if an operator adds it, and is retired at once if it is drained', async () => {
  const { nextNonce = 0 } = (await stateOf()) ?? {}
  assert(await insertSettler(ctx.db, network, address, nextNonce))
  await shop.idle()
  assert.equal((await stateOf())?.stoppedAt, null)
  assert.deepEqual(await wrongs(), [])
  assert.equal(await stoppedMetric(), 0)

  const mined = (await stateOf())?.minedNonce ?? 0
  await useKey(mined)
  await lookAtAll()
  assert.deepEqual(
    stopLines()
      .map(({ nonce }) => nonce)
      .slice(1),
    [mined],
  )
  assert.notEqual((await stateOf())?.stoppedAt, null)
  assert(await drainSettler(ctx.db, network, address))
  await lookAtAll()
  assert.equal((await stateOf())?.state, 'retired')
  assert.deepEqual(await wrongs(), [])
})
