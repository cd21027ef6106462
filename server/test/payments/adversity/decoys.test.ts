import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, encodeFunctionData, type Hex } from 'viem'
import { tokenAbi } from '../../support/chain/evm.ts'
import {
  encodeTransfer,
  type Signed,
  signAuthorization,
  signCancellation,
} from '../../support/chain/evm-payment.ts'
import { payTo } from '../../support/shop.ts'
import { openDriven, type Prepared, runInside } from './driven.ts'
import { checkInvariants } from './invariants.ts'
import { print, trials } from './size.ts'

const shop = await openDriven()
const attacker = await shop.chain.deploy('Attacker')
const { client, token, domain } = shop.chain
const elsewhere: Address = '0x000000000000000000000000000000000000dEaD'
const units = 1_000_000n
const perDecoy = trials(15, 1_000)
const perRound = trials(8, 100)
let rounds = 0

type Call = { to: Address; data: Hex; gas?: bigint }

/** Another authorization by the same payer, by default with the nonce that it signed for the checkout. */
async function signOther(
  { payer, signed }: Prepared,
  to: Address,
  nonce?: Hex,
  value = units,
): Promise<Signed> {
  return await signAuthorization({
    key: payer.key,
    domain,
    to,
    value,
    validBefore: BigInt(signed.authorization.validBefore),
    nonce: nonce ?? signed.authorization.nonce,
  })
}

/**
 * Payers present payments. Each decoy is mined after the claim, before or after our send; then the chain is followed
 * until nothing can change any more. Waiting payers learn the reason and may sign again.
 */
async function decoy(
  makeCall: (payment: Prepared, i: number) => Promise<Call>,
  reason: RegExp,
): Promise<void> {
  for (let left = perDecoy; left > 0; left -= perRound) {
    const payments = await shop.prepare(Math.min(perRound, left))
    const answers = await shop.present(payments)
    const calls = await Promise.all(payments.map(makeCall))
    const { baseFeePerGas } = await client.getBlock()
    assert(baseFeePerGas)
    // Every other round is sent before the decoy is seen; decoys pay a higher fee and come first in the block.
    const isSentFirst = rounds++ % 2 === 0
    if (isSentFirst) await shop.send()
    const hashes = await shop.submit(calls, {
      maxFeePerGas: baseFeePerGas * 10n + 10_000_000n,
      maxPriorityFeePerGas: 1n,
    })
    await shop.mine()
    for (const hash of hashes)
      assert.equal(
        (await client.getTransactionReceipt({ hash })).status,
        'success',
        'the decoy itself failed',
      )
    await shop.send()
    await shop.mine(5)
    await shop.bury()
    for (const answer of await Promise.all(answers)) {
      assert.equal(answer.statusCode, 402, answer.body)
      assert.match(answer.json().error, reason)
    }
    for (const { checkoutId } of payments) assert.equal((await shop.read(checkoutId)).status, 'OPEN')
  }
}

test('a nonce that its payer spends on another recipient never completes the checkout', async () => {
  await decoy(
    async (payment) => ({ to: token, data: encodeTransfer(await signOther(payment, elsewhere)) }),
    /^nonce_spent_elsewhere$/,
  )
})

test('a nonce that its payer spends on a transfer of nothing, to the store or elsewhere, is spent', async () => {
  await decoy(
    async (payment, i) => ({
      to: token,
      data: encodeTransfer(await signOther(payment, i % 2 === 0 ? payTo : elsewhere, undefined, 0n)),
    }),
    /^nonce_spent_elsewhere$/,
  )
})

test('an authorization that its payer cancels never completes the checkout', async () => {
  await decoy(async ({ payer, signed: { authorization } }) => {
    const signature = await signCancellation({ key: payer.key, domain, nonce: authorization.nonce })
    const args = [payer.address, authorization.nonce, signature] as const
    return {
      to: token,
      data: encodeFunctionData({ abi: tokenAbi, functionName: 'cancelAuthorization', args }),
    }
  }, /^authorization_canceled$/)
})

test('a nonce spent elsewhere never completes the checkout, even alongside an equal transfer to the store', async () => {
  await shop.chain.mint(attacker, units * BigInt(perDecoy))
  await decoy(async (payment, i) => {
    const burn = encodeTransfer(await signOther(payment, elsewhere))
    // The equal transfer uses the contract's own money, or the payer's through another nonce, before or after the burn.
    const gift = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [payTo, units] })
    const nonce = `0x${payment.signed.authorization.nonce.slice(4)}00` as Hex
    const other = encodeTransfer(await signOther(payment, payTo, nonce))
    const datas = [
      [burn, gift],
      [gift, burn],
      [burn, other],
      [other, burn],
    ][i % 4]
    assert(datas)
    return runInside(
      attacker,
      datas.map((data) => ({ target: token, data })),
    )
  }, /^nonce_spent_elsewhere$/)
})

test('an equal plain transfer from the payer to the store never completes the checkout', async () => {
  for (let left = perDecoy; left > 0; left -= perRound) {
    const count = Math.min(perRound, left)
    // The payer has just enough, and spends it in a plain transfer after the claim or before presenting anything.
    const payments = await shop.prepare(count, units)
    const claimed = payments.slice(0, Math.ceil(count / 2))
    const answers = await shop.present(claimed)
    for (const { payer } of payments) {
      await client.impersonateAccount({ address: payer.address })
      await client.setBalance({ address: payer.address, value: 10n ** 18n })
      const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [payTo, units] })
      await client.sendTransaction({ account: payer.address, to: token, data, gas: 100_000n, chain: null })
    }
    await shop.mine()
    await shop.send()
    await shop.mine(5)
    await shop.bury()
    for (const answer of await Promise.all(answers)) {
      assert.equal(answer.statusCode, 402, answer.body)
      assert.equal(answer.json().error, 'invalid_exact_evm_insufficient_balance')
    }
    for (const { checkoutId } of payments) assert.equal((await shop.read(checkoutId)).status, 'OPEN')
  }
})

test('after all decoys no checkout is completed or credited, and the invariants hold', async (t) => {
  await shop.idle()
  const checked = await checkInvariants({ db: shop.ctx.db, chain: shop.chain })
  assert.equal(checked.completed, 0)
  const matched = await shop.ctx.db.query('select 1 as one from credits where checkout_id is not null')
  assert.equal(matched.length, 0)
  t.diagnostic(print({ decoys: perDecoy * 4, ...checked }))
})
