import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PaymentRequirements } from '@farthing/sdk'
import { generateKeyPairSigner } from '@solana/kit'
import fc from 'fast-check'
import { svmTransaction } from '../../../test/support/chain/svm-payment.ts'
import { networks } from '../../networks.ts'
import { decodeTransaction, encodeTransaction, hashMessage } from './message.ts'
import { findTokenAccount, isSignedByPayer, readExact } from './transfer.ts'

const network = networks.find(({ id }) => id === 'SOLANA_MAINNET')
assert(network?.family === 'SOLANA')
const [asset] = network.assets
assert(asset)
const payer = await generateKeyPairSigner()
const settler = await generateKeyPairSigner()
const accepted: PaymentRequirements = {
  scheme: 'exact',
  network: network.caip2,
  asset: asset.address,
  amount: '1000000',
  payTo: '8qbHbw2BbbTHBW1sbeqakYXVKRQM8Ne7pLK7m6CVfeR',
  maxTimeoutSeconds: 300,
  extra: { feePayer: settler.address, memo: 'ch_0001m7f6egj0pj5kgr03g9syb7xk' },
}
const blockhash = '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi'
const bytes = Buffer.from(await svmTransaction(accepted, payer, { blockhash }), 'base64')

test('a payment is decoded as it was signed', async () => {
  const transaction = decodeTransaction(bytes)
  assert(transaction)
  assert(isSignedByPayer(transaction))
  assert.deepEqual(readExact(transaction, network), {
    feePayer: settler.address,
    payer: payer.address,
    source: await findTokenAccount(payer.address, asset.address),
    mint: asset.address,
    destination: await findTokenAccount(accepted.payTo, asset.address),
    amount: 1_000_000n,
    decimals: 6,
    memo: 'ch_0001m7f6egj0pj5kgr03g9syb7xk',
    feeMax: 10_001n,
  })
  assert.deepEqual(Buffer.from(encodeTransaction(transaction)), bytes)
})

test('a payment with changed bytes is refused, or stays within its limits and is no longer signed', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 })), {
        minLength: 1,
        maxLength: 4,
      }),
      (changes) => {
        const changed = Buffer.from(bytes)
        for (const [at, by] of changes) changed[at] = (changed[at] ?? 0) ^ by
        const transaction = decodeTransaction(changed)
        if (!transaction) return
        const exact = readExact(transaction, network)
        if ('refusal' in exact) return
        assert(exact.feeMax <= 30_000n)
        assert(transaction.instructions.every(({ accounts }) => !accounts.includes(exact.feePayer)))
        assert.equal(transaction.signatures.length, 2)
        const isSame =
          hashMessage(transaction.message) === hashMessage(decodeTransaction(bytes)?.message ?? bytes)
        if (!isSame) assert(!isSignedByPayer(transaction))
      },
    ),
    { numRuns: 2_000 },
  )
})

test('a transaction with bytes after its message is refused: nodes simulate it, but no leader accepts it', () => {
  for (const more of [[0], [1], [0, 0, 0, 0]])
    assert.equal(decodeTransaction(Buffer.concat([bytes, Buffer.from(more)])), null)
})

test('decoding and reading arbitrary bytes never throws', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1_400 }), (any) => {
      const transaction = decodeTransaction(any)
      if (transaction) readExact(transaction, network)
    }),
    { numRuns: 2_000 },
  )
})
