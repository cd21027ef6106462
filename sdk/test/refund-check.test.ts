/** A server that was taken over asks a store's wallet to sign. It gets a signature for what the caller wants, or none. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient, FarthingError, type PreparedRefund, type Refund, RefundMismatch } from '@farthing/sdk'
import { knownAssets } from '@farthing/sdk/pay'
import fc from 'fast-check'
import { verifyTypedData } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

type Prepared = Extract<PreparedRefund, { typedData: unknown }>

const account = privateKeyToAccount(`0x${'11'.repeat(32)}`)
const recipient = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'
const thief = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const terms = { amount: '12500000', recipient }
const refundId = `rf_${'0'.repeat(28)}`
const usdc = knownAssets.find(({ network }) => network === 'eip155:8453')
assert(usdc?.domain)

const refund: Refund = {
  id: refundId,
  paymentId: `pay_${'0'.repeat(28)}`,
  checkoutId: null,
  orderId: null,
  status: 'REQUESTED',
  way: 'signed',
  network: usdc.network,
  asset: usdc.address,
  amount: terms.amount,
  from: account.address,
  recipient,
  reason: null,
  transaction: null,
  finality: null,
  failure: null,
  isCanceling: false,
  createdAt: '2026-11-15T12:00:00.000Z',
  completedAt: null,
}

function honest(): Prepared {
  const validBefore = Math.floor(Date.now() / 1_000) + 3_600
  return {
    refund,
    typedData: {
      domain: { ...usdc?.domain, chainId: 8453, verifyingContract: usdc?.address },
      types: {
        EIP712Domain: [
          { name: 'name', type: 'string' },
          { name: 'version', type: 'string' },
          { name: 'chainId', type: 'uint256' },
          { name: 'verifyingContract', type: 'address' },
        ],
        TransferWithAuthorization: [
          { name: 'from', type: 'address' },
          { name: 'to', type: 'address' },
          { name: 'value', type: 'uint256' },
          { name: 'validAfter', type: 'uint256' },
          { name: 'validBefore', type: 'uint256' },
          { name: 'nonce', type: 'bytes32' },
        ],
      },
      primaryType: 'TransferWithAuthorization',
      message: {
        from: account.address,
        to: recipient,
        value: terms.amount,
        validAfter: '0',
        validBefore: String(validBefore),
        nonce: `0x66746872${'ab'.repeat(28)}`,
      },
    } as Prepared['typedData'],
    expiresAt: new Date(validBefore * 1_000).toISOString(),
  }
}

/** A client of a server that prepares what it is told to, and what its wallet signed and the client presented. */
function openWith(prepare: () => unknown) {
  const presented: unknown[] = []
  const signed: unknown[] = []
  const client = createClient({
    apiKey: 'sk_test_x',
    baseUrl: 'https://farthing.example',
    retriesMax: 0,
    async fetch(input, init) {
      if (String(input).endsWith('/prepare')) return Response.json(prepare())
      presented.push(JSON.parse(String(init?.body)))
      return Response.json({ ...refund, status: 'SIGNED' }, { status: 202 })
    },
  })
  const wallet = {
    address: account.address,
    async signTypedData(typedData: Parameters<typeof account.signTypedData>[0]) {
      signed.push(typedData)
      return await account.signTypedData(typedData)
    },
  }
  return { client, wallet, signed, presented }
}

test('what the server prepared honestly is signed as the token expects it, and presented', async () => {
  const prepared = honest()
  const { client, wallet, presented } = openWith(() => prepared)
  assert.equal((await client.refunds.sign(refundId, wallet, terms)).status, 'SIGNED')
  const [{ signature }] = presented as [{ signature: `0x${string}` }]
  const { EIP712Domain: _, ...types } = prepared.typedData.types
  const typedData = { ...prepared.typedData, types } as unknown as Parameters<typeof verifyTypedData>[0]
  assert(await verifyTypedData({ ...typedData, address: account.address, signature }))
})

/** Every value in what the server sends, by its path. */
function pathsOf(value: unknown, at: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [at]
  return Object.entries(value).flatMap(([name, each]) => pathsOf(each, [...at, name]))
}

function withValue(value: unknown, [name, ...rest]: readonly string[], lie: unknown): unknown {
  if (name === undefined) return lie
  const fields = value as Record<string, unknown>
  const changed = withValue(fields[name], rest, lie)
  return Array.isArray(value) ? value.with(Number(name), changed) : { ...fields, [name]: changed }
}

const lies = fc.oneof(
  fc.constantFrom(thief, usdc.address, '0x036CbD53842c5426634e7929541eC2318f3dCF7e', account.address),
  fc.constantFrom('12500001', '125000000', '0', '-1', '0x0', '1e30', 'USDC', 'Permit', 'uint8', 'address'),
  fc.integer(),
  fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }).map(String),
  fc.string(),
  fc.constantFrom(null, true, [], {}, [terms.amount]),
  fc.constantFrom(`0x66746867${'ab'.repeat(28)}`, `0x66746872${'ab'.repeat(27)}`, 8453n.toString(16)),
)

test('a server that lies in any one field of the typed data gets no signature', async () => {
  const fields = pathsOf(honest().typedData)
  assert(fields.length > 25)
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...fields), lies, async (field, lie) => {
      const { typedData, ...rest } = honest()
      const truth = field.reduce<unknown>(
        (value, name) => (value as Record<string, unknown>)[name],
        typedData,
      )
      // An address in another spelling, or a number as text, says the same.
      fc.pre(String(truth).toLowerCase() !== String(lie).toLowerCase())
      const { client, wallet, signed, presented } = openWith(() => ({
        ...rest,
        typedData: withValue(typedData, field, lie),
      }))
      await assert.rejects(client.refunds.sign(refundId, wallet, terms), RefundMismatch)
      assert.deepEqual([signed, presented], [[], []])
    }),
    { numRuns: 500 },
  )
})

test('a server that adds or leaves out a field, or describes another refund, gets no signature', async () => {
  const prepared = honest()
  const { typedData } = prepared
  const { nonce: _, ...nonceless } = typedData.message
  const changes: readonly unknown[] = [
    { ...prepared, typedData: { ...typedData, domain: { ...typedData.domain, salt: '0x00' } } },
    { ...prepared, typedData: { ...typedData, message: nonceless } },
    { ...prepared, typedData: { ...typedData, message: { ...typedData.message, data: '0x' } } },
    { ...prepared, typedData: { ...typedData, types: { ...typedData.types, Permit: [] } } },
    { ...prepared, typedData: null },
    { ...prepared, refund: { ...refund, id: `rf_${'1'.repeat(28)}` } },
    { ...prepared, refund: { ...refund, amount: '1' } },
    { ...prepared, refund: { ...refund, recipient: thief } },
    { ...prepared, refund: { ...refund, recipient: null } },
    { ...prepared, refund: { ...refund, network: 'eip155:1' } },
    { ...prepared, refund: { ...refund, asset: thief } },
    { ...prepared, expiresAt: '2036-01-01T00:00:00.000Z' },
    { ...prepared, expiresAt: 'never' },
    { refund, transaction: 'AAAA', expiresAtHeight: 1 },
  ]
  for (const changed of changes) {
    const { client, wallet, signed } = openWith(() => changed)
    await assert.rejects(
      client.refunds.sign(refundId, wallet, terms),
      RefundMismatch,
      JSON.stringify(changed),
    )
    assert.deepEqual(signed, [])
  }
})

test('the caller’s network counts, and so does the amount: a decimal is not taken for units', async () => {
  const { client, wallet, signed } = openWith(honest)
  const elsewhere = { ...terms, network: 'eip155:84532' }
  await assert.rejects(client.refunds.sign(refundId, wallet, elsewhere), RefundMismatch)
  await assert.rejects(client.refunds.sign(refundId, wallet, { ...terms, amount: '12.5' }), TypeError)
  const other = { ...wallet, address: thief }
  await assert.rejects(client.refunds.sign(refundId, other, terms), RefundMismatch)
  assert.deepEqual(signed, [])
})

test('one refund is signed with one nonce, however often the server asks', async () => {
  let nonce = `0x66746872${'ab'.repeat(28)}`
  const { client, wallet, signed } = openWith(() => {
    const { typedData, ...rest } = honest()
    return { ...rest, typedData: { ...typedData, message: { ...typedData.message, nonce } } }
  })
  await client.refunds.sign(refundId, wallet, terms)
  await client.refunds.sign(refundId, wallet, terms)
  nonce = `0x66746872${'cd'.repeat(28)}`
  await assert.rejects(client.refunds.sign(refundId, wallet, terms), (error) => {
    assert(error instanceof RefundMismatch && error instanceof FarthingError)
    assert.deepEqual([error.code, error.field], ['refund_mismatch', 'message.nonce'])
    return true
  })
  assert.equal(signed.length, 2)
})

test('signing a refund that is signed already returns it; one that waits for something else throws the reason', async () => {
  const detail = 'The store sends this refund by itself: name its transaction.'
  const signWhen = (found: Partial<Refund>) =>
    createClient({
      apiKey: 'sk_test_x',
      baseUrl: 'https://farthing.example',
      retriesMax: 0,
      async fetch(input) {
        if (String(input).endsWith('/prepare'))
          return Response.json({ code: 'refund_in_progress', detail }, { status: 409 })
        return Response.json({ ...refund, ...found })
      },
    }).refunds.sign(refundId, account, terms)
  assert.equal((await signWhen({ status: 'SENT' })).status, 'SENT')
  await assert.rejects(signWhen({ way: 'self-sent' }), { code: 'refund_in_progress', detail })
})
