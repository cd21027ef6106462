import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import { type Address, encodeFunctionData, type Hex, parseAbi } from 'viem'
import { readArtifacts } from '../../../src/dev/local-chain.ts'
import { stepLane } from '../../../src/payments/evm/lane.ts'
import { encodeTransfer, newPayer, type Signed, signAuthorization } from '../../support/chain/evm-payment.ts'
import { patienceMs } from '../../support/patience.ts'
import { payTo } from '../../support/shop.ts'
import { openDriven, type Prepared, runInside } from './driven.ts'
import { checkInvariants } from './invariants.ts'
import { print, trials } from './size.ts'

const shop = await openDriven()
const { client, token, domain } = shop.chain
const attacker = await shop.chain.deploy('Attacker')
const elsewhere: Address = '0x000000000000000000000000000000000000dEaD'
const units = 1_000_000n
/** How often an authorization may be sent and mined without effect. */
const sendsMax = 2n
/** What a reverted payment may cost: for an ordinary payer, and for one whose own code runs. */
const plainGas = 82_000n
const contractGas = 500_000n
/** The longest a buyer waits while attackers interfere. The promise is 10 s, but the machine may be busy. */
const boundMs = patienceMs
const budget = { gas: 0n }
const [lane = assert.fail()] = shop.engine.lanes

/** Moves the money away from payers who have signed to pay with it, in a transaction that comes first in its block. */
async function moveAway(payments: readonly Prepared[]): Promise<void> {
  const moves: Signed[] = await Promise.all(
    payments.map(({ payer, signed }) =>
      signAuthorization({
        key: payer.key,
        domain,
        to: elsewhere,
        value: units,
        validBefore: BigInt(signed.authorization.validBefore),
      }),
    ),
  )
  const calls = moves.map((signed) => ({ target: token, data: encodeTransfer(signed) }))
  await submitFirst(runInside(attacker, calls))
}

async function submitFirst(call: { to: Address; data: Hex; gas?: bigint }): Promise<void> {
  const { baseFeePerGas } = await client.getBlock()
  await shop.submit([call], {
    maxFeePerGas: (baseFeePerGas ?? 0n) * 10n + 10_000_000n,
    maxPriorityFeePerGas: 1n,
  })
}

/** Retries with the same payment until its outcome is known. */
async function persist(payment: Prepared): Promise<{ answer: LightMyRequestResponse; ms: number }> {
  const began = performance.now()
  for (;;) {
    const answer = await shop.pay(payment)
    const ms = performance.now() - began
    const isKnown = answer.statusCode !== 202 && answer.statusCode !== 503 && !isInProgress(answer)
    if (isKnown || ms > boundMs) return { answer, ms }
  }
}

function isInProgress(answer: LightMyRequestResponse): boolean {
  return answer.statusCode === 409 && answer.json().code === 'payment_in_progress'
}

/** The hostile payments that hold the checkout now, in the given state. */
async function findHolders(hostile: readonly Prepared[], state: string): Promise<Prepared[]> {
  const rows = await shop.ctx.db.query<{ nonce: Hex }>(
    'select nonce from authorizations where state = $1 and nonce = any($2)',
    [state, hostile.map(({ signed }) => signed.authorization.nonce)],
  )
  const nonces = new Set(rows.map(({ nonce }) => nonce))
  return hostile.filter(({ signed }) => nonces.has(signed.authorization.nonce))
}

async function hostileTo(rivalOf: Prepared, count: number, validSeconds: number): Promise<Prepared[]> {
  const payers = Array.from({ length: count }, newPayer)
  await shop.chain.mint(
    payers.map(({ address }) => address),
    units,
  )
  await shop.follow()
  return await Promise.all(payers.map((payer) => shop.prepareOne(payer, { rivalOf, validSeconds })))
}

test('empty wallets that hammer a checkout do not keep its buyer from paying', async (t) => {
  const waits: number[] = []
  let attempts = 0
  for (let trial = 0; trial < trials(3, 50); trial++) {
    const [honest] = await shop.prepare(1)
    assert(honest)
    let isOver = false
    const hammer = async () => {
      while (!isOver) {
        const answer = await shop.pay(await shop.prepareOne(newPayer(), { rivalOf: honest }))
        attempts++
        assert([402, 409, 200].includes(answer.statusCode), answer.body)
        assert.notEqual(answer.statusCode, 200)
      }
    }
    const hammers = Array.from({ length: 8 }, hammer)
    const paying = persist(honest)
    while (!isOver) {
      await shop.send()
      await shop.mine()
      isOver = (await shop.read(honest.checkoutId)).status === 'COMPLETED'
    }
    const { answer, ms } = await paying
    await Promise.allSettled(hammers)
    assert.equal(answer.statusCode, 200, answer.body)
    waits.push(Math.round(ms))
  }
  assert(Math.max(...waits) < boundMs)
  t.diagnostic(print({ attempts, slowestMs: Math.max(...waits) }))
})

test('payers who move their money away before our send do not keep the buyer from paying, and cost no gas', async (t) => {
  const waits: number[] = []
  let rejected = 0
  for (let trial = 0; trial < trials(3, 50); trial++) {
    const [honest] = await shop.prepare(1)
    assert(honest)
    const hostile = await hostileTo(honest, 6, 300)
    const others = Promise.all(hostile.map((payment) => shop.pay(payment)))
    const paying = persist(honest)
    const deadline = Date.now() + boundMs
    for (;;) {
      assert(Date.now() < deadline, 'the buyer could not pay in time')
      const { status } = await shop.read(honest.checkoutId)
      if (status === 'COMPLETED') break
      if (status !== 'PROCESSING') continue
      // The payer who claimed moves the money before the lane checks; after one step the next payer may claim.
      const holders = await findHolders(hostile, 'claimed')
      if (holders.length > 0) await moveAway(holders)
      rejected += holders.length
      await shop.mine()
      await stepLane(shop.ctx, lane)
      if (holders.length === 0) await shop.mine()
    }
    const { answer, ms } = await paying
    assert.equal(answer.statusCode, 200, answer.body)
    for (const other of await others) assert.notEqual(other.statusCode, 200)
    waits.push(Math.round(ms))
  }
  t.diagnostic(print({ rejected, slowestMs: Math.max(...waits) }))
})

test('a payer whose code burns gas or changes its mind harms nobody else, and costs no more than the cap', async (t) => {
  const owner = newPayer()
  const { BurningWallet } = await readArtifacts()
  assert(BurningWallet)
  const burning = await shop.chain.deploy('BurningWallet')
  await shop.chain.mint(burning, units)
  const rounds = trials(3, 25)
  let hostileCount = 0
  for (let round = 0; round < rounds; round++) {
    const honest = await shop.prepare(5)
    const bomb = await shop.prepareOne(owner, { from: burning })
    const wallet = await shop.chain.deploy('OwnedWallet', [owner.address])
    await shop.chain.mint(wallet, units)
    await shop.follow()
    const flipping = await shop.prepareOne(owner, { from: wallet, validSeconds: 300 })
    const bombAnswer = shop.pay(bomb)
    const [flipAnswer] = await shop.present([flipping])
    const answers = await shop.present(honest)
    assert.equal((await bombAnswer).statusCode, 402)
    await shop.send()
    hostileCount++
    if (round % 2 === 0) {
      const flip = parseAbi(['function setRefusing(bool refusing)'])
      const data = encodeFunctionData({ abi: flip, functionName: 'setRefusing', args: [true] })
      await submitFirst({ to: wallet, data })
    } else await client.setCode({ address: wallet, bytecode: BurningWallet.deployedBytecode })
    await shop.mine()
    await shop.send()
    await shop.mine()
    for (const answer of await Promise.all(answers)) assert.equal(answer.statusCode, 200, answer.body)
    assert.equal((await shop.read(flipping.checkoutId)).status, 'PROCESSING')
    void flipAnswer
  }
  budget.gas += BigInt(hostileCount) * sendsMax * contractGas
  t.diagnostic(print({ hostileCount }))
})

test('a payer who moves the money away after our send holds the checkout only for the window, and then the buyer pays', async (t) => {
  let broadcast = 0
  // Each trial moves the chain's clock 20 s ahead of ours, and a buyer's authorization is good for five minutes of both.
  for (let trial = 0; trial < trials(1, 10); trial++) {
    const [honest] = await shop.prepare(1)
    assert(honest)
    const time = Number(await shop.chain.time())
    const ahead = Math.max(0, time - Math.floor(Date.now() / 1_000))
    const [hostile] = await hostileTo(honest, 1, ahead + 20)
    assert(hostile)
    const [hostileAnswer] = await shop.present([hostile])
    await shop.send()
    await moveAway([hostile])
    await shop.mine()
    broadcast++
    // The money comes back and leaves again: the payment is sent a second time, but never a third.
    for (let again = 0; again < 2; again++) {
      await shop.chain.mint(hostile.payer.address, units)
      await shop.follow()
      await shop.send()
      await moveAway([hostile])
      await shop.mine()
    }
    const during = await shop.pay(honest)
    assert(isInProgress(during), during.body)
    const paying = persist(honest)
    await shop.chain.setNextBlockTimestamp(BigInt(hostile.signed.authorization.validBefore) + 1n)
    await shop.mine(4)
    await shop.bury()
    const deadline = Date.now() + boundMs
    while ((await shop.read(honest.checkoutId)).status !== 'COMPLETED') {
      assert(Date.now() < deadline, 'the buyer could not pay in time')
      await shop.send()
      await shop.mine()
    }
    assert.equal((await paying).answer.statusCode, 200)
    assert.notEqual((await hostileAnswer)?.statusCode, 200)
  }
  budget.gas += BigInt(broadcast) * sendsMax * plainGas
  t.diagnostic(print({ broadcast }))
})

test('the gas that attackers cost stays within the budget, and the invariants hold', async (t) => {
  // The wallets that changed their mind are still unresolved; their window ends now.
  await shop.chain.setNextBlockTimestamp((await shop.chain.time()) + 400n)
  await shop.mine(4)
  await shop.bury()
  await shop.idle()
  const checked = await checkInvariants({ db: shop.ctx.db, chain: shop.chain })
  assert(checked.revertedGas > 0n)
  assert(checked.revertedGas <= budget.gas, `${checked.revertedGas} of ${budget.gas}`)
  const sends = await shop.ctx.db.query('select 1 as one from authorizations where sends > 2')
  assert.equal(sends.length, 0)
  assert.equal(await shop.chain.balance(payTo), BigInt(checked.completed) * units)
  t.diagnostic(print({ budgetGas: budget.gas, ...checked }))
})
