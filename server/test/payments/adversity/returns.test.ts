import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Block, ChainLog } from '../../../src/chains/evm/chain.ts'
import { claimAuthorizations } from '../../../src/checkouts/claim.ts'
import { numberEvents } from '../../../src/checkouts/number-events.ts'
import { reviewCheckouts } from '../../../src/checkouts/update-status.ts'
import type { Transaction } from '../../../src/database/db.ts'
import { buryAuthorizations, reverseCredits } from '../../../src/payments/end.ts'
import { encodeTransfer, newNonce } from '../../support/chain/evm-payment.ts'
import { claimOf, keyOf, readInclusion, reject } from './claims.ts'
import { openDriven, type Prepared } from './driven.ts'
import { checkInvariants } from './invariants.ts'
import { print, trials } from './size.ts'

const shop = await openDriven()
const { db } = shop.ctx
const { listener, chain, look } = shop.engine
const network = chain.network.caip2
const perBlock = 10
const rounds = trials(2, 50)

const within = (work: (tx: Transaction) => Promise<void>) => db.transaction(work)

/** Payments settled in one block, which the chain keeps: only the listener hears of the changes made to it here. */
async function settle(): Promise<{ payments: Prepared[]; block: Block; logs: readonly ChainLog[] }> {
  const payments = await shop.prepare(perBlock)
  const answers = await shop.present(payments)
  await shop.send()
  await shop.mine()
  for (const answer of await Promise.all(answers)) assert.equal(answer.statusCode, 200, answer.body)
  const { block, logs } = await readInclusion(shop, Number(await shop.chain.client.getBlockNumber()))
  return { payments, block, logs }
}

async function assertAll(payments: readonly Prepared[], status: string): Promise<void> {
  const seen = await Promise.all(payments.map(({ checkoutId }) => shop.read(checkoutId)))
  assert.deepEqual([...new Set(seen.map((checkout) => checkout.status))], [status])
}

/** The same transactions in another block, behind others: the same logs at other indexes. */
function move(block: Block, logs: readonly ChainLog[]): { block: Block; logs: readonly ChainLog[] } {
  const hash = newNonce()
  return {
    block: { ...block, hash },
    logs: logs.map((log) => ({ ...log, blockHash: hash, logIndex: log.logIndex + 7 })),
  }
}

const orphan = (block: Block) => within((tx) => listener.onOrphaned(tx, [block.hash], block.number - 1))
const include = ({ block, logs }: { block: Block; logs: readonly ChainLog[] }) =>
  within((tx) => listener.onBlock(tx, block, logs, { isWitnessed: true, isDoubted: false, isAgain: false }))

/** Marks them dead, as if that were proven. */
async function giveUp(payments: readonly Prepared[]): Promise<void> {
  const dead = payments.map((payment) => ({
    ...keyOf(payment, shop.chain.token),
    reason: 'authorization_expired',
  }))
  await within(async (tx) => {
    const buried = await buryAuthorizations(tx, network, dead)
    await reverseCredits(tx, network, dead)
    const changed = buried.flatMap(({ checkoutId }) => checkoutId ?? [])
    await look(tx, changed, shop.ctx.now())
  })
}

/** The valid receipts, once all events are numbered. */
async function receiptsOf(payments: readonly Prepared[]): Promise<string[]> {
  while ((await numberEvents(shop.ctx)) > 0);
  const rows = await db.query<{ number: string }>(
    `select series || ' ' || year || ' ' || number as number from buyer_receipts
     where void_at is null and checkout_id = any($1) order by number`,
    [payments.map(({ checkoutId }) => checkoutId)],
  )
  return rows.map(({ number }) => number)
}

async function paymentIds(payments: readonly Prepared[]): Promise<string[]> {
  const rows = await db.query<{ payment_id: string }>(
    `select payment_id from credits where orphaned_at is null and disposition = 'exact' and checkout_id = any($1)
     order by payment_id`,
    [payments.map(({ checkoutId }) => checkoutId)],
  )
  return rows.map(({ payment_id }) => payment_id)
}

test('a block that is orphaned and becomes canonical again restores its payments unchanged', async () => {
  for (let round = 0; round < rounds; round++) {
    const settled = await settle()
    const before = await paymentIds(settled.payments)
    for (let time = 0; time < 2; time++) {
      await orphan(settled.block)
      await assertAll(settled.payments, 'PROCESSING')
      await include(settled)
      await assertAll(settled.payments, 'COMPLETED')
    }
    assert.equal(before.length, perBlock)
    assert.deepEqual(await paymentIds(settled.payments), before)
    const told = await db.query(
      `select 1 as one from events where type = 'payment.reorged' and checkout_id = any($1)`,
      [settled.payments.map(({ checkoutId }) => checkoutId)],
    )
    assert.equal(told.length, 2 * perBlock, 'payment.reorged events')
  }
})

test('a payment that moves to another block and back is credited once, whether or not the first move was reported', async () => {
  for (let round = 0; round < rounds; round++) {
    const settled = await settle()
    const before = await paymentIds(settled.payments)
    const other = move(settled.block, settled.logs)
    if (round % 2 === 0) await orphan(settled.block)
    // The new inclusion replaces the old one, even if nobody reported that the old one is gone.
    await include(other)
    await assertAll(settled.payments, 'COMPLETED')
    assert.deepEqual(await paymentIds(settled.payments), before)
    await orphan(other.block)
    await assertAll(settled.payments, 'PROCESSING')
    await include(settled)
    await assertAll(settled.payments, 'COMPLETED')
    assert.deepEqual(await paymentIds(settled.payments), before)
  }
})

test('a payment given up for dead that is on the chain after all completes its checkout again', async () => {
  for (let round = 0; round < rounds; round++) {
    const settled = await settle()
    const valid = await receiptsOf(settled.payments)
    assert.equal(new Set(valid).size, perBlock)
    await orphan(settled.block)
    assert.deepEqual(await receiptsOf(settled.payments), valid, 'a reorganisation alone ends no receipt')
    await giveUp(settled.payments)
    await assertAll(settled.payments, 'OPEN')
    assert.deepEqual(await receiptsOf(settled.payments), [], 'all are void')
    await include(settled)
    await assertAll(settled.payments, 'COMPLETED')
    const next = await receiptsOf(settled.payments)
    assert.equal(new Set([...valid, ...next]).size, 2 * perBlock, 'a void number does not come back')
    for (const { checkoutId } of settled.payments) {
      const { payment } = await shop.read(checkoutId)
      assert.equal(payment.finality, 'included')
    }
  }
})

test('a payment that returns after another became exact is overpaid', async () => {
  const firsts = await shop.prepare(perBlock)
  const seconds = await Promise.all(
    (await shop.prepare(perBlock)).map(({ payer }, i) =>
      shop.prepareOne(payer, { rivalOf: firsts[i] ?? assert.fail(), isBound: true }),
    ),
  )
  // The second payments are on the chain before anyone has claimed them: unmatched.
  await shop.submit(seconds.map(({ signed }) => ({ to: shop.chain.token, data: encodeTransfer(signed) })))
  await shop.mine()
  // The first ones were rejected but are paid anyway.
  for (const payment of firsts) {
    await claimAuthorizations(db, [await claimOf(shop, payment)], '')
    assert.equal(await reject(shop, payment), 1)
  }
  await shop.submit(firsts.map(({ signed }) => ({ to: shop.chain.token, data: encodeTransfer(signed) })))
  await shop.mine()
  await assertAll(firsts, 'COMPLETED')
  const settled = await readInclusion(shop, Number(await shop.chain.client.getBlockNumber()))
  await orphan(settled.block)
  const ids = firsts.map(({ checkoutId }) => checkoutId)
  await within((tx) => look(tx, ids, shop.ctx.now()))
  await assertAll(firsts, 'PROCESSING')
  await giveUp(firsts)
  await assertAll(firsts, 'OPEN')
  // Requests that verified the second ones before they were mined now claim them.
  for (const payment of seconds) await claimAuthorizations(db, [await claimOf(shop, payment)], '')
  await include({ block: settled.block, logs: [] })
  await assertAll(firsts, 'COMPLETED')
  await include(settled)
  await assertAll(firsts, 'COMPLETED')
  const live = await db.query<{ disposition: string; payer: string }>(
    'select disposition, payer from credits where checkout_id = any($1) and orphaned_at is null',
    [ids],
  )
  const payersOf = (payments: readonly Prepared[]) =>
    payments.map(({ payer }) => payer.address.toLowerCase()).toSorted()
  const found = (wanted: string) =>
    live.flatMap(({ disposition, payer }) => (disposition === wanted ? [payer] : [])).toSorted()
  assert.deepEqual(found('exact'), payersOf(seconds))
  assert.deepEqual(found('overpaid'), payersOf(firsts))
})

test('a rejected payment that landed anyway and is taken back holds its checkout until it can never return', async () => {
  const [payment] = await shop.prepare(1, undefined, { validSeconds: 30 })
  assert(payment)
  await claimAuthorizations(db, [await claimOf(shop, payment)], '')
  assert.equal(await reject(shop, payment), 1)
  // A stranger submits it, and may do so again.
  const land = async () => {
    await shop.submit([{ to: shop.chain.token, data: encodeTransfer(payment.signed) }])
    await shop.mine()
  }
  const takeBack = async () => {
    await shop.chain.reorg(1)
    await shop.follow()
    await reviewCheckouts(shop.ctx, shop.ctx.now())
  }
  await land()
  await assertAll([payment], 'COMPLETED')
  await takeBack()
  await assertAll([payment], 'PROCESSING')
  assert.equal(
    (await shop.request({ method: 'POST', url: `/api/v1/checkouts/${payment.checkoutId}` })).statusCode,
    409,
  )
  await land()
  await assertAll([payment], 'COMPLETED')
  await takeBack()
  await shop.chain.setNextBlockTimestamp(BigInt(payment.signed.authorization.validBefore))
  await shop.mine()
  await shop.bury()
  await assertAll([payment], 'OPEN')
  const told = await db.query<{ type: string }>(
    'select type from events where checkout_id = $1 order by position offset 3',
    [payment.checkoutId],
  )
  assert.deepEqual(
    told.map(({ type }) => type),
    [
      ...['checkout.completed', 'checkout.processing', 'payment.reorged'],
      ...['checkout.completed', 'checkout.processing', 'payment.reorged'],
      ...['checkout.reopened', 'payment.reversed'],
    ],
  )
})

test('the invariants hold after all returns', async (t) => {
  await shop.idle()
  t.diagnostic(print(await checkInvariants({ db, chain: shop.chain })))
})
