/** What whoever has taken `work` over can write, and what the audit says all the same. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, encodeFunctionData, parseAbi } from 'viem'
import { registerWallet } from '../../src/stores/wallets.ts'
import { makeStore } from '../support/app.ts'
import { openAs } from '../support/database.ts'
import { operator } from '../support/operator.ts'
import { payTo } from '../support/shop.ts'
import { wallets } from '../support/store.ts'
import { untilRead } from '../support/watch.ts'
import {
  type AuditedShop,
  dayMs,
  kindsOf,
  nobody,
  openAuditedShop,
  plantCredit,
  receiveUnseen,
  sell,
} from './support/auditing.ts'

type Paid = { readonly transaction: string; readonly payer: string; readonly at: Date }

async function readPaid(shop: AuditedShop, checkoutId: string): Promise<Paid> {
  const [paid] = await shop.ctx.db.query<Paid>(
    `select transaction_hash as "transaction", payer, block_time as at from credits where checkout_id = $1`,
    [checkoutId],
  )
  return paid ?? assert.fail()
}

const named = async (shop: AuditedShop, kind: string) =>
  [
    ...new Set(
      (await shop.findings()).filter((one) => one.kind === kind).map(({ checkoutId }) => checkoutId),
    ),
  ].toSorted()

async function auditAll(shop: AuditedShop): Promise<void> {
  for (const told of await shop.audit()) assert('result' in told, JSON.stringify(told))
  await shop.findUnpaid()
}

test('of two payments of one transfer both are named, whichever came first and whatever day the false one says', async () => {
  const shop = await openAuditedShop()
  const [first, second, third, honest] = [
    await sell(shop),
    await sell(shop),
    await sell(shop),
    await sell(shop),
  ]
  const [of, ofSecond, ofThird] = [
    await readPaid(shop, first),
    await readPaid(shop, second),
    await readPaid(shop, third),
  ]
  // An honest follower takes back what it reads again, so it does not run.
  await shop.stopWork()
  const before = await plantCredit(shop, { ...of, position: 1 })
  await shop.endDay()
  await auditAll(shop)
  assert.deepEqual(await named(shop, 'unfounded'), [first, before].toSorted())
  // After its day was compared: on that day, and on one long ago.
  const onTheDay = await plantCredit(shop, { ...ofSecond, position: 1 })
  const longAgo = await plantCredit(shop, {
    ...ofThird,
    position: 1,
    at: new Date(ofThird.at.getTime() - 100 * dayMs),
  })
  const byAnother = await plantCredit(shop, { ...ofThird, payer: nobody })
  await shop.endDay()
  await auditAll(shop)
  const all = [first, before, second, onTheDay, third, longAgo, byAnother].toSorted()
  assert.deepEqual(await named(shop, 'unfounded'), all)
  assert(!(await shop.findings()).some(({ checkoutId }) => checkoutId === honest))
  // Once the false ones are taken back, nothing is left to say.
  await shop.ctx.db.query('update credits set orphaned_at = clock() where checkout_id = any($1)', [
    [before, onTheDay, longAgo, byAnother],
  ])
  await shop.ctx.db.query("update checkouts set status = 'EXPIRED' where id = any($1)", [
    [before, onTheDay, longAgo, byAnother],
  ])
  await auditAll(shop)
  assert.deepEqual(await shop.findings(), [])
})

test('a payment that names somebody else’s transfer, or less than the price, pays no checkout', async () => {
  const shop = await openAuditedShop()
  const honest = await sell(shop)
  await shop.chain.mint(nobody, 1_000_000n)
  const [log] = await shop.chain.transferLogs({ to: nobody })
  const at = await shop.time()
  const mint = { payer: '0x0000000000000000000000000000000000000000' }
  const elsewhere = await plantCredit(shop, {
    ...mint,
    at,
    transaction: log?.transactionHash ?? assert.fail(),
    payTo: nobody,
  })
  const small = await receiveUnseen(shop, 1n)
  const cheap = await plantCredit(shop, { ...mint, at, transaction: small, amount: 1n })
  const otherToken = await shop.create()
  await shop.endDay()
  await auditAll(shop)
  assert.deepEqual(await named(shop, 'unpaid'), [elsewhere, cheap].toSorted())
  assert(!(await shop.findings()).some(({ checkoutId }) => checkoutId === honest))
  // The same after the day was compared.
  const smaller = await receiveUnseen(shop, 2n)
  const late = await plantCredit(shop, {
    ...mint,
    at,
    transaction: smaller,
    amount: 2n,
    checkoutId: otherToken,
  })
  await shop.endDay()
  await auditAll(shop)
  assert.deepEqual(await named(shop, 'unpaid'), [elsewhere, cheap, late].toSorted())
})

test('a payment below the price that the store accepted is none of it, and one that only `work` calls accepted is', async () => {
  const shop = await openAuditedShop()
  const [asked, unasked] = [await shop.create(), await shop.create()]
  const mint = { payer: '0x0000000000000000000000000000000000000000' }
  const at = await shop.time()
  await plantCredit(shop, {
    ...mint,
    at,
    transaction: await receiveUnseen(shop, 400_000n),
    amount: 400_000n,
    checkoutId: asked,
  })
  await plantCredit(shop, {
    ...mint,
    at,
    transaction: await receiveUnseen(shop, 500_000n),
    amount: 500_000n,
    checkoutId: unasked,
  })
  await openAs('work', shop.databaseUrl).query('update credits set accepted_at = clock()')
  await openAs('serve', shop.databaseUrl).query(
    `insert into decisions (id, store_id, payment_id, kind, actor, created_at)
     select 'dec_1', store_id, payment_id, 'accept', '{}', clock() from credits where checkout_id = $1`,
    [asked],
  )
  // `work` deletes what is applied.
  await openAs('work', shop.databaseUrl).query('delete from decisions')
  await shop.endDay()
  await auditAll(shop)
  assert.deepEqual(await named(shop, 'unpaid'), [unasked])
})

test('a payment that a store accepted completes the checkout that it was accepted for, and no other', async () => {
  const shop = await openAuditedShop()
  const mint = { payer: '0x0000000000000000000000000000000000000000' }
  const at = await shop.time()
  const [own, unmatched, others, moved, away] = [
    await shop.create(),
    await shop.create(),
    await shop.create(),
    await shop.create(),
    await shop.create(),
  ]
  const { store: other } = await makeStore(shop.ctx, { mode: 'test', evmWallet: null })
  const work = openAs('work', shop.databaseUrl)
  const accept = async (units: bigint, planted: string, storeId: string, checkoutId: string | null) => {
    const transaction = await receiveUnseen(shop, units)
    const planting = { ...mint, at, transaction, amount: units, checkoutId: planted }
    await plantCredit(shop, { ...planting, ...(planted === away ? { payTo: nobody } : {}) })
    await openAs('serve', shop.databaseUrl).query(
      `insert into decisions (id, store_id, payment_id, kind, checkout_id, actor, created_at)
       select 'dec_' || $1, $2, payment_id, 'accept', $3, '{}', clock() from credits where amount = $1::numeric`,
      [units.toString(), storeId, checkoutId],
    )
  }
  await accept(10_001n, own, shop.store.id, null)
  await accept(10_002n, unmatched, shop.store.id, unmatched)
  // Another store's decision, one for another checkout of the store, and money that is not at a wallet of the store.
  await accept(10_003n, others, other.id, null)
  await accept(10_004n, moved, shop.store.id, own)
  await accept(10_005n, away, shop.store.id, null)
  const later = await shop.create()
  await accept(10_006n, later, shop.store.id, null)
  const target = await shop.create()
  await work.query('update credits set checkout_id = $1 where amount = 10006', [target])
  await work.query(`update checkouts set status = 'COMPLETED' where id = $1`, [target])
  await work.query('delete from decisions')
  await shop.endDay()
  await auditAll(shop)
  assert.deepEqual(await named(shop, 'unpaid'), [others, moved, away, later, target].toSorted())
})

test('a payment that is dated back onto a day compared long ago is named, with a checkout and without', async () => {
  const shop = await openAuditedShop()
  const start = await shop.time()
  for (let day = 0; day < 50; day++) await shop.endDay({ isFinal: day === 49 })
  await auditAll(shop)
  assert.deepEqual(await shop.findings(), [])
  const at = new Date(start.getTime() + 2 * dayMs)
  const planted = await plantCredit(shop, { at })
  const alone = await plantCredit(shop, { at: new Date(start.getTime() + 3 * dayMs), amount: 77n })
  const work = openAs('work', shop.databaseUrl)
  await work.query(`update checkouts set status = 'EXPIRED' where id = $1`, [alone])
  await work.query(
    `update credits set checkout_id = null, store_id = null, disposition = 'unmatched' where checkout_id = $1`,
    [alone],
  )
  // Moved onto another day afterwards.
  const moved = await plantCredit(shop, { at: await shop.time() })
  await work.query(`update credits set block_time = $2 where checkout_id = $1`, [moved, at])
  await auditAll(shop)
  assert.deepEqual(await named(shop, 'unfounded'), [planted, moved, null].toSorted())
  assert(kindsOf(await shop.findings()).includes('unfounded 77'))
  await assert.rejects(work.query('delete from audit_changes'), { code: '42501' })
})

test('`work` cannot end a comparison: neither by saying that a wallet is elsewhere nor by putting the audit off', async () => {
  const shop = await openAuditedShop()
  await sell(shop)
  await receiveUnseen(shop, 7_000_000n)
  const planted = await plantCredit(shop, { at: await shop.time() })
  const work = openAs('work', shop.databaseUrl)
  await work.query('update wallets set elsewhere = true, released_at = clock()')
  await shop.ctx.db.query(
    `insert into schedules (name, run_at, leased_until, attempt) values ('audit', clock(), clock(), 0)`,
  )
  await work.query(`update schedules set run_at = 'infinity', leased_until = 'infinity'`)
  const [task] = await shop.ctx.db.query<{ isDue: boolean }>(
    `select run_at <= clock() and leased_until <= clock() as "isDue" from schedules where name = 'audit'`,
  )
  assert.deepEqual(task, { isDue: true })
  await shop.endDay()
  await auditAll(shop)
  assert.deepEqual(await named(shop, 'unfounded'), [planted])
  // Another cell may have it in its books, so it is one sum and not a list.
  assert.deepEqual(kindsOf(await shop.findings()), ['elsewhere 7000000', 'unfounded 1000000'])
})

test('a wallet with too many transfers is named alone, the others of its group are compared, and it hides no false payment', async () => {
  const shop = await openAuditedShop({ transfersMax: 20 })
  const busyOnes = [wallets[1], wallets[2]] as const
  for (const walletAddress of busyOnes) {
    const { store } = await makeStore(shop.ctx, { mode: 'test', evmWallet: null })
    const wallet = { family: 'EVM', walletAddress, custodialType: 'NON_CUSTODIAL' } as const
    await registerWallet(shop.ctx, store.id, operator, wallet, shop.ctx.now())
  }
  await shop.ctx.db.query(
    `update wallets set proven_at = null, created_at = (select min(created_at) from wallets)`,
  )
  const crowd = async () =>
    await shop.chain.mint(
      busyOnes.flatMap((one) => Array<Address>(21).fill(one)),
      9n,
    )
  await crowd()
  await receiveUnseen(shop, 6_000_000n)
  const planted = await plantCredit(shop, { at: await shop.time(), payTo: busyOnes[0].toLowerCase() })
  await shop.endDay()
  await auditAll(shop)
  const kinds = ['busy 0', 'busy 0', 'missing 6000000', 'unfounded 1000000', 'unpaid 0']
  assert.deepEqual(kindsOf(await shop.findings()), kinds)
  assert.deepEqual(await named(shop, 'unfounded'), [planted])
  // The next day it is asked about alone, so that it costs the others nothing.
  await shop.chain.mint(payTo, 5_000_000n)
  await crowd()
  await untilRead(shop)
  await shop.endDay()
  const told = await shop.audit()
  assert.deepEqual(
    told.map((one) => ('result' in one ? one.result.wallets : one.trouble)).toSorted(),
    [1, 1, 1],
  )
  assert.equal((await shop.findings()).filter(({ kind }) => kind === 'busy').length, 4)
  // A day on which it is quiet is compared again.
  await shop.endDay()
  await shop.audit()
  const [row] = await shop.ctx.db.query<{ count: number }>(
    'select count(distinct wallet)::integer as count from audit_days where day = (select max(day) from audit_days) and received is not null',
  )
  assert.equal(row?.count, 3)
})

test('equal payments by two payers in one transaction are not missing once their credits are deleted', async () => {
  const shop = await openAuditedShop()
  const { chain, ctx } = shop
  const abi = parseAbi([
    'function mint(address to, uint256 value) returns (bool)',
    'function transfer(address to, uint256 value) returns (bool)',
  ])
  const batcher = '0xcA11bde05977b3631167028862bE2a173976CA11'
  await chain.mint(batcher, 10_000_000n)
  const call = (functionName: 'mint' | 'transfer', units: bigint) => ({
    to: chain.token,
    data: encodeFunctionData({ abi, functionName, args: [payTo, units] }),
  })
  // Equal ones of two payers, twice by one of them, and one of another amount.
  await chain.performAll([
    call('mint', 1_000_000n),
    call('transfer', 1_000_000n),
    call('transfer', 1_000_000n),
    call('mint', 2_000_000n),
  ])
  await untilRead(shop)
  await shop.stopWork()
  const key = 'credit_key(network, transaction_hash, asset, payer, pay_to, amount, position)'
  const keep = (which: string) =>
    ctx.db.query(
      `with gone as (delete from credits where ${which} returning *)
       insert into kept_credits (key, payment_id, outcome) select ${key}, payment_id, 'exact' from gone`,
    )
  await keep('position = 0')
  await shop.endDay()
  await shop.audit()
  assert.deepEqual(kindsOf(await shop.findings()), [])
  await keep('true')
  await ctx.db.query('delete from audit_days')
  await shop.audit()
  assert.deepEqual(kindsOf(await shop.findings()), [])
  // What was deleted is not paid with a second time.
  const [log] = await chain.transferLogs({ to: payTo })
  const again = await plantCredit(shop, {
    at: new Date((await shop.time()).getTime() - dayMs),
    transaction: log?.transactionHash ?? assert.fail(),
    payer: '0x0000000000000000000000000000000000000000',
    position: 7,
  })
  await shop.audit()
  assert.deepEqual(await named(shop, 'unfounded'), [again])
})

test('two amounts that the books lack of one transaction are two findings', async () => {
  const shop = await openAuditedShop()
  const abi = parseAbi(['function mint(address to, uint256 value) returns (bool)'])
  shop.followed.lie = (call, result) => (call.method === 'eth_getLogs' ? [] : result)
  await shop.chain.performAll(
    [3_000_000n, 4_000_000n].map((units) => ({
      to: shop.chain.token,
      data: encodeFunctionData({ abi, functionName: 'mint', args: [payTo, units] }),
    })),
  )
  await untilRead(shop)
  await shop.endDay()
  await shop.audit()
  assert.deepEqual(kindsOf(await shop.findings()), ['missing 3000000', 'missing 4000000'])
})
