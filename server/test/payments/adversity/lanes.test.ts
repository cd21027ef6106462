import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, encodeFunctionData } from 'viem'
import { claimAuthorizations } from '../../../src/checkouts/claim.ts'
import { multicallAbi, multicallAddress, tokenAbi } from '../../support/chain/evm.ts'
import {
  encodeTransfer,
  newPayer,
  signAuthorization,
  signCancellation,
} from '../../support/chain/evm-payment.ts'
import { claimOf } from './claims.ts'
import { openDriven, type Prepared, runInside } from './driven.ts'
import { checkInvariants } from './invariants.ts'
import { print, trials } from './size.ts'

const shop = await openDriven()
const { client, token, domain } = shop.chain
const attacker = await shop.chain.deploy('Attacker')
const elsewhere: Address = '0x000000000000000000000000000000000000dEaD'
/** More than a lane considers in one step. */
const crowd = 161

/** Asserts that the lane settles an honest payment within this many blocks, whatever is in its way. */
async function assertSettles(payment: Prepared, blocks: number): Promise<void> {
  const [answer] = await shop.present([payment])
  for (let block = 0; block < blocks; block++) {
    await shop.send()
    await shop.mine()
  }
  assert.equal((await shop.read(payment.checkoutId)).status, 'COMPLETED')
  assert.equal((await answer)?.statusCode, 200)
}

/** Moves the chain's time past the windows and buries the dead payments. Later signatures need a later end. */
async function outlive(payments: readonly Prepared[]): Promise<void> {
  const last =
    payments
      .map(({ signed }) => BigInt(signed.authorization.validBefore))
      .toSorted()
      .at(-1) ?? 0n
  await shop.chain.setNextBlockTimestamp(last + 1n)
  await shop.mine(12)
  await shop.bury()
}

/** An honest payment still settles, and once their windows are over the decoys have paid nothing and hold nothing. */
async function assertHoldUpNobody(
  decoys: readonly Prepared[],
  answers: Awaited<ReturnType<typeof shop.present>>,
): Promise<void> {
  const [honest] = await shop.prepare(1)
  assert(honest)
  await assertSettles(honest, 3)
  await outlive(decoys)
  for (const { checkoutId } of decoys) assert.equal((await shop.read(checkoutId)).status, 'OPEN')
  for (const answer of await Promise.all(answers)) assert.notEqual(answer.statusCode, 200)
}

/** Our transaction is already in the pool; this one pays a higher fee and comes first. */
async function overtake(call: Parameters<typeof shop.submit>[0][number]): Promise<void> {
  const { baseFeePerGas } = await client.getBlock()
  await shop.submit([call], {
    maxFeePerGas: (baseFeePerGas ?? 0n) * 10n + 10_000_000n,
    maxPriorityFeePerGas: 1n,
  })
}

/** One transaction that cancels all these authorizations. */
async function cancelAll(payments: readonly Prepared[]) {
  const calls = await Promise.all(
    payments.map(async ({ payer, signed: { authorization } }) => {
      const signature = await signCancellation({ key: payer.key, domain, nonce: authorization.nonce })
      const args = [payer.address, authorization.nonce, signature] as const
      const callData = encodeFunctionData({ abi: tokenAbi, functionName: 'cancelAuthorization', args })
      return { target: token, allowFailure: false, callData }
    }),
  )
  return {
    to: multicallAddress,
    data: encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [calls] }),
    gas: 100_000n * BigInt(payments.length),
  }
}

test('payers with code, who are settled one by one, do not hold up the others', async () => {
  const owner = newPayer()
  const wallets: Address[] = []
  for (let i = 0; i < trials(12, 60); i++)
    wallets.push(await shop.chain.deploy('OwnedWallet', [owner.address]))
  await shop.chain.mint(wallets, 2_000_000n)
  await shop.follow()
  const slow = await Promise.all(wallets.map((from) => shop.prepareOne(owner, { from })))
  const slowAnswers = await shop.present(slow)
  const [honest] = await shop.prepare(1)
  assert(honest)
  await assertSettles(honest, 2)
  // The others are settled too, a few per block.
  for (let block = 0; block < slow.length; block++) {
    await shop.send()
    await shop.mine()
  }
  for (const answer of await Promise.all(slowAnswers)) assert.equal(answer.statusCode, 200, answer.body)
})

test('bound nonces canceled before they are presented hold up nobody else, and their own checkouts only for their window', async () => {
  const decoys = await shop.prepare(crowd, 1_000_000n, { isBound: true, validSeconds: 150 })
  await shop.submit([await cancelAll(decoys)])
  // So deep that the follower has read the block twice and will not read it again.
  await shop.mine(12)
  const answers = await shop.present(decoys)
  await shop.send()
  await assertHoldUpNobody(decoys, answers)
})

test('payments that wait for their payer’s money hold up nobody else', async () => {
  const payer = newPayer()
  await shop.chain.mint([payer.address], BigInt(crowd) * 1_000_000n)
  await shop.follow()
  const prepared = await Promise.all(
    Array.from({ length: 2 * crowd }, () => shop.prepareOne(payer, { validSeconds: 240 })),
  )
  const sent = prepared.slice(0, crowd)
  const answers = await shop.present(sent)
  await shop.send()
  // Until the cancellation is deep, our transactions count as still on their way.
  await overtake(await cancelAll(sent))
  await shop.mine()
  const claims = await Promise.all(prepared.slice(crowd).map((payment) => claimOf(shop, payment)))
  assert.equal((await claimAuthorizations(shop.ctx.db, claims, '')).size, crowd)
  await assertHoldUpNobody(prepared, answers)
})

test('authorizations sent without effect hold up nobody else', async () => {
  const decoys = await shop.prepare(crowd, 1_000_000n, { validSeconds: 340 })
  const answers = await shop.present(decoys)
  await shop.send()
  const moves = await Promise.all(
    decoys.map(({ payer, signed }) =>
      signAuthorization({
        key: payer.key,
        domain,
        to: elsewhere,
        value: 1_000_000n,
        validBefore: BigInt(signed.authorization.validBefore),
      }),
    ),
  )
  const move = runInside(
    attacker,
    moves.map((signed) => ({ target: token, data: encodeTransfer(signed) })),
  )
  await overtake(move)
  await shop.mine()
  await assertHoldUpNobody(decoys, answers)
})

test('the invariants hold after all the obstacles', async (t) => {
  await shop.idle()
  t.diagnostic(print(await checkInvariants({ db: shop.ctx.db, chain: shop.chain })))
})
