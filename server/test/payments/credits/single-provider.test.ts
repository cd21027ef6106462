import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { openNodes } from '../adversity/attacks/support/two-nodes.ts'

/** One of two providers is down. What the other reports alone may complete SINGLE_NODE_UP_TO, 100 dollars by default. */
const shop = await openNodes(2)
const [, second = assert.fail()] = shop.nodes
const payer = await shop.fund(10_000_000_000n)
await shop.follow()

/** Presents a payment and steps the service until it is in a block. The answer may come later. */
async function pay(price: string) {
  const id = await shop.create(price)
  const answer = shop.pay(id, await shop.sign(id, payer))
  await until('claimed', async () => (await shop.read(id)).status === 'PROCESSING')
  await shop.send()
  await shop.mine()
  return { id, answer }
}

test('while one provider of two is silent, small payments complete, and a larger one is refused before it is claimed', async () => {
  second.fail('refused')
  await shop.mine()
  const { id, answer } = await pay('60.00')
  assert.equal((await answer).statusCode, 200)
  assert.equal((await shop.read(id)).status, 'COMPLETED')

  shop.clock.now = new Date(Date.now() + 1_000)
  const large = await shop.create('60.00')
  const header = await shop.sign(large, payer)
  const refused = await shop.pay(large, header)
  assert.equal(refused.statusCode, 503, refused.body)
  assert.match(refused.body, /needs a second node/)
  assert.equal((await shop.read(large)).status, 'OPEN')
})

test('payments claimed beforehand wait for the second provider once the sum is used up, and complete when it is back', async () => {
  second.heal()
  await shop.mine()
  shop.clock.now = new Date(Date.now() + 2_000)
  const ids = [await shop.create('80.00'), await shop.create('80.00')]
  const answers = []
  for (const id of ids) {
    answers.push(shop.pay(id, await shop.sign(id, payer)))
    await until('claimed', async () => (await shop.read(id)).status === 'PROCESSING')
  }
  second.fail('refused')
  await shop.send()
  await shop.mine()
  const statuses = async () => (await Promise.all(ids.map((id) => shop.read(id)))).map(({ status }) => status)
  assert.deepEqual((await statuses()).toSorted(), ['COMPLETED', 'PROCESSING'])
  second.heal()
  await shop.mine()
  assert.deepEqual(await statuses(), ['COMPLETED', 'COMPLETED'])
  for (const answer of await Promise.all(answers)) assert.equal(answer.statusCode, 200, answer.body)
})

test('a block that one provider alone reported does not become safe', async () => {
  const { id, answer } = await pay('1.00')
  // It has the blocks and knows how far they are final, but not their logs.
  second.lie = ({ method }, result) => (method === 'eth_getLogs' ? new Error('unknown block') : result)
  const mineAlone = async () => {
    // We no longer wait for it.
    await shop.ctx.db.query("update followers set head_seen_at = clock() - interval '10 seconds'")
    await shop.mine()
  }
  const lonely = await pay('1.00')
  for (let i = 0; i < 14; i++) await mineAlone()
  assert.equal((await shop.read(lonely.id)).payment?.finality, 'included')
  second.lie = (_, result) => result
  await shop.mine()
  await shop.mine()
  assert.equal((await shop.read(lonely.id)).payment?.finality, 'finalized')
  assert.equal((await shop.read(id)).payment?.finality, 'finalized')
  for (const one of [answer, lonely.answer]) assert.equal((await one).statusCode, 200)
})

test('payments that are claimed count too, so that none is claimed that would have to wait', async () => {
  second.fail('refused')
  await shop.mine()
  await shop.send()
  shop.clock.now = new Date(Date.now() + 3_000)
  const claimed = await shop.create('60.00')
  const answer = shop.pay(claimed, await shop.sign(claimed, payer))
  await until('claimed', async () => (await shop.read(claimed)).status === 'PROCESSING')

  shop.clock.now = new Date(Date.now() + 4_000)
  const id = await shop.create('60.00')
  const refused = await shop.pay(id, await shop.sign(id, payer))
  assert.equal(refused.statusCode, 503, refused.body)
  assert.match(refused.body, /needs a second node/)

  second.heal()
  await shop.send()
  await shop.mine()
  assert.equal((await answer).statusCode, 200)
})
