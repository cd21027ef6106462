/** On Solana too, money whose checkout was deleted never counts again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSvmChain } from '../../../src/chains/svm/chain.ts'
import { readView } from '../../../src/checkouts/view.ts'
import { nodesOf } from '../../../src/config/settings.ts'
import { listConnected, openRails } from '../../../src/payments/rails.ts'
import { startReconciling } from '../../../src/payments/reconcile.ts'
import { listSettlerAddresses } from '../../../src/payments/settlers/rows.ts'
import { recoverSent } from '../../../src/payments/svm/recover.ts'
import { ageAndDelete } from '../../checkouts/retention/support/aged.ts'
import { transferWire } from '../../support/chain/svm-payment.ts'
import { openShop, svmPayTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { ledTo, post } from '../transfers/support/hand-transfers.ts'

const shop = await openShop({ network: 'SOLANA_LOCAL' })
const { chain, ctx } = shop

async function reserve(id: string): Promise<string> {
  assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?way=send')
  const [transfer] = (await readView(ctx, id))?.transfers ?? []
  return transfer?.reference ?? assert.fail()
}

const payer = await chain.payer()
await chain.fund(payer.address, { lamports: 1_000_000_000n })
const [signed, sent] = [await shop.create(), await shop.create()]
assert.equal((await shop.pay(signed, await shop.sign(signed, payer))).statusCode, 200)
const reference = await reserve(sent)
await chain.rpc('sendTransaction', [
  await transferWire(chain, payer, svmPayTo, 1_000_000n, [reference]),
  { encoding: 'base64', preflightCommitment: 'processed' },
])
await until('both are final', async () =>
  [await shop.read(signed), await shop.read(sent)].every(({ payment }) => payment?.finality === 'finalized'),
)
const paid = await ctx.db.query<{ transaction_hash: string; nonce: string | null }>(
  'select transaction_hash, nonce from credits',
)
assert.equal(paid.length, 2)
await ageAndDelete(shop, [signed, sent])
const countKnown = async () => {
  const [row] = await ctx.db.query<{ count: number }>(
    `select ((select count(*) from credits where transaction_hash = any($1))
       + (select count(*) from authorizations where nonce = any($2)))::integer as count`,
    [paid.map(({ transaction_hash }) => transaction_hash), paid.map(({ nonce }) => nonce)],
  )
  return row?.count
}

test('a transaction that is found by its reference once more pays nothing, and without its key it would', async () => {
  const next = await shop.create()
  const own = await reserve(next)
  // As if the reference had been given twice.
  await ctx.db.query('update reserved_amounts set reference = $2, looked_at = null where reference = $1', [
    own,
    reference,
  ])
  const looked = async (since: Date | null) => {
    const [row] = await ctx.db.query<{ looked_at: Date | null }>(
      'select looked_at from reserved_amounts where reference = $1',
      [reference],
    )
    return row?.looked_at && (since === null || row.looked_at > since) ? row.looked_at : null
  }
  let at: Date | null = null
  // Once it is taken up again, the lookup before has ended.
  for (let looks = 0; looks < 2; looks++)
    await until('it is looked for', async () => {
      const next = await looked(at)
      if (next) at = next
      return next !== null
    })
  assert.equal((await shop.read(next)).status, 'OPEN')
  assert.equal(await countKnown(), 0)
  await ctx.db.query('delete from kept_credits')
  await until('it would pay', async () => (await shop.read(next)).status === 'COMPLETED')
})

test('a settler’s transaction for a deleted checkout is not recorded again after a restore', async () => {
  await shop.stopWork()
  await startReconciling(ctx, listConnected(openRails(ctx)))
  const svm = openSvmChain(chain.network, nodesOf(ctx.config, chain.network.id), ctx.now)
  const addresses = await listSettlerAddresses(ctx.db, chain.network.caip2)
  await recoverSent(ctx, svm, { addresses, reported: new Set() }, new Date())
  const nonces = paid.flatMap(({ nonce }) => nonce ?? [])
  assert.equal(nonces.length, 1)
  assert.deepEqual(
    await ctx.db.query('select 1 as one from authorizations where nonce = any($1)', [nonces]),
    [],
  )
})
