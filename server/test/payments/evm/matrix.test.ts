/**
 * Sends the same requests to the stock x402 server and to Farthing, side by side on one chain. The answers are
 * matrix.md: WRITE_MATRIX=1 writes it; otherwise the test fails if it differs. docs/x402.md quotes some of its rows.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import {
  concat,
  type Hex,
  numberToHex,
  parseSignature,
  serializeCompactSignature,
  signatureToCompactSignature,
} from 'viem'
import { makeBoundNonce } from '../../../src/payments/nonces.ts'
import {
  encodeTransfer,
  newPayer,
  type Payer,
  paymentHeader,
  type Signed,
  wrap,
} from '../../support/chain/evm-payment.ts'
import { openShop, payTo } from '../../support/shop.ts'
import { alter, decode, encode, type Payload, untilReady } from '../../support/watch.ts'
import {
  openOurs,
  openReference,
  type Place,
  placeMulticall,
  type Reply,
  type Side,
} from './support/sides.ts'

const file = new URL('matrix.md', import.meta.url)

const shop = await openShop({ worker: false, blockTimeSeconds: 0.25 })
const [reference, ours] = [await openReference(shop), await openOurs(shop)]

type Scene = { readonly side: Side; readonly place: Place; readonly payer: Payer }
type Row = readonly [request: string, play: (scene: Scene) => Promise<Reply | readonly Reply[]>]

const sign = ({ place, payer }: Scene, overrides: Parameters<typeof paymentHeader>[2] = {}) =>
  paymentHeader(place.terms, payer.key, overrides)

/** A request whose header is derived from a good one. */
function changed(request: string, change: (payload: Payload) => unknown): Row {
  return [request, async (scene) => await scene.place.send(alter(await sign(scene), change))]
}

function resigned(request: string, rewrite: (signature: Hex) => string): Row {
  return changed(request, ({ payload }) => {
    payload.signature = rewrite(payload.signature as Hex)
  })
}

function signed(request: string, overrides: () => Promise<Parameters<typeof paymentHeader>[2]>): Row {
  return [request, async (scene) => await scene.place.send(await sign(scene, await overrides()))]
}

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const seconds = () => BigInt(Math.floor(Date.now() / 1_000))

/** Sends while the node fails. */
function broken(request: string, ...methods: readonly string[]): Row {
  return [
    request,
    async (scene) => {
      const header = await sign(scene)
      scene.side.node.fail('refused', ...methods)
      const reply = await scene.place.send(header)
      scene.side.node.heal()
      return reply
    },
  ]
}

/** Someone else sends the payment to the token before it is presented. */
async function sendFirst(scene: Scene, header: string): Promise<Reply> {
  const { authorization, signature } = decode(header).payload
  const data = encodeTransfer({ authorization, signature } as Signed)
  // Both sides use one account for this, so its transactions go one after the other.
  turn = turn.then(() => shop.chain.perform({ to: shop.chain.token, data }))
  await turn
  return await scene.place.send(header)
}

let turn: Promise<unknown> = Promise.resolve()

/** Makes a payer's account a smart wallet that its key owns. */
async function becomeWallet({ address }: Payer): Promise<void> {
  const placed = turn.then(async () => {
    const wallet = await shop.chain.deploy('OwnedWallet', [address])
    const bytecode = await shop.chain.client.getCode({ address: wallet })
    await shop.chain.client.setCode({ address, bytecode: bytecode ?? assert.fail('no code') })
  })
  turn = placed
  await placed
}

const rows: readonly Row[] = [
  ['no header', ({ place }) => place.send()],
  ['header is not base64', ({ place }) => place.send('not base64!')],
  [
    'header is base64url',
    async (scene) =>
      scene.place.send(Buffer.from(`{"x402Version":2,"a":"${'?>'.repeat(9)}"}`).toString('base64url')),
  ],
  ['header is not JSON', ({ place }) => place.send(Buffer.from('{').toString('base64'))],
  ['JSON `null`', ({ place }) => place.send(encode(null))],
  ['JSON number', ({ place }) => place.send(encode(7))],
  ['JSON array', ({ place }) => place.send(encode([]))],
  changed('`x402Version` 1', (payload) => Object.assign(payload, { x402Version: 1 })),
  changed('`x402Version` 3', (payload) => Object.assign(payload, { x402Version: 3 })),
  changed('`accepted` missing', (payload) => Reflect.deleteProperty(payload, 'accepted')),
  changed('`payload` missing', (payload) => Reflect.deleteProperty(payload, 'payload')),
  changed('`payload` empty', (payload) => Object.assign(payload, { payload: {} })),
  changed('`value` is not a number', ({ payload }) => Object.assign(payload.authorization, { value: 'abc' })),
  changed('`from` is not an address', ({ payload }) => Object.assign(payload.authorization, { from: '0x1' })),
  changed('`accepted.amount` changed after signing', ({ accepted }) =>
    Object.assign(accepted, { amount: '1' }),
  ),
  changed('`accepted.payTo` in lower case', ({ accepted }) =>
    Object.assign(accepted, { payTo: payTo.toLowerCase() }),
  ),
  changed('an extra key in `accepted`', ({ accepted }) => Object.assign(accepted, { note: 'x' })),
  changed('an extra key in `accepted.extra`', ({ accepted }) =>
    Object.assign(accepted.extra as object, { note: 'x' }),
  ),
  resigned('a signature that nobody made', () => `0x${'11'.repeat(65)}`),
  resigned('signature without `0x`', (signature) => signature.slice(2)),
  resigned('signature of 64 bytes (EIP-2098)', (signature) =>
    serializeCompactSignature(signatureToCompactSignature(parseSignature(signature))),
  ),
  resigned('signature with `v` of 0 or 1', (signature) =>
    concat([signature.slice(0, -2) as Hex, signature.endsWith('1b') ? '0x00' : '0x01']),
  ),
  resigned('signature with a high `s`', (signature) => {
    const { r, s, v } = parseSignature(signature)
    return concat([r, numberToHex(order - BigInt(s), { size: 32 }), numberToHex(v === 27n ? 28 : 27)])
  }),
  resigned('signature wrapped by ERC-6492, of an ordinary wallet', (signature) => wrap(signature)),
  [
    'the same, of a smart wallet that is deployed',
    async (scene) => {
      await becomeWallet(scene.payer)
      const header = await sign(scene)
      return await scene.place.send(
        alter(header, ({ payload }) => {
          payload.signature = wrap(payload.signature as Hex)
        }),
      )
    },
  ],
  resigned('the same, of a smart wallet that is not deployed', () => wrap(`0x${'11'.repeat(65)}`)),
  resigned('a signature wrapped twice', (signature) => wrap(wrap(signature))),
  signed('signed for another recipient', async () => ({ to: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC' })),
  signed('signed for another amount', async () => ({ value: 999_999n })),
  signed('less than 6 s left', async () => ({ validBefore: seconds() + 3n })),
  signed('not valid yet', async () => ({ validAfter: seconds() + 600n })),
  signed('valid for an hour', async () => ({ validBefore: seconds() + 3_600n })),
  [
    'too little money',
    async ({ place, payer }) =>
      await place.send(await paymentHeader(place.terms, payer.key.replace(/.{4}$/, 'beef') as Hex)),
  ],
  ['a good payment', async (scene) => await scene.place.send(await sign(scene))],
  [
    'the same payment again after it has paid',
    async (scene) => {
      const header = await sign(scene)
      await scene.place.send(header)
      return await scene.place.send(header)
    },
  ],
  [
    'no header after it was paid',
    async (scene) => {
      await scene.place.send(await sign(scene))
      return await scene.place.send()
    },
  ],
  [
    'another payment after it was paid',
    async (scene) => {
      await scene.place.send(await sign(scene))
      return await scene.place.send(await sign(scene))
    },
  ],
  [
    'the same payment for another item at the same price',
    async (scene) => {
      const header = await sign(scene)
      await scene.place.send(header)
      return await (await scene.side.open()).send(header)
    },
  ],
  [
    'the same payment five times at once',
    async (scene) => {
      const header = await sign(scene)
      return await Promise.all(Array.from({ length: 5 }, () => scene.place.send(header)))
    },
  ],
  ['somebody else sent the payment to the token first', async (scene) => sendFirst(scene, await sign(scene))],
  [
    'the same, with a nonce that names the checkout',
    async (scene) => {
      const id = scene.place.terms.resource.url.split('/').at(-1) ?? ''
      return await sendFirst(scene, await sign(scene, { nonce: makeBoundNonce(id, randomBytes(12)) }))
    },
  ],
  broken('the node does not answer eth_getCode and eth_call', 'eth_getCode', 'eth_call'),
  broken('the node does not answer eth_call', 'eth_call'),
  [
    'the node refuses the settlement’s transaction once',
    async (scene) => {
      const header = await sign(scene)
      scene.side.node.failTimes('internal', 1, 'eth_sendRawTransaction')
      return await scene.place.send(header)
    },
  ],
  [
    'one attempt to read the settlement’s outcome fails',
    async (scene) => {
      const header = await sign(scene)
      scene.side.missOutcomes(1)
      return await scene.place.send(header)
    },
  ],
  [
    'two attempts to read the settlement’s outcome fail',
    async (scene) => {
      const header = await sign(scene)
      scene.side.missOutcomes(2)
      return await scene.place.send(header)
    },
  ],
  [
    'the same, and the client repeats its request',
    async (scene) => {
      const header = await sign(scene)
      scene.side.missOutcomes(2)
      await scene.place.send(header)
      return await scene.place.send(header)
    },
  ],
]

const funds = 10_000_000n

async function play(side: Side, payer: Payer, [, act]: Row): Promise<{ answer: string; moved: string }> {
  const reply = await act({ side, place: await side.open(), payer })
  const moved = funds - (await shop.chain.balance(payer.address))
  const replies = [reply].flat() as Reply[]
  const [first, ...rest] = replies
  assert(first)
  const statuses = replies.map(({ status }) => status)
  if (side === ours && rest.length > 0) assert.deepEqual([...new Set(statuses)], [200])
  // Which request the stock server accepts depends on which arrives first.
  const isAllPaid = statuses.every((status) => status === 200)
  const together = isAllPaid ? `${statuses.length} times 200` : 'not all get 200'
  const answer = rest.length === 0 ? describe(first) : together
  return { answer, moved: moved === 0n ? '' : `$${moved / 1_000_000n}` }
}

function describe({ status, required, response, body }: Reply): string {
  const terms = required === undefined ? null : decode<{ error?: string }>(required)
  const settlement = response === undefined ? null : decode<{ errorReason?: string }>(response)
  const code = typeof body === 'object' && body !== null && 'code' in body ? String(body.code) : undefined
  const reason = code ?? terms?.error ?? settlement?.errorReason
  return [
    String(status),
    ...(reason === undefined ? [] : [`\`${reason}\``]),
    ...(status !== 200 && terms ? ['T'] : []),
    ...(settlement ? ['S'] : []),
  ].join(' ')
}

const introduction = `# How Farthing answers a payer, compared with the stock x402 server

Generated by server/test/payments/evm/matrix.test.ts: \`WRITE_MATRIX=1 npm test -- server/test/payments/evm/matrix.test.ts\`.

The test sends the same requests to two servers on one local chain and records both answers: the stock server (\`x402HTTPResourceServer\` of \`@x402/core\` 2.27.0, with the facilitator of \`@x402/evm\` in its process) and Farthing. Each request comes from a new payer, for an item that costs one dollar. The reason shown is the one that a client finds: \`code\` of a problem, \`error\` of the terms, or \`errorReason\` of the settlement.

- **T**: the answer carries \`PAYMENT-REQUIRED\`, so a client may sign again. On a 402 Farthing’s body is the same JSON; the stock server’s is \`{}\`.
- **S**: the answer carries \`PAYMENT-RESPONSE\`.
- **Moved**: what the payer has paid in the end. A row with 402 and moved money is a buyer who paid and is asked to pay again.

| Request | Stock server | Moved | Farthing | Moved |
|---|---|---|---|---|
`

test('the answers of Farthing and the stock server are the ones in matrix.md', async () => {
  await placeMulticall(shop)
  await untilReady(shop)
  const payers = rows.map(() => [newPayer(), newPayer()] as const)
  await shop.chain.mint(
    payers.flat().map(({ address }) => address),
    funds,
  )
  const lines: string[] = []
  for (const [i, row] of rows.entries()) {
    const [one, other] = payers[i] ?? [newPayer(), newPayer()]
    const [theirs, mine] = await Promise.all([play(reference, one, row), play(ours, other, row)])
    lines.push(`| ${row[0]} | ${theirs.answer} | ${theirs.moved} | ${mine.answer} | ${mine.moved} |`)
  }
  const found = `${introduction}${lines.join('\n')}\n`
  if (process.env.WRITE_MATRIX === '1') await writeFile(file, found)
  assert.equal(await readFile(file, 'utf8'), found, 'Run it with WRITE_MATRIX=1 and look at what changed.')
})
