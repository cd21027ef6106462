/**
 * A claim and money that no checkout has can meet in the rows, when neither saw the other in time. What was on the chain
 * before it was presented was copied from there, and pays nothing, unless its nonce is bound to the checkout.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { newId } from '../../../src/ids.ts'
import { adoptUnmatched } from '../../../src/payments/evm/credit-blocks.ts'
import { makeBoundNonce } from '../../../src/payments/nonces.ts'
import { openShop } from '../../support/shop.ts'

const shop = await openShop()
const { db } = shop.ctx

type Met = {
  readonly claimedAt: string
  readonly isBound?: boolean
  readonly isShared?: boolean
}

/** A claimed authorization, and the same money as a credit that no checkout has, in a block at 12:00:00. */
async function meet({ claimedAt, isBound = false, isShared = false }: Met) {
  const id = await shop.create('5.00')
  const nonce = isBound ? makeBoundNonce(id, randomBytes(12)) : `0x${randomBytes(32).toString('hex')}`
  const hash = `0x${randomBytes(32).toString('hex')}`
  const [row] = await db.query<{ network: string; store_id: string }>(
    `with option as (
       select c.store_id, o.network, lower(o.asset) as asset, lower(o."payTo") as pay_to, o.amount
       from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
       where c.id = $1 limit 1
     ), claimed as (
       insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, claimed_at)
       select network, asset, '0xb0', $2, $1, store_id, 'claimed', pay_to, amount, 0, 1, decode('00', 'hex'),
         $5::timestamptz from option
     )
     insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, nonce, pay_to, amount, store_id, disposition, first_seen_block_time, included_at)
     select network, $3, 0, $4, 1, '2026-11-19T12:00:00Z', $3, 0, asset, '0xb0', $2, pay_to, amount, store_id,
       'unmatched', '2026-11-19T12:00:00Z', clock() from option
     returning network, store_id`,
    [id, nonce, hash, newId('pay', '00', new Date()), `2026-11-19T${claimedAt}Z`],
  )
  assert(row)
  await db.query('update wallets set shared_elsewhere = $2 where store_id = $1', [row.store_id, isShared])
  const adopted = await db.transaction((tx) => adoptUnmatched(tx, row.network))
  const [authorization] = await db.query<{ spent_reason: string | null }>(
    'select spent_reason from authorizations where nonce = $1',
    [nonce],
  )
  const hints = await db.query('select 1 from payment_hints where checkout_id = $1', [id])
  const isAdopted = adopted.includes(id)
  assert.equal(authorization?.spent_reason, isAdopted ? null : 'landed_by_another')
  assert.equal(hints.length, isAdopted ? 0 : 1)
  return isAdopted
}

for (const [name, met, isAdopted] of [
  ['money that landed after it was presented pays the checkout', { claimedAt: '11:59:58' }, true],
  [
    'money that landed before it was presented pays nothing, and the store is told',
    { claimedAt: '12:00:05' },
    false,
  ],
  [
    'money that landed before it was presented pays the checkout to which its nonce is bound',
    { claimedAt: '12:00:05', isBound: true },
    true,
  ],
  [
    'money at a wallet that another store has too pays nothing',
    { claimedAt: '11:59:58', isShared: true },
    false,
  ],
  [
    'money at a shared wallet pays the checkout to which its nonce is bound',
    { claimedAt: '11:59:58', isShared: true, isBound: true },
    true,
  ],
] as const)
  test(name, async () => {
    assert.equal(await meet(met), isAdopted)
  })
