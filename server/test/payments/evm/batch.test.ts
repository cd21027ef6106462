/** Batches and the cap on a transaction's gas (EIP-7825), which Base enforces and these chains do too. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseTransaction } from 'viem'
import { batcher, readBatchCalldata } from '../../../src/chains/evm/batcher.ts'
import { multicall } from '../../../src/chains/evm/multicall.ts'
import { readCalls } from '../../../src/chains/evm/read-calls.ts'
import { markerOf } from '../../../src/ids.ts'
import { countFitting } from '../../../src/payments/evm/choose.ts'
import { presentAny } from '../adversity/attacks/support/present.ts'
import { type Driven, openDriven, type Prepared } from '../adversity/driven.ts'

const gasCap = 2n ** 24n
/** Presented together; more of them could take a slow machine so long that the service refuses some as overload. */
const groupSize = 20
/** Their money comes in one transaction, which has to fit into a small block. */
const preparedAtOnce = 100

/** Pays this many checkouts at once, asserts that all are paid, and returns the transactions that paid them. */
async function payAtOnce(shop: Driven, count: number) {
  const before = await readSent(shop)
  const prepared: Prepared[] = []
  while (prepared.length < count)
    prepared.push(...(await shop.prepare(Math.min(preparedAtOnce, count - prepared.length))))
  for (let from = 0; from < count; from += groupSize) {
    const group = prepared.slice(from, from + groupSize)
    assert.equal((await presentAny(shop, group)).length, group.length)
  }
  await shop.send()
  await shop.mine()
  await shop.send()
  await shop.mine()
  const ids = prepared.map(({ checkoutId }) => checkoutId)
  const rows = await shop.ctx.db.query<{ status: string; count: number }>(
    'select status, count(*)::int as count from checkouts where id = any($1) group by status',
    [ids],
  )
  assert.deepEqual(rows, [{ status: 'COMPLETED', count }])
  const sent = (await readSent(shop)).slice(before.length)
  for (const { gas } of sent) assert(gas !== undefined && gas <= gasCap)
  return { sent, prepared }
}

async function readSent(shop: Driven) {
  const rows = await shop.ctx.db.query<{ bytes: `0x${string}` }>(
    `select '0x' || encode(bytes, 'hex') as bytes from broadcasts order by nonce, created_at`,
  )
  return rows.map(({ bytes }) => parseTransaction(bytes))
}

test('139, 140, 150 and 300 payments at once are all paid under the cap, each named by its marker', async () => {
  const shop = await openDriven()
  for (const count of [139, 140, 150, 300]) {
    const { sent, prepared } = await payAtOnce(shop, count)
    assert.equal(sent.length, Math.ceil(count / countFitting(true)))
    const read = sent.flatMap(({ to, data }) => {
      assert.equal(to, batcher)
      return readBatchCalldata(data ?? '0x') ?? []
    })
    assert.deepEqual(
      new Set(read.map(({ marker }) => marker)),
      new Set(prepared.map(({ checkoutId }) => markerOf(checkoutId))),
    )
  }
})

test('on a chain without the batcher, payments go through Multicall3 and stay under the cap too', async () => {
  const shop = await openDriven({ withoutBatcher: true })
  const { sent } = await payAtOnce(shop, 140)
  assert.deepEqual(
    sent.map(({ to, data }) => [to, to ? readCalls({ to, data: data ?? '0x' }).length : 0]),
    [
      [multicall, 139],
      [shop.chain.token.toLowerCase(), 1],
    ],
  )
})

test('if a full batch needs more gas than a block has, batches are smaller, so that every payment gets in', async () => {
  const blockGas = 12_000_000n
  const shop = await openDriven({ blockGas })
  const { sent } = await payAtOnce(shop, 140)
  assert.equal(sent.length, 3)
  for (const { gas = 0n } of sent) assert(gas <= blockGas / 2n)
})

test('a full batch has the highest gas limit that fits under the cap', () => {
  assert.deepEqual([countFitting(true), countFitting(false)], [160, 139])
})
