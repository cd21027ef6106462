import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Hex } from 'viem'
import type { ChainLog } from './chain.ts'
import { readTransfers, topics } from './eip3009.ts'

const token: Hex = `0x${'aa'.repeat(20)}`
const otherToken: Hex = `0x${'bb'.repeat(20)}`
const [alice, bob, shop] = ['a1', 'b0', '50'].map((byte) => `0x${byte.repeat(20)}` as Hex) as [Hex, Hex, Hex]
const nonceOf = (n: number): Hex => toWord(BigInt(n))
const transaction = (n: number): Hex => `0x7e${n.toString(16).padStart(62, '0')}`
const blockHash: Hex = `0x${'b1'.repeat(32)}`

type Event =
  | { readonly event: 'used' | 'canceled'; readonly payer: Hex; readonly nonce: Hex }
  | { readonly event: 'transfer'; readonly payer: Hex; readonly to: Hex; readonly value: bigint }
  | { readonly event: 'other' }
type Placed = Event & { readonly address: Hex; readonly transactionHash: Hex; readonly logIndex: number }

const used = (payer: Hex, nonce: number): Event => ({ event: 'used', payer, nonce: nonceOf(nonce) })
const canceled = (payer: Hex, nonce: number): Event => ({ event: 'canceled', payer, nonce: nonceOf(nonce) })
const moved = (payer: Hex, to: Hex, value: bigint): Event => ({ event: 'transfer', payer, to, value })

/** Numbers events consecutively from log 7 on; every argument is a transaction. */
function block(...transactions: readonly (readonly Event[])[]): ChainLog[] {
  let logIndex = 7
  return transactions.flatMap((events, n) =>
    events.map((event) =>
      toLog({ ...event, address: token, transactionHash: transaction(n), logIndex: logIndex++ }),
    ),
  )
}

function toLog(placed: Placed): ChainLog {
  const { address, transactionHash, logIndex } = placed
  const place = { address, transactionHash, logIndex, blockHash }
  if (placed.event === 'other') return { ...place, topics: [`0x${'0f'.repeat(32)}`], data: '0x' }
  const payer: Hex = `0x${'0'.repeat(24)}${placed.payer.slice(2)}`
  if (placed.event === 'transfer') {
    const to: Hex = `0x${'0'.repeat(24)}${placed.to.slice(2)}`
    return { ...place, topics: [topics.transfer, payer, to], data: toWord(placed.value) }
  }
  const topic = placed.event === 'used' ? topics.authorizationUsed : topics.authorizationCanceled
  return { ...place, topics: [topic, payer, placed.nonce], data: '0x' }
}

test('an authorization paid the amount of its own Transfer, and has the place of that Transfer', () => {
  assert.deepEqual(readTransfers(block([used(alice, 1), moved(alice, shop, 5n)])), {
    authorized: [
      {
        payer: alice,
        nonce: nonceOf(1),
        to: shop,
        value: 5n,
        transactionHash: transaction(0),
        logIndex: 8,
        position: 0,
      },
    ],
    usedOnly: [],
    canceled: [],
    plain: [],
  })
})

test('a Transfer from another payer, after a gap, or in another transaction, block or token pays nothing', () => {
  const [first, second] = block([used(alice, 1), moved(alice, shop, 5n)])
  assert(first && second)
  const decoys: ChainLog[][] = [
    block([used(alice, 1), moved(bob, shop, 5n)]),
    block([used(alice, 1)], [moved(alice, shop, 5n)]),
    block([moved(alice, shop, 5n), used(alice, 1)]),
    block([used(alice, 1), canceled(alice, 2), moved(alice, shop, 5n)]),
    [first, { ...second, logIndex: second.logIndex + 1 }],
    [first, { ...second, logIndex: second.logIndex - 2 }],
    [first, { ...second, transactionHash: transaction(9) }],
    [first, { ...second, blockHash: `0x${'b2'.repeat(32)}` }],
    [first, { ...second, address: otherToken }],
  ]
  for (const logs of decoys) {
    const { authorized, usedOnly, plain } = readTransfers(logs)
    assert.deepEqual([authorized.length, usedOnly.length, plain.length], [0, 1, 1])
    assert.deepEqual(usedOnly[0]?.nonce, nonceOf(1))
  }
})

test('a nonce that paid another account does not pay the shop, even next to an equal transfer to the shop', () => {
  const logs = block([used(alice, 1), moved(alice, bob, 5n), moved(alice, shop, 5n)])
  const { authorized, plain } = readTransfers(logs)
  assert.deepEqual(
    authorized.map(({ nonce, to }) => ({ nonce, to })),
    [{ nonce: nonceOf(1), to: bob }],
  )
  assert.deepEqual(
    plain.map(({ to, position }) => ({ to, position })),
    [{ to: shop, position: 0 }],
  )
})

test('of two uses before one Transfer, only the nearer one is paid', () => {
  const { authorized, usedOnly } = readTransfers(
    block([used(alice, 1), used(alice, 2), moved(alice, shop, 5n)]),
  )
  assert.deepEqual(
    authorized.map(({ nonce }) => nonce),
    [nonceOf(2)],
  )
  assert.deepEqual(
    usedOnly.map(({ nonce, logIndex }) => ({ nonce, logIndex })),
    [{ nonce: nonceOf(1), logIndex: 7 }],
  )
})

test('one use before two Transfers is paid once', () => {
  const logs = block([used(alice, 1), moved(alice, shop, 5n), moved(alice, shop, 5n)])
  const { authorized, plain } = readTransfers(logs)
  assert.deepEqual([authorized.length, plain.length], [1, 1])
})

test('a batch is read call by call', () => {
  const events = Array.from({ length: 200 }, (_, n) => [used(alice, n), moved(alice, shop, BigInt(n))]).flat()
  const { authorized, usedOnly, plain } = readTransfers(block(events))
  assert.deepEqual([authorized.length, usedOnly.length, plain.length], [200, 0, 0])
  for (const [n, { nonce, value, position }] of authorized.entries())
    assert.deepEqual([nonce, value, position], [nonceOf(n), BigInt(n), 0])
})

test('a cancellation moves no money, even if a Transfer follows it', () => {
  const {
    authorized,
    canceled: gone,
    plain,
  } = readTransfers(block([canceled(alice, 1), moved(alice, shop, 5n)]))
  assert.deepEqual(gone, [{ payer: alice, nonce: nonceOf(1), transactionHash: transaction(0), logIndex: 7 }])
  assert.deepEqual([authorized.length, plain.length], [0, 1])
})

test('position survives inclusion in another block and does not depend on which other events were queried', () => {
  const events = [moved(bob, shop, 1n), used(alice, 1), moved(alice, shop, 5n), { event: 'other' } as const]
  const positions = (logs: readonly ChainLog[]) => {
    const { authorized, plain } = readTransfers(logs)
    return [...authorized, ...plain].map(({ payer, position }) => ({ payer, position }))
  }
  const expected = positions(block(events))
  const later = block(events).map((log) => ({
    ...log,
    logIndex: log.logIndex + 40,
    blockHash: `0x${'b2'.repeat(32)}` as const,
  }))
  assert.deepEqual(positions(later), expected)
  const [first, ...rest] = block([{ event: 'other' }, ...events])
  assert.deepEqual(positions(rest), expected)
  assert.deepEqual(positions(first ? [first, ...rest] : []), expected)
})

test('upper-case hex is read like lower-case hex', () => {
  const logs = block([used(alice, 1), moved(alice, shop, 5n)])
  const capital = (text: Hex): Hex => `0x${text.slice(2).toUpperCase()}`
  const shouted = logs.map((log) => ({
    ...log,
    address: capital(log.address),
    blockHash: capital(log.blockHash),
    transactionHash: capital(log.transactionHash),
    topics: log.topics.map(capital),
    data: capital(log.data),
  }))
  const [, second] = shouted
  assert.deepEqual(readTransfers(shouted), readTransfers(logs))
  assert.deepEqual(readTransfers(second && logs[0] ? [logs[0], second] : []), readTransfers(logs))
})

test('malformed logs are ignored, and well-formed ones are still read', () => {
  const logs = block([used(alice, 1), moved(alice, shop, 5n)])
  const [first, second] = logs
  assert(first && second)
  const dirty: Hex = `0x1${first.topics[1]?.slice(3)}`
  const malformed = [
    null,
    undefined,
    5,
    'log',
    {},
    { ...second, topics: undefined },
    { ...second, topics: [] },
    { ...second, topics: [null, null, null] },
    { ...second, topics: second.topics.slice(0, 2) },
    { ...second, topics: [...second.topics, nonceOf(3)] },
    { ...second, topics: [topics.transfer, dirty, second.topics[2]] },
    { ...second, topics: [topics.transfer, second.topics[1], dirty] },
    { ...second, topics: [`${topics.transfer}00`, ...second.topics.slice(1)] },
    { ...second, data: '0x' },
    { ...second, data: `${second.data}00` },
    { ...second, data: `0x${'zz'.repeat(32)}` },
    { ...second, data: 5 },
    { ...second, logIndex: -1 },
    { ...second, logIndex: 1.5 },
    { ...second, logIndex: '0x8' },
    { ...second, address: '0x' },
    { ...second, blockHash: null },
    { ...second, transactionHash: `${second.transactionHash}\n` },
    { ...first, data: nonceOf(1) },
    { ...first, topics: [first.topics[0], dirty, first.topics[2]] },
  ] as ChainLog[]
  const nothing = { authorized: [], usedOnly: [], canceled: [], plain: [] }
  for (const log of malformed) assert.deepEqual(readTransfers([log]), nothing, JSON.stringify(log))
  assert.deepEqual(readTransfers([...malformed, first, ...malformed, second]), readTransfers(logs))
})

test('reading logs never throws, whatever a node sends', () => {
  const junk = fc.oneof(fc.anything(), fc.record({ topics: fc.array(fc.anything()), logIndex: fc.nat() }))
  fc.assert(fc.property(fc.array(junk), (logs) => void readTransfers(logs as ChainLog[])))
})

test('each event is read once and paired correctly, however events interleave', () => {
  const payer = fc.constantFrom(alice, bob)
  const number = fc.nat({ max: 3 })
  const anyEvent: fc.Arbitrary<Event> = fc.oneof(
    fc.tuple(payer, number).map(([from, nonce]) => used(from, nonce)),
    fc.tuple(payer, number).map(([from, nonce]) => canceled(from, nonce)),
    fc.tuple(payer, payer, number).map(([from, to, value]) => moved(from, to, BigInt(value))),
    fc.constant({ event: 'other' } as const),
  )
  const anyLog = fc.record({
    event: anyEvent,
    address: fc.oneof({ weight: 4, arbitrary: fc.constant(token) }, fc.constant(otherToken)),
    isNewTransaction: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.constant(true)),
    isSeen: fc.oneof({ weight: 6, arbitrary: fc.constant(true) }, fc.constant(false)),
  })
  fc.assert(
    fc.property(fc.array(anyLog, { maxLength: 30 }), fc.infiniteStream(fc.nat()), (drawn, order) => {
      let n = 0
      const placed = drawn
        .map(({ event, address, isNewTransaction, isSeen }, logIndex) => {
          if (isNewTransaction) n++
          return { isSeen, placed: { ...event, address, transactionHash: transaction(n), logIndex } }
        })
        .filter(({ isSeen }) => isSeen)
        .map((one) => one.placed)
      const logs = placed.map(toLog)
      const expected = pairByDefinition(placed)
      assert.deepEqual(readTransfers(logs), expected)
      const shuffled = [...logs, ...logs.slice(0, 3)]
        .map((log) => ({ log, key: order.next().value ?? 0 }))
        .sort((a, b) => a.key - b.key)
      assert.deepEqual(readTransfers(shuffled.map(({ log }) => log)), expected)
    }),
    { numRuns: 3000 },
  )
})

/** A naive readTransfers that follows the definition and searches the whole list for every log. */
function pairByDefinition(all: readonly Placed[]): ReturnType<typeof readTransfers> {
  const follows = (first: Placed, second: Placed) =>
    first.event === 'used' &&
    second.event === 'transfer' &&
    first.payer === second.payer &&
    first.address === second.address &&
    first.transactionHash === second.transactionHash &&
    first.logIndex + 1 === second.logIndex
  const result: ReturnType<typeof readTransfers> = { authorized: [], usedOnly: [], canceled: [], plain: [] }
  for (const log of all) {
    const { transactionHash, logIndex, address } = log
    if (log.event === 'other') continue
    if (log.event !== 'transfer') {
      const event = { payer: log.payer, nonce: log.nonce, transactionHash, logIndex }
      if (log.event === 'canceled') result.canceled.push(event)
      else if (!all.some((next) => follows(log, next))) result.usedOnly.push(event)
      continue
    }
    const position = all.filter(
      (other) =>
        other.event === 'transfer' &&
        other.address === address &&
        other.transactionHash === transactionHash &&
        other.payer === log.payer &&
        other.to === log.to &&
        other.value === log.value &&
        other.logIndex < logIndex,
    ).length
    const transfer = { payer: log.payer, to: log.to, value: log.value, transactionHash, logIndex, position }
    const authorization = all.find((before) => follows(before, log))
    if (authorization?.event === 'used') result.authorized.push({ ...transfer, nonce: authorization.nonce })
    else result.plain.push(transfer)
  }
  return result
}

function toWord(value: bigint): Hex {
  return `0x${value.toString(16).padStart(64, '0')}`
}
