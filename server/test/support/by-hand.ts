import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { PaymentRequired } from '@farthing/sdk'
import { newId } from '../../src/ids.ts'
import type { TestApp } from './app.ts'

/** Sets a checkout's status directly, for statuses that no request leads to. */
export async function setStatus(test: TestApp, checkoutId: string, status: string): Promise<void> {
  const changed = await test.ctx.db.query('update checkouts set status = $2 where id = $1 returning id', [
    checkoutId,
    status,
  ])
  assert.equal(changed.length, 1)
}

/** Makes a checkout expire in the past, by the database's clock. */
export async function letTimePass(test: TestApp, checkoutId: string): Promise<void> {
  const changed = await test.ctx.db.query(
    `update checkouts set created_at = created_at - interval '2 days', expires_at = clock() - interval '1 millisecond'
     where id = $1 returning id`,
    [checkoutId],
  )
  assert.equal(changed.length, 1)
}

export const payer = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'

/**
 * Does the settlement's work by hand: inserts the authorization with this nonce and its exact credit, and completes the
 * checkout. Returns the transaction's hash.
 */
export async function completeByHand(
  test: TestApp,
  checkoutId: string,
  nonce = `0x${randomBytes(32).toString('hex')}`,
): Promise<string> {
  const transaction = `0x${randomBytes(32).toString('hex')}`
  await test.ctx.db.query(
    `with option as (
       select c.id as checkout_id, c.store_id, o.network, lower(o.asset) as asset, o."payTo" as pay_to, o.amount
       from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
       where c.id = $1 limit 1
     ), authorized as (
       insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, claimed_at)
       select network, asset, $4, $5, checkout_id, store_id, 'sent', pay_to, amount, 0, 1, decode('00', 'hex'), clock() from option
     )
     insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, nonce, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time,
       included_at)
     select network, $2, 0, $3, 1, clock(), $2, 0, asset, $4, $5, pay_to, amount, store_id, checkout_id, 'exact',
       clock(), clock()
     from option`,
    [checkoutId, transaction, newId('pay', '00', new Date()), payer.toLowerCase(), nonce],
  )
  await setStatus(test, checkoutId, 'COMPLETED')
  return transaction
}

/**
 * Completes a checkout with a payment that is final, at a wallet that the store has proven: all that a refund needs.
 * Returns the payment's id.
 */
export async function payFinally(test: TestApp, checkoutId: string): Promise<string> {
  await completeByHand(test, checkoutId)
  const paymentId = newId('pay', '00', new Date())
  const [paid] = await test.ctx.db.query<{ store_id: string }>(
    `update credits set payment_id = $2, finalized_at = clock(), safe_at = clock(), pay_to = lower(pay_to),
       witnessed_at = clock() where checkout_id = $1 returning store_id`,
    [checkoutId, paymentId],
  )
  await test.ctx.db.query('update wallets set proven_at = clock() where store_id = $1', [paid?.store_id])
  return paymentId
}

/** Inserts an unmatched plain transfer to the first wallet in a checkout's options. Returns its payment id. */
export async function creditByHand(test: TestApp, checkoutId: string): Promise<string> {
  const hash = `0x${randomBytes(32).toString('hex')}`
  const [row] = await test.ctx.db.query<{ payment_id: string }>(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, pay_to, amount, store_id, disposition, first_seen_block_time, included_at)
     select o.network, $2, 0, $3, 1, clock(), $2, 0, lower(o.asset), $4, lower(o."payTo"), o.amount + 1, c.store_id,
       'unmatched', clock(), clock()
     from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
     where c.id = $1 limit 1
     returning payment_id`,
    [checkoutId, hash, newId('pay', '00', new Date()), payer.toLowerCase()],
  )
  assert(row)
  return row.payment_id
}

/**
 * Inserts a refund of this checkout's payment, in a status that a buyer may see: half of it unless `percent` says
 * otherwise. Returns the transaction's hash, which is null for what the store only declares.
 */
export async function refundByHand(
  test: TestApp,
  checkoutId: string,
  status: 'REQUESTED' | 'SENT' | 'COMPLETED' | 'DECLARED',
  percent = 50,
): Promise<string | null> {
  const hash = status === 'DECLARED' ? null : `0x${randomBytes(32).toString('hex')}`
  const rows = await test.ctx.db.query(
    `with paid as (
       select k.*, coalesce(k.nonce, k.transaction_hash) as identity, k.amount * $4 / 100 as part from credits k
       where k.checkout_id = $1 and k.orphaned_at is null
     ), total as (
       insert into refund_totals (network, asset, identity, payment_id, store_id, amount, reserved)
       select network, asset, identity, payment_id, store_id, amount, part from paid
       on conflict (network, asset, identity) do update set reserved = refund_totals.reserved + excluded.reserved
     )
     insert into refunds (id, store_id, payment_id, checkout_id, network, asset, identity, wallet, amount, recipient,
       way, status, version, actor, created_at, transaction_hash, declared, completed_at)
     select $2, store_id, payment_id, checkout_id, network, asset, identity, pay_to, part, payer,
       case $3 when 'DECLARED' then 'self-sent' else 'signed' end, $3, 1, '{"type":"operator","name":"test"}', clock(), $5,
       case $3 when 'DECLARED' then 'a withdrawal' end, case $3 when 'COMPLETED' then clock() end
     from paid returning id`,
    [checkoutId, newId('rf', '00', new Date()), status, percent, hash],
  )
  assert.equal(rows.length, 1)
  return hash
}

/** A payment as a stock client would send it on the offered terms, with an invalid signature. */
export function paymentFor(terms: PaymentRequired) {
  const [accepted] = terms.accepts
  assert(accepted)
  return {
    x402Version: 2,
    resource: terms.resource,
    accepted,
    payload: {
      signature: `0x${'22'.repeat(65)}`,
      authorization: {
        from: payer,
        to: accepted.payTo,
        value: accepted.amount,
        validAfter: '0',
        validBefore: String(Math.floor(Date.now() / 1_000) + 120),
        nonce: `0x${randomBytes(32).toString('hex')}`,
      },
    },
  }
}

export function encodePayment(payment: unknown): string {
  return Buffer.from(JSON.stringify(payment)).toString('base64')
}
