/** How long it takes until something that is missing from a block did not happen, on chains with fast blocks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDeepBlock } from '../../../src/chains/rows.ts'
import { networks } from '../../../src/networks.ts'
import { freshDatabase } from '../../support/database.ts'
import { until } from '../../support/until.ts'
import { openTwoNodes } from '../adversity/attacks/support/two-nodes.ts'

const base = networks.find(({ id }) => id === 'BASE_MAINNET')
assert(base?.family === 'EVM')
const { negativeSeconds } = base
const blocksPerSecond = 5

test('at five blocks per second, a payment is not dead 2.4 seconds after its window, but after the table’s seconds', async () => {
  const shop = await openTwoNodes()
  const payer = await shop.fund(10_000_000n)
  await shop.follow()
  const id = await shop.create('1.00')
  const validBefore = BigInt(Math.floor(Date.now() / 1_000) + 240)
  const answer = shop.pay(id, await shop.sign(id, payer, { validBefore }))
  await until('claimed', async () => (await shop.read(id)).status === 'PROCESSING')
  const mineAt = async (seconds: number) => {
    await shop.chain.setNextBlockTimestamp(validBefore + BigInt(seconds))
    await shop.mine()
  }
  await mineAt(0)
  for (let second = 1; second <= 3; second++) {
    await shop.mine(blocksPerSecond)
    await shop.buryNow()
    assert.equal((await shop.read(id)).status, 'PROCESSING', `${second * blocksPerSecond} blocks later`)
  }
  await mineAt(negativeSeconds - 1)
  await shop.buryNow()
  assert.equal((await shop.read(id)).status, 'PROCESSING', 'a second is missing')
  await mineAt(negativeSeconds)
  await shop.buryNow()
  assert.equal((await answer).statusCode, 402)
  assert.equal((await shop.read(id)).status, 'OPEN')
})

test('a block is deep by the times of witnessed blocks, however many blocks follow it', async () => {
  const { db } = await freshDatabase()
  const add = async (number: number, second: number, toldBy: readonly string[]) => {
    await db.query(
      `insert into blocks (network, number, hash, parent_hash, block_time, told_by)
       values ($1, $2, $3, $4, to_timestamp($5), $6)`,
      [base.caip2, number, `hash ${number}`, `hash ${number - 1}`, second, toldBy],
    )
  }
  const both = ['one', 'two']
  const deep = async () => (await readDeepBlock(db, base))?.number ?? null
  for (let i = 0; i < 100; i++) await add(i, Math.floor(i / blocksPerSecond), both)
  assert.equal(await deep(), null, '20 seconds')
  await add(100, 10_000, ['one'])
  assert.equal(await deep(), null, 'what one provider alone says about the time makes nothing deep')
  await add(101, negativeSeconds + 3, both)
  assert.equal(await deep(), 3 * blocksPerSecond + blocksPerSecond - 1)
})
