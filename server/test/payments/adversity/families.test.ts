/** A store with one wallet per family: its checkouts offer both and are paid once, by whichever comes first. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PaymentRequired } from '@farthing/sdk'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import { openRails } from '../../../src/payments/rails.ts'
import { openReadiness } from '../../../src/payments/settlers/readiness.ts'
import { insertSettler } from '../../../src/payments/settlers/rows.ts'
import { registerWallet } from '../../../src/stores/wallets.ts'
import { startWorker } from '../../../src/worker.ts'
import { makeStore, openTestApp } from '../../support/app.ts'
import { atEnd } from '../../support/at-end.ts'
import { fundedKey } from '../../support/chain/evm.ts'
import { newPayer, paymentHeader } from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'
import { newSettler } from '../../support/chain/svm.ts'
import { svmHeader } from '../../support/chain/svm-payment.ts'
import { operator } from '../../support/operator.ts'
import { payTo, svmPayTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { print, trials } from './size.ts'

const evm = await openChain({ blockTimeSeconds: 1 })
const svm = await openChain({ network: 'SOLANA_LOCAL', slotMs: 400 })
const farthing = await openTestApp({
  NETWORKS: 'LOCAL,SOLANA_LOCAL',
  LOCAL_RPC_URLS: evm.url,
  SOLANA_LOCAL_RPC_URLS: svm.url,
  ECB_RATES_URL: '',
  EXCHANGE_RATES_URL: '',
})
const { ctx } = farthing
const signers = [openSigner(fundedKey(1)), await newSettler(svm)]
await insertSettler(ctx.db, evm.network.caip2, signers[0]?.address ?? '', 0)
await insertSettler(ctx.db, svm.network.caip2, signers[1]?.address ?? '', 0)
await svm.fund(svmPayTo, { token: [svm.mint, 0n] })
const { key, store } = await makeStore(ctx, { mode: 'test', evmWallet: payTo })
const wallet = { walletAddress: svmPayTo, custodialType: 'NON_CUSTODIAL' } as const
await registerWallet(ctx, store.id, operator, { family: 'SOLANA', ...wallet }, ctx.now())
const worker = startWorker(ctx, signers)
atEnd(() => worker.stop())
for (const { network } of [evm, svm])
  await until(
    'payments can be settled',
    async () => (await openReadiness(ctx, openRails(ctx))(network.caip2)) === null,
  )

let requests = 0
const ask = (id: string, header?: string) =>
  farthing.request({
    method: 'POST',
    url: `/api/v1/checkouts/${id}`,
    remoteAddress: `10.0.${(++requests >> 8) % 256}.${requests % 256}`,
    ...(header !== undefined && { headers: { 'payment-signature': header } }),
  })

/**
 * Presents a payment, and again whenever the answer is 503, as its advice says: a busy machine can pause for longer than
 * a lane may be silent.
 */
async function pay(id: string, header: string) {
  const last: Awaited<ReturnType<typeof ask>>[] = []
  await until('a verdict on the payment', async () => {
    last[0] = await ask(id, header)
    return last[0].statusCode !== 503
  })
  const [answer] = last
  assert(answer)
  return answer
}
const payers = { evm: newPayer(), svm: await svm.payer(1_000_000_000_000n) }
await evm.mint(payers.evm.address, 1_000_000_000_000n)

/** Creates a checkout and one payment per family for it. */
async function order() {
  const made = await farthing.request({
    method: 'POST',
    url: '/api/v1/checkouts',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    payload: { orderId: 'order-1', priceAmount: '1.00', priceCurrency: 'USD' },
  })
  assert.equal(made.statusCode, 201, made.body)
  const { id } = made.json()
  const required: PaymentRequired = (await ask(id)).json()
  assert.deepEqual(
    required.accepts.map(({ network }) => network),
    [evm.network.caip2, svm.network.caip2],
  )
  return {
    id: id as string,
    evm: await paymentHeader(required, payers.evm.key),
    svm: await svmHeader(svm, required, payers.svm),
  }
}

const balances = async () => ({
  evm: await evm.balance(payTo),
  svm: (await svm.balance(svmPayTo, svm.mint)) ?? 0n,
})

test('the first payment of either family pays; the other gets 409 and keeps its money', async () => {
  for (const [first, second] of [
    ['evm', 'svm'],
    ['svm', 'evm'],
  ] as const) {
    const before = await balances()
    const made = await order()
    const paid = await pay(made.id, made[first])
    assert.equal(paid.statusCode, 200, paid.body)
    const late = await pay(made.id, made[second])
    assert.deepEqual([late.statusCode, late.json().code], [409, 'already_paid'])
    const after = await balances()
    assert.deepEqual([after[first] - before[first], after[second] - before[second]], [1_000_000n, 0n])
  }
})

/** Resolves at the Solana node's next simulation request. */
function simulated(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  waiting.push(resolve)
  return promise
}
const waiting: (() => void)[] = []
svm.meddle(({ method }) => {
  if (method === 'simulateTransaction') for (const resolve of waiting.splice(0)) resolve()
  return null
})

test('if both families pay at once, one pays, the other is refused, and the store gets the price once', async (t) => {
  const count = trials(30, 500)
  const before = await balances()
  const tally: Record<string, number> = {}
  for (let done = 0; done < count; done += 10) {
    await Promise.all(
      Array.from({ length: Math.min(10, count - done) }, async (_, i) => {
        const made = await order()
        const bySvm = pay(made.id, made.svm)
        // Verification takes longer on Solana, so every other time the EVM payment waits until Solana simulates.
        if (i % 2 === 1) await simulated()
        const answers = await Promise.all([pay(made.id, made.evm), bySvm])
        const statuses = answers.map(({ statusCode }) => statusCode).sort()
        const said = answers.map((answer) => `${answer.statusCode} ${answer.json().code ?? ''}`).sort()
        tally[said.join(', ')] = (tally[said.join(', ')] ?? 0) + 1
        assert.deepEqual(statuses, [200, 409], said.join(', '))
      }),
    )
  }
  await until('one live credit per checkout', async () => {
    const [row] = await ctx.db.query<{ count: number }>(
      'select count(*)::integer as count from credits where orphaned_at is null',
    )
    return row?.count === count + 2
  })
  const after = await balances()
  t.diagnostic(
    print({
      count,
      evm: (after.evm - before.evm) / 1_000_000n,
      svm: (after.svm - before.svm) / 1_000_000n,
      tally,
    }),
  )
  assert.equal(after.evm - before.evm + after.svm - before.svm, BigInt(count) * 1_000_000n)
  assert(after.evm > before.evm && after.svm > before.svm, 'one family won every time')
  const doubled = await ctx.db.query(
    'select checkout_id from credits where orphaned_at is null group by checkout_id having count(*) > 1',
  )
  assert.deepEqual(doubled, [])
})
