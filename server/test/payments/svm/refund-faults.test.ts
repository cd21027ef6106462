/** What happens to a refund on Solana when the chain, a node, an account, the process or the database fails. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSvmChain } from '../../../src/chains/svm/chain.ts'
import { nodesOf } from '../../../src/config/settings.ts'
import { listConnected, openRails } from '../../../src/payments/rails.ts'
import { startReconciling } from '../../../src/payments/reconcile.ts'
import { recoverSent } from '../../../src/payments/svm/recover.ts'
import { until } from '../../support/until.ts'
import { openRefunding, type Refunding, refusal } from './support/refunds.ts'

const shop = await openRefunding()
const { chain, ctx } = shop

let stopAll: () => Promise<void> = shop.stopWork
const start = () => {
  stopAll = shop.startWork()
}

const reservedOf = async (paymentId: string): Promise<string> => {
  const [row] = await ctx.db.query<{ reserved: string }>(
    'select reserved from refund_totals where payment_id = $1',
    [paymentId],
  )
  return row?.reserved ?? assert.fail()
}

async function untilSent({ ctx }: Refunding, id: string): Promise<void> {
  await until('the settler has signed', async () => {
    const rows = await ctx.db.query(
      "select 1 as one from authorizations where refund_id = $1 and state = 'sent'",
      [id],
    )
    return rows.length > 0
  })
}

test('a refund that is dropped, and whose process dies after signing and before sending, arrives once', async () => {
  const { payer, paymentId } = await shop.pay()
  const before = await shop.balanceOf(payer.address)
  const { id } = await shop.ask(paymentId)
  // No node takes what is committed, until the process is gone.
  chain.meddle(({ method }) => (method === 'sendTransaction' ? 'refuse' : null))
  await shop.present(id, await shop.signed(id))
  await untilSent(shop, id)
  await stopAll()
  let drops = 1
  chain.meddle(({ method }) => (method === 'sendTransaction' && drops-- > 0 ? 'drop' : null))
  start()
  await shop.untilStatus(id, 'COMPLETED')
  chain.meddle(null)
  assert(drops < 0)
  assert.equal(await shop.balanceOf(payer.address), before + 1_000_000n)
})

test('an account that is closed after the settler signed, or frozen before, makes the refund fail and frees its amount', async () => {
  const [closed, frozen] = [await shop.pay(), await shop.pay()]
  const { id: closedId } = await shop.ask(closed.paymentId)
  // Nodes accept what they are sent, but no block includes it yet.
  chain.hold()
  await shop.present(closedId, await shop.signed(closedId))
  await untilSent(shop, closedId)
  await shop.damage(closed.payer.address, 'closed')
  chain.release()
  await shop.untilStatus(closedId, 'FAILED')
  assert.equal(await reservedOf(closed.paymentId), '0')

  const { id } = await shop.ask(frozen.paymentId)
  // Another process holds the settler, and does nothing.
  await ctx.db.query(
    "update settlers set lease_holder = 'paused', leased_until = clock() + interval '1 hour', alive_at = clock()",
  )
  await shop.present(id, await shop.signed(id))
  await shop.damage(frozen.payer.address, 'frozen')
  await ctx.db.query('update settlers set leased_until = null')
  await until(
    'the store reads why it waits',
    async () => (await shop.read(id)).failure === 'recipient_account_frozen',
  )
  assert.equal((await shop.read(id)).status, 'SIGNED')
  assert.equal(await reservedOf(frozen.paymentId), '1000000')
  chain.mine(230)
  await shop.untilStatus(id, 'FAILED')
  assert.equal((await shop.read(id)).failure, 'recipient_account_frozen')
  assert.equal(await reservedOf(frozen.paymentId), '0')
  assert.equal((await refusal(shop.prepare(id))).code, 'refund_canceled')
})

test('a refund that a fork takes back is sent again with the same bytes, and arrives once', async () => {
  const slow = await openRefunding(300)
  const { payer, paymentId } = await slow.pay(true)
  const before = await slow.balanceOf(payer.address)
  const { id } = await slow.ask(paymentId)
  const signed = await slow.signed(id)
  // Its blockhash is from a block that the fork leaves in place.
  slow.chain.mine(10)
  const beforePaid = slow.chain.slot()
  await slow.present(id, signed)
  await slow.untilStatus(id, 'COMPLETED')
  const { transaction } = await slow.read(id)
  slow.chain.meddle(({ method }) => (method === 'sendTransaction' ? 'drop' : null))
  slow.chain.fork(slow.chain.slot() - beforePaid)
  await slow.untilStatus(id, 'SENT')
  assert.equal(await slow.balanceOf(payer.address), before)
  slow.chain.meddle(null)
  await slow.untilStatus(id, 'COMPLETED')
  assert.equal((await slow.read(id)).transaction, transaction)
  assert.equal(await slow.balanceOf(payer.address), before + 1_000_000n)
})

/** Takes the database back to a time when the refund was unknown, or handed out and not signed. */
async function forget(id: string, state: 'nothing' | 'prepared'): Promise<void> {
  const key = `(select network, asset, payer, nonce from authorizations where refund_id = '${id}')`
  await ctx.db.transaction(async (tx) => {
    await tx.query(`delete from credits where (network, asset, payer, nonce) in ${key}`)
    await tx.query(
      `delete from broadcasts b using transaction_calls c where (c.network, c.asset, c.payer, c.nonce) in ${key}
         and b.network = c.network and b.settler = c.settler and b.nonce = c.settler_nonce`,
    )
    await tx.query(`delete from transaction_calls c where (c.network, c.asset, c.payer, c.nonce) in ${key}`)
    await tx.query(
      'delete from transactions t where not exists (select 1 from transaction_calls c where c.settler = t.settler and c.settler_nonce = t.nonce)',
    )
    if (state === 'nothing') {
      const totals = `(select network, asset, identity from refunds where id = '${id}')`
      await tx.query(`delete from authorizations where refund_id = '${id}'`)
      await tx.query(`create temporary table forgotten on commit drop as ${totals.slice(1, -1)}`)
      await tx.query('delete from refunds where id = $1', [id])
      await tx.query('delete from refund_totals where (network, asset, identity) in (table forgotten)')
    } else {
      await tx.query(
        "update authorizations set state = 'prepared', sends = 0, is_credited = false where refund_id = $1",
        [id],
      )
      await tx.query(
        `update refunds set status = 'REQUESTED', signed_at = null, transaction_hash = null, finality = null,
           completed_at = null, is_watched = true where id = $1`,
        [id],
      )
    }
  })
}

test('after a restore, a refund that was paid is found before another can be prepared', async () => {
  const [lost, prepared] = [await shop.pay(), await shop.pay()]
  const ids: string[] = []
  for (const { paymentId } of [lost, prepared]) {
    const { id } = await shop.ask(paymentId)
    await shop.present(id, await shop.signed(id))
    await shop.untilStatus(id, 'COMPLETED')
    await until('it is final', async () => (await shop.read(id)).finality === 'finalized')
    ids.push(id)
  }
  const balances = await Promise.all([lost, prepared].map(({ payer }) => shop.balanceOf(payer.address)))
  await stopAll()
  await forget(ids[0] ?? '', 'nothing')
  await forget(ids[1] ?? '', 'prepared')
  // So old that no node remembers the blockhash.
  chain.mine(200)
  await startReconciling(ctx, listConnected(openRails(ctx)))
  const again = await shop.ask(lost.paymentId)
  assert.equal((await refusal(shop.prepare(again.id))).code, 'unavailable')
  start()
  await shop.untilStatus(ids[1] ?? '', 'COMPLETED')
  await ctx.db.query("update restores set started_at = started_at - interval '1 hour'")
  await until('the restore is over', async () => {
    const rows = await ctx.db.query('select 1 as one from restores where finished_at is null')
    return rows.length === 0
  })
  const refused = await refusal(shop.prepare(again.id))
  assert.match(refused.message, /from before the database was restored/)
  await shop.cancel(again.id)
  assert.equal((await refusal(shop.ask(lost.paymentId))).code, 'refund_exceeds_payment')
  assert.deepEqual(
    await Promise.all([lost, prepared].map(({ payer }) => shop.balanceOf(payer.address))),
    balances,
  )
})

test('after a restore, the console too knows what was paid: it is not paid again, and the rest is', async () => {
  const { payer, paymentId } = await shop.pay()
  const { id } = await shop.ask(paymentId, { amount: 400_000n })
  await shop.present(id, await shop.signed(id))
  await shop.untilStatus(id, 'COMPLETED')
  await until('it is final', async () => (await shop.read(id)).finality === 'finalized')
  const before = await shop.balanceOf(payer.address)
  await stopAll()
  await forget(id, 'nothing')
  await ctx.db.query('delete from restores')
  await startReconciling(ctx, listConnected(openRails(ctx)))
  const early = await shop.inConsole.ask(paymentId)
  await ctx.db.query("update restores set started_at = started_at - interval '1 hour'")
  const svm = openSvmChain(chain.network, nodesOf(ctx.config, chain.network.id), ctx.now)
  await recoverSent(ctx, svm, { addresses: [], reported: new Set() }, new Date())
  // It is recorded as sent, and nobody has looked yet whether it arrived.
  const refused = await refusal(shop.inConsole.prepare(early.id))
  assert.match(refused.message, /from before the database was restored/)
  const found = () =>
    ctx.db.query<{ storeId: string | null; amount: string }>(
      `select a.store_id as "storeId", a.amount from authorizations a join credits k using (network, asset, payer, nonce)
       where a.payer = $1 and a.pay_to = $2`,
      [shop.wallet.address, payer.address],
    )
  start()
  await until('its transfer is found', async () => (await found()).length > 0)
  assert.equal((await shop.inConsole.cancel(early.id)).status, 'CANCELED')
  const rest = await shop.inConsole.ask(paymentId)
  assert.equal(rest.amount, '600000')
  assert.deepEqual(await found(), [{ storeId: shop.store.id, amount: '400000' }])
  await shop.inConsole.present(rest.id, await shop.inConsole.signed(rest.id))
  await shop.untilStatus(rest.id, 'COMPLETED')
  assert.equal(await shop.balanceOf(payer.address), before + 600_000n)
})
