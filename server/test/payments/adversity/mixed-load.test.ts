import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, getAddress, type Hex, keccak256 } from 'viem'
import type { Database } from '../../../src/database/db.ts'
import {
  encodeTransfer,
  newPayer,
  type Payer,
  type paymentHeader,
  signAuthorization,
} from '../../support/chain/evm-payment.ts'
import { openFleet, type Reply, tally } from './fleet.ts'
import { checkInvariants } from './invariants.ts'
import { print, trials } from './size.ts'

const goodCount = trials(120, 1_000)
const badCount = trials(30, 250)
const units = 1_000_000n

/** The transactions that reached the node, and whether each was committed by then, as seen by another connection. */
const sent: { hash: Hex; isCommitted: boolean }[] = []
let db: Database | null = null
const fleet = await openFleet({
  serves: 2,
  settlers: 2,
  sockets: 400,
  async look({ method, params }) {
    if (method !== 'eth_sendRawTransaction') return
    const hash = keccak256(params[0] as Hex)
    const known = await db?.query('select 1 as one from broadcasts where hash = $1', [hash])
    sent.push({ hash, isCommitted: known?.length === 1 })
  },
})
db = fleet.ctx.db
const { token, domain } = fleet.chain

type Bad = {
  readonly name: string
  /** The documented answers for this kind. */
  readonly answers: RegExp
  readonly makeHeader: (checkoutId: string, payer: Payer) => Promise<string>
  readonly isFunded?: boolean
}

const sign = async (checkoutId: string, payer: Payer, overrides: Parameters<typeof paymentHeader>[2] = {}) =>
  await fleet.sign(checkoutId, payer, overrides)
const soon = () => BigInt(Math.floor(Date.now() / 1_000))

const kinds: readonly Bad[] = [
  {
    name: 'an empty wallet',
    answers: /^402 invalid_exact_evm_insufficient_balance/,
    isFunded: false,
    makeHeader: sign,
  },
  {
    name: 'someone else’s signature',
    answers: /^402 invalid_exact_evm_signature/,
    makeHeader: (id, payer) => sign(id, payer, { key: newPayer().key, from: payer.address }),
  },
  {
    name: 'too little',
    answers: /^402 invalid_exact_evm_payload_authorization_value_mismatch/,
    makeHeader: (id, payer) => sign(id, payer, { value: units - 1n }),
  },
  {
    name: 'another recipient',
    answers: /^402 invalid_exact_evm_recipient_mismatch/,
    makeHeader: (id, payer) => sign(id, payer, { to: payer.address }),
  },
  {
    name: 'a window that is over',
    answers: /^402 invalid_exact_evm_payload_authorization_valid_before/,
    makeHeader: (id, payer) => sign(id, payer, { validBefore: soon() - 1n }),
  },
  {
    name: 'a window that is too long',
    answers: /^402 invalid_exact_evm_payload_authorization_valid_before/,
    makeHeader: (id, payer) => sign(id, payer, { validBefore: soon() + 100_000n }),
  },
  {
    name: 'a window that has not begun',
    answers: /^402 invalid_exact_evm_payload_authorization_valid_after/,
    makeHeader: (id, payer) => sign(id, payer, { validAfter: soon() + 60n }),
  },
  {
    name: 'a nonce that is used',
    answers: /^402 invalid_exact_evm_nonce_already_used/,
    makeHeader: async (id, payer) => await sign(id, payer, { nonce: nonceOf(payer) }),
  },
  {
    name: 'text that is not a payment',
    answers: /^400 malformed_payment/,
    makeHeader: async () => Buffer.from('{"x402Version":2}').toString('base64'),
  },
]

/** The nonce that each payer of that kind has already spent. */
function nonceOf({ address }: Payer): Hex {
  return keccak256(address)
}

async function spendNonces(payers: readonly Payer[]): Promise<void> {
  await fleet.chain.performAll(
    await Promise.all(
      payers.map(async (payer) => {
        const nonce = nonceOf(payer)
        const elsewhere: Address = '0x000000000000000000000000000000000000dEaD'
        const input = { key: payer.key, domain, to: elsewhere, value: 1n, validBefore: soon() + 300n, nonce }
        return { to: token, data: encodeTransfer(await signAuthorization(input)) }
      }),
    ),
  )
}

test('all good payments are settled amid bad ones, and every bad one gets its documented answer and moves no money', async (t) => {
  const good = Array.from({ length: goodCount }, newPayer)
  const bad = Array.from({ length: badCount }, (_, i) => ({
    payer: newPayer(),
    kind: kinds[i % kinds.length] as Bad,
  }))
  const funded = [...good, ...bad.filter(({ kind }) => kind.isFunded !== false).map(({ payer }) => payer)]
  await fleet.chain.mint(
    funded.map(({ address }) => address),
    2n * units,
  )
  await spendNonces(bad.filter(({ kind }) => kind.name === 'a nonce that is used').map(({ payer }) => payer))
  const orders = await Promise.all(
    [...good.map((payer) => ({ payer, kind: null })), ...bad].map(async ({ payer, kind }) => {
      const checkoutId = await fleet.create('1.00')
      const header = await (kind?.makeHeader ?? sign)(checkoutId, payer)
      return { payer, kind, checkoutId, header }
    }),
  )
  // Bad payments are spread among the good ones.
  const mixed = orders.toSorted((a, b) => a.header.localeCompare(b.header))
  const began = Date.now()
  const replies = await Promise.all(
    mixed.map(async (order) => ({
      ...order,
      reply: await fleet.payUntilKnown(order.checkoutId, order.header),
    })),
  )
  const seconds = (Date.now() - began) / 1_000
  t.diagnostic(print({ seconds, ...tally(replies.map(({ reply }) => reply)) }))

  const spent = Map.groupBy(await fleet.chain.transferLogs(), ({ args }) => getAddress(args.from))
  for (const { kind, payer, checkoutId, reply } of replies) {
    if (kind === null) {
      assert.equal(reply.status, 200, textOf(reply))
      assert.equal((await fleet.read(checkoutId)).status, 'COMPLETED')
      assert.equal(spent.get(payer.address)?.length, 1)
    } else {
      assert.match(textOf(reply), kind.answers, kind.name)
      assert.equal((await fleet.read(checkoutId)).status, 'OPEN', kind.name)
      const expected = kind.name === 'a nonce that is used' ? 1 : 0
      assert.equal(spent.get(payer.address)?.length ?? 0, expected, kind.name)
    }
  }
})

test('a payment that fails after its claim is refused, and another payer can pay the checkout', async () => {
  const payer = newPayer()
  await fleet.chain.mint(payer.address, units)
  const ids = await Promise.all(Array.from({ length: 5 }, () => fleet.create('1.00')))
  // There is money for one of the five; the others are refused, before or after their claim.
  const headers = await Promise.all(ids.map((id) => fleet.sign(id, payer)))
  const replies = await Promise.all(ids.map((id, i) => fleet.payUntilKnown(id, headers[i] ?? '')))
  const paid = replies.filter(({ status }) => status === 200)
  assert.equal(paid.length, 1, print(tally(replies)))
  for (const reply of replies.filter(({ status }) => status !== 200))
    assert.match(textOf(reply), /^402 invalid_exact_evm_insufficient_balance/)
  const other = newPayer()
  await fleet.chain.mint(other.address, 10n * units)
  for (const [i, id] of ids.entries()) {
    if (replies[i]?.status === 200) continue
    const reply = await fleet.payUntilKnown(id, await fleet.sign(id, other))
    assert.equal(reply.status, 200, textOf(reply))
  }
})

test('no nonce is missing, all bytes were committed before they reached a node, and the invariants hold', async (t) => {
  const checked = await checkInvariants({
    db: fleet.ctx.db,
    chain: fleet.chain,
    answers: fleet.answers,
  })
  assert.equal(checked.completed, goodCount + 5)
  assert.deepEqual(
    sent.filter(({ isCommitted }) => !isCommitted),
    [],
  )
  const reached = new Set(sent.map(({ hash }) => hash))
  assert(reached.size >= checked.mined)
  t.diagnostic(print({ requests: fleet.answers.length, sent: sent.length, ...checked }))
})

function textOf({ status, code, error }: Reply): string {
  return [status, code, error].filter((part) => part !== '').join(' ')
}
