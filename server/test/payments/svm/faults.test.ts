/** What happens to a payment on Solana when the chain or its node misbehaves. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getBase58Encoder } from '@solana/kit'
import { findTokenAccount } from '../../../src/chains/svm/transfer.ts'
import { assignWaitingSequences } from '../../../src/events/assign-sequence.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const shop = await openShop({ network: 'SOLANA_LOCAL' })
const { chain, ctx } = shop
const [settler] = shop.signers
assert(settler)
const feeMax = 30_000n

const lamports = async () =>
  BigInt(
    (await chain.rpc<{ value: number }>('getBalance', [settler.address, { commitment: 'processed' }])).value,
  )

async function statusOf(id: string): Promise<string> {
  return (await shop.read(id)).status
}

async function eventsOf(id: string, of = ctx): Promise<string[]> {
  await assignWaitingSequences(of)
  const rows = await of.db.query<{ type: string }>(
    'select type from events where checkout_id = $1 order by position',
    [id],
  )
  return rows.map(({ type }) => type)
}

/** Waits until the checkout's signed transaction has been sent. */
async function untilSent(id: string): Promise<void> {
  await until('the transaction is sent', async () => {
    const rows = await ctx.db.query(
      `select 1 as one from authorizations a join transaction_calls c using (network, asset, payer, nonce)
       join broadcasts b on b.network = c.network and b.settler = c.settler and b.nonce = c.settler_nonce
       where a.checkout_id = $1 and b.first_sent_at is not null`,
      [id],
    )
    return rows.length > 0
  })
}

test('a transaction that is dropped on its way is sent again and lands once', async () => {
  const payer = await chain.payer()
  const id = await shop.create()
  const before = await shop.received()
  let drops = 2
  chain.meddle(({ method }) => (method === 'sendTransaction' && drops-- > 0 ? 'drop' : null))
  const answer = await shop.pay(id, await shop.sign(id, payer))
  chain.meddle(null)
  assert.equal(answer.statusCode, 200, answer.body)
  assert(drops < 0)
  assert.equal((await shop.received()) - before, 1_000_000n)
})

test('a transaction that landed although the node’s answer was lost pays once', async () => {
  const payer = await chain.payer()
  const id = await shop.create()
  const before = await shop.received()
  let cuts = 1
  chain.meddle(({ method }) => (method === 'sendTransaction' && cuts-- > 0 ? 'cut' : null))
  const answer = await shop.pay(id, await shop.sign(id, payer))
  chain.meddle(null)
  assert.equal(answer.statusCode, 200, answer.body)
  assert.equal((await shop.received()) - before, 1_000_000n)
})

test('if a transaction never lands, nobody is asked to sign again before its blockhash expires at finalized height', async () => {
  const payer = await chain.payer()
  const id = await shop.create()
  const before = [await shop.received(), await lamports()]
  const header = await shop.sign(id, payer)
  chain.meddle(({ method }) => (method === 'sendTransaction' ? 'drop' : null))
  const paying = shop.pay(id, header)
  await untilSent(id)
  // Too old to be included, but its absence is not final yet.
  chain.mine(130)
  const asked = await shop.pay(id)
  assert.equal(asked.statusCode, 409, asked.body)
  assert.equal(await statusOf(id), 'PROCESSING')
  chain.mine(60)
  const answer = await paying
  chain.meddle(null)
  assert.equal(answer.statusCode, 402, answer.body)
  assert.equal(answer.json().error, 'blockhash_expired')
  assert.deepEqual([await shop.received(), await lamports()], before)
  // The dead payment stays dead, and a new signature pays once.
  const again = await shop.pay(id, header)
  assert.deepEqual([again.statusCode, again.json().error], [402, 'blockhash_expired'])
  assert.equal((await shop.pay(id, await shop.sign(id, payer))).statusCode, 200)
  assert.equal((await shop.received()) - (before[0] ?? 0n), 1_000_000n)
  assert.deepEqual(await eventsOf(id), [
    'checkout.created',
    'checkout.processing',
    'checkout.reopened',
    'checkout.processing',
    'checkout.completed',
  ])
})

test('a transaction that fails on the chain because the money has left costs one fee, and the payer gets the reason', async () => {
  const payer = await chain.payer()
  const id = await shop.create()
  const before = [await shop.received(), await lamports()] as const
  chain.hold()
  const paying = shop.pay(id, await shop.sign(id, payer))
  await untilSent(id)
  const found = chain.account(await findTokenAccount(payer.address, chain.mint))
  assert(found.exists)
  const emptied = new Uint8Array(found.data)
  emptied.fill(0, 64, 72)
  chain.plant({ ...found, data: emptied })
  chain.release()
  const answer = await paying
  assert.equal(answer.statusCode, 402, answer.body)
  assert.equal(answer.json().error, 'invalid_exact_svm_transaction_failed')
  assert.equal(await shop.received(), before[0])
  const spent = before[1] - (await lamports())
  assert(spent > 0n && spent <= feeMax, `it cost ${spent}`)
  assert.equal(await statusOf(id), 'OPEN')
})

/** So late that no machine is too slow to take a payment back before it is final. */
const finalizedAfter = 300

async function openForkable() {
  const slow = await openShop({ network: 'SOLANA_LOCAL', finalizedAfter })
  return { shop: slow, chain: slow.chain, statusOf: async (id: string) => (await slow.read(id)).status }
}

test('a transaction taken back by a fork is sent again: the store is notified of both and is paid once', async () => {
  const { shop, chain, statusOf } = await openForkable()
  const payer = await chain.payer()
  const id = await shop.create()
  const before = await shop.received()
  // Its blockhash is from a block that the fork leaves in place.
  const header = await shop.sign(id, payer)
  chain.mine(10)
  const beforePaid = chain.slot()
  assert.equal((await shop.pay(id, header)).statusCode, 200)
  assert.equal(await statusOf(id), 'COMPLETED')
  // Held back, so that the fork is seen before the transaction lands again.
  chain.meddle(({ method }) => (method === 'sendTransaction' ? 'drop' : null))
  chain.fork(chain.slot() - beforePaid)
  assert.equal(await shop.received(), before)
  await until('the loss is noticed', async () => (await statusOf(id)) === 'PROCESSING')
  chain.meddle(null)
  await until('the checkout is completed again', async () => (await statusOf(id)) === 'COMPLETED')
  assert.equal((await shop.received()) - before, 1_000_000n)
  assert.deepEqual(await eventsOf(id, shop.ctx), [
    'checkout.created',
    'checkout.processing',
    'checkout.completed',
    'checkout.processing',
    'payment.reorged',
    'checkout.completed',
  ])
})

test('a transaction taken back by a fork and too old to land again is reversed, and the checkout is open', async () => {
  const { shop, chain, statusOf } = await openForkable()
  const payer = await chain.payer()
  const id = await shop.create()
  const before = await shop.received()
  const beforePaid = chain.slot()
  assert.equal((await shop.pay(id, await shop.sign(id, payer))).statusCode, 200)
  chain.meddle(({ method }) => (method === 'sendTransaction' ? 'drop' : null))
  chain.fork(chain.slot() - beforePaid)
  await until('the loss is noticed', async () => (await statusOf(id)) === 'PROCESSING')
  // Until its blockhash has expired at a height that is final.
  chain.mine(finalizedAfter + 200)
  await until('the checkout is open again', async () => (await statusOf(id)) === 'OPEN')
  chain.meddle(null)
  assert.equal(await shop.received(), before)
  const events = await eventsOf(id, shop.ctx)
  assert.deepEqual(events.slice(-2).sort(), ['checkout.reopened', 'payment.reversed'])
  assert.equal((await shop.pay(id, await shop.sign(id, payer))).statusCode, 200)
  assert.equal((await shop.received()) - before, 1_000_000n)
})

test('if a store requires finality, the answer is 202 until the block is final', async () => {
  const slow = await openShop({ network: 'SOLANA_LOCAL', finalizedAfter: 80 })
  const payer = await slow.chain.payer()
  await slow.request({
    method: 'PATCH',
    url: `/api/v1/stores/${slow.store.id}`,
    headers: { 'x-api-key': slow.key, 'content-type': 'application/json' },
    payload: { finalityPolicy: [{ minAmount: '0', finality: 'finalized' }] },
  })
  const id = await slow.create()
  const header = await slow.sign(id, payer)
  const answer = await slow.pay(id, header)
  assert.equal(answer.statusCode, 202, answer.body)
  assert.equal(slow.settlementOf(answer).errorReason, 'settlement_pending')
  slow.chain.mine(80)
  await until('the payment is final', async () => (await slow.read(id)).status === 'COMPLETED')
  assert.equal((await slow.pay(id, header)).statusCode, 200)
})

test('a node that cannot be reached is our problem: 503, and nothing is charged', async () => {
  const payer = await chain.payer()
  const id = await shop.create()
  const header = await shop.sign(id, payer)
  chain.meddle(({ method }) => (method === 'simulateTransaction' ? 'refuse' : null))
  const answer = await shop.pay(id, header)
  chain.meddle(null)
  assert.equal(answer.statusCode, 503, answer.body)
  assert.equal(answer.json().code, 'settlement_unavailable')
  assert.equal(await statusOf(id), 'OPEN')
})

test('payments that wait for their payer’s money do not hold up other payers', async () => {
  const poor = await chain.payer(1_000_000n)
  const ids = await Promise.all(Array.from({ length: 40 }, () => shop.create()))
  const headers = await Promise.all(ids.map((id) => shop.sign(id, poor)))
  const isOfPoor = (params: readonly unknown[]) =>
    Buffer.from(String(params[0]), 'base64').includes(Buffer.from(getBase58Encoder().encode(poor.address)))
  chain.meddle(({ method, params }) => (method === 'sendTransaction' && isOfPoor(params) ? 'drop' : null))
  const paying = Promise.all(ids.map((id, i) => shop.pay(id, headers[i])))
  const waiting = async () =>
    (
      await ctx.db.query<{ nonce: string }>(
        "select nonce from authorizations where payer = $1 and state in ('claimed', 'sent')",
        [poor.address],
      )
    ).length
  await until('more payments wait than one step considers', async () => (await waiting()) > 20)
  const rich = await chain.payer()
  const id = await shop.create()
  const answer = await shop.pay(id, await shop.sign(id, rich))
  assert.equal(answer.statusCode, 200, answer.body)
  assert((await waiting()) > 20)
  chain.meddle(null)
  chain.mine(200)
  await paying
})
