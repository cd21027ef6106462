/** The batcher on a chain, with the token: what it pays, what it costs, and what nobody can make it do. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Address, type Hex, parseEventLogs, type TransactionReceipt } from 'viem'
import { batchCalldata, type Packed, readBatchCalldata } from '../../../src/chains/evm/batcher.ts'
import { transferCalldata } from '../../../src/chains/evm/eip3009.ts'
import { aggregateCalldata, multicall } from '../../../src/chains/evm/multicall.ts'
import { callGas } from '../../../src/payments/evm/choose.ts'
import { tokenAbi } from '../../support/chain/evm.ts'
import { newNonce, newPayer, type Payer, signAuthorization } from '../../support/chain/evm-payment.ts'
import { makeFixedPayments, toBatch, toPacked } from './support/batches.ts'
import { openToken } from './support/token.ts'

const { chain, callWith } = await openToken()
const burning = await chain.deploy('BurningWallet')
const owner = newPayer()
const owned = await chain.deploy('OwnedWallet', [owner.address])
await chain.mint([burning, owned], 1_000_000n)
const shops: readonly Address[] = [newPayer().address, newPayer().address]
/** Enough for any batch here. */
const plenty = 5_000_000n

const kinds = [
  'good',
  'poor',
  'twice',
  'forged',
  'expired',
  'early',
  'blacklisted',
  'burning',
  'owned',
] as const
type Kind = (typeof kinds)[number]
type Wanted = { readonly kind: Kind; readonly shop: number; readonly value: bigint }

/** Payers with 100 units each; `poor` pays more than it has, and some tests pay several times from one payer. */
async function sign({ kind, shop, value }: Wanted, payer: Payer): Promise<Packed> {
  const now = await chain.time()
  const signed = await signAuthorization({
    key: kind === 'forged' ? newPayer().key : kind === 'owned' ? owner.key : payer.key,
    domain: chain.domain,
    from: kind === 'burning' ? burning : kind === 'owned' ? owned : payer.address,
    to: shops[shop] ?? assert.fail(),
    value: kind === 'poor' ? 101n : value,
    validAfter: kind === 'early' ? now + 10_000n : 0n,
    validBefore: kind === 'expired' ? now - 1n : now + 10_000n,
    nonce: newNonce(),
  })
  return toPacked(signed, chain.token)
}

/** Everything the token says about these receipts, without their places. */
function eventsOf(receipts: readonly TransactionReceipt[]): string[] {
  return parseEventLogs({ abi: tokenAbi, logs: receipts.flatMap(({ logs }) => logs) })
    .map(({ eventName, args }) =>
      JSON.stringify([eventName, args], (_, v) => (typeof v === 'bigint' ? `${v}` : v)),
    )
    .toSorted()
}

async function tryOut<Result>(work: () => Promise<Result>): Promise<Result> {
  const before = await chain.snapshot()
  const result = await work()
  await chain.revert(before)
  return result
}

async function sendAlone(payments: readonly Packed[]): Promise<TransactionReceipt[]> {
  const hashes: Hex[] = []
  for (const { authorization, signature } of payments)
    hashes.push(
      await chain.send({ to: chain.token, data: transferCalldata(authorization, signature), gas: 200_000n }),
    )
  await chain.mine()
  return await Promise.all(hashes.map((hash) => chain.client.getTransactionReceipt({ hash })))
}

test('a batch pays exactly what its payments, sent one by one, would pay', async (t) => {
  const anyWanted = fc.record({
    kind: fc.constantFrom('good', 'good', 'good', ...kinds),
    shop: fc.nat({ max: shops.length - 1 }),
    value: fc.bigInt({ min: 0n, max: 100n }),
  })
  let paid = 0
  let refused = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyWanted, { minLength: 2, maxLength: 10 }),
      fc.boolean(),
      async (wanted, isOne) => {
        const only = newPayer()
        const payers = wanted.map(() => (isOne ? only : newPayer()))
        await chain.mint([...new Set(payers.map(({ address }) => address))], 100n)
        const signed: Packed[] = []
        for (const [i, one] of wanted.entries()) {
          const payer = payers[i] ?? only
          const payment = await sign(one, payer)
          signed.push(payment)
          if (one.kind === 'twice') signed.push(payment)
          if (one.kind === 'blacklisted') await callWith('blacklist', payer.address)
        }
        const data = batchCalldata(signed, callGas)
        // The batch pays group by group. Who comes first matters to a payer who cannot afford all.
        const payments = readBatchCalldata(data) ?? assert.fail()
        const alone = await tryOut(() => sendAlone(payments))
        const batch = await tryOut(() => chain.perform(toBatch(signed, plenty)))
        assert.equal(batch.status, 'success')
        assert.deepEqual(eventsOf([batch]), eventsOf(alone))
        paid += batch.logs.length / 2
        refused += payments.length - batch.logs.length / 2
      },
    ),
    { numRuns: process.env.FULL === '1' ? 300 : 8 },
  )
  assert(paid > 0 && refused > 0)
  t.diagnostic(`${paid} payments paid, ${refused} refused`)
})

test('a batch that gets too little gas reverts as a whole, and never leaves out a good payment', async () => {
  const payments = [await fund(40n), await fund(40n), await fund(40n)]
  const paidWith = (gas: bigint) =>
    tryOut(async () => {
      const { status, logs } = await chain.perform(toBatch(payments, gas))
      if (status === 'reverted') assert.deepEqual(logs, [])
      else assert.equal(logs.length, 2 * payments.length, `${logs.length / 2} payments paid with ${gas} gas`)
      return status === 'success'
    })
  let [low, high] = [60_000n, 400_000n]
  for (let gas = low; gas <= high; gas += 20_000n) await paidWith(gas)
  assert(!(await paidWith(low)) && (await paidWith(high)))
  while (high - low > 1n) {
    const middle = (low + high) / 2n
    if (await paidWith(middle)) high = middle
    else low = middle
  }
  // Just below what suffices, where a call without the check would get a little less than it needs.
  for (let less = 1n; less <= 2_000n; less += 250n) await paidWith(high - less)
})

test('a call that burns all its gas costs its limit and no more, and the payments around it are paid', async () => {
  const good = [await fund(40n), await fund(40n)]
  const burner = await sign({ kind: 'burning', shop: 0, value: 1n }, newPayer())
  const calm = await tryOut(() => chain.perform(toBatch(good, plenty)))
  const mixed = await tryOut(() =>
    chain.perform(toBatch([burner, ...good.slice(0, 1), burner, ...good.slice(1)], plenty)),
  )
  assert.equal(calm.logs.length, 4)
  assert.deepEqual(eventsOf([mixed]), eventsOf([calm]))
  const each = (mixed.gasUsed - calm.gasUsed) / 2n
  assert(each > callGas / 2n && each < callGas + 4_000n, `${each}`)
})

test('a batch of nothing, and one that is cut short, pay nothing', async () => {
  const payment = await fund(40n)
  const { data, to } = toBatch([payment], plenty)
  const cut = `${data.slice(0, -2)}` as const
  for (const [calldata, status] of [
    ['0x', 'success'],
    [data.slice(0, 10), 'success'],
    [cut, 'reverted'],
  ] as const) {
    const receipt = await chain.perform({ to, data: calldata as `0x${string}`, gas: plenty })
    assert.deepEqual([receipt.status, receipt.logs], [status, []])
  }
  const isPaid = await chain.perform({ to, data, gas: plenty })
  assert.equal(isPaid.logs.length, 2)
})

test('the batcher refuses money', async () => {
  const { to } = toBatch([], plenty)
  const hash = await chain.client.sendTransaction({
    account: '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720',
    to,
    value: 1n,
    gas: 100_000n,
    chain: null,
  })
  await chain.mine()
  assert.equal((await chain.client.getTransactionReceipt({ hash })).status, 'reverted')
})

/**
 * Gas of whole transactions. `token`, `multicall` and `alone` pay with the test token to a wallet that holds some;
 * `fixed` calls a contract that always uses the same gas, so that only the batcher can change it. When a contract
 * changes, write the new figures here.
 */
const gasUsed = {
  fixed: { 1: 38_529n, 25: 374_145n, 150: 2_122_014n },
  token: { 1: 88_976n, 25: 1_207_967n, 150: 7_035_606n },
  multicall: { 150: 7_540_484n },
  alone: 86_292n,
}

test('a batch costs exactly the gas that is written here', {
  skip: !!process.env.TOKEN_ARTIFACT,
}, async () => {
  const shop: Address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
  const payments = makeFixedPayments(chain.domain, shop, 150)
  const payers = payments.map(({ authorization }) => authorization.from)
  for (const some of [payers.slice(0, 75), [...payers.slice(75), shop]]) await chain.mint(some, 100_000_000n)
  const fixed: Address = '0x1111111111111111111111111111111111111111'
  // PUSH2 32768, PUSH0, KECCAK256, STOP: dear enough that calldata's minimum price (EIP-7623) does not apply.
  await chain.client.setCode({ address: fixed, bytecode: '0x6180005f2000' })
  const measure = async (call: { to: Address; data: Hex }, paid: number) => {
    const { gasUsed, logs } = await tryOut(() => chain.perform({ ...call, gas: 16_000_000n }))
    assert.equal(logs.length, 2 * paid)
    return gasUsed
  }
  const inBatch = (count: number) => measure(toBatch(payments.slice(0, count), 0n), count)
  const toFixed = (count: number) => {
    const batch = payments.slice(0, count).map((payment) => ({ ...payment, asset: fixed }))
    return measure(toBatch(batch, 0n), 0)
  }
  const calls = payments.map(({ authorization, signature, marker }) => ({
    target: chain.token,
    callData: transferCalldata(authorization, signature, marker ?? '0x'),
  }))
  assert.deepEqual(
    {
      fixed: { 1: await toFixed(1), 25: await toFixed(25), 150: await toFixed(150) },
      token: { 1: await inBatch(1), 25: await inBatch(25), 150: await inBatch(150) },
      multicall: { 150: await measure({ to: multicall, data: aggregateCalldata(calls) }, 150) },
      alone: await measure({ to: chain.token, data: calls[0]?.callData ?? '0x' }, 1),
    },
    gasUsed,
  )
})

async function fund(value: bigint): Promise<Packed> {
  const payer = newPayer()
  await chain.mint(payer.address, 100n)
  return await sign({ kind: 'good', shop: 0, value }, payer)
}
