/** Refunds on Solana: the store's wallet signs one transfer, a settler pays the fee and signs last. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyPairSigner } from '@solana/kit'
import { decodeTransaction, encodeTransaction } from '../../../src/chains/svm/message.ts'
import { findTokenAccount, readExact } from '../../../src/chains/svm/transfer.ts'
import { transferWire } from '../../support/chain/svm-payment.ts'
import { until } from '../../support/until.ts'
import { openRefunding, refusal, signWith } from './support/refunds.ts'

const shop = await openRefunding()
const { chain, ctx, wallet } = shop
const [settler] = shop.signers
assert(settler)

const stateOf = async (id: string): Promise<string> => {
  const [row] = await ctx.db.query<{ state: string }>(
    'select state from authorizations where refund_id = $1',
    [id],
  )
  return row?.state ?? 'none'
}
const reservedOf = async (paymentId: string): Promise<string> => {
  const [row] = await ctx.db.query<{ reserved: string }>(
    'select reserved from refund_totals where payment_id = $1',
    [paymentId],
  )
  return row?.reserved ?? '0'
}

test('a refund goes back to whoever paid, once, however often it is prepared and presented', async () => {
  const { payer, paymentId } = await shop.pay()
  const before = await shop.balanceOf(payer.address)
  const { id } = await shop.ask(paymentId, { amount: 400_000n })
  const [first, second] = await Promise.all([shop.prepare(id), shop.prepare(id)])
  assert.equal(first, second, 'one message per refund')
  const exact = readExact(decodeTransaction(Buffer.from(first, 'base64')) ?? assert.fail(), chain.network)
  assert(!('refusal' in exact))
  assert.deepEqual(
    [exact.feePayer, exact.payer, exact.amount, exact.destination],
    [settler.address, wallet.address, 400_000n, await findTokenAccount(payer.address, chain.mint)],
  )
  assert.match(exact.memo, /^0x66746872[0-9a-f]{56}$/)
  const signed = await signWith(wallet, first)
  await Promise.all(Array.from({ length: 10 }, () => shop.present(id, signed)))
  await shop.untilStatus(id, 'COMPLETED')
  assert.equal((await shop.present(id, signed)).status, 'COMPLETED')
  assert.equal((await refusal(shop.prepare(id))).code, 'refund_in_progress')
  assert.equal(await shop.balanceOf(payer.address), before + 400_000n)
  await until('it is final', async () => (await shop.read(id)).finality === 'finalized')
  // The rest has the next slot. Nobody may take more than the payment.
  const rest = await shop.ask(paymentId)
  assert.equal(rest.amount, '600000')
  assert.equal((await refusal(shop.ask(paymentId, { amount: 10_000n }))).code, 'refund_exceeds_payment')
  await shop.present(rest.id, await shop.signed(rest.id))
  await shop.untilStatus(rest.id, 'COMPLETED')
  assert.equal(await shop.balanceOf(payer.address), before + 1_000_000n)
  // What went out is nobody's payment.
  const shown = await shop.request({ url: '/api/v1/payments', headers: { 'x-api-key': shop.key } })
  assert.equal(shown.json().data.length, 1, shown.body)
})

test('only the message that was handed out is taken, signed by the wallet that received the payment', async () => {
  const { payer, paymentId } = await shop.pay()
  const { id } = await shop.ask(paymentId)
  const prepared = await shop.prepare(id)
  const transaction = decodeTransaction(Buffer.from(prepared, 'base64')) ?? assert.fail()
  const changed = new Uint8Array(transaction.message)
  // The last character of the memo: another slot.
  const at = Buffer.from(changed).lastIndexOf('0x66746872') + 65
  changed[at] = (changed[at] ?? 0) ^ 1
  const other = encodeTransaction({ ...transaction, message: changed })
  const wrong = [
    'not base64!',
    prepared,
    await signWith(payer, prepared),
    await signWith(wallet, Buffer.from(other).toString('base64')),
  ]
  for (const each of wrong) {
    const problem = await refusal(shop.present(id, each))
    assert.equal(problem.code, 'invalid_request', problem.message)
  }
  assert.equal(await stateOf(id), 'prepared')
  assert.equal((await shop.read(id)).status, 'REQUESTED')
})

test('a message that died unsigned is replaced only when that is final, and cannot be presented any more', async () => {
  const { payer, paymentId } = await shop.pay()
  const before = await shop.balanceOf(payer.address)
  const { id } = await shop.ask(paymentId)
  const old = await shop.signed(id)
  await shop.stopWork()
  chain.mine(160)
  const expired = await refusal(shop.present(id, old))
  assert.match(expired.message, /expired/)
  const waiting = await refusal(shop.prepare(id))
  assert.equal(waiting.code, 'unavailable', waiting.message)
  chain.mine(60)
  shop.startWork()
  await until('it is dead', async () => (await stateOf(id)) === 'dead')
  assert.equal(await reservedOf(paymentId), '1000000')
  const signed = await shop.signed(id)
  assert.notEqual(signed, old)
  assert.match((await refusal(shop.present(id, old))).message, /prepared last/)
  await shop.present(id, signed)
  await shop.untilStatus(id, 'COMPLETED')
  assert.equal(await shop.balanceOf(payer.address), before + 1_000_000n)
})

test('a recipient without an account, with a frozen one, or that is a token account is refused in words', async () => {
  const { payer, paymentId } = await shop.pay()
  const stranger = (await chain.payer(0n)).address
  const account = await findTokenAccount(stranger, chain.mint)
  const missing = await refusal(shop.ask(paymentId, { recipient: account }, true))
  assert.match(missing.message, /token account/)
  await shop.damage(stranger, 'closed')
  const closed = await refusal(shop.ask(paymentId, { recipient: stranger }, true))
  assert.match(closed.message, /no account for the token/)
  const { id } = await shop.ask(paymentId)
  const thaw = await shop.damage(payer.address, 'frozen')
  const frozen = await refusal(shop.prepare(id))
  assert.match(frozen.message, /frozen/)
  thaw()
  const signed = await shop.signed(id)
  await shop.damage(payer.address, 'frozen')
  assert.match((await refusal(shop.present(id, signed))).message, /frozen/)
  assert.equal((await shop.read(id)).status, 'REQUESTED')
})

test('a transfer that the store made by itself proves a refund once; another’s, or one that a settler paid for, never', async () => {
  const { payer, paymentId } = await shop.pay()
  await chain.fund(wallet.address, { lamports: 1_000_000_000n })
  const sendFrom = async (from: KeyPairSigner, units: bigint): Promise<string> => {
    const wire = await transferWire(chain, from, payer.address, units, [], chain.mint)
    return await chain.rpc<string>('sendTransaction', [wire, { encoding: 'base64', skipPreflight: true }])
  }
  const signed = await shop.ask(paymentId, { amount: 200_000n })
  await shop.present(signed.id, await shop.signed(signed.id))
  await shop.untilStatus(signed.id, 'COMPLETED')
  const { id } = await shop.ask(paymentId, { amount: 200_000n, way: 'self-sent' })
  const stranger = await chain.payer()
  await chain.fund(stranger.address, { lamports: 1_000_000_000n })
  const wrong = [
    [(await shop.read(signed.id)).transaction ?? '', /signed authorization/],
    [await sendFrom(wallet, 100_000n), /not the refund’s amount/],
    [await sendFrom(stranger, 200_000n), /not proven/],
  ] as const
  for (const [transaction, why] of wrong) {
    await shop.name(id, transaction)
    await until('it proves nothing', async () => why.test((await shop.read(id)).failure ?? ''))
  }
  const transaction = await sendFrom(wallet, 200_000n)
  await shop.name(id, transaction)
  await shop.untilStatus(id, 'COMPLETED')
  assert.deepEqual(
    [(await shop.read(id)).transaction, (await shop.read(id)).finality],
    [transaction, 'finalized'],
  )
  const { id: second } = await shop.ask(paymentId, { amount: 200_000n, way: 'self-sent' })
  await shop.name(second, transaction)
  await until('it proves one refund', async () =>
    /older|another refund/.test((await shop.read(second)).failure ?? ''),
  )
})
