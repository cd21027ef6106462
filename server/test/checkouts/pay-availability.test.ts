/** The rest of the answer table: answers when it is our turn to act. Never 402, because that means "sign again". */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseNode } from '../../src/config/parse.ts'
import { openDatabase } from '../../src/database/db.ts'
import { buildApp } from '../../src/http/app.ts'
import { atEnd } from '../support/at-end.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openFaultyNode } from '../support/faulty-node.ts'
import { openShop, payTo, type Shop } from '../support/shop.ts'
import {
  type Answer,
  assertPaid,
  assertProblem,
  assertRefused,
  eventsOf,
  mineSent,
  until,
  untilEvent,
  untilReady,
} from '../support/watch.ts'

/** Its chain mines nothing while the payer waits, so this payment starts first and is checked last. */
const silent = await openShop({ blockTimeSeconds: null })
const slow = await startPayment(silent)

const shop = await openShop({ blockTimeSeconds: null })
let stopWork = shop.stopWork

async function signPayment(at: Shop) {
  const payer = await at.fund()
  const id = await at.create()
  return { id, payer, header: await at.sign(id, payer) }
}

async function startPayment(at: Shop) {
  const payment = await signPayment(at)
  return { ...payment, answer: at.pay(payment.id, payment.header) }
}

/** A freshly started process, which remembers nothing; optionally with its own nodes and database. */
function openServe(changes: { nodes?: string[]; db?: typeof shop.ctx.db; paymentsAtOnce?: number } = {}) {
  const config = {
    ...shop.ctx.config,
    ...(changes.paymentsAtOnce && { paymentsAtOnce: changes.paymentsAtOnce }),
    ...(changes.nodes && { nodes: { LOCAL: changes.nodes.map(parseNode) } }),
  }
  const app = buildApp({ ...shop.ctx, config, ...(changes.db && { db: changes.db }) }, { isDraining: false })
  atEnd(() => app.close())
  return async (id: string, header: string): Promise<Answer> =>
    await app.inject({
      method: 'POST',
      url: `/api/v1/checkouts/${id}`,
      headers: { 'payment-signature': header },
    })
}

/** Mines until the payment is answered. */
async function settle(payment: Promise<Answer>): Promise<Answer> {
  let isDone = false
  const done = payment.finally(() => {
    isDone = true
  })
  await until(async () => {
    if (!isDone) await mineSent(shop)
    return isDone
  }, 'an answer')
  return await done
}

const faulty = await openFaultyNode(shop.chain.url)

const troubles: readonly (readonly [
  name: string,
  start: () => Promise<unknown> | unknown,
  end: () => Promise<unknown> | unknown,
  serve?: () => ReturnType<typeof openServe>,
])[] = [
  [
    'no worker is running',
    () => stopWork(),
    async () => {
      stopWork = shop.startWork()
      await untilReady(shop)
    },
  ],
  [
    'no lane has sent a sign of life for 15 s',
    async () => {
      await stopWork()
      await shop.ctx.db.query("update settlers set alive_at = clock() - interval '16 seconds'")
    },
    async () => {
      stopWork = shop.startWork()
      await untilReady(shop)
    },
  ],
  [
    'the settler is almost out of funds for gas',
    () =>
      shop.ctx.db.query("update settlers set balance_wei = 1, balance_at = clock() + interval '1 minute'"),
    async () => {
      await shop.ctx.db.query('update settlers set balance_at = null')
      await until(
        async () =>
          (await shop.ctx.db.query('select 1 as one from settlers where balance_wei > 1000')).length > 0,
        'a new reading of the balance',
      )
    },
  ],
  [
    'the chain’s head has not moved for 30 s',
    () => shop.ctx.db.query("update followers set head_seen_at = clock() - interval '31 seconds'"),
    async () => {
      await shop.chain.mine()
      await until(
        async () =>
          (
            await shop.ctx.db.query(
              "select 1 as one from followers where head_seen_at > clock() - interval '20 seconds'",
            )
          ).length > 0,
        'a new head',
      )
    },
  ],
  [
    'the node cannot be reached',
    () => faulty.fail('refused'),
    () => faulty.heal(),
    () => openServe({ nodes: [faulty.url] }),
  ],
  [
    'the node cannot be reached for simulations',
    () => faulty.fail('refused', 'eth_call'),
    () => faulty.heal(),
    () => openServe({ nodes: [faulty.url] }),
  ],
  [
    'the node answers every simulation with an internal error',
    () => faulty.fail('internal', 'eth_call'),
    () => faulty.heal(),
    () => openServe({ nodes: [faulty.url] }),
  ],
]

for (const [name, start, end, serve = () => openServe()] of troubles)
  test(`11. ${name}: 503 with Retry-After, nothing is claimed, and the same payment succeeds afterwards`, async () => {
    const payer = await shop.fund()
    const id = await shop.create()
    const header = await shop.sign(id, payer)
    await start()
    const answer = await serve()(id, header)
    assertProblem(answer, 503, 'settlement_unavailable')
    assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
    assert.equal((await shop.read(id)).status, 'OPEN')
    await end()
    assertPaid(await settle(serve()(id, header)))
    assert.equal(await shop.chain.balance(payer.address), 999_000_000n)
  })

test('11. a lane whose oldest transaction has been unmined for a minute is unavailable: 503 until it is mined', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const header = await shop.sign(id, payer)
  const countUnmined = async () =>
    (await shop.ctx.db.query('select 1 as one from transactions where mined_at is null')).length
  await until(async () => (await countUnmined()) === 0, 'earlier transactions')
  const stuck = await startPayment(shop)
  await until(async () => (await countUnmined()) > 0, 'a send')
  await shop.ctx.db.query(
    `update transactions set created_at = clock() - interval '61 seconds' where mined_at is null`,
  )
  assertProblem(await openServe()(id, header), 503, 'settlement_unavailable')
  assertPaid(await settle(stuck.answer))
  await until(async () => (await countUnmined()) === 0, 'the stuck transaction')
  assertPaid(await settle(openServe()(id, header)))
})

test('a block that arrives while a node answers does not make the node look behind; the payer still gets the reason', async () => {
  const payer = newPayer()
  const id = await shop.create()
  const serve = openServe({ nodes: [faulty.url] })
  const readHead = async () => {
    const [row] = await shop.ctx.db.query<{ head: string }>('select head_number as head from followers')
    return row?.head
  }
  // This queries the payer's code, which is then cached, so that the next query is the simulation.
  assert.equal(
    (await serve(id, await shop.sign(id, payer, { signature: `0x${'11'.repeat(65)}` }))).statusCode,
    402,
  )
  const release = faulty.hold('eth_call')
  const answer = serve(id, await shop.sign(id, payer))
  await until(async () => faulty.holding > 0, 'the simulation request')
  const head = await readHead()
  await shop.chain.mine()
  await until(async () => (await readHead()) !== head, 'the next block')
  release()
  assertRefused(shop, await answer, 'invalid_exact_evm_insufficient_balance')
})

test('11. the database cannot be reached: 503, with or without a payment', async () => {
  const id = await shop.create()
  const header = await shop.sign(id, await shop.fund())
  const db = openDatabase({ url: 'postgres://farthing@127.0.0.1:9/none', connections: 4, name: 'gone' })
  atEnd(() => db.close())
  const answer = await openServe({ db })(id, header)
  assertProblem(answer, 503, 'unavailable')
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
})

test('11. more payments than a process takes: 503 with Retry-After and nothing claimed; a repeat needs no place', async () => {
  const serve = openServe({ paymentsAtOnce: 1 })
  const [first, second] = [await signPayment(shop), await signPayment(shop)]
  const paying = serve(first.id, first.header)
  await until(async () => (await shop.read(first.id)).status === 'PROCESSING', 'the first claim')
  const refused = await serve(second.id, second.header)
  assertProblem(refused, 503, 'settlement_unavailable')
  assert.match(String(refused.headers['retry-after']), /^[1-9]\d*$/)
  assert.equal((await shop.read(second.id)).status, 'OPEN')
  const repeating = serve(first.id, first.header)
  // A payment that the token would refuse is told so, and leaves the place free.
  assertPaid(await settle(paying))
  assertPaid(await repeating)
  const poor = await shop.create()
  assertRefused(
    shop,
    await serve(poor, await shop.sign(poor, newPayer())),
    'invalid_exact_evm_insufficient_balance',
  )
  assertPaid(await settle(serve(second.id, second.header)))
})

test('11. payments that cannot be sent soon because too many wallets wait: 503, and one wallet cannot cause it', async () => {
  const waiting = async (wallets: number) =>
    await shop.ctx.db.query(
      `insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, claimed_at)
       select o.network, o.asset, '0xdead' || (g % $1), '0xdead' || g, 'dead' || g, 'dead', 'claimed', o.pay_to, 1, 0, 0,
         '', clock() - interval '7 seconds'
       from generate_series(1, 320) g, (select network, asset, pay_to from authorizations limit 1) o`,
      [wallets],
    )
  const forget = () => shop.ctx.db.query("delete from authorizations where payer like '0xdead%'")
  const { id, header } = await signPayment(shop)
  await waiting(320)
  const refused = await openServe()(id, header)
  assertProblem(refused, 503, 'settlement_unavailable')
  assert.match(refused.json().detail, /waiting/)
  assert.equal((await shop.read(id)).status, 'OPEN')
  await forget()
  await waiting(1)
  const paying = openServe()(id, header)
  await until(async () => (await shop.read(id)).status === 'PROCESSING', 'the claim')
  await forget()
  assertPaid(await settle(paying))
})

test('a wallet with too many payments in progress is told to wait, and others are not', async () => {
  const rich = await signPayment(shop)
  await shop.ctx.db.query(
    `insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
       valid_after, valid_before, signature, claimed_at)
     select o.network, o.asset, $2, '0x' || md5(g::text) || md5('x' || g), $1 || g, c.store_id, 'sent', o.pay_to, 1, 0,
       extract(epoch from clock())::bigint + 600, '', clock()
     from checkouts c, generate_series(1, 501) g, (select network, asset, pay_to from authorizations limit 1) o
     where c.id = $1`,
    [rich.id, rich.payer.address.toLowerCase()],
  )
  const refused = await openServe()(rich.id, rich.header)
  assertProblem(refused, 429, 'rate_limited')
  assert.match(String(refused.headers['retry-after']), /^[1-9]\d*$/)
  assert.equal((await shop.read(rich.id)).status, 'OPEN')
  const other = await signPayment(shop)
  assertPaid(await settle(openServe()(other.id, other.header)))
  await shop.ctx.db.query("delete from authorizations where signature = '' and payer = $1", [
    rich.payer.address.toLowerCase(),
  ])
  assertPaid(await settle(openServe()(rich.id, rich.header)))
})

test('12. a good payment: 200 with the settlement and the COMPLETED checkout once its block is mined', async () => {
  const before = await shop.chain.balance(payTo)
  const payment = await startPayment(shop)
  const answer = await settle(payment.answer)
  assertPaid(answer)
  const { success, transaction } = shop.settlementOf(answer)
  assert.equal(success, true)
  const receipt = await shop.chain.client.getTransactionReceipt({ hash: transaction })
  assert.equal(receipt.status, 'success')
  assert.equal((await shop.chain.balance(payTo)) - before, 1_000_000n)
  assert.equal((await shop.read(payment.id)).payment.transaction, transaction)
})

test('13. outcome unknown after 25 s: 202 with Retry-After and the transaction; the same payment gets 200 once it is known', async () => {
  const { id, header, payer } = slow
  const answer = await slow.answer
  assert.equal(answer.statusCode, 202, answer.body)
  assert.equal(answer.json().status, 'PROCESSING')
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
  assert.equal(answer.headers['payment-required'], undefined)
  const { transaction, ...rest } = silent.settlementOf(answer)
  assert.deepEqual(rest, {
    success: false,
    errorReason: 'settlement_pending',
    network: 'eip155:31337',
    payer: payer.address,
  })
  const again = silent.pay(id, header)
  await silent.chain.mine()
  assertPaid(await again)
  assert.equal((await silent.chain.transferLogs({ from: payer.address })).length, 1)
  const [sent] = await silent.ctx.db.query('select 1 as one from broadcasts where hash = $1', [transaction])
  assert(sent, 'the named transaction was never sent')
  await untilEvent(silent, id, 'checkout.completed')
  assert.deepEqual(
    (await eventsOf(silent, id)).map(({ type }) => type),
    ['checkout.created', 'checkout.processing', 'checkout.completed'],
  )
})
