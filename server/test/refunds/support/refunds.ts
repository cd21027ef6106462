import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Actor, Refund } from '@farthing/sdk'
import { newId, type StoreId } from '../../../src/ids.ts'
import { Problem } from '../../../src/problems.ts'
import { createRefund } from '../../../src/refunds/create.ts'
import type { TestApp } from '../../support/app.ts'

export const member: Actor = { type: 'member', id: 'mem_test', name: 'Ana' }
export const key: Actor = { type: 'key', id: 'key_test', name: 'shop' }

/** Records that a store's wallets are proven to be its own. */
export async function proveWallets(test: TestApp, storeId: string): Promise<void> {
  await test.ctx.db.query('update wallets set proven_at = clock() where store_id = $1', [storeId])
}

export type Received = {
  readonly network?: string
  readonly asset: string
  readonly payTo: string
  readonly payer?: string
  readonly amount?: bigint
  /** Absent for a plain transfer. */
  readonly nonce?: string
}

/** A final payment to a store's wallet that belongs to no checkout. Returns its id. */
export async function receiveByHand(test: TestApp, received: Received): Promise<string> {
  const hash = `0x${randomBytes(32).toString('hex')}`
  const id = newId('pay', '00', new Date())
  await test.ctx.db.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, nonce, pay_to, amount, disposition, first_seen_block_time, included_at, safe_at,
       finalized_at, witnessed_at, counts)
     values ($1, $2, 0, $3, 1, clock(), $2, 0, $4, $5, $6, $7, $8, 'unmatched', clock(), clock(), clock(), clock(),
       clock(), true)`,
    [
      received.network ?? 'eip155:8453',
      hash,
      id,
      received.asset.toLowerCase(),
      (received.payer ?? `0x${randomBytes(20).toString('hex')}`).toLowerCase(),
      received.nonce ?? null,
      received.payTo.toLowerCase(),
      (received.amount ?? 12_500_000n).toString(),
    ],
  )
  return id
}

/** Creates a refund as a member would. */
export async function refund(
  test: TestApp,
  storeId: StoreId,
  paymentId: string,
  change: Partial<Parameters<typeof createRefund>[3]> = {},
  actor: Actor = member,
): Promise<Refund> {
  return await createRefund(
    test.ctx,
    storeId,
    { actor, mayChooseRecipient: actor.type === 'member' },
    { paymentId, amount: null, recipient: null, reason: null, way: 'signed', idempotency: null, ...change },
    test.ctx.now(),
  )
}

/** Asserts that a promise is rejected with this problem, in these words. */
export async function assertRefuses(work: Promise<unknown>, code: string, detail = /./): Promise<void> {
  await assert.rejects(work, (error) => {
    assert(error instanceof Problem, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, detail)
    return true
  })
}
