/** What a store decides about a payment is handed to `work`, and applied once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyDecisions, forgetDecisions } from '../../src/checkouts/payments/apply-decisions.ts'
import { insertDecision } from '../../src/checkouts/payments/request-decision.ts'
import { newId, type StoreId } from '../../src/ids.ts'
import { openTestApp } from '../support/app.ts'
import { creditByHand } from '../support/by-hand.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { openStore } from '../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const serve = openAs('serve', farthing.databaseUrl)
const work = { ...ctx, db: openAs('work', farthing.databaseUrl) }

async function openPaid() {
  const shop = await openStore(farthing, { evmWallet: newPayer().address })
  const { id } = await shop.create()
  const paymentId = await creditByHand(farthing, id)
  const decide = (verb: 'accept' | 'dismiss', body?: object) =>
    shop.call('POST', `/api/v1/payments/${paymentId}/${verb}`, body)
  return { shop, id, paymentId, decide }
}

/** Notes about payments that there are not: refused as soon as it is their turn. */
async function leaveWaiting(storeId: string, count: number): Promise<void> {
  await ctx.db.query(
    `insert into decisions (id, store_id, payment_id, kind, actor, created_at)
     select 'dec_0000' || i || $1, $1, 'pay_' || i, 'note', '{}', clock() from generate_series(1, $2::integer) i`,
    [storeId, count],
  )
}

async function countWaiting(storeId: string): Promise<number> {
  const waiting = await ctx.db.query('select id from decisions where store_id = $1 and decided_at is null', [
    storeId,
  ])
  return waiting.length
}

test('while work is away the answer is 202 after five seconds; the decision waits, once, and is applied once', async () => {
  const { shop, id, paymentId, decide } = await openPaid()
  const begun = performance.now()
  const answers = await Promise.all([1, 2, 3].map(() => decide('accept', { checkoutId: id })))
  assert(performance.now() - begun > 4_900)
  for (const answer of answers) {
    assert.equal(answer.statusCode, 202, answer.body)
    assert.equal(answer.headers['retry-after'], '1')
    assert.equal(answer.json().acceptedAt, null)
  }
  const waiting = await ctx.db.query('select 1 as one from decisions where payment_id = $1', [paymentId])
  assert.equal(waiting.length, 1)
  assert.equal((await shop.call('GET', `/api/v1/checkouts/${id}`)).json().status, 'OPEN')
  // Several processes may find it at the same time.
  const applied = await Promise.all([1, 2, 3, 4].map(() => applyDecisions(work, new Date())))
  assert.equal(
    applied.reduce((sum, each) => sum + each, 0),
    1,
  )
  assert.equal((await shop.call('GET', `/api/v1/checkouts/${id}`)).json().status, 'COMPLETED')
  const types = (await shop.events()).map(({ type }) => type)
  assert.equal(types.filter((type) => type === 'payment.accepted').length, 1)
})

test('decisions that contradict each other are applied in the order in which they were made', async () => {
  const { shop, id, paymentId } = await openPaid()
  const actor = JSON.stringify({ type: 'key', id: 'a', name: null })
  for (const [order, kind] of ['dismiss', 'accept'].entries())
    await ctx.db.query(
      `insert into decisions (id, store_id, payment_id, kind, checkout_id, actor, created_at)
       values ($1, $2, $3, $4, $5, $6, clock())`,
      [`dec_${paymentId}${order}`, shop.id, paymentId, kind, kind === 'accept' ? id : null, actor],
    )
  await applyDecisions(work, new Date())
  const outcomes = await ctx.db.query<{ outcome: { problem?: { code: string }; payment?: object } }>(
    'select outcome from decisions where payment_id = $1 order by id',
    [paymentId],
  )
  assert(outcomes[0]?.outcome.payment)
  assert.equal(outcomes[1]?.outcome.problem?.code, 'payment_not_open')
})

test('a decision that fails because of us stays, and does not hold up another', async () => {
  const [broken, fine] = [await openPaid(), await openPaid()]
  const insert = async ({ shop, paymentId }: typeof broken, at: string) =>
    await ctx.db.query(
      `insert into decisions (id, store_id, payment_id, kind, actor, created_at)
       values ($1, $2, $3, 'dismiss', '{}', clock())`,
      [`dec_${at}${paymentId}`, shop.id, paymentId],
    )
  await insert(broken, '0')
  await insert(fine, '1')
  // A log that cannot be written, as if a disk were full.
  await ctx.db.query(
    `create function fail() returns trigger language plpgsql as $$ begin raise 'full'; end $$`,
  )
  await ctx.db.query(
    `create trigger fail before insert on events for each row when (new.store_id = '${broken.shop.id}') execute function fail()`,
  )
  await assert.rejects(applyDecisions(work, new Date()), /full/)
  const stateOf = async (paymentId: string) =>
    await ctx.db.query<{ isDecided: boolean; isDismissed: boolean }>(
      `select d.decided_at is not null as "isDecided", k.dismissed_at is not null as "isDismissed"
       from decisions d join credits k using (payment_id) where payment_id = $1`,
      [paymentId],
    )
  assert.deepEqual(await stateOf(broken.paymentId), [{ isDecided: false, isDismissed: false }])
  assert.deepEqual(await stateOf(fine.paymentId), [{ isDecided: true, isDismissed: true }])
  await ctx.db.query('drop trigger fail on events')
  await applyDecisions(work, new Date())
  assert.deepEqual(await stateOf(broken.paymentId), [{ isDecided: true, isDismissed: true }])
})

test('a checkout id that is none is refused at once, whatever it contains, and leaves no decision behind', async () => {
  const { paymentId, decide } = await openPaid()
  for (const checkoutId of ['', 'x', 'st_00000000000000000000000000000']) {
    const answer = await decide('accept', { checkoutId })
    assert.equal(answer.statusCode, 404, answer.body)
    assert.match(answer.json().detail, /No such checkout/)
  }
  for (const checkoutId of ['\u0000', `ch_${'0'.repeat(20)}\u0000`]) {
    const answer = await decide('accept', { checkoutId })
    assert.equal(answer.statusCode, 422, answer.body)
    assert.match(answer.json().detail, /U\+0000/)
  }
  assert.deepEqual(await ctx.db.query('select id from decisions where payment_id = $1', [paymentId]), [])
})

test('1,000 accepts for checkouts that the store does not have are refused at once, and leave no decision behind', async () => {
  const { shop, paymentId, decide } = await openPaid()
  const stranger = await openStore(farthing, { evmWallet: newPayer().address })
  const unknown = Array.from({ length: 999 }, () => newId('ch', '00', new Date()))
  for (const checkoutId of [...unknown, (await stranger.create()).id]) {
    const answer = await decide('accept', { checkoutId })
    assert.equal(answer.statusCode, 404, answer.body)
    assert.match(answer.json().detail, /No such checkout/)
  }
  assert.deepEqual(await ctx.db.query('select id from decisions where payment_id = $1', [paymentId]), [])
  assert.equal(await countWaiting(shop.id), 0)
})

test('a store’s decision is applied in the next run, however many of another store wait', async () => {
  const [many, one] = [await openPaid(), await openPaid()]
  await leaveWaiting(many.shop.id, 1_000)
  const id = newId('dec', '00', new Date())
  await ctx.db.query(
    `insert into decisions (id, store_id, payment_id, kind, actor, created_at)
     values ($1, $2, $3, 'dismiss', '{}', clock())`,
    [id, one.shop.id, one.paymentId],
  )
  const applied = await applyDecisions(work, new Date())
  assert.equal(await countWaiting(one.shop.id), 0)
  assert.equal(await countWaiting(many.shop.id), 1_001 - applied)
  assert(applied < 1_001)
  await ctx.db.query('delete from decisions where store_id = $1', [many.shop.id])
})

test('a store with 100 decisions that wait gets 429 for another, but asks again for one of them, and its neighbour decides', async () => {
  const { shop, id: checkoutId, paymentId, decide } = await openPaid()
  const neighbour = await openPaid()
  await leaveWaiting(shop.id, 99)
  const dismiss = (storeId: StoreId, payment: string) =>
    insertDecision(
      serve,
      {
        ...{ id: newId('dec', '00', new Date()), storeId, paymentId: payment, kind: 'dismiss' },
        ...{ checkoutId: null, note: null, createdAt: new Date() },
        actor: { type: 'key', id: 'a', name: null },
      },
      100,
    )
  const last = await dismiss(shop.store.id, paymentId)
  assert(last)
  const refused = await decide('accept', { checkoutId })
  assert.equal(refused.statusCode, 429, refused.body)
  assert.equal(refused.json().code, 'rate_limited')
  assert.equal(refused.headers['retry-after'], '5')
  assert.equal(await countWaiting(shop.id), 100)
  assert.equal(await dismiss(shop.store.id, paymentId), last)
  assert(await dismiss(neighbour.shop.store.id, neighbour.paymentId))
  for (; (await applyDecisions(work, new Date())) > 0; );
  assert(await dismiss(shop.store.id, paymentId), 'there is room again')
  await applyDecisions(work, new Date())
})

test('applied decisions are forgotten after a day, waiting ones never', async () => {
  await ctx.db.query("update decisions set decided_at = decided_at - interval '25 hours'")
  const { decide } = await openPaid()
  const answered = decide('dismiss')
  await forgetDecisions(work)
  assert.equal((await answered).statusCode, 202)
  assert.equal((await ctx.db.query('select 1 as one from decisions')).length, 1)
})
