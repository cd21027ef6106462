/** Refunds of payments on Solana in the console, which has a database role of its own and sees one store at a time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyPairSignerFromPrivateKeyBytes } from '@solana/kit'
import { insertSettler } from '../../../src/payments/settlers/rows.ts'
import { registerWallet } from '../../../src/stores/wallets.ts'
import { signWith } from '../../payments/svm/support/refunds.ts'
import { newSettler, openSvm } from '../../support/chain/svm.ts'
import { svmHeader } from '../../support/chain/svm-payment.ts'
import { openClient, startWork, untilReady } from '../../support/client.ts'
import { operator } from '../../support/operator.ts'
import { until } from '../../support/until.ts'
import { enrolWith, openConsole, openInvitedStore } from './support/console.ts'

test('an owner refunds half of a payment, then the rest, and what is prepared twice is the same', async () => {
  const { chain, wallet, payer, browser, base, paymentId, statusOf } = await openPaidShop()
  const before = (await chain.balance(payer.address, chain.mint)) ?? 0n
  for (const key of ['a', 'b']) {
    const fields = { key: key.repeat(26), amount: '0.50', reason: '', way: 'signed' }
    const asked = await browser.post(`${base}/payments/${paymentId}/refund`, fields)
    assert.equal(asked.statusCode, 303, asked.body)
    const refund = String(asked.headers.location)
    const prepare = async () => (await browser.done(`${refund}/prepare`)).json().transaction as string
    const prepared = await prepare()
    assert.equal(await prepare(), prepared)
    await browser.done(`${refund}/signature`, { transaction: await signWith(wallet, prepared) })
    const id = refund.split('/').at(-1) ?? ''
    await until('the refund is COMPLETED', async () => (await statusOf(id)) === 'COMPLETED')
  }
  assert.equal(await chain.balance(payer.address, chain.mint), before + 1_000_000n)
})

/** A store that is paid 1.00, with its work going on, and the payment final. */
async function openPaidShop() {
  const chain = await openSvm({ network: 'SOLANA_LOCAL' })
  const { caip2, id, mode, witnessesMin } = chain.network
  const urls = Array.from({ length: witnessesMin }, (_, i) => `node-${i + 1}=${chain.url}`).join(',')
  const console = await openConsole({
    settings: { NETWORKS: id, [`${id}_RPC_URLS`]: urls, ECB_RATES_URL: '', EXCHANGE_RATES_URL: '' },
  })
  const { farthing } = console
  const { ctx } = farthing
  const settler = await newSettler(chain)
  await insertSettler(ctx.db, caip2, settler.address, 0)
  const wallet = await createKeyPairSignerFromPrivateKeyBytes(crypto.getRandomValues(new Uint8Array(32)))
  await chain.fund(wallet.address, { token: [chain.mint, 0n] })
  const { store, token } = await openInvitedStore(console, { mode, evmWallet: null })
  const registered = { walletAddress: wallet.address, custodialType: 'NON_CUSTODIAL' } as const
  await registerWallet(ctx, store.store.id, operator, { family: 'SOLANA', ...registered }, ctx.now())
  await ctx.db.query('update wallets set proven_at = clock() where store_id = $1', [store.id])
  startWork(farthing, [settler])
  await untilReady(farthing, caip2)
  const payer = await chain.payer()
  const client = openClient(farthing, store.key)
  const checkoutId = await client.create()
  const paid = await client.pay(checkoutId, await svmHeader(chain, await client.require(checkoutId), payer))
  assert.equal(paid.statusCode, 200, paid.body)
  await until(
    'the payment is final',
    async () => (await client.read(checkoutId)).payment.finality === 'finalized',
  )
  const [credit] = await ctx.db.query<{ id: string }>(
    'select payment_id as id from credits where checkout_id = $1',
    [checkoutId],
  )
  const statusOf = async (refundId: string): Promise<string> =>
    (await store.call('GET', `/api/v1/refunds/${refundId}`)).json().status
  const { browser } = await enrolWith(console, token)
  const paymentId = credit?.id ?? assert.fail()
  return { chain, wallet, payer, browser, base: `/stores/${store.id}`, paymentId, statusOf }
}
