/** The panel on the payment page of a test store, with which a developer chooses what happens. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeStore, openTestApp } from '../../support/app.ts'
import { openClient, startWork, untilReady } from '../../support/client.ts'
import { untilStatus } from '../../support/watch.ts'

const app = await openTestApp({ NETWORKS: 'BASE_MAINNET,BASE_SEPOLIA,SIMULATED' })
const open = async (mode: 'live' | 'test') => {
  const { key } = await makeStore(app.ctx, { mode })
  return { ...app, key, ...openClient(app, key) }
}
const [shop, live] = [await open('test'), await open('live')]
startWork(app)
await untilReady(app, 'farthing:simulated')

const question = 'This is a test store. What should happen?'
const pageOf = async (id: string) =>
  (await app.request({ url: `/c/${id}`, headers: { accept: 'text/html' } })).body
const choose = async (id: string, name: string) =>
  await app.request({
    method: 'POST',
    url: `/c/${id}/simulate`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: `case=${name}`,
  })

test('a test store’s page asks what should happen, and it happens', async () => {
  const id = await shop.create('12.50')
  assert((await pageOf(id)).includes(question))
  const answer = await choose(id, 'payment.paid')
  assert.equal(answer.statusCode, 303, answer.body)
  assert.match(String(answer.headers.location), new RegExp(`^/c/${id}`))
  await untilStatus(shop, id, 'COMPLETED')
  assert(!(await pageOf(id)).includes(question), 'a paid checkout asks no more')
})

test('the simulated network is none of the networks that a buyer chooses from', async () => {
  const page = await pageOf(await shop.create('12.50'))
  assert(page.includes('Base Sepolia'))
  assert(!page.includes('Simulated network'))
})

test('a live store’s page asks nothing, and its form changes nothing', async () => {
  const id = await live.create('12.50')
  assert(!(await pageOf(id)).includes(question))
  const answer = await choose(id, 'payment.paid')
  assert.equal(answer.statusCode, 409, answer.body)
  assert.equal(answer.json().code, 'not_simulated')
  assert.equal((await live.read(id)).status, 'OPEN')
})
