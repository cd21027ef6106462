/** On a live network, one provider that lies decides nothing: neither one of two nor one of three. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyPairSigner } from '@solana/kit'
import { decodeTransaction, toBase58 } from '../../../src/chains/svm/message.ts'
import { findTokenAccount } from '../../../src/chains/svm/transfer.ts'
import { openRails } from '../../../src/payments/rails.ts'
import { openReadiness } from '../../../src/payments/settlers/readiness.ts'
import { type Call, type FaultyNode, openFaultyNode } from '../../support/faulty-node.ts'
import { openShop, type SvmShop, svmPayTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

type Lie = FaultyNode['lie']
type Lying = SvmShop & { readonly liar: FaultyNode }

/** The service asks the liar first. */
async function openLying(count: 2 | 3): Promise<Lying> {
  const nodes = await Promise.all(Array.from({ length: count }, () => openFaultyNode('')))
  const [liar = assert.fail()] = nodes
  return { ...(await openShop({ network: 'SOLANA_MAINNET', finalizedAfter: 30, nodes })), liar }
}

const honest: Lie = (_, result) => result

/** Lets the service look at the chain a few more times. */
async function untilLooked({ liar }: Lying, method = 'getEpochInfo'): Promise<void> {
  const before = liar.asked.get(method) ?? 0
  await until('the service has looked', async () => (liar.asked.get(method) ?? 0) >= before + 6)
}

const findObstacle = async ({ ctx, chain }: Lying) =>
  await openReadiness(ctx, openRails(ctx))(chain.network.caip2)

async function creditsOf({ ctx }: Lying, id: string): Promise<unknown[]> {
  return await ctx.db.query('select 1 as one from credits where checkout_id = $1', [id])
}

async function doubtsOf({ ctx }: Lying, provider: string): Promise<number> {
  const { values } = await ctx.metrics.contradictions.get()
  return values.find(({ labels }) => labels.provider === provider)?.value ?? 0
}

/** An honest payment during the lie: settled at once, or refused before anything is claimed. */
async function payAnother(shop: Lying): Promise<number> {
  const id = await shop.create()
  const answer = await shop.pay(id, await shop.sign(id, await shop.chain.payer()))
  if (answer.statusCode === 503) {
    assert.equal(answer.json().code, 'settlement_unavailable')
    assert.equal((await shop.read(id)).status, 'OPEN')
  }
  return answer.statusCode
}

/** After the lie, a new payment settles. */
async function assertWorks(shop: Lying): Promise<void> {
  await until('payments are accepted', async () => (await findObstacle(shop)) === null)
  assert.equal(await payAnother(shop), 200)
}

type Landed = { slot: number; blockTime: number; meta: { err: unknown; postTokenBalances: unknown[] } }
type Statuses = { value: ({ slot: number; err: unknown } | null)[] }

/** Changes what the liar says about every transaction that landed. */
function changing(
  change: (status: NonNullable<Statuses['value'][number]>) => object | null,
  changeLanded: (landed: Landed) => object | null,
): Lie {
  return ({ method }, result) => {
    if (method === 'getSignatureStatuses')
      return { value: (result as Statuses).value.map((status) => status && change(status)) }
    return method === 'getTransaction' && result !== null ? changeLanded(result as Landed) : result
  }
}

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

for (const [what, lie] of lies) {
  test(`if one of two tells ${what} of a payment, nothing is decided, and new payments get 503 until the lie ends`, async () => {
    const { chain, liar } = two
    const id = await two.create()
    const header = await two.sign(id, await chain.payer())
    const before = await two.received()
    liar.lie = lie
    const paying = two.pay(id, header)
    await until('the money has arrived', async () => (await two.received()) > before)
    // So far that no node can still lag.
    chain.mine(200)
    await until('payments are refused', async () => (await findObstacle(two)) !== null)
    assert.deepEqual(await creditsOf(two, id), [])
    assert.equal((await two.read(id)).status, 'PROCESSING')
    assert.equal(await payAnother(two), 503)
    liar.lie = honest
    const answer = await paying
    assert.equal(answer.statusCode, 200, answer.body)
    assert.equal((await two.received()) - before, 1_000_000n)
    await assertWorks(two)
  })

  test(`if one of three tells ${what} of a payment, it is paid all the same`, async () => {
    three.liar.lie = lie
    assert.equal(await payAnother(three), 200)
    three.liar.lie = honest
  })
}

/** Pays with a transaction that is sent and that no block includes, until the chain is no longer meddled with. */
async function payInVain(shop: Lying, id: string, payer: KeyPairSigner) {
  const { chain } = shop
  const header = await shop.sign(id, payer)
  const sent = Promise.withResolvers<string>()
  chain.meddle(({ method, params }) => {
    if (method === 'sendTransaction') sent.resolve(String(params[0]))
    return method === 'sendTransaction' ? 'drop' : null
  })
  return { paying: shop.pay(id, header), bytes: await sent.promise }
}

/** A lie about bytes that are in no block: that they paid the store. */
async function forge(shop: Lying, bytes: string, units: string) {
  const transaction = decodeTransaction(Buffer.from(bytes, 'base64')) ?? assert.fail()
  const hash = toBase58(transaction.signatures[0] ?? assert.fail())
  const destination = await findTokenAccount(svmPayTo, shop.chain.mint)
  const slot = shop.chain.slot()
  const post = { accountIndex: transaction.accounts.indexOf(destination), uiTokenAmount: { amount: units } }
  const landed = {
    slot,
    blockTime: Math.floor(Date.now() / 1_000),
    transaction: [bytes, 'base64'],
    meta: { err: null, preTokenBalances: [], postTokenBalances: [post] },
  }
  const status = { slot, err: null, confirmationStatus: 'finalized' }
  const lie = ({ method, params }: Call, result: unknown) => {
    if (method === 'getTransaction' && params[0] === hash) return landed
    if (method !== 'getSignatureStatuses') return result
    const hashes = params[0] as readonly string[]
    return { value: (result as Statuses).value.map((one, i) => (hashes[i] === hash ? status : one)) }
  }
  return { hash, lie }
}

for (const [count, shop] of [
  ['two', two],
  ['three', three],
] as const) {
  const isThree = shop === three

  test(`a success that one of ${count} forges completes nothing, and the payer may sign again when the lie ends`, async () => {
    const { chain, liar } = shop
    const id = await shop.create('5000.00')
    const before = await shop.received()
    const payer = await chain.payer(6_000_000_000n)
    const { paying, bytes } = await payInVain(shop, id, payer)
    liar.lie = (await forge(shop, bytes, '5000000000')).lie
    await untilLooked(shop)
    assert.equal((await shop.read(id)).status, 'PROCESSING')
    const doubts = await doubtsOf(shop, 'node 1')
    chain.mine(250)
    await until('the contradiction is noticed', async () => (await doubtsOf(shop, 'node 1')) > doubts)
    chain.meddle(null)
    assert.equal((await doubtsOf(shop, 'node 2')) > 0, !isThree)
    assert.equal(await payAnother(shop), isThree ? 200 : 503)
    // One provider has it, so it is not declared dead either.
    await untilLooked(shop)
    assert.equal((await shop.read(id)).status, 'PROCESSING')
    assert.deepEqual(await creditsOf(shop, id), [])
    liar.lie = honest
    const answer = await paying
    assert.deepEqual([answer.statusCode, answer.json().error], [402, 'blockhash_expired'])
    await until('payments are accepted', async () => (await findObstacle(shop)) === null)
    assert.equal((await shop.pay(id, await shop.sign(id, payer))).statusCode, 200)
    assert.equal((await shop.received()) - before, 5_000_000_000n + (isThree ? 1_000_000n : 0n))
  })

  test(`finality that one of ${count} forges is not believed`, async () => {
    const { chain, liar } = shop
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
    ['high', 10_000],
    ['slightly high', 140],
    ['low', -10_000],
    ['slightly low', -140],
  ] as const)
    test(`a height that one of ${count} tells too ${direction} buries no payment that can still land`, async () => {
      const { chain, liar } = shop
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
        await until('payments are refused', async () => (await findObstacle(shop)) !== null)
        assert.equal(await payAnother(shop), 503)
      }
      liar.lie = honest
      chain.meddle(null)
      const answer = await paying
      assert.equal(answer.statusCode, 200, answer.body)
    })

  test(`a payer of whom one of ${count} tells that the money is gone is not refused`, async () => {
    const { chain, liar } = shop
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
