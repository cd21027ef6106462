import assert from 'node:assert/strict'
import type { KeyPairSigner } from '@solana/kit'
import { decodeTransaction, toBase58 } from '../../../../src/chains/svm/message.ts'
import { findTokenAccount } from '../../../../src/chains/svm/transfer.ts'
import { openRails } from '../../../../src/payments/rails.ts'
import { openReadiness } from '../../../../src/payments/settlers/readiness.ts'
import { svmHeader } from '../../../support/chain/svm-payment.ts'
import { type Call, type FaultyNode, openFaultyNode } from '../../../support/faulty-node.ts'
import { openShop, type SvmShop, svmPayTo } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

export type Lie = FaultyNode['lie']
export type Lying = SvmShop & { readonly liar: FaultyNode }

/** The service asks the liar first. */
export async function openLying(count: 2 | 3): Promise<Lying> {
  const nodes = await Promise.all(Array.from({ length: count }, () => openFaultyNode('')))
  const [liar = assert.fail()] = nodes
  return { ...(await openShop({ network: 'SOLANA_MAINNET', finalizedAfter: 30, nodes })), liar }
}

export const honest: Lie = (_, result) => result

/** Lets the service look at the chain a few more times. */
export async function untilLooked({ liar }: Lying, method = 'getEpochInfo', times = 6): Promise<void> {
  const before = liar.asked.get(method) ?? 0
  await until('the service has looked', async () => (liar.asked.get(method) ?? 0) >= before + times)
}

export const findObstacle = async ({ ctx, chain }: Lying) =>
  await openReadiness(ctx, openRails(ctx))(chain.network.caip2)

export async function creditsOf({ ctx }: Lying, id: string): Promise<unknown[]> {
  return await ctx.db.query('select 1 as one from credits where checkout_id = $1', [id])
}

export async function doubtsOf({ ctx }: Lying, provider: string): Promise<number> {
  const { values } = await ctx.metrics.contradictions.get()
  return values.find(({ labels }) => labels.provider === provider)?.value ?? 0
}

/** An honest payment during the lie: settled at once, or refused before anything is claimed. */
export async function payAnother(shop: Lying): Promise<number> {
  const id = await shop.create()
  const answer = await shop.pay(id, await shop.sign(id, await shop.chain.payer()))
  if (answer.statusCode === 503) {
    assert.equal(answer.json().code, 'settlement_unavailable')
    assert.equal((await shop.read(id)).status, 'OPEN')
  }
  return answer.statusCode
}

/** Waits until payments are refused with 503, or accepted again. A payer without money finds out and is never claimed. */
async function untilAnswered(shop: Lying, what: string, status: 402 | 503): Promise<void> {
  const id = await shop.create()
  const required = await shop.require(id)
  await until(what, async () => {
    const header = await svmHeader(shop.chain, required, await shop.chain.payer(0n))
    return (await shop.pay(id, header)).statusCode === status
  })
}

export const untilRefused = (shop: Lying) => untilAnswered(shop, 'payments are refused', 503)

/** After the lie, a new payment settles. */
export async function assertWorks(shop: Lying): Promise<void> {
  await untilAnswered(shop, 'payments are accepted', 402)
  assert.equal(await payAnother(shop), 200)
}

type Landed = { slot: number; blockTime: number; meta: { err: unknown; postTokenBalances: unknown[] } }
type Statuses = { value: ({ slot: number; err: unknown } | null)[] }

/** Changes what the liar says about every transaction that landed. */
export function changing(
  change: (status: NonNullable<Statuses['value'][number]>) => object | null,
  changeLanded: (landed: Landed) => object | null,
): Lie {
  return ({ method }, result) => {
    if (method === 'getSignatureStatuses')
      return { value: (result as Statuses).value.map((status) => status && change(status)) }
    return method === 'getTransaction' && result !== null ? changeLanded(result as Landed) : result
  }
}

/** Pays with a transaction that is sent and that no block includes, until the chain is no longer meddled with. */
export async function payInVain(shop: SvmShop, id: string, payer: KeyPairSigner) {
  const { chain } = shop
  const header = await shop.sign(id, payer)
  const sent = Promise.withResolvers<string>()
  chain.meddle(({ method, params }) => {
    if (method === 'sendTransaction') sent.resolve(String(params[0]))
    return method === 'sendTransaction' ? 'drop' : null
  })
  const paying = shop.pay(id, header)
  const answered = paying.then(({ body }): string => assert.fail(`answered before it was sent: ${body}`))
  return { paying, bytes: await Promise.race([sent.promise, answered]) }
}

/** A lie about bytes that are in no block: that they paid the store. */
export async function forge(shop: Lying, bytes: string, units: string) {
  const transaction = decodeTransaction(Buffer.from(bytes, 'base64')) ?? assert.fail()
  const hash = toBase58(transaction.signatures[0] ?? assert.fail())
  const destination = await findTokenAccount(svmPayTo, shop.chain.mint)
  const slot = shop.chain.slot()
  const post = { accountIndex: transaction.accounts.indexOf(destination), uiTokenAmount: { amount: units } }
  const landed = {
    slot,
    blockTime: Math.floor(Date.now() / 1_000),
    transaction: [bytes, 'base64'],
    meta: { err: null, preTokenBalances: [], postTokenBalances: [post] },
  }
  const status = { slot, err: null, confirmationStatus: 'finalized' }
  const lie = ({ method, params }: Call, result: unknown) => {
    if (method === 'getTransaction' && params[0] === hash) return landed
    if (method !== 'getSignatureStatuses') return result
    const hashes = params[0] as readonly string[]
    return { value: (result as Statuses).value.map((one, i) => (hashes[i] === hash ? status : one)) }
  }
  return { hash, lie }
}
