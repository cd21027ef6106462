/** Nodes remember statuses for a minute or two. What is older is found in their history, which is searched only for that. */
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { openFaultyNode } from '../../support/faulty-node.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { payInVain } from './support/liars.ts'

const nodes = [await openFaultyNode(''), await openFaultyNode('')]
const [one = assert.fail()] = nodes
const shop = await openShop({ network: 'SOLANA_MAINNET', nodes, worker: false, finalizedAfter: 100 })
const { chain } = shop
let stop = shop.startWork()
await shop.untilReady()

/** So many blocks that no node remembers what was before them, and that no blockhash from then is valid. */
const forgotten = 400

let searches = 0
let isForgetful = false
beforeEach(() => {
  searches = 0
  isForgetful = false
  for (const node of nodes)
    node.lie = ({ method, params }, result) => {
      if (method !== 'getSignatureStatuses') return result
      const isSearched = (params[1] as { searchTransactionHistory: boolean }).searchTransactionHistory
      if (isSearched) searches++
      if (node !== one || !isForgetful || !isSearched) return result
      return { value: (result as { value: unknown[] }).value.map(() => null) }
    }
})

const statusOf = async (id: string): Promise<string> => (await shop.read(id)).status
const untilFinal = (id: string) =>
  until('it is final', async () => (await shop.read(id)).payment?.finality === 'finalized')

/** A payment that lands after the last look, and is older than what nodes remember when `work` starts again. */
async function payUnseen() {
  await shop.untilReady()
  const id = await shop.create()
  const { paying, bytes } = await payInVain(shop, id, await chain.payer())
  await stop()
  chain.meddle(null)
  const before = await shop.received()
  await chain.rpc('sendTransaction', [bytes, { encoding: 'base64', skipPreflight: true }])
  chain.mine(2)
  assert.equal((await shop.received()) - before, 1_000_000n)
  chain.mine(forgotten)
  assert.equal(await statusOf(id), 'PROCESSING')
  return { id, paying }
}

test('a payment that nothing delays is final before anybody searches a history', async () => {
  const id = await shop.create()
  assert.equal((await shop.pay(id, await shop.sign(id, await chain.payer()))).statusCode, 200)
  chain.mine(100)
  await untilFinal(id)
  assert.equal(searches, 0)
})

test('a payment that landed while nobody watched is credited, although no node remembers it', async () => {
  const { id, paying } = await payUnseen()
  stop = shop.startWork()
  await untilFinal(id)
  await paying
  assert.equal(await statusOf(id), 'COMPLETED')
  assert(searches > 0)
})

test('a credited payment that is final only after all nodes have forgotten it is not orphaned', async () => {
  await shop.untilReady()
  const id = await shop.create()
  assert.equal((await shop.pay(id, await shop.sign(id, await chain.payer()))).statusCode, 200)
  await stop()
  chain.mine(forgotten)
  stop = shop.startWork()
  await untilFinal(id)
  const events = await shop.ctx.db.query("select 1 as one from events where type = 'payment.reorged'")
  assert.deepEqual(events, [])
})

test('a payment whose history one of two lacks is neither credited nor given up, until that one has it', async () => {
  const { id, paying } = await payUnseen()
  isForgetful = true
  stop = shop.startWork()
  await until('its history was searched several times', async () => searches >= 6)
  assert.equal(await statusOf(id), 'PROCESSING')
  isForgetful = false
  await untilFinal(id)
  await paying
})
