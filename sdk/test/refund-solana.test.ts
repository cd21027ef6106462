/** A server that was taken over asks a store's Solana wallet to sign. It gets what the caller wants, or nothing. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { createClient, type Refund, RefundMismatch } from '@farthing/sdk'
import { knownAssets, solanaSigner } from '@farthing/sdk/pay'
import { writeExact } from '../../server/src/chains/svm/write.ts'

const asset = knownAssets.find(({ networkName }) => networkName === 'Solana') ?? assert.fail()

function newKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const secret = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
  return solanaSigner(
    new Uint8Array([...secret, ...publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)]),
  )
}

const [wallet, buyer, settler, thief] = [newKey(), newKey(), newKey(), newKey()]
const terms = { amount: '12500000', recipient: buyer.address }
const refundId = `rf_${'0'.repeat(28)}`
const refund: Refund = {
  id: refundId,
  paymentId: `pay_${'0'.repeat(28)}`,
  checkoutId: null,
  orderId: null,
  status: 'REQUESTED',
  way: 'signed',
  network: asset.network,
  asset: asset.address,
  amount: terms.amount,
  from: wallet.address,
  recipient: buyer.address,
  reason: null,
  transaction: null,
  finality: null,
  failure: null,
  isCanceling: false,
  createdAt: '2026-11-15T12:00:00.000Z',
  completedAt: null,
}

const honest = {
  feePayer: settler.address,
  payer: wallet.address,
  mint: asset.address,
  decimals: 6,
  payTo: buyer.address,
  amount: 12_500_000n,
  memo: `0x66746872${'ab'.repeat(28)}`,
  blockhash: thief.address,
  lastValidBlockHeight: 1n,
}

/** A client of a server that prepares this, and what the wallet signed for it. */
function openWith(prepare: () => Promise<{ transaction: string; expiresAt?: string }>) {
  const presented: unknown[] = []
  const signed: Uint8Array[] = []
  const client = createClient({
    apiKey: 'sk_test_x',
    baseUrl: 'https://farthing.example',
    fetch: async (input, init) => {
      if (String(input).endsWith('/prepare')) {
        const expiresAt = new Date(Date.now() + 60_000).toISOString()
        return Response.json({ refund, expiresAt, ...(await prepare()) })
      }
      presented.push(JSON.parse(String(init?.body)))
      return Response.json({ ...refund, status: 'SIGNED' }, { status: 202 })
    },
  })
  const signer = {
    address: wallet.address,
    signTransaction(transaction: Uint8Array) {
      signed.push(transaction)
      return wallet.signTransaction(transaction)
    },
  }
  return { presented, signed, sign: () => client.refunds.sign(refundId, signer, terms) }
}

async function make(changes: Partial<Parameters<typeof writeExact>[0]> = {}) {
  const bytes = await writeExact({
    unitPrice: 1_000n,
    ...honest,
    ...changes,
  })
  return { transaction: Buffer.from(bytes).toString('base64') }
}

test('exactly the transfer that the caller wants is signed', async () => {
  const { sign, signed, presented } = openWith(() => make())
  assert.equal((await sign()).status, 'SIGNED')
  assert.equal((await sign()).status, 'SIGNED')
  const [first = {}, second] = presented as { transaction: string }[]
  assert.deepEqual(first, second)
  assert.equal(signed.length, 2)
})

const lies: Record<string, Partial<Parameters<typeof writeExact>[0]>> = {
  'another amount': { amount: 12_500_001n },
  'another recipient': { payTo: thief.address },
  'another wallet': { payer: thief.address },
  'another token': { mint: thief.address },
  'other decimals': { decimals: 5 },
  'the wallet pays the fee': { feePayer: wallet.address },
  'a memo that is no refund’s': { memo: 'ch_1' },
}

for (const [name, changes] of Object.entries(lies))
  test(`nothing is signed: ${name}`, async () => {
    const { sign, signed } = openWith(() => make(changes))
    await assert.rejects(sign, RefundMismatch)
    assert.equal(signed.length, 0)
  })

test('a second transaction for one refund is not signed, unless the first never left the process', async () => {
  const next = [honest, { ...honest, blockhash: buyer.address }]
  const { sign, signed } = openWith(() => make(next.shift()))
  await sign()
  await assert.rejects(sign, /signed before/)
  assert.equal(signed.length, 1)

  const late = [{ expiresAt: new Date(0).toISOString() }, {}]
  const slow = openWith(async () => ({ ...(await make()), ...late.shift() }))
  await assert.rejects(slow.sign, /took longer/)
  assert.equal(slow.presented.length, 0)
  assert.equal((await slow.sign()).status, 'SIGNED')
})
