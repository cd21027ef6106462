/**
 * Guards: instructions of the Lighthouse program that wallets add to what they sign. Its code is not to be had here, so
 * a program that does nothing stands in for it: what the real one does is not shown, only which layouts we accept.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AccountRole, address, type Instruction } from '@solana/kit'
import {
  computeProgram,
  findTokenAccount,
  memoProgram,
  systemProgram,
} from '../../../src/chains/svm/transfer.ts'
import { type Changes, compute, meta, type Parts } from '../../support/chain/svm-payment.ts'
import { makeProgram } from '../../support/local-svm/programs.ts'
import { openShop } from '../../support/shop.ts'

const shop = await openShop({ network: 'SOLANA_LOCAL', settlers: 2 })
const { chain } = shop
const lighthouse = address('L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95')
const other = address('L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S96')
for (const program of [lighthouse, other]) chain.plant(makeProgram(program))

const { READONLY, READONLY_SIGNER, WRITABLE } = AccountRole

/** Lighthouse's instructions by the first byte of their data. */
const kinds = { write: 0, close: 1, delta: 4, info: 5, tokens: 10, clock: 15, tree: 16, bubblegum: 17 }

/** A guard of this kind on these accounts. Phantom's have 16, 17, 27 and 52 bytes of data. */
function guard(kind: keyof typeof kinds, accounts: Instruction['accounts'] = [], length = 17): Instruction {
  const data = new Uint8Array(length)
  data[0] = kinds[kind]
  return { programAddress: lighthouse, accounts: accounts ?? [], data }
}

const onFeePayer = ({ feePayer }: Parts, length = 17) => guard('info', [meta(feePayer, READONLY)], length)
const onSource = ({ source }: Parts, length = 52) => guard('tokens', [meta(source, READONLY)], length)

/** The payment with more instructions behind it. */
const behind =
  (...more: readonly ((parts: Parts) => Instruction)[]) =>
  (parts: Parts) => [parts.limit, parts.price, parts.transfer, parts.memo, ...more.map((one) => one(parts))]

/** Phantom's, as it was seen on the main network in January, April and August 2026. */
const phantom: readonly (readonly [string, (parts: Parts) => readonly Instruction[]])[] = [
  ['one guard behind the memo', behind(onSource)],
  ['three guards behind the memo', behind(onSource, onSource, onFeePayer)],
  [
    'three guards before the transfer and one behind the memo, which read the fee payer',
    (parts) => [
      parts.limit,
      parts.price,
      onFeePayer(parts),
      onSource(parts),
      onFeePayer(parts, 16),
      parts.transfer,
      parts.memo,
      onFeePayer(parts, 27),
    ],
  ],
]

const stranger = await chain.payer()
const tokens = await Promise.all(
  shop.signers.map(({ address: owner }) => findTokenAccount(owner, chain.mint)),
)

for (const [name, arrange] of phantom)
  test(`Phantom pays with ${name}`, async () => {
    const [id, payer] = [await shop.create(), await chain.payer()]
    const before = await shop.received()
    const answer = await shop.pay(id, await shop.sign(id, payer, { arrange, units: 100_000n }))
    assert.equal(answer.statusCode, 200, answer.body)
    assert.equal((await shop.received()) - before, 1_000_000n)
  })

test('six guards that read accounts or the clock pay, in any place behind the price', async () => {
  const [id, payer] = [await shop.create(), await chain.payer()]
  const arrange = (parts: Parts) => [
    parts.limit,
    parts.price,
    guard('clock'),
    guard('delta', [meta(parts.source, READONLY), meta(parts.feePayer, READONLY)]),
    parts.transfer,
    onFeePayer(parts),
    onSource(parts),
    parts.memo,
    onSource(parts),
    onFeePayer(parts),
  ]
  const answer = await shop.pay(id, await shop.sign(id, payer, { arrange }))
  assert.equal(answer.statusCode, 200, answer.body)
})

const prefix = 'invalid_exact_svm_payload'
const length = `${prefix}_transaction_instructions_length`
const unaccepted = `${prefix}_guard_not_accepted`
const [first, second] = shop.signers
assert(first && second)
const send = (from: string) => ({
  programAddress: systemProgram,
  accounts: [meta(from, AccountRole.WRITABLE_SIGNER), meta(stranger.address, WRITABLE)],
  data: Uint8Array.of(2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0),
})

const hostile: readonly (readonly [string, string, Changes])[] = [
  [
    'a guard that writes memory at the fee payer’s expense',
    unaccepted,
    { arrange: behind(({ feePayer }) => guard('write', [meta(feePayer, AccountRole.WRITABLE_SIGNER)])) },
  ],
  [
    'a guard that closes memory to the fee payer',
    unaccepted,
    { arrange: behind(({ feePayer }) => guard('close', [meta(feePayer, AccountRole.WRITABLE_SIGNER)])) },
  ],
  [
    'a guard that calls another program about a tree',
    unaccepted,
    { arrange: behind(({ feePayer }) => guard('tree', [meta(feePayer, READONLY), meta(other, READONLY)])) },
  ],
  ['a guard about a Bubblegum tree', unaccepted, { arrange: behind(() => guard('bubblegum')) }],
  [
    'a guard of an unknown kind',
    unaccepted,
    { arrange: behind(() => ({ programAddress: lighthouse, data: Uint8Array.of(18) })) },
  ],
  ['a guard without data', unaccepted, { arrange: behind(() => guard('info', [], 0)) }],
  [
    'a guard with three accounts',
    unaccepted,
    {
      arrange: behind(({ source, feePayer }) =>
        guard(
          'info',
          [source, feePayer, other].map((one) => meta(one, READONLY)),
        ),
      ),
    },
  ],
  [
    'a guard that may write to another settler',
    unaccepted,
    {
      arrange: behind(() =>
        guard(
          'info',
          shop.signers.map((one) => meta(one.address, WRITABLE)),
        ),
      ),
    },
  ],
  [
    'a guard that may write to a settler’s token account',
    unaccepted,
    {
      arrange: behind(() =>
        guard(
          'tokens',
          tokens.map((one) => meta(one, WRITABLE)),
        ),
      ),
    },
  ],
  [
    'a guard that a third wallet must sign',
    `${prefix}_excessive_signers`,
    { arrange: behind(() => guard('info', [meta(stranger.address, READONLY_SIGNER)])) },
  ],
  [
    'another program that reads the fee payer',
    `${prefix}_transaction_fee_payer_transferring_funds`,
    { arrange: behind((parts) => ({ ...onFeePayer(parts), programAddress: other })) },
  ],
  [
    'another program that reads the payer’s account',
    `${prefix}_unknown_fifth_instruction`,
    { arrange: behind((parts) => ({ ...onSource(parts), programAddress: other })) },
  ],
  [
    'a memo that names the fee payer',
    `${prefix}_transaction_fee_payer_transferring_funds`,
    {
      arrange: (parts) => [
        ...[parts.limit, parts.price, onFeePayer(parts), parts.transfer],
        {
          programAddress: memoProgram,
          accounts: [meta(parts.feePayer, READONLY_SIGNER)],
          data: parts.memo.data ?? new Uint8Array(),
        },
      ],
    },
  ],
  [
    'the fee payer’s money between guards',
    `${prefix}_transaction_fee_payer_transferring_funds`,
    { arrange: behind(onSource, ({ feePayer }) => send(feePayer), onSource) },
  ],
  ['seven guards', length, { arrange: behind(...Array(7).fill(onSource)) }],
  ['twenty guards', length, { arrange: behind(...Array(20).fill(() => guard('clock', [], 1))) }],
  [
    'a guard before the compute limit',
    `${prefix}_transaction_instructions_compute_limit_instruction`,
    { arrange: (parts) => [onSource(parts), ...behind()(parts)] },
  ],
  [
    'a guard between the compute limit and the price',
    `${prefix}_transaction_instructions_compute_price_instruction`,
    { arrange: (parts) => [parts.limit, onSource(parts), parts.price, parts.transfer, parts.memo] },
  ],
  [
    'guards in place of the transfer',
    `${prefix}_no_transfer_instruction`,
    {
      arrange: (parts) => [
        parts.limit,
        parts.price,
        onSource(parts),
        parts.memo,
        onSource(parts),
        parts.memo,
      ],
    },
  ],
  [
    'the transfer twice',
    `${prefix}_unknown_fourth_instruction`,
    {
      arrange: (parts) => [
        parts.limit,
        parts.price,
        onSource(parts),
        parts.transfer,
        parts.transfer,
        parts.memo,
      ],
    },
  ],
  [
    'a second price behind a guard',
    `${prefix}_unknown_fifth_instruction`,
    { arrange: behind(onSource, () => compute(3, 5_000_000n)) },
  ],
  [
    'a larger heap behind a guard',
    `${prefix}_unknown_fifth_instruction`,
    {
      arrange: behind(onSource, () => ({
        programAddress: computeProgram,
        data: Uint8Array.of(1, 0, 0, 4, 0),
      })),
    },
  ],
  [
    'a compute limit above the highest',
    `${prefix}_transaction_instructions_compute_limit_instruction_too_high`,
    { arrange: behind(onSource), units: 200_001n },
  ],
  [
    'a compute price above the highest',
    `${prefix}_transaction_instructions_compute_price_instruction_too_high`,
    { arrange: behind(onSource), price: 100_001n },
  ],
]

const ours = async () => {
  const accounts = [first.address, second.address, ...tokens].map((one) => chain.account(one))
  return accounts.map((account) => (account.exists ? [account.lamports, String(account.data)] : null))
}

for (const owner of [first, second]) await chain.fund(owner.address, { token: [chain.mint, 5_000_000n] })

for (const [name, reason, changes] of hostile)
  test(`${name} does not pay, and costs us nothing`, async () => {
    const [id, payer] = [await shop.create(), await chain.payer()]
    const before = [await ours(), await shop.received()]
    const answer = await shop.pay(id, await shop.sign(id, payer, changes))
    assert.deepEqual([answer.statusCode, answer.json().error], [402, reason])
    assert.deepEqual([await ours(), await shop.received()], before)
  })

test('a guard that the chain does not let pass is refused by the simulation, and costs us nothing', async () => {
  chain.plant(makeProgram(lighthouse, false))
  const [id, payer] = [await shop.create(), await chain.payer()]
  const before = [await ours(), await shop.received()]
  const answer = await shop.pay(id, await shop.sign(id, payer, { arrange: behind(onSource) }))
  assert.deepEqual(
    [answer.statusCode, answer.json().error],
    [402, 'invalid_exact_svm_transaction_simulation_failed'],
  )
  assert.deepEqual([await ours(), await shop.received()], before)
})
