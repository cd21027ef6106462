/** Rows by which whoever has taken `work` over would stop the audit or keep it busy, and what it finds all the same. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { registerWallet } from '../../src/stores/wallets.ts'
import { makeStore } from '../support/app.ts'
import { openAs } from '../support/database.ts'
import { operator } from '../support/operator.ts'
import { payTo } from '../support/shop.ts'
import { wallets } from '../support/store.ts'
import {
  dayMs,
  kindsOf,
  nobody,
  openAuditedShop,
  plantCredit,
  receiveUnseen,
  sell,
} from './support/auditing.ts'

const impossible = {
  'an amount that is no number': "amount = 'NaN'",
  'a time that never comes': "block_time = 'infinity'",
  'a time that never was': "block_time = '-infinity'",
  'a year of five digits': "block_time = '12026-01-01'",
  'a year before Christ': "block_time = '0400-01-01 BC'",
  'a year before there were chains': "block_time = '2008-12-31 23:59:59Z'",
  'a transaction that no index takes': "transaction_hash = repeat('a', 100000)",
  'a wallet that no index takes': "pay_to = repeat('a', 100000)",
}

test('PostgreSQL refuses a payment that no comparison could read', async (t) => {
  const shop = await openAuditedShop()
  await sell(shop)
  const work = openAs('work', shop.databaseUrl)
  for (const [what, spoil] of Object.entries(impossible))
    await t.test(what, async () => {
      await assert.rejects(work.query(`update credits set ${spoil}`), { code: '23514' })
    })
})

test('a payment that cannot be read stops its wallet alone, and the audit says which', async () => {
  const shop = await openAuditedShop()
  const { db } = shop.ctx
  const other = wallets[1]
  const { store } = await makeStore(shop.ctx, { mode: 'test', evmWallet: null })
  const wallet = { family: 'EVM', walletAddress: other, custodialType: 'NON_CUSTODIAL' } as const
  await registerWallet(shop.ctx, store.id, operator, wallet, shop.ctx.now())
  await db.query('update wallets set proven_at = null, created_at = (select min(created_at) from wallets)')
  // So that the row gets past what PostgreSQL refuses: the next such row may be one that nobody thought of.
  await db.query('alter table credits drop constraint credits_amount_is_number')
  const at = await shop.time()
  const long = new Date(at.getTime() - 20 * dayMs)
  const broken = await plantCredit(shop, { at, payTo: other.toLowerCase() })
  const stray = await plantCredit(shop, { at: long, payTo: nobody })
  await openAs('work', shop.databaseUrl).query(
    `update credits set amount = 'NaN' where checkout_id = any($1)`,
    [[broken, stray]],
  )
  const planted = await plantCredit(shop, { at })
  const plantedStray = await plantCredit(shop, { at: new Date(long.getTime() - dayMs), payTo: nobody })
  await receiveUnseen(shop, 6_000_000n)
  for (let day = 0; day < 2; day++) {
    await shop.endDay()
    const told = await shop.audit()
    const troubles = told.flatMap((one) => ('trouble' in one ? one : []))
    const lost = troubles.map((one) => ('wallet' in one ? one.wallet : null))
    assert.deepEqual(lost.toSorted(), [nobody, other.toLowerCase()].toSorted(), JSON.stringify(told))
    assert(troubles.every(({ trouble }) => /NaN/.test(trouble)))
  }
  const findings = await shop.findings()
  assert.deepEqual(kindsOf(findings.filter(({ kind }) => kind === 'missing')), ['missing 6000000'])
  const unfounded = findings.filter(({ kind }) => kind === 'unfounded').map(({ checkoutId }) => checkoutId)
  assert.deepEqual(unfounded.toSorted(), [planted, plantedStray].toSorted())
  const days = await db.query('select distinct day from audit_days where wallet = $1', [payTo.toLowerCase()])
  assert.equal(days.length, 2)
  const [run] = await db.query<{ trouble: string }>('select trouble from audit_runs')
  assert.match(run?.trouble ?? '', new RegExp(`${other.toLowerCase()}.*NaN`))
  // Once it is repaired, nothing is left behind.
  await db.query(`update credits set amount = 1000000 where amount = 'NaN'`)
  for (const one of await shop.audit()) assert('result' in one, JSON.stringify(one))
  assert.equal((await shop.findings()).filter(({ kind }) => kind === 'unfounded').length, 4)
  assert.deepEqual(await db.query('select trouble from audit_runs'), [{ trouble: null }])
})

test('a false payment of a store that does not exist, and several of one transaction, are each named', async () => {
  const shop = await openAuditedShop()
  const at = await shop.time()
  const work = openAs('work', shop.databaseUrl)
  const own = async (id: string, store: string | null) =>
    await work.query(
      `update credits set store_id = $2 ${store === null ? ", checkout_id = null, disposition = 'unmatched'" : ''}
       where checkout_id = $1`,
      [id, store],
    )
  const none = await plantCredit(shop, { at })
  await own(none, 'none')
  const transaction = `0x${'ab'.repeat(32)}`
  for (const [position, store] of [null, shop.store.id, null, 'none'].entries()) {
    const id = await plantCredit(shop, { at, transaction, position })
    await own(id, store)
    await work.query(
      `update credits set checkout_id = null, disposition = 'unmatched' where checkout_id = $1`,
      [id],
    )
  }
  const huge = await plantCredit(shop, { at, amount: 10n ** 78n - 1n })
  const another = await plantCredit(shop, { at, amount: 10n ** 78n - 1n })
  await shop.endDay()
  for (const one of await shop.audit()) assert('result' in one, JSON.stringify(one))
  const unfounded = (await shop.findings()).filter(({ kind }) => kind === 'unfounded')
  assert.equal(unfounded.filter((one) => one.transaction === transaction).length, 4)
  assert.deepEqual(
    unfounded.flatMap(({ checkoutId }) => checkoutId ?? []).toSorted(),
    [none, huge, another].toSorted(),
  )
  assert(unfounded.every(({ storeId }) => storeId === shop.store.id))
})

test('a false payment is compared before whatever changes later, however often that is', async () => {
  const shop = await openAuditedShop()
  const start = await shop.time()
  const days = 54
  for (let day = 0; day < days; day++) await shop.endDay({ isFinal: day === days - 1 })
  await shop.audit()
  const { db } = shop.ctx
  const { caip2 } = shop.chain.network
  const ago = (count: number) => new Date(start.getTime() + count * dayMs)
  const onDay = await plantCredit(shop, { at: ago(1) })
  const ofNobody = await plantCredit(shop, { at: ago(-30), payTo: nobody })
  // More of each than one run compares.
  await db.query(
    `insert into audit_changes (network, wallet, day, changes)
     select distinct network, wallet, day, 1 from audit_days where day > $1::date + 1`,
    [start],
  )
  await db.query(
    `insert into audit_changes (network, wallet, day, changes)
     select $1, '0x' || i, $2::date, 1 from generate_series(1, 2000) i`,
    [caip2, ago(-5)],
  )
  await shop.audit()
  const unfounded = (await shop.findings()).filter(({ kind }) => kind === 'unfounded')
  assert.deepEqual(unfounded.map(({ checkoutId }) => checkoutId).toSorted(), [onDay, ofNobody].toSorted())
  // The rest follows, also behind a day that changes all the time and one whose row a transaction holds.
  await db.transaction(async (tx) => {
    const touch = `update audit_changes set changes = changes + 1 where day = (select min(day) from audit_changes where wallet = $1)`
    await tx.query(touch, [payTo.toLowerCase()])
    await shop.audit()
  })
  await shop.audit()
  assert.deepEqual(await db.query('select day from audit_changes where day < $1::date', [ago(days)]), [])
})

test('payments on a network whose nodes are not set are no finding but a trouble, and on one that does not exist a finding', async () => {
  const shop = await openAuditedShop()
  const at = new Date((await shop.time()).getTime() - 10 * dayMs)
  await plantCredit(shop, { at, network: 'eip155:8453' })
  const nowhere = await plantCredit(shop, { at, network: 'eip155:8454' })
  await shop.endDay()
  await shop.audit()
  const unfounded = (await shop.findings()).filter(({ kind }) => kind === 'unfounded')
  assert.deepEqual(
    unfounded.map(({ checkoutId }) => checkoutId),
    [nowhere],
  )
  const [run] = await shop.ctx.db.query<{ trouble: string }>(
    `select trouble from audit_runs where network = 'eip155:8453'`,
  )
  assert.match(run?.trouble ?? '', /BASE_MAINNET_AUDIT_RPC_URLS/)
})
