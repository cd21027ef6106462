import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodePaymentResponseHeader } from '@x402/core/http'
import type { Payer } from '../../support/chain/evm-payment.ts'
import { openCount } from '../../support/full.ts'
import { until } from '../../support/until.ts'
import { rounds } from '../crash/rounds.ts'
import { openFleet, type Reply, tally } from './fleet.ts'
import { type Flood, openFlood } from './flood.ts'
import { checkInvariants } from './invariants.ts'
import { print, trials } from './size.ts'

const sockets = 200
const fleet = await openFleet({ serves: 2, works: 2, sockets })
const { db } = fleet.ctx
/** Copies of one payment per round, at most 4,000 of them in flight. FULL=1 presents one payment a million times. */
const copies = trials(1_000, 10_000)
const freshRounds = trials(1, 10)
const replays = trials(300, 10_000)

const submit = (flood: Flood, checkoutId: string, header: string) =>
  flood.submit(`/api/v1/checkouts/${checkoutId}`, header, copies)

/** The one settlement in the answers; every other answer says that it is pending or asks to try again. */
function settlementIn(answers: ReadonlyMap<string, number>): string {
  // A node may not be able to answer ten thousand checks in time.
  const isUnknown = /^(202|409 payment_in_progress|503 settlement_unavailable)$/
  const settled = [...answers.keys()].filter((kind) => !isUnknown.test(kind))
  assert.equal(settled.length, 1, print(Object.fromEntries(answers)))
  const [, response] = /^200 (\S+)$/.exec(settled[0] ?? '') ?? assert.fail(settled[0])
  return decodePaymentResponseHeader(response ?? '').transaction
}

async function assertPaidOnce(checkoutId: string, payer: Payer, transaction: string): Promise<void> {
  const moved = await fleet.chain.transferLogs({ from: payer.address })
  assert.deepEqual(
    moved.map(({ transactionHash }) => transactionHash),
    [transaction],
  )
  const credits = await db.query('select 1 as one from credits where checkout_id = $1', [checkoutId])
  assert.equal(credits.length, 1)
}

test(`one payment presented again and again to two processes over ${sockets} sockets is settled once`, async (t) => {
  const payer = await fleet.fund()
  const checkoutId = await fleet.create('1.00')
  const header = await fleet.sign(checkoutId, payer)
  const answers = new Map<string, number>()
  const flood = await openFlood(fleet.addresses(), sockets)
  const count = openCount('requests')
  for (const _ of rounds(t, `rounds of ${copies}`, 3, 100))
    for (const [kind, times] of await submit(flood, checkoutId, header)) {
      answers.set(kind, (answers.get(kind) ?? 0) + times)
      count.add('requests', times)
    }
  flood.close()
  count.say(t)
  t.diagnostic(print(Object.fromEntries(answers)))
  await assertPaidOnce(checkoutId, payer, settlementIn(answers))
})

test(`${freshRounds} new payments, each presented ${copies} times at once, are settled once each`, async (t) => {
  const flood = await openFlood(fleet.addresses(), sockets)
  const count = openCount('requests')
  for (let round = 0; round < freshRounds; round++) {
    const payer = await fleet.fund()
    const checkoutId = await fleet.create('1.00')
    const answers = await submit(flood, checkoutId, await fleet.sign(checkoutId, payer))
    await assertPaidOnce(checkoutId, payer, settlementIn(answers))
    count.add('requests', copies)
  }
  flood.close()
  count.say(t)
})

test('every other checkout refuses an authorization before, during and after its settlement, and after a restart', async (t) => {
  const payer = await fleet.fund()
  const others = await Promise.all(Array.from({ length: 25 }, () => fleet.create('1.00')))
  const checkoutId = await fleet.create('1.00')
  const header = await fleet.sign(checkoutId, payer)
  const share = replays / 4
  const replay = () =>
    Promise.all(Array.from({ length: share }, (_, i) => fleet.pay(others[i % others.length] ?? '', header)))

  // Paused, not killed: they still count as live, but send nothing.
  for (const { child } of fleet.works()) child.kill('SIGSTOP')
  const settling = fleet.payUntilKnown(checkoutId, header)
  const claimed = () => db.query('select 1 as one from authorizations where checkout_id = $1', [checkoutId])
  await until('claimed', async () => (await claimed()).length === 1)
  const before = await replay()
  const sent = await db.query('select 1 as one from transaction_calls where payer = $1', [
    payer.address.toLowerCase(),
  ])
  assert.equal(sent.length, 0)
  for (const { child } of fleet.works()) child.kill('SIGCONT')
  const during = await replay()
  assert.equal((await settling).status, 200)
  const afterwards = await replay()
  await fleet.killAll()
  await fleet.start()
  const restarted = await replay()

  const replies = [before, during, afterwards, restarted].flat()
  t.diagnostic(print(tally(replies)))
  assert.deepEqual(tally(replies), { '409 authorization_used': replays })
  assert.equal((await fleet.chain.transferLogs({ from: payer.address })).length, 1)
  for (const id of others) assert.equal((await fleet.read(id)).status, 'OPEN')
})

test('an authorization presented to many checkouts at once pays exactly one of them', async (t) => {
  const all: Reply[] = []
  const races = trials(5, 50)
  await fleet.untilReady()
  for (let round = 0; round < races; round++) {
    const payer = await fleet.fund()
    const ids = await Promise.all(Array.from({ length: 10 }, () => fleet.create('1.00')))
    const header = await fleet.sign(ids[0] ?? '', payer)
    const replies = await Promise.all(ids.map((id) => fleet.payUntilKnown(id, header)))
    assert.deepEqual(tally(replies), { '200': 1, '409 authorization_used': 9 })
    all.push(...replies)
  }
  t.diagnostic(print(tally(all)))
})

test('no answer is 402 after the claim, nothing is credited twice, and the invariants hold', async (t) => {
  const checked = await checkInvariants({ db, chain: fleet.chain, answers: fleet.answers })
  assert.equal(checked.completed, 2 + freshRounds + trials(5, 50))
  assert.equal(checked.credits, checked.completed)
  t.diagnostic(print({ requests: fleet.answers.length, ...checked }))
})
