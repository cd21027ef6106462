/** Refunds of money that matches no checkout, at a wallet that two stores have proven. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Payment } from '@farthing/sdk'
import { acceptPayment } from '../../src/checkouts/payments/decide.ts'
import type { Context } from '../../src/context.ts'
import type { Transaction } from '../../src/database/db.ts'
import { joinTransaction } from '../../src/database/scope.ts'
import { forStore } from '../../src/http/console/visitor.ts'
import { newId } from '../../src/ids.ts'
import { networks } from '../../src/networks.ts'
import { writeHandOut } from '../../src/payments/hand-outs.ts'
import type { RefundOrder } from '../../src/payments/rail.ts'
import { cancelRefund } from '../../src/refunds/cancel.ts'
import { noncesOf } from '../../src/refunds/refund.ts'
import { findRefund } from '../../src/refunds/rows.ts'
import { openTestApp } from '../support/app.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { openStore, type StoreClient } from '../support/store.ts'
import { until } from '../support/watch.ts'
import { assertRefuses, member, proveWallets, receiveByHand, refund } from './support/refunds.ts'

const farthing = await openTestApp()
const serve: Context = { ...farthing.ctx, db: openAs('serve', farthing.databaseUrl) }
const work: Context = { ...farthing.ctx, db: openAs('work', farthing.databaseUrl) }
const base = networks.find(({ id }) => id === 'BASE_MAINNET') ?? assert.fail()
const recipient = newPayer().address

async function openSharing() {
  const payTo = newPayer().address
  const stores = [
    await openStore(farthing, { evmWallet: payTo }),
    await openStore(farthing, { evmWallet: payTo }),
  ] as const
  for (const { store } of stores) await proveWallets(farthing, store.id)
  const asset = base.assets[0]?.address ?? assert.fail()
  const paymentId = await receiveByHand(farthing, { network: base.caip2, asset, payTo })
  return { stores, paymentId }
}

const ask = ({ store }: StoreClient, paymentId: string, ctx = serve) =>
  refund({ ...farthing, ctx }, store.id, paymentId, { recipient })

async function accept(
  tx: Transaction,
  shop: StoreClient,
  paymentId: string,
  checkoutId: string,
): Promise<Payment> {
  const now = new Date()
  const decision = {
    id: newId('dec', '00', now),
    storeId: shop.store.id,
    paymentId,
    kind: 'accept',
    checkoutId,
    note: null,
    actor: member,
    createdAt: now,
  } as const
  return await acceptPayment(work, tx, decision, now)
}

test('a payment belongs to the store that refunds it only while a refund of it counts', async () => {
  const { stores, paymentId } = await openSharing()
  const [first, second] = stores
  const { id } = await ask(second, paymentId)
  await assertRefuses(ask(first, paymentId), 'payment_refunded')
  await cancelRefund(serve, second.store.id, member, id, new Date())
  const { id: checkoutId } = await first.create()
  await work.db.transaction((tx) => accept(tx, first, paymentId, checkoutId))
  const made = await ask(first, paymentId)
  assert.deepEqual([made.status, made.checkoutId], ['REQUESTED', checkoutId])
  await assertRefuses(ask(second, paymentId), 'not_found')
})

test('in the console too, a store refunds what another had refunded and canceled', async () => {
  const { stores, paymentId } = await openSharing()
  const [first, second] = stores
  const { id, network } = await ask(second, paymentId)
  const asked = (await findRefund(serve.db, second.store.id, id)) ?? assert.fail()
  const order = (storeId: string, refundId: string) => ({
    ...{ refundId, storeId, asset: asked.asset, wallet: asked.wallet, amount: asked.amount },
    ...{ recipient: asked.recipient ?? '', taken: null, endedIds: [] },
    nonces: noncesOf(network, asked.asset, asked.identity),
  })
  const handOut = (ctx: Context, by: StoreClient, refundId: string, slot: number) => {
    const wanted = order(by.store.id, refundId)
    const nonce = wanted.nonces[slot] ?? ''
    const window = { nonce, validBefore: 9_999_999_999n, renewedBefore: 0n, isContract: false }
    return ctx.db.transaction((tx) => writeHandOut(tx, network, wanted as RefundOrder, window))
  }
  assert(await handOut(serve, second, id, 0))
  await farthing.ctx.db.query(
    `update authorizations set state = 'dead', reason = 'authorization_expired', resolved_at = clock() where refund_id = $1`,
    [id],
  )
  await cancelRefund(serve, second.store.id, member, id, new Date())
  await farthing.ctx.db.query("update refunds set status = 'CANCELED', ended_at = clock() where id = $1", [
    id,
  ])
  await farthing.ctx.db.query('update refund_totals set reserved = 0 where payment_id = $1', [paymentId])
  const { id: checkoutId } = await first.create()
  await work.db.transaction((tx) => accept(tx, first, paymentId, checkoutId))
  const inConsole = forStore({ ...farthing.ctx, db: openAs('console', farthing.databaseUrl) }, first.store.id)
  const made = await ask(first, paymentId, inConsole)
  assert.equal(made.status, 'REQUESTED')
  assert.equal(await handOut(inConsole, first, made.id, 0), null, 'the slot is another’s')
  assert(await handOut(inConsole, first, made.id, 1))
})

test('a payment that another store refunds is known as that, also if it had another id before a restore', async () => {
  const { stores, paymentId } = await openSharing()
  await ask(stores[1], paymentId)
  await farthing.ctx.db.query('update refund_totals set payment_id = $2 where payment_id = $1', [
    paymentId,
    newId('pay', '00', new Date()),
  ])
  await assertRefuses(ask(stores[0], paymentId), 'payment_refunded')
})

/** Starts `second` once `first` has written, and commits `first` once `second` waits for it or is done. */
async function race<Second>(
  db: Context['db'],
  first: (tx: Transaction) => Promise<unknown>,
  second: () => Promise<Second>,
): Promise<Second> {
  const { begun } = await db.transaction(async (tx) => {
    await first(tx)
    let isDone = false
    const begun = second().finally(() => {
      isDone = true
    })
    begun.catch(() => {})
    await until(async () => isDone || (await isAnyWaiting()), 'a wait for the lock')
    return { begun }
  })
  return await begun
}

async function isAnyWaiting(): Promise<boolean> {
  const rows = await farthing.ctx.db.query(
    "select 1 as one from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  )
  return rows.length > 0
}

test('a payment that one store accepts meanwhile is not refunded by another', async () => {
  const { stores, paymentId } = await openSharing()
  const [first, second] = stores
  const { id: checkoutId } = await first.create()
  await assertRefuses(
    race(
      work.db,
      (tx) => accept(tx, first, paymentId, checkoutId),
      () => ask(second, paymentId),
    ),
    'not_found',
  )
})

test('a refund of a payment that its store accepts meanwhile is one of the checkout’s', async () => {
  const { stores, paymentId } = await openSharing()
  const [shop] = stores
  const { id: checkoutId } = await shop.create()
  const made = await race(
    work.db,
    (tx) => accept(tx, shop, paymentId, checkoutId),
    () => ask(shop, paymentId),
  )
  assert.equal(made.checkoutId, checkoutId)
})

test('a payment that is refunded meanwhile is not accepted', async () => {
  const { stores, paymentId } = await openSharing()
  const [shop] = stores
  const { id: checkoutId } = await shop.create()
  await assertRefuses(
    race(
      serve.db,
      (tx) => ask(shop, paymentId, { ...serve, db: joinTransaction(serve.db, tx) }),
      () => work.db.transaction((tx) => accept(tx, shop, paymentId, checkoutId)),
    ),
    'payment_refunded',
  )
})
