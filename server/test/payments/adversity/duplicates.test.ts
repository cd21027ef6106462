import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { openFleet, type Reply, tally } from './fleet.ts'
import { checkInvariants } from './invariants.ts'
import { patienceMs, print, trials } from './size.ts'

const fleet = await openFleet({ serves: 2, sockets: 200 })
const { db } = fleet.ctx
const copies = trials(1_000, 10_000)
const replays = trials(300, 10_000)

test('one payment presented many times at once over two hundred sockets is settled once and answered alike', async (t) => {
  const payer = await fleet.fund()
  const checkoutId = await fleet.create('1.00')
  const header = await fleet.sign(checkoutId, payer)
  const replies = await Promise.all(Array.from({ length: copies }, () => fleet.pay(checkoutId, header)))
  const paid = replies.filter(({ status }) => status === 200)
  const pending = replies.filter(
    ({ status, code }) => status === 202 || (status === 409 && code === 'payment_in_progress'),
  )
  t.diagnostic(print(tally(replies)))
  assert.equal(paid.length + pending.length, copies, print(tally(replies)))
  assert(paid.length > 0)
  assert.equal(new Set(paid.map(({ settlement }) => settlement)).size, 1)
  assert.equal((await fleet.chain.transferLogs({ from: payer.address })).length, 1)
  const credits = await db.query('select 1 as one from credits where checkout_id = $1', [checkoutId])
  assert.equal(credits.length, 1)
  // Whoever asks again is told the same.
  const [first] = paid
  assert.deepEqual(await fleet.pay(checkoutId, header), first)
})

test('an authorization is refused by every other checkout before, during and after its settlement, and after a restart', async (t) => {
  const payer = await fleet.fund()
  const others = await Promise.all(Array.from({ length: 25 }, () => fleet.create('1.00')))
  const checkoutId = await fleet.create('1.00')
  const header = await fleet.sign(checkoutId, payer)
  const share = replays / 4
  const replay = () =>
    Promise.all(Array.from({ length: share }, (_, i) => fleet.pay(others[i % others.length] ?? '', header)))

  const work = fleet.work()
  assert(work)
  // Paused, not dead: it still counts as live, and nothing is sent.
  work.child.kill('SIGSTOP')
  const settling = fleet.payUntilKnown(checkoutId, header)
  const claimed = () => db.query('select 1 as one from authorizations where checkout_id = $1', [checkoutId])
  await until('claimed', async () => (await claimed()).length === 1, patienceMs)
  const before = await replay()
  const sent = await db.query('select 1 as one from transaction_calls where payer = $1', [
    payer.address.toLowerCase(),
  ])
  assert.equal(sent.length, 0)
  work.child.kill('SIGCONT')
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

test('an authorization that is presented to many checkouts at once pays one of them', async (t) => {
  const all: Reply[] = []
  const rounds = trials(5, 50)
  await fleet.untilReady()
  for (let round = 0; round < rounds; round++) {
    const payer = await fleet.fund()
    const ids = await Promise.all(Array.from({ length: 10 }, () => fleet.create('1.00')))
    const header = await fleet.sign(ids[0] ?? '', payer)
    const replies = await Promise.all(ids.map((id) => fleet.payUntilKnown(id, header)))
    assert.deepEqual(tally(replies), { '200': 1, '409 authorization_used': 9 })
    all.push(...replies)
  }
  t.diagnostic(print(tally(all)))
})

test('no answer was a 402 after the claim, nothing was credited twice, and the invariants hold', async (t) => {
  const checked = await checkInvariants({ db, chain: fleet.chain, answers: fleet.answers })
  assert.equal(checked.completed, 2 + trials(5, 50))
  assert.equal(checked.credits, checked.completed)
  t.diagnostic(print({ requests: fleet.answers.length, ...checked }))
})
