/**
 * What it costs an attacker to make settlers pay for nothing, and what it costs us, in gas on this chain. The figures
 * are in docs/proof/griefing.md. No attack may cost us more than three times what it costs the attacker.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Address, encodeFunctionData, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { fundedKey, multicallAbi, multicallAddress, tokenAbi } from '../../support/chain/evm.ts'
import {
  encodeTransfer,
  newPayer,
  signAuthorization,
  signCancellation,
} from '../../support/chain/evm-payment.ts'
import { presentAny } from './attacks/support/present.ts'
import { openDriven, type Prepared, runInside } from './driven.ts'
import { print } from './size.ts'

const ratioMax = 3n
const shop = await openDriven()
const { client, domain, token } = shop.chain
const [lane = assert.fail()] = shop.engine.lanes
const elsewhere: Address = '0x000000000000000000000000000000000000dEaD'
const attacker = await shop.chain.deploy('Attacker')

/** The gas that our settler used for nothing in the newest block. */
async function ourGas(): Promise<bigint> {
  const { transactions } = await client.getBlock({ includeTransactions: true })
  const ours = transactions.filter(({ from }) => from.toLowerCase() === lane.signer.address)
  const receipts = await Promise.all(ours.map(({ hash }) => client.getTransactionReceipt({ hash })))
  return receipts.reduce((sum, { gasUsed }) => sum + gasUsed, 0n)
}

async function gasOf(hash: Hex): Promise<bigint> {
  return (await client.getTransactionReceipt({ hash })).gasUsed
}

/** Fees that put a transaction before ours. */
const first = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 10n }

/** Puts a stranger's transaction before ours, which is in the pool already. */
async function overtake(call: Parameters<typeof shop.submit>[0][number]): Promise<Hex> {
  const [hash = assert.fail()] = await shop.submit([call], first)
  return hash
}

function together(calls: readonly Hex[]) {
  const args = [calls.map((callData) => ({ target: token, allowFailure: false, callData }))] as const
  const data = encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args })
  return { to: multicallAddress, data, gas: 200_000n + 100_000n * BigInt(calls.length) }
}

/** Presents and sends payments, lets the attacker act before they are mined, and judges what it cost. */
async function grief(
  t: TestContext,
  payments: readonly Prepared[],
  act: () => Promise<{ hash: Hex } | { gas: bigint }>,
): Promise<void> {
  assert.equal((await presentAny(shop, payments)).length, payments.length)
  await shop.send()
  const acted = await act()
  await shop.mine()
  const ours = await ourGas()
  const theirs = 'hash' in acted ? await gasOf(acted.hash) : acted.gas
  for (let i = 0; i < 3; i++) {
    await shop.send()
    await shop.mine()
    assert.equal(await ourGas(), 0n, 'it was sent again')
  }
  assert(ours > 0n, 'the attack did not happen')
  t.diagnostic(print({ payments: payments.length, theirs, ours }))
  assert(ours <= ratioMax * theirs, `it costs them ${theirs} gas and us ${ours}`)
}

test('moving the money away before our transaction', async (t) => {
  const payer = newPayer()
  await shop.chain.mint(payer.address, 50_000_000n)
  await shop.follow()
  const payments = await Promise.all(Array.from({ length: 20 }, () => shop.prepareOne(payer)))
  // The cheapest way: its own transfer, to somebody who holds some already.
  await shop.chain.mint(elsewhere, 1n)
  await client.setBalance({ address: payer.address, value: 10n ** 18n })
  await grief(t, payments, async () => {
    const args = [elsewhere, await shop.chain.balance(payer.address)] as const
    const hash = await client.sendTransaction({
      account: privateKeyToAccount(payer.key),
      to: token,
      data: encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args }),
      gas: 100_000n,
      chain: null,
      ...first,
    })
    return { hash }
  })
})

test('spending the nonces before our transaction', async (t) => {
  const payments = await shop.prepare(20)
  await grief(t, payments, async () => {
    const calls = await Promise.all(
      payments.map(async ({ payer, signed: { authorization } }) => {
        const signature = await signCancellation({ key: payer.key, domain, nonce: authorization.nonce })
        const args = [payer.address, authorization.nonce, signature] as const
        return encodeFunctionData({ abi: tokenAbi, functionName: 'cancelAuthorization', args })
      }),
    )
    return { hash: await overtake(together(calls)) }
  })
})

test('wallets whose code burns the gas of their send', async (t) => {
  const count = 2
  const payers = Array.from({ length: count }, () => newPayer())
  // The cheapest wallets with code and money: accounts that delegate, many per transaction, and then get a cent each.
  const authorizationList = await Promise.all(
    payers.map(({ key }) =>
      privateKeyToAccount(key).signAuthorization({ address: attacker, chainId: domain.chainId, nonce: 0 }),
    ),
  )
  const delegation = await client.sendTransaction({
    account: privateKeyToAccount(fundedKey(5)),
    to: elsewhere,
    gas: 1_000_000n,
    authorizationList,
    chain: null,
  })
  await shop.mine()
  const source = newPayer()
  await shop.chain.mint(source.address, 100_000_000n)
  const validBefore = BigInt(Math.floor(Date.now() / 1_000) + 300)
  const grants = await Promise.all(
    payers.map(({ address: to }) =>
      signAuthorization({ key: source.key, domain, to, value: 1_000_000n, validBefore }),
    ),
  )
  const [funding = assert.fail()] = await shop.submit([
    runInside(
      attacker,
      grants.map((grant) => ({ target: token, data: encodeTransfer(grant) })),
    ),
  ])
  await shop.mine()
  // The base price of a transaction does not count: an attacker fills whole blocks.
  const gas = (await gasOf(delegation)) + (await gasOf(funding)) - 2n * 21_000n
  const accept = `0x631626ba7e60e01b5f5260205ff3` as const
  for (const { address } of payers) await client.setCode({ address, bytecode: accept })
  const payments = await Promise.all(payers.map((payer) => shop.prepareOne(payer, { from: payer.address })))
  await grief(t, payments, async () => {
    for (const { address } of payers) await client.setCode({ address, bytecode: '0xfe' })
    // Code that tells a send from a simulation costs nothing more than itself.
    return { gas }
  })
})
