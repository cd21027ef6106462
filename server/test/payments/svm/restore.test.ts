/** After the database is restored to an earlier point, payments that it lost are found on the chain. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSvmChain } from '../../../src/chains/svm/chain.ts'
import { nodesOf } from '../../../src/config/settings.ts'
import { listConnected, openRails } from '../../../src/payments/rails.ts'
import { startReconciling } from '../../../src/payments/reconcile.ts'
import { listSettlerAddresses } from '../../../src/payments/settlers/rows.ts'
import { recoverSent } from '../../../src/payments/svm/recover.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const shop = await openShop({ network: 'SOLANA_LOCAL' })
const { chain, ctx } = shop

/** As if the database knew only that the checkout was created, or also that its payment was claimed. */
async function forget(id: string, state: 'nothing' | 'claimed'): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await tx.query('delete from credits where checkout_id = $1', [id])
    await tx.query(
      `delete from broadcasts b using transaction_calls c join authorizations a using (network, asset, payer, nonce)
       where a.checkout_id = $1 and b.network = c.network and b.settler = c.settler and b.nonce = c.settler_nonce`,
      [id],
    )
    await tx.query(
      `delete from transaction_calls c using authorizations a
       where a.checkout_id = $1 and a.network = c.network and a.asset = c.asset and a.payer = c.payer and a.nonce = c.nonce`,
      [id],
    )
    await tx.query(
      'delete from transactions t where not exists (select 1 from transaction_calls c where c.settler = t.settler and c.settler_nonce = t.nonce)',
    )
    const version = state === 'claimed' ? 2 : 1
    await tx.query('delete from events where checkout_id = $1 and checkout_version > $2', [id, version])
    if (state === 'nothing') await tx.query('delete from authorizations where checkout_id = $1', [id])
    else
      await tx.query(
        `update authorizations set state = 'claimed', sends = 0, is_credited = false where checkout_id = $1`,
        [id],
      )
    await tx.query('update checkouts set status = $2, version = $3 where id = $1', [
      id,
      state === 'claimed' ? 'PROCESSING' : 'OPEN',
      version,
    ])
  })
}

test('a payment whose claim was lost and one that was claimed but unsent are credited once each', async () => {
  const payer = await chain.payer()
  const [lost, unsent] = [await shop.create(), await shop.create()]
  const headers = [await shop.sign(lost, payer), await shop.sign(unsent, payer)]
  assert.equal((await shop.pay(lost, headers[0])).statusCode, 200)
  assert.equal((await shop.pay(unsent, headers[1])).statusCode, 200)
  const received = await shop.received()
  await until('both are final', async () =>
    [await shop.read(lost), await shop.read(unsent)].every(({ payment }) => payment.finality === 'finalized'),
  )
  await shop.stopWork()
  await forget(lost, 'nothing')
  await forget(unsent, 'claimed')
  // So old that no node remembers the blockhash.
  chain.mine(200)
  await startReconciling(ctx, listConnected(openRails(ctx)))
  // No payment is accepted before the losses are known.
  const asked = await shop.pay(lost, headers[0])
  assert.equal(asked.statusCode, 503, asked.body)
  shop.startWork()
  for (const id of [lost, unsent])
    await until('the checkout is paid again', async () => (await shop.read(id)).status === 'COMPLETED')
  for (const [i, id] of [lost, unsent].entries())
    assert.equal((await shop.pay(id, headers[i])).statusCode, 200)
  assert.equal(await shop.received(), received)
  const rows = await ctx.db.query('select 1 as one from credits where orphaned_at is null')
  assert.equal(rows.length, 2)
})

test('a restore is not over while we have the key of a settler that the database has forgotten', async () => {
  await shop.stopWork()
  await ctx.db.query('delete from restores')
  await startReconciling(ctx, listConnected(openRails(ctx)))
  await ctx.db.query("update restores set started_at = started_at - interval '1 hour'")
  const svm = openSvmChain(chain.network, nodesOf(ctx.config, chain.network.id), ctx.now)
  const isOver = async (addresses: readonly string[]) => {
    await recoverSent(ctx, svm, { addresses, reported: new Set() }, new Date())
    const rows = await ctx.db.query('select 1 as one from restores where finished_at is null')
    return rows.length === 0
  }
  const added = await listSettlerAddresses(ctx.db, chain.network.caip2)
  assert(added.length > 0)
  assert.equal(await isOver([...added, (await chain.payer()).address]), false)
  assert.equal(await isOver(added), true)
})
