/** What the audit finds on an EVM chain, and that it says nothing where books and chain agree. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listAudited } from '../../src/audit/audited.ts'
import { askToLookUp, readLookUp } from '../../src/payments/transfers/look-ups.ts'
import { openEvm } from '../support/chain/evm.ts'
import { openAs } from '../support/database.ts'
import { payTo } from '../support/shop.ts'
import { until, untilRead } from '../support/watch.ts'
import {
  dayMs,
  kindsOf,
  openAuditedShop,
  plantCredit,
  receiveUnseen,
  sell,
  without,
} from './support/auditing.ts'

test('money that the follower missed is found and told once, dust as one sum, and nothing else', async () => {
  const shop = await openAuditedShop()
  await sell(shop)
  await shop.receive(3_000_000n)
  const missed = await receiveUnseen(shop, 7_000_000n)
  await receiveUnseen(shop, 4_000n)
  await receiveUnseen(shop, 5_999n)
  await shop.endDay()
  const [first, ...others] = await shop.audit()
  assert(first && 'result' in first && others.length === 0)
  assert.equal(first.result.received, 5)
  assert.deepEqual(kindsOf(await shop.findings()), ['dust 9999', 'missing 7000000'])
  const finding = (await shop.findings()).find(({ kind }) => kind === 'missing')
  assert.equal(finding?.transaction, missed)
  assert.equal(finding?.storeId, shop.store.id)
  // There is nothing left to do, and a day that is compared again says nothing twice.
  assert.deepEqual(await shop.audit(), [])
  await shop.ctx.db.query('insert into audit_changes select distinct network, wallet, day, 1 from audit_days')
  const [again] = await shop.audit()
  assert(again && 'result' in again)
  assert.equal(again.result.found, 0)
  assert.equal((await shop.findings()).length, 2)
})

test('missed money comes into the books by a look at its transaction, also when its block is stored no more; then the audit is silent', async () => {
  const shop = await openAuditedShop()
  await shop.receive(3_000_000n)
  const missed = await receiveUnseen(shop, 7_000_000n)
  await shop.endDay()
  await shop.audit()
  assert.deepEqual(kindsOf(await shop.findings()), ['missing 7000000'])
  shop.followed.lie = (_, result) => result
  await untilRead(shop)
  const { caip2 } = shop.chain.network
  const { number } = await shop.chain.client
    .getTransactionReceipt({ hash: missed as `0x${string}` })
    .then(({ blockNumber }) => ({ number: blockNumber }))
  await until(async () => {
    const rows = await shop.ctx.db.query(
      'select 1 from followers where network = $1 and finalized_number > $2',
      [caip2, number],
    )
    return rows.length > 0
  }, 'the block is final')
  await shop.ctx.db.query('delete from blocks where network = $1 and number <= $2', [caip2, number])
  // Twice, because two people may ask.
  for (let i = 0; i < 2; i++) await askToLookUp(shop.ctx.db, caip2, missed)
  const found = async () => (await readLookUp(shop.ctx.db, caip2, missed)) === 'found'
  await until(found, 'the look')
  const unmatched = await shop.ctx.db.query<{ amount: string }>(
    `select amount::text as amount from credits where transaction_hash = $1 and orphaned_at is null`,
    [missed],
  )
  assert.deepEqual(unmatched, [{ amount: '7000000' }])
  await askToLookUp(shop.ctx.db, caip2, missed)
  await until(found, 'the second look')
  assert.equal((await shop.ctx.db.query('select 1 from credits')).length, 2)
  await shop.audit()
  assert.deepEqual(await shop.findings(), [])
  assert.deepEqual(await shop.audit(), [])
})

test('a checkout called paid without money is named, wherever and whenever its false payment says it was', async () => {
  const shop = await openAuditedShop()
  const honest = await sell(shop)
  const today = await shop.time()
  await shop.endDay()
  await shop.audit()
  // Into a day that was compared already, into one before the store had a wallet, into the future, and onto a network
  // that does not exist.
  const ago = (days: number) => new Date(today.getTime() - days * dayMs)
  const planted = [
    await plantCredit(shop, { at: today }),
    await plantCredit(shop, { at: ago(20) }),
    await plantCredit(shop, { at: ago(-400) }),
    await plantCredit(shop, { at: ago(10), network: 'eip155:8454' }),
  ]
  const bare = await shop.create()
  const work = openAs('work', shop.databaseUrl)
  await work.query(`update checkouts set status = 'COMPLETED' where id = $1`, [bare])
  await assert.rejects(work.query('delete from audit_findings'), { code: '42501' })
  await shop.endDay()
  await shop.audit()
  await shop.findUnpaid()
  const findings = await shop.findings()
  const named = (kind: string) =>
    findings.filter((one) => one.kind === kind).map(({ checkoutId }) => checkoutId)
  assert.deepEqual(named('unfounded').toSorted(), planted.toSorted())
  // One of another network than the checkout offers pays it no more than none does.
  assert.deepEqual(named('unpaid').toSorted(), [bare, planted[3]].toSorted())
  assert.equal(findings.length, 6)
  assert(!findings.some(({ checkoutId }) => checkoutId === honest))
  assert(findings.every(({ storeId }) => storeId === shop.store.id))
  await shop.audit()
  await shop.findUnpaid()
  assert.equal((await shop.findings()).length, 6)
})

test('a payment whose block the chain took back is named, until the books take it back too', async () => {
  const shop = await openAuditedShop()
  await shop.receive(1_000_000n)
  await shop.receive(2_000_000n)
  await shop.stopWork()
  await shop.chain.reorg(1)
  const midnight = new Date(Math.ceil((await shop.time()).getTime() / dayMs) * dayMs)
  await shop.chain.setNextBlockTimestamp(BigInt(midnight.getTime() / 1_000 + 60))
  await shop.chain.mine(70)
  await shop.audit()
  assert.deepEqual(kindsOf(await shop.findings()), ['unfounded 2000000'])
  const stop = shop.startWork()
  await until(async () => {
    const rows = await shop.ctx.db.query('select 1 from credits where orphaned_at is not null')
    return rows.length > 0
  }, 'the follower has taken it back')
  await shop.audit()
  assert.deepEqual(await shop.findings(), [])
  await stop()
})

test('money at the same address on a network that payments are not accepted on is found, if that has a node', async () => {
  const elsewhere = await openEvm({ network: 'BASE_SEPOLIA' })
  const shop = await openAuditedShop({ settings: { BASE_SEPOLIA_RPC_URLS: elsewhere.url } })
  await elsewhere.mint(payTo, 9_000_000n)
  await elsewhere.pass(86_400)
  await elsewhere.mine(70)
  await shop.endDay()
  await shop.audit()
  const [finding, ...others] = await shop.findings()
  assert.deepEqual(others, [])
  assert.equal(finding?.kind, 'sibling')
  assert.equal(finding?.network, elsewhere.network.caip2)
  assert.equal(finding?.amount, 9_000_000n)
})

test('one lying node of three neither hides a difference nor makes one up; of two, the day waits and says why', async () => {
  const shop = await openAuditedShop()
  await shop.receive(1_000_000n)
  const missed = await receiveUnseen(shop, 6_000_000n)
  await shop.endDay()
  const [liar] = shop.nodes
  assert(liar)
  const invent = (result: unknown) =>
    (result as { data: string }[]).flatMap((log) => [
      log,
      { ...log, logIndex: '0x77', transactionHash: `0x${'ab'.repeat(32)}` },
    ])
  liar.lie = (call, result) =>
    call.method === 'eth_getLogs' ? invent(without(missed)(call, result)) : result
  // Whom two honest ones contradict; what the liar says about balances and blocks is no better.
  await shop.audit()
  assert.deepEqual(kindsOf(await shop.findings()), ['missing 6000000'])
  await shop.receive(1_000_000n)
  await shop.endDay()
  const pair = shop.nodes.slice(0, 2).map(({ url }, i) => ({ provider: `pair-${i}`, url }))
  const config = { ...shop.auditCtx.config, auditNodes: { ...shop.auditCtx.config.auditNodes, LOCAL: pair } }
  shop.audited.splice(0, 9, ...listAudited({ ...shop.auditCtx, config }))
  const [told, ...more] = await shop.audit()
  assert.deepEqual(more, [])
  assert(told && 'trouble' in told)
  assert.match(told.trouble, /contradict each other about eth_getLogs/)
  const [run] = await shop.ctx.db.query<{ trouble: string }>('select trouble from audit_runs')
  assert.equal(run?.trouble, told.trouble)
  assert.equal((await shop.findings()).length, 1)
  liar.lie = (_, result) => result
  assert.equal((await shop.audit()).length, 1)
  assert.equal((await shop.findings()).length, 1)
})

test('over thirty days on which all is well it says nothing, and knows every balance; each day costs few calls', async () => {
  const shop = await openAuditedShop()
  await sell(shop)
  for (let day = 0; day < 30; day++) {
    await shop.chain.mint(payTo, BigInt(1_000_000 + day))
    if (day % 7 === 3) await shop.chain.mint(payTo, 50n)
    await shop.endDay({ isFinal: day === 29 })
  }
  await untilRead(shop)
  const told = await shop.audit()
  const calls = told.map((one) => ('result' in one ? one.result.calls : assert.fail(one.trouble)))
  assert.equal(calls.length, 30)
  await shop.findUnpaid()
  assert.deepEqual(await shop.findings(), [])
  const days = await shop.ctx.db.query<{ balance: string }>(
    'select balance::text as balance from audit_days order by day',
  )
  assert.equal(days.length, 30)
  assert.equal(BigInt(days.at(-1)?.balance ?? 0), await shop.chain.balance(payTo))
  const most = Math.max(...calls)
  assert(most <= 150, `${most} calls of three nodes for a day of few blocks`)
})
