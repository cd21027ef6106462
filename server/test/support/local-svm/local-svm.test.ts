import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  address,
  createSolanaRpc,
  generateKeyPairSigner,
  type KeyPairSigner,
  type Signature,
  signature,
} from '@solana/kit'
import { x402Client } from '@x402/core/client'
import { x402Facilitator } from '@x402/core/facilitator'
import type { PaymentRequirements } from '@x402/core/types'
import { toFacilitatorSvmSigner } from '@x402/svm'
import { ExactSvmScheme } from '@x402/svm/exact/client'
import { ExactSvmScheme as ExactSvmFacilitator } from '@x402/svm/exact/facilitator'
import { openChain } from '../chain/open.ts'
import { memo, signInstructions, transferTokens, usdc } from '../chain/svm-payment.ts'
import { until } from '../until.ts'
import { findTokenAccount } from './tokens.ts'

const chain = await openChain({ network: 'SOLANA_LOCAL', slotMs: null, finalizedAfter: 31 })
const rpc = createSolanaRpc(chain.url)
const base64 = { encoding: 'base64' } as const
const atOnce = { ...base64, skipPreflight: true } as const

/** A key with 1 SOL for fees, and tokens if asked for. */
async function newPayer(units = 0n, on = chain): Promise<KeyPairSigner> {
  const payer = await generateKeyPairSigner()
  await on.fund(payer.address, { lamports: 1_000_000_000n, token: [usdc, units] })
  return payer
}

/** A payer with 100 units, a shop with none, and a signed transfer of 40. */
async function makePayment() {
  const payer = await newPayer(100n)
  const shop = (await newPayer(0n)).address
  const signed = await signInstructions(chain, payer, [
    await transferTokens(payer, shop, 40n),
    memo('order 1'),
  ])
  const send = () => rpc.sendTransaction(signed.wire, { ...base64, preflightCommitment: 'processed' }).send()
  return { payer, shop, ...signed, send, received: () => chain.balance(shop, usdc) }
}

const because = (reason: RegExp) => (error: Error) => reason.test(`${error.cause}`)

async function statusOf(sent: Signature) {
  const { value } = await rpc.getSignatureStatuses([sent]).send()
  return value[0]?.confirmationStatus ?? null
}

test('a transfer lands in the next block, is confirmed by one block on top and finalized by thirty-one', async () => {
  const { send, signature, received } = await makePayment()
  assert.equal(await send(), signature)
  assert.equal(await statusOf(signature), null)
  assert.equal(await received(), 0n)
  for (const [blocks, status] of [
    [1, 'processed'],
    [1, 'confirmed'],
    [29, 'confirmed'],
    [1, 'finalized'],
  ] as const) {
    chain.mine(blocks)
    assert.equal(await statusOf(signature), status)
  }
  assert.equal(await received(), 40n)
})

test('a transaction reports its token balances, owners, fee and memo, and is found by each of its accounts', async () => {
  const { payer, shop, send, signature } = await makePayment()
  await send()
  chain.mine(2)
  const config = { commitment: 'confirmed', maxSupportedTransactionVersion: 0, encoding: 'json' } as const
  const found = await rpc.getTransaction(signature, config).send()
  assert(found?.meta)
  const { err, fee, preTokenBalances, postTokenBalances, logMessages } = found.meta
  assert.deepEqual([err, fee], [null, 5_000n])
  const sums = (balances: typeof preTokenBalances) =>
    Object.fromEntries(
      balances?.map(({ owner, mint, uiTokenAmount }) => [`${owner} ${mint}`, uiTokenAmount.amount]) ?? [],
    )
  assert.deepEqual(sums(preTokenBalances), { [`${payer.address} ${usdc}`]: '100', [`${shop} ${usdc}`]: '0' })
  assert.deepEqual(sums(postTokenBalances), { [`${payer.address} ${usdc}`]: '60', [`${shop} ${usdc}`]: '40' })
  assert(logMessages?.some((line) => line.includes('order 1')))
  for (const account of [payer.address, await findTokenAccount(shop, usdc)]) {
    const [listed] = await rpc.getSignaturesForAddress(account, { commitment: 'confirmed' }).send()
    assert.deepEqual([listed?.signature, listed?.memo, listed?.err], [signature, '[7] order 1', null])
  }
})

test('a Solana Pay transfer is found by its reference', async () => {
  const payer = await newPayer(100n)
  const shop = (await newPayer(0n)).address
  const reference = (await generateKeyPairSigner()).address
  const { wire, signature } = await signInstructions(chain, payer, [
    await transferTokens(payer, shop, 5n, [reference]),
  ])
  await rpc.sendTransaction(wire, atOnce).send()
  chain.mine(2)
  const found = await rpc.getSignaturesForAddress(reference, { commitment: 'confirmed' }).send()
  assert.deepEqual(
    found.map((one) => one.signature),
    [signature],
  )
  assert.equal(await chain.balance(shop, usdc), 5n)
})

test('signatures of an address are listed newest first, within the given bounds', async () => {
  const payer = await newPayer(100n)
  const sent: Signature[] = []
  for (const units of [1n, 2n, 3n, 4n]) {
    const { wire, signature } = await signInstructions(chain, payer, [
      await transferTokens(payer, payer.address, units),
    ])
    await rpc.sendTransaction(wire, atOnce).send()
    sent.unshift(signature)
    chain.mine()
  }
  chain.mine()
  const list = async (between: object) =>
    (await rpc.getSignaturesForAddress(payer.address, { commitment: 'confirmed', ...between }).send()).map(
      (one) => one.signature,
    )
  assert.deepEqual(await list({}), sent)
  assert.deepEqual(await list({ limit: 2 }), sent.slice(0, 2))
  assert.deepEqual(await list({ before: sent[1] }), sent.slice(2))
  assert.deepEqual(await list({ until: sent[2] }), sent.slice(0, 2))
})

test('an account is read as it was at the requested commitment', async () => {
  const { shop, send } = await makePayment()
  await send()
  const account = await findTokenAccount(shop, usdc)
  const units = async (commitment: 'processed' | 'confirmed' | 'finalized') =>
    (await rpc.getTokenAccountBalance(account, { commitment }).send()).value.amount
  chain.mine()
  assert.deepEqual([await units('processed'), await units('confirmed')], ['40', '0'])
  chain.mine()
  assert.deepEqual([await units('confirmed'), await units('finalized')], ['40', '0'])
  chain.mine(30)
  assert.equal(await units('finalized'), '40')
})

test('a blockhash can be used up to its last valid block height and no longer', async () => {
  const inTime = await makePayment()
  const tooLate = await makePayment()
  const { value } = await rpc.getLatestBlockhash({ commitment: 'processed' }).send()
  const height = async () => await rpc.getBlockHeight({ commitment: 'processed' }).send()
  chain.mine(149)
  assert.equal(await height(), value.lastValidBlockHeight - 1n)
  await inTime.send()
  chain.mine()
  assert.equal(await inTime.received(), 40n)
  await rpc.sendTransaction(tooLate.wire, atOnce).send()
  chain.mine()
  assert.equal(await tooLate.received(), 0n)
  assert.equal(await statusOf(tooLate.signature), null)
  await assert.rejects(tooLate.send(), because(/Blockhash not found/))
  assert.equal((await rpc.isBlockhashValid(value.blockhash, { commitment: 'processed' }).send()).value, false)
})

test('the same bytes land once, however often they are sent', async () => {
  const { wire, send, received, payer } = await makePayment()
  for (const _ of [1, 2, 3]) await send()
  chain.mine()
  await assert.rejects(send(), because(/already been processed/))
  await rpc.sendTransaction(wire, atOnce).send()
  chain.mine(2)
  assert.equal(await received(), 40n)
  assert.equal(
    (await rpc.getSignaturesForAddress(payer.address, { commitment: 'confirmed' }).send()).length,
    1,
  )
})

test('a transaction that fails in a block pays its fee and says why; one that cannot pay its fee is in no block', async () => {
  const poor = await newPayer(1n)
  const shop = (await newPayer(0n)).address
  const { wire, signature } = await signInstructions(chain, poor, [await transferTokens(poor, shop, 40n)])
  await assert.rejects(rpc.sendTransaction(wire, { ...base64, preflightCommitment: 'processed' }).send())
  await rpc.sendTransaction(wire, atOnce).send()
  chain.mine()
  const { value } = await rpc.getSignatureStatuses([signature]).send()
  assert.deepEqual(value[0]?.err, { InstructionError: [0n, { Custom: 1n }] })
  assert.equal((await rpc.getBalance(poor.address, { commitment: 'processed' }).send()).value, 999_995_000n)

  const penniless = await generateKeyPairSigner()
  const free = await signInstructions(chain, penniless, [memo('hello')])
  await rpc.sendTransaction(free.wire, atOnce).send()
  chain.mine()
  assert.equal(await statusOf(free.signature), null)
})

test('a wrong signature is refused, but a missing one does not keep a simulation from running', async () => {
  const settler = await newPayer()
  const payer = await newPayer(100n)
  const instruction = await transferTokens(payer, settler.address, 40n)
  const { wire } = await signInstructions(chain, payer, [instruction], settler.address)
  const { value } = await rpc.simulateTransaction(wire, { ...base64, commitment: 'processed' }).send()
  assert.equal(value.err, null)
  await assert.rejects(
    rpc.sendTransaction(wire, { ...base64, preflightCommitment: 'processed' }).send(),
    /signature verification/i,
  )
  chain.mine()
  assert.equal(await chain.balance(payer.address, usdc), 100n)
})

test('a fork takes back money, statuses and blockhashes, and the same bytes can land again', async () => {
  const { send, signature, received, payer } = await makePayment()
  chain.mine()
  await send()
  chain.mine(2)
  assert.equal(await statusOf(signature), 'confirmed')
  const lost = await signInstructions(chain, payer, [memo('on the fork')])
  const slot = chain.slot()

  chain.fork(2)
  assert.equal(await statusOf(signature), null)
  assert.equal(await received(), 0n)
  assert.equal(
    (await rpc.getBalance(payer.address, { commitment: 'processed' }).send()).value,
    1_000_000_000n,
  )
  await assert.rejects(rpc.getBlock(BigInt(slot), { commitment: 'confirmed' }).send(), /skipped/i)

  await send()
  await rpc.sendTransaction(lost.wire, atOnce).send()
  chain.mine(2)
  assert.equal(await received(), 40n)
  assert.equal(await statusOf(lost.signature), null)
  assert.equal(chain.slot(), slot + 2)
})

test('finalized blocks cannot be taken back', () => {
  chain.mine(40)
  assert.throws(() => chain.fork(32), /Finalized blocks cannot be taken back/)
  chain.fork(31)
  chain.mine(31)
})

test('a transaction can be dropped, held, or sent without an answer', async () => {
  const [dropped, held, unanswered, refused] = [
    await makePayment(),
    await makePayment(),
    await makePayment(),
    await makePayment(),
  ]
  chain.meddle(({ method }) => (method === 'sendTransaction' ? 'drop' : null))
  assert.equal(await dropped.send(), dropped.signature)
  chain.meddle(({ method }) => (method === 'sendTransaction' ? 'cut' : null))
  await assert.rejects(unanswered.send())
  chain.meddle(() => 'refuse')
  await assert.rejects(refused.send(), /503/)
  chain.meddle(null)
  chain.mine()
  assert.deepEqual(
    [await dropped.received(), await unanswered.received(), await refused.received()],
    [0n, 40n, 0n],
  )
  chain.hold()
  await held.send()
  chain.mine(5)
  assert.equal(await held.received(), 0n)
  chain.release()
  chain.mine()
  assert.equal(await held.received(), 40n)
})

test('an answer can be delayed', async () => {
  const { promise, resolve } = Promise.withResolvers<null>()
  chain.meddle(async () => await promise)
  const slot = rpc.getSlot({ commitment: 'processed' }).send()
  const before = chain.slot()
  chain.mine()
  resolve(null)
  assert.equal(await slot, BigInt(before + 1))
  chain.meddle(null)
})

test('the stock x402 client pays through the stock facilitator', async () => {
  const devnet = await openChain({ network: 'SOLANA_DEVNET', slotMs: 50, finalizedAfter: 31 })
  const settler = await newPayer(0n, devnet)
  const payer = await newPayer(2_000_000n, devnet)
  const shop = (await newPayer(0n, devnet)).address
  const network = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'
  const accepted: PaymentRequirements = {
    scheme: 'exact',
    network,
    asset: usdc,
    amount: '1500000',
    payTo: shop,
    maxTimeoutSeconds: 60,
    extra: { feePayer: settler.address, memo: 'ch_1' },
  }
  const client = new x402Client()
    .register(network, new ExactSvmScheme(payer, { rpcUrl: devnet.url }))
    .setSpendControls(false)
  const resource = { url: 'https://farthing.example/c/ch_1', description: '', mimeType: 'text/plain' }
  const payload = await client.createPaymentPayload({ x402Version: 2, resource, accepts: [accepted] })
  const facilitator = new x402Facilitator().register(
    network,
    new ExactSvmFacilitator(toFacilitatorSvmSigner(settler, { defaultRpcUrl: devnet.url })),
  )
  assert.equal((await facilitator.verify(payload, accepted)).isValid, true)
  const settled = await facilitator.settle(payload, accepted)
  assert.equal(settled.success, true)
  assert.equal(await devnet.balance(shop, usdc), 1_500_000n)
  await until('the payment is final', async () => {
    const { value } = await createSolanaRpc(devnet.url)
      .getSignatureStatuses([signature(settled.transaction)])
      .send()
    return value[0]?.confirmationStatus === 'finalized'
  })
})

test('a chain reports its genesis hash, and does not know accounts that were never created', async () => {
  assert.equal(await rpc.getGenesisHash().send(), chain.genesisHash)
  const { address: stranger } = await generateKeyPairSigner()
  assert.equal((await rpc.getAccountInfo(stranger, base64).send()).value, null)
  const payer = await newPayer(7n)
  const { value } = await rpc
    .getTokenAccountsByOwner(
      payer.address,
      { mint: address(usdc) },
      { encoding: 'jsonParsed', commitment: 'processed' },
    )
    .send()
  assert.deepEqual(
    value.map(({ account }) => account.data.parsed.info.tokenAmount.amount),
    ['7'],
  )
})
