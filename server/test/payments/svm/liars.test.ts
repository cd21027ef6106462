/** On a live network, one provider that lies decides nothing: neither one of two nor one of three. */
import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { until } from '../../support/until.ts'
import {
  assertWorks,
  changing,
  creditsOf,
  doubtsOf,
  forge,
  honest,
  type Lie,
  type Lying,
  openLying,
  payAnother,
  payInVain,
  untilLooked,
  untilRefused,
} from './support/liars.ts'

const same = <Value extends object>(value: Value) => value
const lies: readonly (readonly [string, Lie])[] = [
  [
    'that it failed',
    changing(
      (status) => ({ ...status, err: 'AccountInUse' }),
      (landed) => ({ ...landed, meta: { ...landed.meta, err: 'AccountInUse' } }),
    ),
  ],
  [
    'another slot',
    changing(
      (status) => ({ ...status, slot: status.slot + 1 }),
      (landed) => ({ ...landed, slot: landed.slot + 1 }),
    ),
  ],
  [
    'other balances',
    changing(same, (landed) => ({ ...landed, meta: { ...landed.meta, postTokenBalances: [] } })),
  ],
  ['another time', changing(same, (landed) => ({ ...landed, blockTime: landed.blockTime + 3_600 }))],
  [
    'nothing',
    changing(
      () => null,
      () => null,
    ),
  ],
]

const two = await openLying(2)
const three = await openLying(3)

/** So far that no node can still lag. */
const pastLag = 200

describe('one provider that lies decides nothing', { concurrency: 2 }, () => {
  describe('one of two', { concurrency: 1 }, () => define('two', two))
  describe('one of three', { concurrency: 1 }, () => define('three', three))
})

function define(count: string, shop: Lying): void {
  const { chain, liar } = shop
  const isThree = shop === three

  beforeEach(() => {
    liar.lie = honest
    chain.meddle(null)
  })

  for (const [what, lie] of lies)
    test(`if one of ${count} reports ${what} of a payment, ${isThree ? 'it is paid all the same' : 'nothing is decided and new payments get 503 until the lie ends'}`, async () => {
      liar.lie = lie
      if (isThree) return assert.equal(await payAnother(shop), 200)
      const id = await shop.create()
      const before = await shop.received()
      const paying = shop.pay(id, await shop.sign(id, await chain.payer()))
      await until('the money has arrived', async () => (await shop.received()) > before)
      chain.mine(pastLag)
      await untilRefused(shop)
      assert.deepEqual(await creditsOf(shop, id), [])
      assert.equal((await shop.read(id)).status, 'PROCESSING')
      assert.equal(await payAnother(shop), 503)
      liar.lie = honest
      const answer = await paying
      assert.equal(answer.statusCode, 200, answer.body)
      assert.equal((await shop.received()) - before, 1_000_000n)
      await assertWorks(shop)
    })

  if (isThree)
    test('answers of one of three in no known form count as none', async () => {
      const bad = [7, 'x', [], {}, { value: null }, { value: [7] }, { value: [{}] }, { slot: 'x' }]
      let i = 0
      liar.lie = ({ method }, result) => (method === 'getGenesisHash' ? result : bad[i++ % bad.length])
      for (let round = 0; round < 3; round++) assert.equal(await payAnother(shop), 200)
    })

  test(`a success that one of ${count} forges completes nothing, and the payer may sign again when the lie ends`, async () => {
    const id = await shop.create('5000.00')
    const payer = await chain.payer(6_000_000_000n)
    const { paying, bytes } = await payInVain(shop, id, payer)
    liar.lie = (await forge(shop, bytes, '5000000000')).lie
    await untilLooked(shop)
    assert.equal((await shop.read(id)).status, 'PROCESSING')
    const doubts = await doubtsOf(shop, 'node-1')
    chain.mine(pastLag + 50)
    await until('the contradiction is noticed', async () => (await doubtsOf(shop, 'node-1')) > doubts)
    chain.meddle(null)
    assert.equal((await doubtsOf(shop, 'node-2')) > 0, !isThree)
    if (!isThree) await untilRefused(shop)
    assert.equal(await payAnother(shop), isThree ? 200 : 503)
    // One provider has it, so it is not declared dead either.
    await untilLooked(shop)
    assert.equal((await shop.read(id)).status, 'PROCESSING')
    assert.deepEqual(await creditsOf(shop, id), [])
    liar.lie = honest
    const answer = await paying
    assert.deepEqual([answer.statusCode, answer.json().error], [402, 'blockhash_expired'])
    await assertWorks(shop)
    const before = await shop.received()
    assert.equal((await shop.pay(id, await shop.sign(id, payer))).statusCode, 200)
    assert.equal((await shop.received()) - before, 5_000_000_000n)
  })

  test(`finality that one of ${count} forges is not believed`, async () => {
    liar.lie = changing((status) => ({ ...status, confirmationStatus: 'finalized' }), same)
    const id = await shop.create()
    assert.equal((await shop.pay(id, await shop.sign(id, await chain.payer()))).statusCode, 200)
    await untilLooked(shop)
    assert.equal((await shop.read(id)).payment.finality, 'safe')
    chain.mine(30)
    await until('it is final', async () => (await shop.read(id)).payment.finality === 'finalized')
    liar.lie = honest
  })

  for (const [direction, by] of [
    ['far too high', 10_000],
    ['a little too high', 140],
    ['far too low', -10_000],
    ['a little too low', -140],
  ] as const)
    test(`a height that one of ${count} reports ${direction} buries no payment that can still land`, async () => {
      // So that a height can be lowered.
      chain.mine(200)
      await assertWorks(shop)
      const id = await shop.create()
      const shift = (height: number) => Math.max(0, height + by)
      const lie: Lie = ({ method }, result) => {
        if (method === 'getEpochInfo') {
          const info = result as { blockHeight: number; absoluteSlot: number }
          return { blockHeight: shift(info.blockHeight), absoluteSlot: shift(info.absoluteSlot) }
        }
        if (method !== 'getLatestBlockhash') return result
        const { value, ...rest } = result as { value: { lastValidBlockHeight: number } }
        return { ...rest, value: { ...value, lastValidBlockHeight: shift(value.lastValidBlockHeight) } }
      }
      const isFar = Math.abs(by) > 150
      if (!isFar) liar.lie = lie
      const { paying } = await payInVain(shop, id, await chain.payer())
      liar.lie = lie
      const { value } = await chain.rpc<{ value: { lastValidBlockHeight: number } }>('getLatestBlockhash', [
        { commitment: 'confirmed' },
      ])
      const [claim] = await shop.ctx.db.query<{ valid_before: string }>(
        'select valid_before from authorizations where checkout_id = $1',
        [id],
      )
      assert(Number.parseInt(claim?.valid_before ?? '0', 10) >= value.lastValidBlockHeight)
      await untilLooked(shop)
      assert.equal((await shop.read(id)).status, 'PROCESSING')
      if (isFar && !isThree) {
        await untilRefused(shop)
        assert.equal(await payAnother(shop), 503)
      }
      liar.lie = honest
      chain.meddle(null)
      const answer = await paying
      assert.equal(answer.statusCode, 200, answer.body)
    })

  test(`if one of ${count} says only after the claim that its blockhash is too old, a payment is not given up`, async () => {
    const id = await shop.create()
    const { paying, bytes } = await payInVain(shop, id, await chain.payer())
    liar.lie = ({ method }, result) => {
      if (method !== 'getEpochInfo') return result
      const { absoluteSlot, blockHeight } = result as { absoluteSlot: number; blockHeight: number }
      return { absoluteSlot: absoluteSlot + 140, blockHeight: blockHeight + 140 }
    }
    // By the liar's height its time is over, by the others' it is not.
    chain.mine(110)
    const { blockHeight } = await chain.rpc<{ blockHeight: number }>('getEpochInfo', [
      { commitment: 'finalized' },
    ])
    const [claim] = await shop.ctx.db.query<{ valid_before: string }>(
      'select valid_before from authorizations where checkout_id = $1',
      [id],
    )
    const end = Number.parseInt(claim?.valid_before ?? '', 10)
    assert(blockHeight < end && end < blockHeight + 140, `${blockHeight} ${end}`)
    await untilLooked(shop)
    assert.equal((await shop.read(id)).status, 'PROCESSING')
    liar.lie = honest
    chain.meddle(null)
    await chain.rpc('sendTransaction', [bytes, { encoding: 'base64', skipPreflight: true }])
    assert.equal((await paying).statusCode, 200)
  })

  test(`a payer of whom one of ${count} says that the money is gone is not refused`, async () => {
    const empty: Lie = ({ method }, result) => {
      const found = result as { value: { data: [string, string] } | null }
      if (method !== 'getAccountInfo' || !found.value) return result
      const data = Buffer.from(found.value.data[0], 'base64')
      if (data.length === 165) data.fill(0, 64, 72)
      return { ...found, value: { ...found.value, data: [data.toString('base64'), 'base64'] } }
    }
    liar.lie = empty
    assert.equal(await payAnother(shop), isThree ? 200 : 503)
    liar.lie = honest
    // Nor after the claim, when the payer can no longer be told 503.
    const id = await shop.create()
    const header = await shop.sign(id, await chain.payer())
    let isClaimed = false
    liar.lie = (call, result) => (isClaimed ? empty(call, result) : result)
    const release = liar.hold('simulateTransaction')
    const paying = shop.pay(id, header)
    await until('the payment is simulated', async () => liar.holding > 0)
    release()
    isClaimed = true
    if (!isThree) {
      await untilLooked(shop, 'simulateTransaction')
      assert.equal((await shop.read(id)).status, 'PROCESSING')
    }
    liar.lie = honest
    assert.equal((await paying).statusCode, 200)
  })
}
