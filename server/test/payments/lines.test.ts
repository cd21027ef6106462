/** What the operator reads in the log about a payment: one line per step, after it is committed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reject } from '../../src/payments/end.ts'
import { openMeasure } from '../../src/payments/measure.ts'
import { listConnected, openRails } from '../../src/payments/rails.ts'
import { openShop, payTo } from '../support/shop.ts'
import { until } from '../support/until.ts'
import { openDriven, type Prepared } from './adversity/driven.ts'

const shop = await openDriven({ settings: { LOG_LEVEL: 'info' } })
const { client, network } = shop.chain
const [{ address } = assert.fail()] = shop.signers
const linesOf = (checkoutId: string) =>
  shop.logged.filter((line) => JSON.stringify(line).includes(checkoutId))
const measured = async (name: string) =>
  (await shop.ctx.metrics.registry.getSingleMetric(name)?.get())?.values ?? []
const countOf = async (outcome: string) =>
  (await measured('farthing_payments_total')).find(({ labels }) => labels.outcome === outcome)?.value ?? 0

const secrets = ({ signed, header }: Prepared) => [signed.signature, signed.signature.slice(2), header]

test('the log tells each step of a payment in one line, with its ids, and counts and times it', async () => {
  const payments = await shop.prepare(2)
  const answers = await shop.present(payments)
  await shop.send()
  await shop.mine()
  const [answer = assert.fail()] = await Promise.all(answers)
  assert.equal(answer.statusCode, 200)
  const transaction = shop.settlementOf(answer).transaction
  await until('safe', async () => {
    await shop.mine(8)
    return linesOf(payments[0]?.checkoutId ?? '').length >= 4
  })
  await shop.mine(8)
  for (const payment of payments) {
    const { checkoutId } = payment
    const lines = linesOf(checkoutId)
    const paymentId = lines[2]?.paymentId
    assert.match(String(paymentId), /^pay_/)
    const [claimed, sent, credited, safe, ...rest] = lines.map(({ time, block, ...line }) => line)
    assert.deepEqual(claimed, {
      level: 'info',
      checkoutId,
      network: 'LOCAL',
      amount: '1000000',
      msg: 'payment claimed: it is sent next',
    })
    assert.deepEqual(
      { ...sent, checkoutIds: new Set(sent?.checkoutIds as string[]), nonce: typeof sent?.nonce },
      {
        level: 'info',
        network: 'LOCAL',
        settler: address,
        nonce: 'number',
        txHash: transaction,
        payments: 2,
        checkoutIds: new Set(payments.map((one) => one.checkoutId)),
        msg: 'payments signed in one transaction: it is broadcast next',
      },
    )
    const fields = { level: 'info', checkoutId, paymentId, network: 'LOCAL', txHash: transaction }
    const outcome = { ...fields, disposition: 'exact', status: 'COMPLETED' }
    assert.deepEqual(credited, {
      ...outcome,
      finality: 'included',
      msg: 'payment credited: it is in a block',
    })
    assert.deepEqual(safe, {
      ...outcome,
      finality: safe?.finality,
      msg: 'payment safe: its block is not expected to be replaced',
    })
    assert.deepEqual(rest, [])
    const written = JSON.stringify(shop.logged)
    for (const secret of secrets(payment)) assert(!written.includes(secret))
  }
  assert.equal(await countOf('claimed'), 2)
  assert.equal(await countOf('credited'), 2)
  const seconds = await measured('farthing_payment_seconds')
  assert.equal(
    seconds.find((value) => 'metricName' in value && /_count$/.test(String(value.metricName)))?.value,
    2,
  )
})

test('a refused payment is logged with the reason, whether it was claimed or not', async () => {
  const [poor = assert.fail(), unlucky = assert.fail()] = await shop.prepare(2, 0n)
  assert.equal((await shop.pay(poor)).statusCode, 402)
  const [refused, ...more] = linesOf(poor.checkoutId)
  assert.deepEqual(
    [refused?.msg, refused?.reason, refused?.level],
    [
      'payment refused before it was claimed; the payer was told why',
      'invalid_exact_evm_insufficient_balance',
      'info',
    ],
  )
  assert.deepEqual(more, [])

  await shop.chain.mint(unlucky.payer.address, 2_000_000n)
  await shop.follow()
  const [answer] = await shop.present([unlucky])
  const { from: payer, nonce } = unlucky.signed.authorization
  const asset = network.assets[0]?.address.toLowerCase() ?? assert.fail()
  const key = { asset, payer: payer.toLowerCase(), nonce, reason: 'insufficient_funds' }
  await reject(shop.ctx, network.caip2, [key], shop.engine.look)
  assert.equal((await answer)?.statusCode, 402)
  const lines = linesOf(unlucky.checkoutId)
  assert.deepEqual(
    lines.map(({ msg, reason }) => [msg, reason]),
    [
      ['payment claimed: it is sent next', undefined],
      ['payment refused before it was sent: it would have failed', 'insufficient_funds'],
    ],
  )
  assert.equal(await countOf('refused'), 2)
})

test('payers who name networks of their own invention add no series to the metrics', async () => {
  const [payment = assert.fail()] = await shop.prepare(1)
  const series = async () => (await measured('farthing_payments_total')).length
  const header = (network: string) => {
    const named = JSON.parse(Buffer.from(payment.header, 'base64').toString())
    Object.assign(named.accepted, { network })
    return Buffer.from(JSON.stringify(named)).toString('base64')
  }
  assert.equal((await shop.pay({ ...payment, header: header('eip155:1') })).statusCode, 402)
  const before = await series()
  assert.equal((await shop.pay({ ...payment, header: header('eip155:999999') })).statusCode, 402)
  assert.equal(await series(), before)
  assert.deepEqual(
    linesOf(payment.checkoutId).map(({ network, reason }) => [network, reason]),
    [
      ['other', 'invalid_network'],
      ['other', 'invalid_network'],
    ],
  )
})

test('a payment that a reorganisation removes is logged as removed, and when it is found again as credited', async () => {
  const [payment = assert.fail()] = await shop.prepare(1)
  const [answer] = await shop.present([payment])
  const snapshot = await client.snapshot()
  await shop.send()
  await shop.mine()
  assert.equal((await answer)?.statusCode, 200)
  await client.revert({ id: snapshot })
  await shop.mine(3)
  const removed = shop.logged.findLast(({ checkoutId }) => checkoutId === payment.checkoutId)
  assert.deepEqual([removed?.level, removed?.status], ['warn', 'PROCESSING'])
  assert.match(String(removed?.msg), /^payment removed by a reorganisation/)
  assert(shop.logged.some(({ msg, replaced }) => /^chain reorganised/.test(String(msg)) && replaced === 1))
  await shop.ctx.db.query("update broadcasts set last_sent_at = last_sent_at - interval '11 s'")
  await shop.send()
  await shop.mine()
  const found = shop.logged.findLast(({ checkoutId }) => checkoutId === payment.checkoutId)
  assert.deepEqual([found?.msg, found?.status], ['payment credited: it is in a block', 'COMPLETED'])
  assert.equal(await countOf('reorged'), 1)
})

test('money that belongs to no checkout is logged once it is safe, counted and measured', async () => {
  await shop.chain.mint(payTo, 2_500_000n)
  await shop.mine(12)
  const found = shop.logged.filter(({ msg }) => /^payment belongs to no checkout/.test(String(msg)))
  assert.deepEqual(
    found.map(({ network, amount }) => [network, amount]),
    [['LOCAL', '2500000']],
  )
  assert.equal(await countOf('unmatched'), 1)
  await openMeasure(shop.ctx, listConnected(openRails(shop.ctx)))()
  assert.equal((await measured('farthing_unmatched_payments'))[0]?.value, 1)
  assert.equal((await measured('farthing_unmatched_amount'))[0]?.value, 2.5)
})

test('what a mined transaction cost is measured per payment', async () => {
  await shop.idle()
  const before = (await measured('farthing_settlement_cost_total'))[0]?.value ?? 0
  const held = await client.getBalance({ address })
  const [payment = assert.fail()] = await shop.prepare(1)
  const [answer] = await shop.present([payment])
  await shop.send()
  await shop.mine()
  assert.equal((await answer)?.statusCode, 200)
  await shop.idle()
  const paid = Number(held - (await client.getBalance({ address }))) / 1e18
  const after = (await measured('farthing_settlement_cost_total'))[0]?.value ?? 0
  assert(Math.abs(after - before - paid) < paid / 1e6, `${after - before} instead of ${paid}`)
  const gas = await measured('farthing_payment_gas')
  const sum = gas.find((value) => 'metricName' in value && /_sum$/.test(String(value.metricName)))?.value ?? 0
  assert(sum > 50_000, `${sum} gas`)
})

test('a network that cannot settle for lack of gas is logged once, and so is its recovery', async () => {
  const look = openMeasure(shop.ctx, listConnected(openRails(shop.ctx)))
  // Readiness is remembered for half a second.
  let seconds = 0
  const measure = async () => {
    shop.clock.now = new Date(Date.now() + ++seconds * 1_000)
    await look()
    shop.clock.now = null
  }
  const setBalance = async (value: bigint) => {
    await client.setBalance({ address, value })
    await shop.ctx.db.query('update settlers set balance_at = null')
    await shop.idle()
  }
  const told = () => shop.logged.filter(({ msg }) => /^payments (are refused|can be)/.test(String(msg)))
  await shop.idle()
  await measure()
  await setBalance(0n)
  for (let i = 0; i < 4; i++) await measure()
  assert.deepEqual(
    told().map(({ level, network, why }) => [level, network, why]),
    [['error', 'LOCAL', 'No settler has enough money for the network’s fees.']],
  )
  assert.equal((await measured('farthing_can_settle'))[0]?.value, 0)
  await setBalance(10n ** 21n)
  for (let i = 0; i < 3; i++) await measure()
  assert.deepEqual(told().at(-1)?.msg, 'payments can be settled again')
  assert.equal(told().length, 2)
  assert.equal((await measured('farthing_can_settle'))[0]?.value, 1)
})

test('a settler that runs out of gas under a claimed payment is named', async () => {
  const [payment = assert.fail()] = await shop.prepare(1)
  await shop.idle()
  const [answer] = await shop.present([payment])
  await client.setBalance({ address, value: 0n })
  await shop.ctx.db.query('update settlers set balance_at = null')
  await shop.send()
  const line = shop.logged.findLast(({ settler, level }) => settler === address && level === 'warn')
  assert.match(String(line?.msg), /^a settler cannot pay .*send it money/)
  assert.equal(line?.network, 'LOCAL')
  await client.setBalance({ address, value: 10n ** 21n })
  await shop.ctx.db.query('update settlers set balance_at = null')
  await shop.idle()
  await shop.mine()
  assert.equal((await answer)?.statusCode, 200)
})

test('on Solana a payment is claimed, sent and credited in one line each', async () => {
  const svm = await openShop({ network: 'SOLANA_LOCAL', slotMs: 100, settings: { LOG_LEVEL: 'info' } })
  const id = await svm.create()
  const answer = await svm.pay(id, await svm.sign(id, await svm.chain.payer()))
  assert.equal(answer.statusCode, 200)
  const lines = svm.logged.filter((line) => JSON.stringify(line).includes(id) && 'msg' in line)
  assert.deepEqual(
    lines.map(({ msg, network, finality }) => [
      String(msg).split(/[: ]/).slice(0, 2).join(' '),
      network,
      finality,
    ]),
    [
      ['payment claimed', 'SOLANA_LOCAL', undefined],
      ['payments signed', 'SOLANA_LOCAL', undefined],
      ['payment credited', 'SOLANA_LOCAL', 'safe'],
    ],
  )
  assert.equal(lines[2]?.txHash, lines[1]?.txHash)
  await svm.stopWork()
})
