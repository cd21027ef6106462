import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, encodeFunctionData, type Hex } from 'viem'
import { forStore } from '../../src/http/console/visitor.ts'
import { refundNonce } from '../../src/payments/nonces.ts'
import type { Rails, RefundRail } from '../../src/payments/rail.ts'
import { openRails } from '../../src/payments/rails.ts'
import { Problem } from '../../src/problems.ts'
import { signRefund } from '../../src/refunds/sign.ts'
import { trials } from '../payments/adversity/size.ts'
import { tokenAbi } from '../support/chain/evm.ts'
import {
  encodeTransfer,
  newPayer,
  type Signed,
  signAuthorization,
  signCancellation,
} from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { payTo } from '../support/shop.ts'
import { openRefunding, signTyped, walletKey } from './support/refunding.ts'

const shop = await openRefunding()
const { chain, refunds } = shop
const { db } = shop.ctx

const isProblem =
  (code: string, words = /./) =>
  (error: unknown) =>
    error instanceof Problem && error.code === code && words.test(error.message)

/** Final payments of 1.00 each. They are made before any test moves the clock: payers sign for minutes only. */
const payments = await shop.paid(11)
const next = () => payments.pop() ?? assert.fail()

const call = (functionName: 'blacklist' | 'unBlacklist', account: Address) =>
  chain.perform({
    to: chain.token,
    data: encodeFunctionData({ abi: tokenAbi, functionName, args: [account] }),
  })

/** Moves money out of the store's wallet. */
async function takeOut(units: bigint): Promise<void> {
  const validBefore = (await chain.time()) + 600n
  const to = newPayer().address
  const signed = await signAuthorization({
    key: walletKey,
    domain: chain.domain,
    to,
    value: units,
    validBefore,
  })
  const { status } = await chain.perform({ to: chain.token, data: encodeTransfer(signed) })
  assert.equal(status, 'success')
  await shop.follow()
}

/** Has everything that rests looked at again. */
function wakeAll(): void {
  for (const lane of shop.engine.lanes) (lane as { resting?: Map<string, number> }).resting?.clear()
}

async function sendsOf(id: string): Promise<number> {
  const [row] = await db.query<{ sends: number }>(
    `select count(*)::int as sends from transaction_calls c join refunds r on r.nonce = c.nonce where r.id = $1`,
    [id],
  )
  return row?.sends ?? 0
}

test('the wallet signs once, a settler sends it in the batch of a payment, and the buyer has the money', async () => {
  const paid = next()
  const { id } = await refunds.create(paid.paymentId)
  const prepared = await refunds.prepare(id)
  assert.deepEqual(await refunds.prepare(id), prepared)
  const signature = await signTyped(prepared, walletKey)
  assert.equal((await refunds.present(id, signature)).status, 'SIGNED')
  const before = await chain.balance(paid.payer.address)
  const [answer] = await shop.present(await shop.prepare(1))
  await shop.land()
  assert.equal((await answer)?.statusCode, 200)
  const completed = await refunds.read(id)
  assert.equal(completed.status, 'COMPLETED')
  assert.equal((await chain.balance(paid.payer.address)) - before, 1_000_000n)
  const { logs } = await chain.client.getTransactionReceipt({ hash: completed.transaction as Hex })
  assert.equal(logs.length, 4, 'the payment and the refund, each with two logs')
  assert.deepEqual(await refunds.told(id), ['refund.requested', 'refund.completed'])
  const [credit] = await db.query(
    'select store_id, checkout_id from credits where transaction_hash = $1 and payer = $2',
    [completed.transaction, payTo.toLowerCase()],
  )
  assert.deepEqual(credit, { store_id: null, checkout_id: null })
  await shop.mine(9)
  assert.equal((await refunds.read(id)).finality, 'finalized')
})

test('one signature, presented a thousand times while two owners sign, is one send', async () => {
  const paid = next()
  const { id } = await refunds.create(paid.paymentId, { amount: 400_000n })
  const both = await Promise.all([refunds.sign(id), refunds.sign(id)])
  assert.equal(both[0], both[1])
  const answers = await Promise.all(
    Array.from({ length: 1_000 }, (_, i) => refunds.present(id, both[i % 2] as Hex)),
  )
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], ['SIGNED'])
  await shop.land()
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
  assert.equal((await refunds.present(id, both[0])).status, 'COMPLETED')
  await shop.land()
  assert.equal(await sendsOf(id), 1)
  const moved = await chain.transferLogs({ from: payTo, to: paid.payer.address })
  assert.deepEqual(
    moved.map(({ args }) => args.value),
    [400_000n],
  )
})

test('in the console too, a signature that is presented many times at once is checked once', async () => {
  const paid = next()
  const { id } = await refunds.create(paid.paymentId)
  const signature = await refunds.sign(id)
  const console = { ...shop.ctx, db: openAs('console', shop.databaseUrl) }
  const rail = openRails(console).get(chain.network.caip2) ?? assert.fail()
  const own = rail.refunds ?? assert.fail()
  let checks = 0
  const counted: RefundRail = {
    ...own,
    verify: (...presented) => {
      checks++
      return own.verify(...presented)
    },
  }
  const rails: Rails = new Map([[chain.network.caip2, { ...rail, refunds: counted }]])
  const storeId = shop.store.id
  const answers = await Promise.all(
    // As each request to the console does, with a database of its own.
    Array.from({ length: 20 }, () =>
      signRefund(forStore(console, storeId), rails, storeId, id, { signature }),
    ),
  )
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], ['SIGNED'])
  assert.equal(checks, 1)
})

test('a reorganisation takes a refund back, and the same bytes complete it again, however often', async () => {
  const paid = next()
  const { id } = await refunds.signed(paid.paymentId)
  await shop.land()
  const first = await refunds.read(id)
  assert.equal(first.status, 'COMPLETED')
  const rounds = trials(2, 500)
  for (let round = 0; round < rounds; round++) {
    await chain.reorg(1)
    await shop.follow()
    const taken = await refunds.read(id)
    assert.deepEqual([taken.status, taken.transaction, taken.completedAt], ['SENT', null, null])
    assert.equal(await refunds.reserved(paid.paymentId), 1_000_000n)
    await db.query('update broadcasts set last_sent_at = null')
    await shop.land()
    const again = await refunds.read(id)
    assert.equal(again.status, 'COMPLETED')
    // After a while the same call goes out at the same nonce for a higher fee.
    if (round < 2) assert.equal(again.transaction, first.transaction)
  }
  const takenBack = Array.from({ length: rounds }, () => ['refund.reorged', 'refund.completed'])
  assert.deepEqual(await refunds.told(id), ['refund.requested', 'refund.completed', ...takenBack.flat()])
  assert.equal(await sendsOf(id), 1)
  assert.equal((await chain.transferLogs({ from: payTo, to: paid.payer.address })).length, 1)
})

test('a payment that the chain takes back while its refund is being signed is not refunded', async () => {
  const paid = next()
  const { id } = await refunds.create(paid.paymentId)
  const signature = await refunds.sign(id)
  const back = 'update credits set orphaned_at = clock(), finalized_at = null where payment_id = $1'
  await db.query(back, [paid.paymentId])
  await assert.rejects(refunds.present(id, signature), isProblem('payment_not_open', /took the payment back/))
  await assert.rejects(refunds.prepare(id), isProblem('payment_not_open'))
  assert.equal((await refunds.read(id)).status, 'REQUESTED')
})

test('a nonce that the owner cancels on the chain is given up, and the next one is handed out', async () => {
  const paid = next()
  const { id } = await refunds.create(paid.paymentId)
  const nonceIn = async () => {
    const prepared = await refunds.prepare(id)
    assert('typedData' in prepared)
    return (prepared.typedData as { message: { nonce: Hex } }).message.nonce
  }
  const nonce = await nonceIn()
  const signature = await signCancellation({ key: walletKey, domain: chain.domain, nonce })
  const data = encodeFunctionData({
    abi: tokenAbi,
    functionName: 'cancelAuthorization',
    args: [payTo, nonce, signature],
  })
  await chain.perform({ to: chain.token, data })
  await shop.follow()
  await assert.rejects(refunds.prepare(id), isProblem('unavailable', /used or canceled on the chain/))
  await shop.mine()
  await shop.bury()
  assert.equal((await refunds.read(id)).status, 'REQUESTED')
  assert.notEqual(await nonceIn(), nonce)
  await refunds.present(id, await refunds.sign(id))
  await shop.land()
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
})

test('a slot that was used before anybody knew of it is skipped', async () => {
  const paid = next()
  const { id } = await refunds.create(paid.paymentId)
  const [row] = await db.query<{ network: string; asset: string; identity: string }>(
    'select network, asset, identity from refunds where id = $1',
    [id],
  )
  assert(row)
  const nonce = refundNonce(row.network, row.asset, row.identity, 0)
  const signature = await signCancellation({ key: walletKey, domain: chain.domain, nonce })
  const data = encodeFunctionData({
    abi: tokenAbi,
    functionName: 'cancelAuthorization',
    args: [payTo, nonce, signature],
  })
  await chain.perform({ to: chain.token, data })
  await shop.follow()
  const prepared = await refunds.prepare(id)
  assert('typedData' in prepared)
  const handed = (prepared.typedData as { message: { nonce: Hex } }).message.nonce
  assert.equal(handed, refundNonce(row.network, row.asset, row.identity, 1))
  await refunds.present(id, await refunds.sign(id))
  await shop.land()
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
})

test('a wallet that is emptied after it signed: the refund waits, says why, and goes out once there is money', async () => {
  const paid = next()
  const { id } = await refunds.create(paid.paymentId)
  const signature = await refunds.sign(id)
  const held = await chain.balance(payTo)
  await takeOut(held)
  await assert.rejects(refunds.present(id, signature), isProblem('invalid_request', /holds 0.* need 1/))
  await chain.mint(payTo, held)
  await shop.follow()
  await refunds.present(id, signature)
  await takeOut(held)
  await shop.land()
  const waiting = await refunds.read(id)
  assert.equal(waiting.status, 'SIGNED')
  assert.match(waiting.failure ?? '', /insufficient_balance/)
  assert.equal(await sendsOf(id), 0)
  await chain.mint(payTo, held)
  await shop.follow()
  wakeAll()
  await shop.land()
  const { status, failure } = await refunds.read(id)
  assert.deepEqual([status, failure], ['COMPLETED', null])
})

test('a recipient that the token blocks: refused with words; blocked after signing it fails once nothing can move', async () => {
  const paid = next()
  const { id } = await refunds.create(paid.paymentId)
  const signature = await refunds.sign(id)
  await call('blacklist', paid.payer.address)
  await assert.rejects(refunds.present(id, signature), isProblem('invalid_request', /blocks the wallet or/))
  await call('unBlacklist', paid.payer.address)
  await refunds.present(id, signature)
  await call('blacklist', paid.payer.address)
  await shop.land()
  assert.equal((await refunds.read(id)).status, 'SIGNED')
  assert.equal(await refunds.reserved(paid.paymentId), 1_000_000n)
  await assert.rejects(refunds.cancel(id), isProblem('refund_in_progress'))
  await shop.pass(3_601)
  const failed = await refunds.read(id)
  assert.deepEqual([failed.status, failed.failure], ['FAILED', 'authorization_expired'])
  assert.equal(await refunds.reserved(paid.paymentId), 0n)
  assert.deepEqual(await refunds.told(id), ['refund.requested', 'refund.failed'])
  await call('unBlacklist', paid.payer.address)
  await shop.follow()
  // The nonce expired unused, so the next refund takes it.
  const after = await refunds.signed(paid.paymentId)
  await shop.land()
  assert.equal((await refunds.read(after.id)).status, 'COMPLETED')
  assert.equal((await refunds.read(id)).status, 'FAILED')
  const nonces = await db.query('select distinct nonce from refunds where payment_id = $1', [paid.paymentId])
  assert.equal(nonces.length, 1)
})

test('a signature of somebody else is refused, and so is one for a refund that was canceled', async () => {
  const paid = next()
  const { id } = await refunds.create(paid.paymentId)
  await assert.rejects(refunds.present(id, '0x00'), isProblem('invalid_request', /Prepare it/))
  const stranger = await refunds.sign(id, newPayer().key)
  await assert.rejects(refunds.present(id, stranger), isProblem('invalid_request', /has not signed this/))
  const signature = await refunds.sign(id)
  const canceling = await refunds.cancel(id)
  assert.deepEqual([canceling.status, canceling.isCanceling], ['REQUESTED', true])
  await assert.rejects(refunds.present(id, signature), isProblem('refund_canceled'))
  await assert.rejects(refunds.prepare(id), isProblem('refund_canceled'))
  assert.equal((await refunds.read(id)).status, 'REQUESTED')
  await assert.rejects(refunds.create(paid.paymentId), isProblem('refund_exceeds_payment'))
  const prepared = await db.query<{ nonce: Hex; valid_before: string; pay_to: Address }>(
    'select nonce, valid_before, pay_to from authorizations where refund_id = $1',
    [id],
  )
  await shop.pass(3_601)
  assert.equal((await refunds.read(id)).status, 'CANCELED')
  assert.equal(await refunds.reserved(paid.paymentId), 0n)
  assert.deepEqual(await refunds.told(id), ['refund.requested', 'refund.canceled'])
  const [row = assert.fail()] = prepared
  const late: Signed = {
    signature,
    authorization: {
      from: payTo,
      to: row.pay_to,
      value: '1000000',
      validAfter: '0',
      validBefore: row.valid_before,
      nonce: row.nonce,
    },
  }
  const receipt = await chain.perform({ to: chain.token, data: encodeTransfer(late) })
  assert.equal(receipt.status, 'reverted', 'what was signed can no longer move money')
  await shop.follow()
})
