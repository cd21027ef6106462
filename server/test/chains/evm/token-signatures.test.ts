import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concat, encodeFunctionData, numberToHex, parseAbi, parseSignature } from 'viem'
import { encodeTransfer, newPayer, type Signed } from '../../support/chain/evm-payment.ts'
import { openToken } from './support/token.ts'

const { chain, makePayment, assertRefused, assertPaid } = await openToken()
/** The order of the curve's group. */
const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const walletAbi = parseAbi(['function setRefusing(bool refusing)'])

test('a signature with a high s is refused', async () => {
  const payment = await makePayment()
  const { r, s, v } = parseSignature(payment.signature)
  const high = numberToHex(order - BigInt(s), { size: 32 })
  const signature = concat([r, high, numberToHex(v === 27n ? 28 : 27)])
  await assertRefused({ ...payment, signature }, "ECRecover: invalid signature 's' value")
})

test('a signature with v 0 or 1 is refused', async () => {
  const payment = await makePayment()
  const { r, s, yParity } = parseSignature(payment.signature)
  const signature = concat([r, s, numberToHex(yParity, { size: 1 })])
  await assertRefused({ ...payment, signature }, "ECRecover: invalid signature 'v' value")
})

test('a signature of any length but 65 bytes is refused, including the 64-byte compact form', async () => {
  const payment = await makePayment()
  const { r, s, yParity } = parseSignature(payment.signature)
  const compact = concat([r, numberToHex(BigInt(s) | (BigInt(yParity) << 255n), { size: 32 })])
  for (const signature of [compact, concat([payment.signature, '0x00']), '0x'] as const)
    await assertRefused({ ...payment, signature }, 'ECRecover: invalid signature length')
})

test('a signature by someone else, over other values or for another domain is refused', async () => {
  const payment = await makePayment()
  const { payer, authorization } = payment
  const stranger = await makePayment({ from: payer.address })
  const elsewhere = await makePayment({ payer, domain: { ...chain.domain, name: 'USD Coin' } })
  const raised: Signed = { ...payment, authorization: { ...authorization, value: '41' } }
  for (const signed of [stranger, elsewhere, raised])
    await assertRefused(signed, 'FiatTokenV2: invalid signature')
})

test('a contract wallet can pay through ERC-1271 as long as it accepts the signature', async () => {
  const payer = newPayer()
  const from = await chain.deploy('OwnedWallet', [payer.address])
  await assertPaid(await makePayment({ payer, from }))
  const payment = await makePayment({ payer, from })
  const setRefusing = (refusing: boolean) =>
    chain.perform({
      to: from,
      data: encodeFunctionData({ abi: walletAbi, functionName: 'setRefusing', args: [refusing] }),
    })
  await setRefusing(true)
  await assertRefused(payment, 'FiatTokenV2: invalid signature')
  await setRefusing(false)
  await assertPaid(payment)
})

test('a contract wallet can burn all the gas of a transaction', async () => {
  const payment = await makePayment({ from: await chain.deploy('BurningWallet') })
  const gas = 1_000_000n
  const { status, gasUsed } = await chain.perform({ to: chain.token, data: encodeTransfer(payment), gas })
  assert.equal(status, 'reverted')
  assert(gasUsed > 950_000n, `${gasUsed}`)
})

test('an address with code cannot pay with its key, whether the code was set or delegated by EIP-7702', async () => {
  const stranger = newPayer()
  const wallet = await chain.deploy('OwnedWallet', [stranger.address])
  const placed = await makePayment()
  await chain.client.setCode({
    address: placed.payer.address,
    bytecode: (await chain.client.getCode({ address: wallet })) ?? '0x',
  })
  const delegated = await makePayment()
  await chain.delegate(delegated.payer, wallet)
  for (const payment of [placed, delegated]) {
    await assertRefused(payment, 'FiatTokenV2: invalid signature')
    await assertPaid(await makePayment({ payer: stranger, from: payment.payer.address }))
  }
})
