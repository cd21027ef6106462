/** Settlers, the accounts that pay for gas: how they are added and removed, who may use them, and where. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import { startLocalChain } from '../../../src/dev/local-chain.ts'
import type { EvmNetwork } from '../../../src/networks.ts'
import {
  drainSettler,
  insertSettler,
  leaseSettler,
  lockForSending,
} from '../../../src/payments/settlers/rows.ts'
import { startWorker } from '../../../src/worker.ts'
import { makeStore, openTestApp } from '../../support/app.ts'
import { atEnd } from '../../support/at-end.ts'
import { fundedKey } from '../../support/chain/evm.ts'
import { newPayer, paymentHeader } from '../../support/chain/evm-payment.ts'
import { startProcess } from '../../support/process.ts'
import { openShop, payTo, type Shop } from '../../support/shop.ts'
import {
  type Answer,
  assertPaid,
  assertProblem,
  mineSent,
  until,
  untilReady,
  untilSent,
} from '../../support/watch.ts'

const network = 'eip155:31337'
const main = new URL('../../../src/main.ts', import.meta.url).pathname
const folder = await mkdtemp(join(tmpdir(), 'farthing-settlers-'))
atEnd(() => rm(folder, { recursive: true, force: true }))

/** A chain that mines only when the test says so, and two settlers. */
const shop = await openShop({ blockTimeSeconds: null, settlers: 2 })

type Sent = { settler: string; nonce: string; is_mined: boolean }

async function listSent(at: Shop): Promise<Sent[]> {
  return await at.ctx.db.query<Sent>(
    `select settler, nonce, mined_at is not null as is_mined from transactions t
     where exists (select 1 from broadcasts b where b.network = t.network and b.settler = t.settler
       and b.nonce = t.nonce and b.last_sent_at is not null)
     order by settler, nonce`,
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
  const { settler } = await untilSent(at, header)
  return { answer, settler }
}

test('two settlers share the load: once one has three transactions in flight, the other takes the next ones', async () => {
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

test('a draining settler finishes its sent transactions, takes no new ones, and is retired once they are mined', async () => {
  const first = await start(shop)
  await drainSettler(shop.ctx.db, network, first.settler)
  const before = (await listSent(shop)).filter(({ settler }) => settler === first.settler).length
  // Minting mines a block, so the payments are signed before it.
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
    await mineSent(shop)
    return (await Promise.all(headers.map(([id]) => shop.read(id)))).every(
      ({ status }) => status === 'COMPLETED',
    )
  }, 'the other settler')
  for (const answer of await Promise.all(answers)) assertPaid(answer)
  assert.equal((await listSent(shop)).filter(({ settler }) => settler === first.settler).length, before)
})

test('a settler with nothing in flight is retired soon after it is drained', async () => {
  const [row] = await shop.ctx.db.query<{ address: string }>(
    "select address from settlers where state = 'active'",
  )
  assert(row)
  await drainSettler(shop.ctx.db, network, row.address)
  await shop.chain.mine()
  await until(async () => (await stateOf(shop, row.address)) === 'retired', 'retirement')
  for (const { address } of shop.signers) await insertSettler(shop.ctx.db, network, address, 0)
  await untilReady(shop)
  const { answer } = await start(shop)
  await shop.chain.mine()
  assertPaid(await answer)
})

test('a retired settler resumes if the chain takes back its mined transactions', async () => {
  const { answer, settler } = await start(shop)
  await drainSettler(shop.ctx.db, network, settler)
  await shop.chain.mine()
  assertPaid(await answer)
  await until(async () => (await stateOf(shop, settler)) === 'retired', 'retirement')
  await shop.chain.reorg(1)
  await until(async () => (await stateOf(shop, settler)) === 'draining', 'its return')
  await shop.ctx.db.query("update broadcasts set last_sent_at = clock() - interval '4 seconds'")
  await until(async () => {
    await mineSent(shop)
    return (await stateOf(shop, settler)) === 'retired'
  }, 'its second retirement')
  await insertSettler(shop.ctx.db, network, settler, 0)
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
  assert.equal(await leaseSettler(db, network, address, 'second', 10), null, 'the lease was given twice')
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
  assert.equal(await take('first', first.epoch), null, 'an epoch from an earlier lease was accepted')
  await drainSettler(db, network, address)
  assert.equal(await take('first', again.epoch), null, 'a draining settler got a nonce')
  assert.equal(await drainSettler(db, network, address), false)
  await db.query('update settlers set stopped_at = clock() where address = $1', [address])
  assert(await drainSettler(db, network, address), 'one that was stopped while it drained can be retired')
})

/** Runs an operator's command and returns its output and exit code. */
async function command(...words: string[]): Promise<{ code: number; said: string }> {
  const settings = { DATABASE_URL: shop.databaseUrl, NETWORKS: 'LOCAL', LOCAL_RPC_URLS: shop.chain.url }
  const env = { PATH: process.env.PATH, BASE_URL: 'https://farthing.example', ...settings }
  return await promisify(execFile)(process.execPath, [main, 'settler', ...words], { env }).then(
    ({ stdout }) => ({ code: 0, said: stdout }),
    ({ code, stderr }) => ({ code, said: stderr }),
  )
}

test('settler add, list and drain work, and explain what is wrong when they cannot', async () => {
  const { address } = openSigner(fundedKey(8))
  // The account was used before, so its nonce does not begin at zero.
  await shop.chain.perform({ to: newPayer().address, data: '0x', from: address, gas: 21_000n })
  const wrong = [
    ['add', 'BASE_MAINNET', address, /NETWORKS/],
    ['add', 'LOCAL', '0x123', /40 hexadecimal/],
    ['drain', address, /no active settler/],
    ['dance', /There are settler create, .*settler add/],
  ] as const
  await Promise.all(
    wrong.map(async (words) => {
      const { code, said } = await command(...words.filter((word) => typeof word === 'string'))
      assert.equal(code, 1)
      assert.match(said, words.at(-1) as RegExp)
    }),
  )
  assert.match(
    (await command('add', 'LOCAL', address.toUpperCase().replace('0X', '0x'))).said,
    /settles on Local chain/,
  )
  assert.match((await command('add', 'LOCAL', address)).said, /already/)
  assert.match(
    (await command('list')).said,
    new RegExp(`${network}  ${address}  active  nonce 1, mined 1  balance unknown`),
  )
  assert.match((await command('drain', address)).said, /no new payments/)
  assert.match((await command('list')).said, new RegExp(`${address}  draining`))
})

test('if the settling process is killed, frozen or stopped, another takes over; one that wakes up takes no nonce', async () => {
  const held = await openShop({ worker: false })
  const keys = join(folder, 'keys')
  await writeFile(keys, `# the settler\n${fundedKey(1)}\n`)
  const settings = { DATABASE_URL: held.databaseUrl, NETWORKS: 'LOCAL', LOCAL_RPC_URLS: held.chain.url }
  const startWork = () => startProcess('work', { ...settings, SETTLER_KEYS_FILE: keys })
  const { db } = held.ctx
  const readLease = async () => {
    const [row] = await db.query<{ lease_holder: string; epoch: string }>(
      'select lease_holder, epoch from settlers',
    )
    return { holder: row?.lease_holder, epoch: BigInt(row?.epoch ?? 0) }
  }
  const endLeases = async () => {
    await db.query("update settlers set leased_until = clock() - interval '1 second'")
    await db.query("update followers set leased_until = clock() - interval '1 second'")
  }
  const payAnd = async (wait: () => Promise<unknown>) => {
    const payer = await held.fund()
    const id = await held.create()
    const header = await held.sign(id, payer)
    // On a busy machine, starting a process can take longer than a settler may be silent before payments are refused.
    await db.query('update settlers set alive_at = clock()')
    await db.query('update followers set head_seen_at = clock()')
    const answer = held.pay(id, header)
    await wait()
    assertPaid(await answer)
    return await readLease()
  }

  const [first, second] = await Promise.all([startWork(), startWork()])
  await untilReady(held)
  const before = await payAnd(async () => {})
  // The test does not know which of the two holds the lease, so both are tried: one is killed, one frozen.
  await first.kill('SIGKILL')
  const killed = await payAnd(endLeases)
  await until(async () => {
    second.child.kill('SIGSTOP')
    // Frozen in the middle of a transaction, it would hold its locks until the database aborts it, which takes 30 s.
    const busy = await db.query(
      `select 1 as one from pg_stat_activity
       where datname = current_database() and application_name = 'farthing-work' and state <> 'idle'`,
    )
    if (busy.length > 0) second.child.kill('SIGCONT')
    return busy.length === 0
  }, 'a process that is frozen between two steps')
  const third = await startWork()
  const frozen = await payAnd(endLeases)
  assert(frozen.epoch > killed.epoch && killed.epoch >= before.epoch)
  assert.notEqual(frozen.holder, killed.holder)
  second.child.kill('SIGCONT')
  assert.deepEqual(await payAnd(async () => {}), frozen, 'the process that woke up took over')
  await third.kill('SIGTERM')
  await untilReady(held)
  const stopped = await payAnd(async () => {})
  assert.equal(stopped.holder, killed.holder, 'a returned lease was not free at once')
  const sent = await listSent(held)
  assert.deepEqual(
    sent.map(({ nonce }) => nonce),
    sent.map((_, i) => String(i)),
  )
  assert.equal((await held.chain.transferLogs({ to: payTo })).length, 5)
})

test('work does not start with fewer nodes than a live network needs', async () => {
  const settings = { DATABASE_URL: shop.databaseUrl, NETWORKS: 'BASE_MAINNET' }
  await assert.rejects(
    startProcess('work', { ...settings, BASE_MAINNET_RPC_URLS: 'http://127.0.0.1:9' }),
    /BASE_MAINNET_RPC_URLS must name nodes of at least 2 providers/,
  )
})

test('a token whose signing name differs from ours is never settled on: 503, and nothing is sent', () =>
  assertNeverSettledOn({ domain: { name: 'Dollar', version: '2' } }))

test('a token whose decimals differ from ours is never settled on: 503, and nothing is sent', () =>
  assertNeverSettledOn({ decimals: 18 }))

/** Starts the work on a chain whose token differs from networks.ts, and pays there. */
async function assertNeverSettledOn(difference: Partial<EvmNetwork['assets'][number]>): Promise<void> {
  const [asset] = shop.chain.network.assets
  assert(asset)
  const assets = [{ ...asset, ...difference }]
  const chain = await startLocalChain({ chainId: 31_337, blockTimeSeconds: 1, assets })
  atEnd(chain.stop)
  const app = await openTestApp({
    NETWORKS: 'LOCAL',
    LOCAL_RPC_URLS: chain.url,
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
  })
  const signer = openSigner(fundedKey(1))
  await insertSettler(app.ctx.db, network, signer.address, 0)
  const { key } = await makeStore(app.ctx, { mode: 'test', evmWallet: payTo })
  const worker = startWorker(app.ctx, [signer])
  atEnd(() => worker.stop())
  await until(async () => {
    const { values } = await app.ctx.metrics.taskFailures.get()
    return ['follow', 'lane'].every((name) =>
      values.some(({ labels, value }) => String(labels.task).startsWith(name) && value > 1),
    )
  }, 'the check of the token')
  const created = await app.request({
    method: 'POST',
    url: '/api/v1/checkouts',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    payload: { orderId: 'order-1', priceAmount: '1.00', priceCurrency: 'USD' },
  })
  const url = `/api/v1/checkouts/${created.json().id}`
  const terms = await app.request({ method: 'POST', url })
  const header = await paymentHeader(terms.json(), newPayer().key)
  const answer = await app.request({ method: 'POST', url, headers: { 'payment-signature': header } })
  assertProblem(answer, 503, 'settlement_unavailable')
  for (const table of ['transactions', 'blocks', 'authorizations'])
    assert.deepEqual(await app.ctx.db.query(`select * from ${table}`), [])
}
