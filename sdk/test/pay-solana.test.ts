import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pay, solanaSigner } from '@farthing/sdk/pay'
import { generateKeyPairSigner, getBase58Decoder, getTransactionDecoder } from '@solana/kit'
import fc from 'fast-check'
import { findTokenAccount } from '../../server/src/chains/svm/transfer.ts'
import { svmPayTo } from '../../server/test/support/shop.ts'
import { fromBase58, toBase58, tokenAccountOf } from '../src/agent/solana-message.ts'
import { openPaidSvmStore } from './support/shops.ts'

const shop = await openPaidSvmStore()

/** A funded payer that records what it is asked to sign. */
async function openPayer(units?: bigint) {
  const { address, secret, base58 } = await shop.newKey(units)
  const { signTransaction } = solanaSigner(secret)
  const asked: Uint8Array[] = []
  return {
    address,
    asked,
    base58,
    async signTransaction(transaction: Uint8Array) {
      asked.push(transaction)
      return await signTransaction(transaction)
    },
  }
}

test('an agent pays on Solana with one signature and without any SOL', async () => {
  const payer = await openPayer()
  const url = await shop.checkoutUrl('2.50')
  const result = await pay(url, payer, { max: '5.00' })
  assert.equal(result.outcome, 'paid')
  assert.equal(result.payer, payer.address)
  assert.equal(await shop.balance(payer.address), 7_500_000n)
  assert.equal(payer.asked.length, 1)
  // Paying again signs nothing.
  assert.equal((await pay(url, payer, { max: '5.00' })).outcome, 'paid')
  assert.equal(payer.asked.length, 1)
})

test('pay also works at the API’s URL and with a base58 key', async () => {
  const { base58 } = await openPayer()
  const signer = solanaSigner(base58)
  const url = `${shop.baseUrl}/api/v1/checkouts/${await shop.create('1.00')}`
  const result = await pay(url, [signer], { max: '5.00' })
  assert.equal(result.outcome, 'paid')
})

test('nothing is signed over the limit, without funds, or without approval', async () => {
  const payer = await openPayer(1n)
  const url = await shop.checkoutUrl('1.00')
  const codeOf = async (options: Parameters<typeof pay>[2]) => {
    const result = await pay(url, payer, options)
    assert(result.outcome === 'refused')
    return result.code
  }
  assert.equal(await codeOf({ max: '0.99' }), 'over_limit')
  assert.equal(await codeOf({ max: '1.00' }), 'insufficient_funds')
  await shop.chain.fund(payer.address, { token: [shop.chain.mint, 1_000_000n] })
  const approve = ({ transaction }: { transaction: Uint8Array | null }) => transaction === null
  assert.equal(await codeOf({ max: '1.00', approve }), 'declined')
  assert.equal(payer.asked.length, 0)
})

test('a transaction that differs from the offer in any way is not signed', async () => {
  const payer = await openPayer()
  const url = await shop.checkoutUrl('1.00')
  const stranger = (await generateKeyPairSigner()).address
  const account = await findTokenAccount(svmPayTo, shop.chain.mint)
  const theirs = await findTokenAccount(stranger, shop.chain.mint)
  const lie =
    (change: (bytes: Uint8Array) => Uint8Array): typeof fetch =>
    async (input, init) => {
      const answer = await fetch(input, init)
      if (!String(input).endsWith('/prepare')) return answer
      const { transaction } = (await answer.json()) as { transaction: string }
      const changed = change(Uint8Array.from(Buffer.from(transaction, 'base64')))
      return Response.json({ transaction: Buffer.from(changed).toString('base64') })
    }
  const replace = (bytes: Uint8Array, from: string, to: string) => {
    const at = Buffer.from(bytes).indexOf(fromBase58(from, 32))
    assert(at > 0)
    const changed = bytes.slice()
    changed.set(fromBase58(to, 32), at)
    return changed
  }
  const amountAt = (bytes: Uint8Array) =>
    Buffer.from(bytes).indexOf(Buffer.from('0c40420f0000000000', 'hex')) + 1
  const lies: ((bytes: Uint8Array) => Uint8Array)[] = [
    (bytes) => replace(bytes, account, theirs),
    (bytes) => replace(bytes, shop.chain.mint, stranger),
    (bytes) => replace(bytes, shop.signers[0]?.address ?? '', stranger),
    (bytes) => bytes.with(amountAt(bytes), 0x41),
    (bytes) => bytes.with(bytes.length - 3, 0),
    (bytes) => new Uint8Array([...bytes, 0]),
    (bytes) => bytes.slice(0, -1),
    () => new Uint8Array(),
  ]
  for (const change of lies) {
    const result = await pay(url, payer, { max: '5.00', fetch: lie(change) })
    assert.equal(result.outcome === 'refused' && result.code, 'malformed_terms')
  }
  assert.equal(payer.asked.length, 0)
  // The control: the same path with an unchanged transaction pays.
  assert.equal((await pay(url, payer, { max: '5.00', fetch: lie((bytes) => bytes) })).outcome, 'paid')
})

test('after a lost answer the same transaction is submitted again', async () => {
  const payer = await openPayer()
  const url = await shop.checkoutUrl('1.00')
  let isLost = false
  const result = await pay(url, payer, {
    max: '5.00',
    async fetch(input, init) {
      const answer = await fetch(input, init)
      if (isLost || !new Headers(init?.headers).has('payment-signature')) return answer
      isLost = true
      throw new TypeError('the connection broke')
    },
  })
  assert.equal(result.outcome, 'paid')
  assert(isLost)
  assert.equal(payer.asked.length, 1)
  assert.equal(await shop.balance(payer.address), 9_000_000n)
})

test('base58, token accounts and signatures match @solana/kit', async () => {
  const address = fc.uint8Array({ minLength: 32, maxLength: 32 })
  await fc.assert(
    fc.asyncProperty(address, address, async (owner, mint) => {
      const [a, b] = [toBase58(owner), toBase58(mint)]
      assert.equal(a, getBase58Decoder().decode(owner))
      assert.deepEqual(fromBase58(a, 32), owner)
      assert.equal(await tokenAccountOf(a, b), await findTokenAccount(a, b))
    }),
    { numRuns: 100 },
  )
  const payer = await openPayer()
  await pay(await shop.checkoutUrl('1.00'), payer, { max: '1.00' })
  const asked = payer.asked[0] ?? new Uint8Array()
  const { signatures } = getTransactionDecoder().decode(await payer.signTransaction(asked))
  assert.notEqual(signatures[payer.address as keyof typeof signatures], null)
})
