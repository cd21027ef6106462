/** Settlers, the accounts that pay for gas: how they are added and taken away, who may use them, and where. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { openSigner } from '../../src/chains/signer.ts'
import { startLocalChain } from '../../src/local-chain.ts'
import { drainSettler, insertSettler, leaseSettler, lockForSending } from '../../src/payments/lanes/rows.ts'
import { startWorker } from '../../src/worker.ts'
import { makeStore, openTestApp } from '../support/app.ts'
import { fundedKey, newPayer, paymentHeader } from '../support/chain.ts'
import { startProcess } from '../support/process.ts'
import { openShop, payTo } from '../support/shop.ts'
import {
  type Answer,
  assertPaid,
  assertProblem,
  decode,
  type Shop,
  until,
  untilReady,
} from './support/watch.ts'

const network = 'eip155:31337'
const main = new URL('../../src/main.ts', import.meta.url).pathname
const folder = await mkdtemp(join(tmpdir(), 'farthing-settlers-'))
after(() => rm(folder, { recursive: true, force: true }))

/** A chain that goes on when the test says so, and two settlers. */
const shop = await openShop({ blockTimeSeconds: null, settlers: 2 })
await untilReady(shop)

type Sent = { settler: string; nonce: string; is_mined: boolean }

async function listSent(at: Shop): Promise<Sent[]> {
  return await at.ctx.db.query<Sent>(
    'select settler, nonce, mined_at is not null as is_mined from transactions order by settler, nonce',
  )
}

async function stateOf(at: Shop, address: string): Promise<string | undefined> {
  const [row] = await at.ctx.db.query<{ state: string }>('select state from settlers where address = $1', [
    address,
  ])
  return row?.state
}

async function start(at: Shop): Promise<{ answer: Promise<Answer>; settler: string }> {
  const payer = await at.fund()
  const id = await at.create()
  const header = await at.sign(id, payer)
  const answer = at.pay(id, header)
  const { nonce } = decode(header).payload.authorization
  const settler = await until(async () => {
    const [row] = await at.ctx.db.query<{ settler: string }>(
      'select settler from transaction_calls where nonce = $1',
      [nonce],
    )
    return row?.settler
  }, 'a send')
  return { answer, settler }
}

test('two settlers share the load: when one has three transactions under way, the other takes what comes next', async () => {
  const payers = Array.from({ length: 6 }, () => newPayer())
  await shop.chain.mint(
    payers.map(({ address }) => address),
    5_000_000n,
  )
  const answers: Promise<Answer>[] = []
  for (const [i, payer] of payers.entries()) {
    const id = await shop.create()
    answers.push(shop.pay(id, await shop.sign(id, payer)))
    await until(async () => (await listSent(shop)).length === i + 1, 'a send')
  }
  const bySettler = Map.groupBy(await listSent(shop), ({ settler }) => settler)
  assert.deepEqual(
    [...bySettler.values()].map(({ length }) => length),
    [3, 3],
  )
  await shop.chain.mine()
  for (const answer of await Promise.all(answers)) assertPaid(answer)
  await until(async () => (await listSent(shop)).every(({ is_mined }) => is_mined), 'all mined')
})

test('a draining settler finishes what it has sent, takes nothing new, and is retired when it is mined', async () => {
  const first = await start(shop)
  await drainSettler(shop.ctx.db, first.settler)
  const before = (await listSent(shop)).filter(({ settler }) => settler === first.settler).length
  // Money takes a block, so it is there beforehand.
  const payers = [newPayer(), newPayer()]
  const headers: [string, string][] = []
  for (const payer of payers) {
    const id = await shop.create()
    headers.push([id, await shop.sign(id, payer)])
  }
  assert.equal(await stateOf(shop, first.settler), 'draining')
  await shop.chain.mint(
    payers.map(({ address }) => address),
    5_000_000n,
  )
  assertPaid(await first.answer)
  await until(async () => (await stateOf(shop, first.settler)) === 'retired', 'retirement')
  const answers = headers.map(([id, header]) => shop.pay(id, header))
  await until(async () => (await listSent(shop)).some(({ is_mined }) => !is_mined), 'a send')
  await until(async () => {
    await shop.chain.mine()
    return (await Promise.all(headers.map(([id]) => shop.read(id)))).every(
      ({ status }) => status === 'COMPLETED',
    )
  }, 'the other settler')
  for (const answer of await Promise.all(answers)) assertPaid(answer)
  assert.equal((await listSent(shop)).filter(({ settler }) => settler === first.settler).length, before)
})

test('a settler that has nothing under way is retired soon after it is drained', async () => {
  const [idle] = shop.signers.map(({ address }) => address)
  assert(idle)
  const [row] = await shop.ctx.db.query<{ address: string }>(
    "select address from settlers where state = 'active'",
  )
  assert(row)
  await drainSettler(shop.ctx.db, row.address)
  await shop.chain.mine()
  await until(async () => (await stateOf(shop, row.address)) === 'retired', 'retirement')
  for (const { address } of shop.signers) await insertSettler(shop.ctx.db, network, address, 0)
  await untilReady(shop)
  const { answer } = await start(shop)
  await shop.chain.mine()
  assertPaid(await answer)
})

test('a nonce is given only to the holder of the newest lease, and not once the settler drains', async () => {
  const { db } = shop.ctx
  const address = openSigner(fundedKey(7)).address
  await insertSettler(db, network, address, 0)
  const take = async (holder: string, epoch: bigint) =>
    await db.transaction((tx) => lockForSending(tx, { network, address, holder, epoch }, []))
  const letLeaseEnd = () =>
    db.query("update settlers set leased_until = clock() - interval '1 second' where address = $1", [address])

  const first = await leaseSettler(db, network, address, 'first', 10)
  assert(first)
  assert.equal(await leaseSettler(db, network, address, 'second', 10), null, 'it is taken')
  assert.equal((await take('first', first.epoch))?.nonce, 0)
  await letLeaseEnd()
  const second = await leaseSettler(db, network, address, 'second', 10)
  assert(second && second.epoch > first.epoch)
  assert.equal(await take('first', first.epoch), null)
  assert.equal(await take('first', second.epoch), null)
  assert.equal(await leaseSettler(db, network, address, 'first', 10), null)
  assert.equal((await take('second', second.epoch))?.nonce, 0)
  await letLeaseEnd()
  const again = await leaseSettler(db, network, address, 'first', 10)
  assert(again && again.epoch > second.epoch)
  assert.equal(await take('first', first.epoch), null, 'what it began under its first lease is void')
  await drainSettler(db, address)
  assert.equal(await take('first', again.epoch), null, 'draining')
})
