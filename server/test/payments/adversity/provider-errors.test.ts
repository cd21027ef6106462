import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { RpcAnswerError, RpcUnavailableError } from '../../../src/chains/rpc.ts'
import { buryDead } from '../../../src/payments/evm/bury-dead.ts'
import type { Rails } from '../../../src/payments/rail.ts'
import { openRails } from '../../../src/payments/rails.ts'
import { openReadiness } from '../../../src/payments/settlers/readiness.ts'
import { Problem } from '../../../src/problems.ts'
import { createRefund } from '../../../src/refunds/create.ts'
import { readRefund } from '../../../src/refunds/read.ts'
import { prepareRefund, signRefund } from '../../../src/refunds/sign.ts'
import { callErrors, falseRevert, requestErrors } from '../../chains/support/errors.ts'
import { openProvider, type Provider } from '../../chains/support/provider.ts'
import { signTyped, walletKey } from '../../refunds/support/refunding.ts'
import { type Call, seededRandom } from '../../support/faulty-node.ts'
import { openCount, runs } from '../../support/full.ts'
import { openShop, type Shop, type SvmShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { openDriven } from './driven.ts'
import { checkInvariants } from './invariants.ts'
import { print } from './size.ts'

/**
 * Two providers, of which one or both answer with errors in one place on a payment's way, while payers pay and repeat
 * what they sent until they are told how it ended. Then the providers work again.
 */
const { seed, numRuns: errorsWanted } = runs(40, 1_000)
const isFull = process.env.FULL === '1'
const random = seededRandom(seed)
const oneOf = <One>(list: readonly One[]): One => list[Math.floor(random() * list.length)] ?? assert.fail()
/** Errors in one round, and of the payers in it. */
const errorsPerRound = isFull ? 60 : 12
const payersPerRound = isFull ? 4 : 2
/** A refund takes about as long as the payments of two rounds. */
const refundEvery = isFull ? 1 : 4
/** A payer repeats a payment this soon: sooner than it is asked to, so that it meets more of the errors. */
const repeatMs = 400

const member = { type: 'member', id: 'mem_1', name: 'Ada' } as const

type Place = readonly [string, (call: Call) => boolean]
const ofMethod = (...methods: string[]): Place => [
  methods.join(' '),
  ({ method }) => methods.includes(method),
]
const ofCall = (
  name: string,
  isMeant: (transaction: { to?: string; gas?: string }, at: unknown) => boolean,
): Place => [
  name,
  ({ method, params: [transaction, at] }) => method === 'eth_call' && isMeant(transaction as object, at),
]

const evmPlaces: readonly Place[] = [
  ofCall('state of payers', ({ to }, at) => to !== undefined && typeof at === 'string'),
  ofCall('code of payers', ({ to }) => to === undefined),
  ofCall('a contract wallet’s transfer', ({ gas }) => gas === '0x30d40'),
  ofCall('state at a block', (_, at) => typeof at === 'object'),
  ofMethod('eth_getBalance', 'eth_getTransactionCount'),
  ofMethod('eth_sendRawTransaction'),
  ofMethod('eth_getBlockByNumber', 'eth_blockNumber'),
  ofMethod('eth_getLogs'),
  ofMethod('eth_getTransactionReceipt'),
  ofMethod('eth_chainId'),
  ['everything', () => true],
]
const svmPlaces: readonly Place[] = [
  ofMethod('simulateTransaction'),
  ofMethod('getAccountInfo', 'getMultipleAccounts'),
  ofMethod('getLatestBlockhash', 'getBalance'),
  ofMethod('sendTransaction'),
  ofMethod('getSignatureStatuses'),
  ofMethod('getTransaction'),
  ofMethod('getEpochInfo', 'getBlockTime'),
  ofMethod('getGenesisHash'),
  ['everything', () => true],
]

type Storm = { readonly counts: Map<string, number>; given: number; left: number }

/** Has these providers answer with errors in one place, to single calls or whole requests, until so many were given. */
function begin(
  providers: readonly Provider[],
  [place, isMeant]: Place,
  storm: Storm,
  isWhole: boolean,
): void {
  const isOne = providers.length === 1
  const share = oneOf([0.7, 1])
  const note = (what: string) => {
    storm.left--
    storm.given++
    for (const key of [what, place]) storm.counts.set(key, (storm.counts.get(key) ?? 0) + 1)
  }
  const isHit = (call: Call) => storm.left > 0 && isMeant(call) && random() < share
  const kinds = Object.keys(isWhole ? requestErrors : callErrors)
  for (const provider of providers) {
    provider.answerRequest = (calls) => {
      if (!isWhole || !calls.some(isHit)) return null
      const kind = oneOf(kinds)
      note(kind)
      return requestErrors[kind] ?? null
    }
    provider.answerCall = (call) => {
      if (isWhole || !isHit(call)) return null
      // On the word of both, a payment is refused: a payer's own code looks no different.
      if (isOne && call.method === 'eth_call' && random() < 0.2) {
        note('a false revert')
        return falseRevert
      }
      const kind = oneOf(kinds)
      note(kind)
      return callErrors[kind] ?? null
    }
  }
}

type Signed = { readonly id: string; readonly header: string }

/** Runs something that asks nodes until one of them answers. Nothing else may go wrong. */
async function untilAvailable<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      assert(error instanceof Problem && error.code === 'unavailable', `${error}`)
      await wait(repeatMs)
    }
  }
}

/** Refunds a payment that is final, if there is one, and waits until the money is back. */
async function refundOne({ ctx, store }: Shop, rails: Rails): Promise<boolean> {
  const [final] = await ctx.db.query<{ id: string }>(
    `select payment_id as id from credits c where finalized_at is not null and checkout_id is not null
       and not exists (select 1 from refunds r where r.payment_id = c.payment_id) limit 1`,
  )
  if (!final) return false
  const asked = { paymentId: final.id, amount: null, recipient: null, reason: null, idempotency: null }
  const requester = { actor: member, mayChooseRecipient: true }
  const { id } = await untilAvailable(() =>
    createRefund(ctx, store.id, requester, { ...asked, way: 'signed' }, ctx.now()),
  )
  const prepared = await untilAvailable(() => prepareRefund(ctx, rails, store.id, id))
  const signature = await signTyped(prepared, walletKey)
  await untilAvailable(() => signRefund(ctx, rails, store.id, id, { signature }))
  await until('the refund arrives', async () => (await readRefund(ctx, store.id, id)).status === 'COMPLETED')
  return true
}

/** Presents a payment until it is known how it ended. Nobody may hear that it was refused. */
async function pay({ pay }: Pick<Shop, 'pay'>, { id, header }: Signed): Promise<void> {
  for (;;) {
    const { statusCode, body } = await pay(id, header)
    if (statusCode === 200) return
    assert([202, 503].includes(statusCode), `${statusCode}: ${body}`)
    await wait(repeatMs)
  }
}

type Side = {
  readonly shop: Shop | SvmShop
  readonly providers: readonly Provider[]
  readonly places: readonly Place[]
  /** A payment of somebody who can pay once. */
  readonly sign: (i: number) => Promise<Signed>
  /** Runs beside the payments. */
  readonly beside?: () => Promise<void>
}

async function rage({ shop, providers, places, sign, beside }: Side, wanted: number): Promise<Storm> {
  const readiness = openReadiness(shop.ctx, openRails(shop.ctx))
  const storm: Storm = { counts: new Map(), given: 0, left: 0 }
  let paid = 0
  for (let round = 0; storm.given < wanted || round < places.length; round++) {
    const place = places[round % places.length] ?? assert.fail()
    const signed: Signed[] = []
    for (let i = 0; i < payersPerRound; i++) signed.push(await sign(i))
    storm.left = errorsPerRound
    // The first time, a contract wallet’s transfer meets errors of both, call by call: they are what looks most like a refusal.
    const isFirst = round < places.length
    const isOfBoth = isFirst ? round % 3 !== 1 : random() < 0.5
    const isWhole = isFirst ? round % 2 === 1 : random() < 0.4
    begin(isOfBoth ? providers : [oneOf(providers)], place, storm, isWhole)
    const before = storm.given
    // Some places are asked in only once a payment is there.
    await Promise.all([...signed.map((one) => pay(shop, one)), beside?.()])
    paid += signed.length
    for (const provider of providers) {
      provider.answerCall = () => null
      provider.answerRequest = () => null
    }
    await until(
      `payments are accepted after ${storm.given - before} errors in ${place[0]}`,
      async () => (await readiness(shop.chain.network.caip2)) === null,
    )
  }
  if (isFull) {
    const all = [...places.map(([name]) => name), ...Object.keys(callErrors), ...Object.keys(requestErrors)]
    assert.deepEqual(
      all.filter((name) => !storm.counts.has(name)),
      [],
      'each error, and an error in each place',
    )
  }
  const refused = await shop.ctx.db.query(
    `select reason from authorizations where state in ('rejected', 'dead') and refund_id is null`,
  )
  assert.deepEqual(refused, [])
  const [row] = await shop.ctx.db.query<{ completed: number }>(
    `select count(*)::int as completed from checkouts where status = 'COMPLETED'`,
  )
  assert((row?.completed ?? 0) >= paid)
  return storm
}

// They share nothing but the processor.
describe('errors of providers', { concurrency: 3 }, () => {
  test('whatever two providers of an EVM chain answer, nobody is refused, and every payment and refund completes', async (t) => {
    const count = openCount('errors')
    const providers = [await openProvider(''), await openProvider('')]
    const shop = await openShop({ network: 'BASE_MAINNET', blockTimeSeconds: 0.25, nodes: providers })
    const sign = async (i: number): Promise<Signed> => {
      const payer = await shop.fund(2_000_000n)
      const from = i === 0 ? await shop.chain.deploy('OwnedWallet', [payer.address]) : payer.address
      if (i === 0) await shop.chain.mint(from, 2_000_000n)
      const id = await shop.create()
      return { id, header: await shop.sign(id, payer, { from }) }
    }
    await pay(shop, await sign(1))
    await shop.ctx.db.query('update wallets set proven_at = clock()')
    const rails = openRails(shop.ctx)
    let rounds = 0
    const beside = async () => {
      if (rounds++ % refundEvery === 0 && (await refundOne(shop, rails))) count.add('refunds')
    }
    const storm = await rage({ shop, providers, places: evmPlaces, sign, beside }, errorsWanted)
    count.add('errors', storm.given)
    count.say(t)
    t.diagnostic(JSON.stringify(Object.fromEntries(storm.counts)))
    t.diagnostic(print(await checkInvariants({ db: shop.ctx.db, chain: shop.chain })))
  })

  test('whatever two providers of Solana answer, nobody is refused, and every payment completes', async (t) => {
    const count = openCount('errors')
    const providers = [await openProvider(''), await openProvider('')]
    const shop = await openShop({ network: 'SOLANA_MAINNET', slotMs: 400, nodes: providers })
    await shop.untilReady()
    const sign = async (): Promise<Signed> => {
      const id = await shop.create()
      return { id, header: await shop.sign(id, await shop.chain.payer()) }
    }
    const before = await shop.received()
    const storm = await rage({ shop, providers, places: svmPlaces, sign }, errorsWanted)
    count.add('errors', storm.given)
    count.say(t)
    t.diagnostic(JSON.stringify(Object.fromEntries(storm.counts)))
    const [row] = await shop.ctx.db.query<{ paid: string }>('select sum(amount) as paid from credits')
    assert.equal((await shop.received()) - before, BigInt(row?.paid ?? 0))
  })

  test('whatever two providers answer about a payment that never landed, it is given up by proof alone, and its payer pays', async (t) => {
    const count = openCount('errors')
    const providers = [await openProvider(''), await openProvider('')]
    const shop = await openDriven({ network: 'BASE_MAINNET', nodes: providers })
    const { chain, ctx, engine } = shop
    const heal = () => {
      for (const provider of providers) {
        provider.answerRequest = () => null
        provider.answerCall = () => null
      }
    }
    const [payment = assert.fail()] = await shop.prepare(1, undefined, { validSeconds: 60 })
    for (const provider of providers)
      provider.answerCall = ({ method }) =>
        method === 'eth_sendRawTransaction' ? { code: -32603, message: 'internal error' } : null
    await shop.present([payment])
    await shop.send()
    heal()
    await chain.pass(90)
    await shop.mine()
    await chain.pass(chain.network.negativeSeconds + 1)
    await shop.follow()

    const isProof: Place[1] = ({ method, params: [filter, at] }) =>
      method === 'eth_getLogs'
        ? 'fromBlock' in (filter as object)
        : method === 'eth_call' && typeof at === 'object'
    const kinds = [...Object.entries(callErrors), ...Object.entries(requestErrors)]
      .toSorted(() => random() - 0.5)
      .slice(0, isFull ? undefined : 6)
    for (const [, error] of [['a false revert', falseRevert] as const, ...kinds])
      for (const some of [providers, [oneOf(providers)]]) {
        for (const provider of some) {
          provider.answerRequest = (calls) => {
            if (!calls.some(isProof) || typeof error === 'string' || !('status' in error)) return null
            count.add()
            return error
          }
          provider.answerCall = (call) => {
            if (!isProof(call) || (typeof error !== 'string' && 'status' in error)) return null
            count.add()
            return error
          }
        }
        await buryDead(ctx, engine.chain, engine.look).catch((thrown) =>
          assert(thrown instanceof RpcAnswerError || thrown instanceof RpcUnavailableError, thrown),
        )
        heal()
        assert.equal((await shop.read(payment.checkoutId)).status, 'PROCESSING')
      }
    assert((count.counts.errors ?? 0) >= kinds.length)
    count.say(t)

    await shop.bury()
    const answer = await shop.pay(payment)
    assert.equal(answer.json().error, 'authorization_expired', answer.body)
    const readiness = openReadiness(ctx, openRails(ctx))
    await until('the settler is past the transaction that nobody took', async () => {
      await shop.idle()
      return (await readiness(chain.network.caip2)) === null
    })
    const again = await shop.prepareOne(payment.payer, { rivalOf: payment })
    const [paying] = await shop.present([again])
    await until('the second signature pays', async () => {
      await shop.idle()
      return (await shop.read(payment.checkoutId)).status === 'COMPLETED'
    })
    assert.equal((await paying)?.statusCode, 200)
    assert.equal(await chain.balance(payment.payer.address), 1_000_000n)
  })
})
