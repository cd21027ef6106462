/** One lying provider of two, in everything that is not a payment by signature. */
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { readFollower } from '../../../src/chains/rows.ts'
import { RpcUnavailableError } from '../../../src/chains/rpc.ts'
import { readView } from '../../../src/checkouts/view.ts'
import { listConnected, openRails } from '../../../src/payments/rails.ts'
import { startReconciling } from '../../../src/payments/reconcile.ts'
import { transferWire } from '../../support/chain/svm-payment.ts'
import { svmPayTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { ledTo, post } from '../transfers/support/hand-transfers.ts'
import {
  assertWorks,
  creditsOf,
  findObstacle,
  forge,
  honest,
  openLying,
  payAnother,
  payInVain,
  untilLooked,
  untilRefused,
} from './support/liars.ts'

const shop = await openLying(2)
const { chain, liar, ctx } = shop
const { caip2 } = chain.network

beforeEach(() => {
  liar.lie = honest
  liar.heal()
})

async function transferTo(id: string): Promise<{ reference: string; wire: string }> {
  assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?way=send')
  const [transfer] = (await readView(ctx, id))?.transfers ?? []
  const reference = transfer?.reference ?? assert.fail()
  const payer = await chain.payer()
  await chain.fund(payer.address, { lamports: 1_000_000_000n })
  return { reference, wire: await transferWire(chain, payer, svmPayTo, 1_000_000n, [reference], chain.mint) }
}

test('a transfer by reference that one of two forges is not credited', async () => {
  const id = await shop.create()
  const { reference, wire } = await transferTo(id)
  const { hash, lie } = await forge(shop, wire, '1000000')
  liar.lie = (call, result) =>
    call.method === 'getSignaturesForAddress' && call.params[0] === reference
      ? [{ signature: hash, err: null }]
      : lie(call, result)
  await untilLooked(shop, 'getTransaction', 2)
  assert.deepEqual(await creditsOf(shop, id), [])
  assert.equal((await shop.read(id)).status, 'OPEN')
})

/** Sends a transfer of the same amount that names these references, and returns its hash once it has arrived. */
async function transferElsewhere(references: readonly string[]): Promise<string> {
  const payer = await chain.payer()
  await chain.fund(payer.address, { lamports: 1_000_000_000n })
  const wire = await transferWire(chain, payer, svmPayTo, 1_000_000n, references, chain.mint)
  const before = await shop.received()
  const settings = { encoding: 'base64', preflightCommitment: 'processed' }
  const hash = await chain.rpc<string>('sendTransaction', [wire, settings])
  await until('the money has arrived', async () => (await shop.received()) > before)
  return hash
}

test('a transfer of somebody else that one of two lists for a reference pays nothing', async () => {
  const hash = await transferElsewhere([])
  chain.mine(10)
  const id = await shop.create()
  const { reference } = await transferTo(id)
  liar.lie = ({ method, params }, result) =>
    method === 'getSignaturesForAddress' && params[0] === reference
      ? [{ signature: hash, err: null }]
      : result
  await untilLooked(shop, 'getSignaturesForAddress', 2)
  assert.deepEqual(await creditsOf(shop, id), [])
  assert.equal((await shop.read(id)).status, 'OPEN')
})

test('a transfer that one of two also lists for other references pays the checkout whose reference it names', async () => {
  const ids = [await shop.create(), await shop.create(), await shop.create()] as const
  const references: string[] = []
  for (const id of ids) references.push((await transferTo(id)).reference)
  const hashes: string[] = []
  liar.lie = ({ method, params }, result) =>
    method === 'getSignaturesForAddress' && references.includes(String(params[0]))
      ? hashes.map((signature) => ({ signature, err: null }))
      : result
  // Nobody reads transactions until the liar has a list to tell.
  const release = liar.hold('getSignaturesForAddress')
  hashes.push(await transferElsewhere([references[1] ?? assert.fail()]))
  release()
  await until('it is credited', async () => (await shop.read(ids[1])).status === 'COMPLETED')
  assert.deepEqual([(await shop.read(ids[0])).status, (await shop.read(ids[2])).status], ['OPEN', 'OPEN'])
})

test('a transfer by reference that one of two hides is credited when the lie ends', async () => {
  const id = await shop.create()
  const { wire } = await transferTo(id)
  const before = await shop.received()
  liar.lie = ({ method }, result) => {
    if (method === 'getSignaturesForAddress') return []
    return method === 'getTransaction' ? null : result
  }
  await chain.rpc('sendTransaction', [wire, { encoding: 'base64', preflightCommitment: 'processed' }])
  await until('the money has arrived', async () => (await shop.received()) > before)
  await untilLooked(shop, 'getTransaction', 2)
  assert.equal((await shop.read(id)).status, 'OPEN')
  liar.lie = honest
  await until('it is credited', async () => (await shop.read(id)).status === 'COMPLETED')
})

test('after a restore, payments are refused while one of two hides what a settler sent', async () => {
  await assertWorks(shop)
  liar.lie = ({ method }, result) => (method === 'getSignaturesForAddress' ? [] : result)
  await startReconciling(ctx, listConnected(openRails(ctx)))
  await ctx.db.query("update restores set started_at = started_at - interval '1 hour'")
  await untilLooked(shop)
  assert.equal(await findObstacle(shop), 'The database was restored and is being compared with the chain.')
  liar.lie = honest
  await until('the restore is over', async () => (await findObstacle(shop)) === null)
  await assertWorks(shop)
})

test('while one of two is down, payments are refused before they are claimed', async () => {
  liar.fail('refused')
  assert.equal(await payAnother(shop), 503)
  liar.heal()
  await assertWorks(shop)
})

test('a false block time of one of two does not move the time up to which the chain was watched', async () => {
  liar.lie = ({ method }, result) => (method === 'getBlockTime' ? (result as number) + 86_400 : result)
  // The time is asked for every few minutes, and while a checkout waits for it to expire.
  const id = await shop.create()
  await transferTo(id)
  await ctx.db.query('update checkouts set expires_at = clock() where id = $1', [id])
  await untilRefused(shop)
  const follower = await readFollower(ctx.db, caip2)
  assert(follower?.headTime && follower.headTime.getTime() < Date.now() + 60_000)
  assert.equal((await shop.read(id)).status, 'OPEN')
  liar.lie = honest
  await until('it has expired', async () => (await shop.read(id)).status === 'EXPIRED')
  await assertWorks(shop)
})

test('while two contradict each other about the height, a payment that lands is not credited', async () => {
  const id = await shop.create()
  const { paying, bytes } = await payInVain(shop, id, await chain.payer())
  liar.lie = ({ method }, result) => {
    if (method !== 'getEpochInfo') return result
    const { absoluteSlot, blockHeight } = result as { absoluteSlot: number; blockHeight: number }
    return { absoluteSlot: absoluteSlot + 10_000, blockHeight: blockHeight + 10_000 }
  }
  await untilRefused(shop)
  chain.meddle(null)
  const before = await shop.received()
  await chain.rpc('sendTransaction', [bytes, { encoding: 'base64', skipPreflight: true }])
  await until('the money has arrived', async () => (await shop.received()) > before)
  await untilLooked(shop)
  assert.deepEqual(await creditsOf(shop, id), [])
  liar.lie = honest
  assert.equal((await paying).statusCode, 200)
})

test('one of two cannot pass off as lag that it hides payments', async () => {
  liar.lie = ({ method, params: [settings] }, result) => {
    if (method === 'getSignatureStatuses') return { value: (settings as unknown[]).map(() => null) }
    const { commitment } = (settings ?? {}) as { commitment?: string }
    return method === 'getEpochInfo' && commitment === 'finalized'
      ? { ...(result as object), absoluteSlot: 1 }
      : result
  }
  chain.mine(200)
  await untilRefused(shop)
  liar.lie = honest
  await assertWorks(shop)
})

test('a prepared transaction needs two that agree on the height, and one that knows of the money', async () => {
  const payer = await chain.payer()
  const id = await shop.create()
  const [terms = assert.fail()] = (await shop.require(id)).accepts
  const prepare = openRails(ctx).get(caip2)?.verifier.prepare ?? assert.fail()
  liar.lie = ({ method }, result) => (method === 'getAccountInfo' ? { value: null } : result)
  assert('transaction' in (await prepare(terms, payer.address)))
  liar.lie = ({ method }, result) => {
    const { value } = result as { value: object }
    return method === 'getLatestBlockhash' ? { value: { ...value, lastValidBlockHeight: 1_000_000 } } : result
  }
  await assert.rejects(prepare(terms, payer.address), RpcUnavailableError)
})
