import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChainLog, ToldBlock } from './chain.ts'
import { type Account, isGenuine, judge } from './witnesses.ts'

const word = (digit: string) => `0x${digit.repeat(64)}` as const
const token = `0x${'ab'.repeat(20)}` as const

/** A block without a bloom filter, which proves nothing by itself. */
function block(hash: string, header: Record<string, unknown> = {}): ToldBlock {
  const name = word(hash)
  const raw = { number: '0x7', hash: name, parentHash: word('0'), ...header } as ToldBlock['header']
  return { number: 7, hash: name, parentHash: word('0'), time: new Date(0), baseFee: 1n, header: raw }
}

function log(data: string, logIndex = 0): ChainLog {
  return {
    address: token,
    topics: [word('1')],
    data: word(data),
    blockHash: word('a'),
    transactionHash: word('2'),
    logIndex,
  }
}

const account = (provider: string, told: ToldBlock | null, logs: Account['logs'] = []): Account => ({
  provider,
  block: told,
  logs,
})
const liars = (accounts: readonly Account[], witnessesMin = 2) =>
  judge(accounts, witnessesMin).lies.map(({ provider }) => provider)
/** Which provider is believed, or why none is. */
function outcome(accounts: readonly Account[], witnessesMin = 2): string {
  const verdict = judge(accounts, witnessesMin)
  return verdict.kind === 'believed' ? verdict.toldBy.join() : verdict.kind
}

test('what enough providers report alike is witnessed', () => {
  const logs = [log('3')]
  assert.equal(outcome([account('a', block('a'), logs), account('b', block('a'), [log('3')])]), 'a,b')
})

test('a provider that does not have the block, or its logs, does not count', () => {
  assert.equal(outcome([account('a', block('a')), account('b', null)]), 'a')
  assert.equal(outcome([account('a', block('a')), account('b', block('a'), null)]), 'a')
  assert.equal(outcome([account('a', null), account('b', null)]), 'unknown')
  assert.deepEqual(liars([account('a', block('a')), account('b', null)]), [])
})

test('no logs where another provider has some is lag, not a lie', () => {
  const accounts = [account('a', block('a'), []), account('b', block('a'), [log('3')])]
  assert.equal(outcome(accounts), 'b')
  assert.deepEqual(liars(accounts), [])
})

test('of two providers that contradict each other, neither is believed', () => {
  const contradicting = [account('a', block('a'), [log('3')]), account('b', block('a'), [log('4')])]
  assert.equal(outcome(contradicting), 'disputed')
  assert.equal(outcome([account('a', block('a')), account('b', block('b'))]), 'forked')
})

test('of three, the two that agree are believed, and the one that reports other logs has lied', () => {
  const honest = [log('3')]
  const accounts = [
    account('a', block('a'), [log('4')]),
    account('b', block('a'), honest),
    account('c', block('a'), honest),
  ]
  assert.equal(outcome(accounts), 'b,c')
  assert.deepEqual(liars(accounts), ['a'])
})

test('of three, another block at the same height is a fork, not a lie', () => {
  const accounts = [account('a', block('b')), account('b', block('a')), account('c', block('a'))]
  assert.equal(outcome(accounts), 'b,c')
  assert.deepEqual(liars(accounts), [])
})

test('a log that the block’s bloom filter excludes is a lie, and the other provider is believed', () => {
  const empty = block('a', { logsBloom: `0x${'00'.repeat(256)}` })
  const accounts = [account('a', empty, [log('3')]), account('b', empty, [])]
  assert.equal(outcome(accounts), 'b')
  assert.deepEqual(liars(accounts), ['a'])
})

test('where one provider is enough, the one that reports more is believed', () => {
  const accounts = [account('a', block('a'), [log('3')]), account('b', block('a'), [log('3'), log('4', 1)])]
  assert.equal(outcome(accounts, 1), 'b')
  assert.deepEqual(liars(accounts, 1), [])
})

test('two of four that lie alike are not believed, nor are the other two put aside', () => {
  const honest = [log('3')]
  const forged = [log('3'), log('9', 1)]
  const logs = [
    account('a', block('a'), honest),
    account('b', block('a'), honest),
    account('c', block('a'), forged),
    account('d', block('a'), forged),
  ]
  for (const order of [logs, logs.toReversed(), [logs[0], logs[2], logs[1], logs[3]]]) {
    const accounts = order.map((one) => one ?? assert.fail())
    assert.equal(outcome(accounts), 'disputed')
    assert.deepEqual(liars(accounts), [])
  }
  const blocks = logs.map((one, i) => (i < 2 ? one : { ...one, block: block('b') }))
  assert.equal(outcome(blocks), 'forked')
  assert.equal(outcome(blocks.toReversed()), 'forked')
})

test('two of four with logs that two others do not have are not enough: the block is read again', () => {
  const accounts = [
    account('a', block('a'), []),
    account('b', block('a'), []),
    account('c', block('a'), [log('9')]),
    account('d', block('a'), [log('9')]),
  ]
  assert.equal(outcome(accounts), 'c')
  assert.equal(outcome(accounts.slice(1)), 'c,d')
})

test('three of four, and three of five, are believed', () => {
  const told = (provider: string, data: string) => account(provider, block('a'), [log(data)])
  assert.equal(outcome([told('a', '3'), told('b', '9'), told('c', '3'), told('d', '3')]), 'a,c,d')
  assert.equal(
    outcome([told('a', '9'), told('b', '9'), told('c', '3'), told('d', '3'), told('e', '3')]),
    'c,d,e',
  )
})

/** Headers of one block as a provider that shows all of them and one that leaves a field out tell them. */
function toldHeader(change: (header: Record<string, unknown>) => void): ToldBlock {
  const header: Record<string, unknown> = {
    ...{ number: '0x7', parentHash: word('0'), sha3Uncles: word('1'), miner: token, stateRoot: word('2') },
    ...{ transactionsRoot: word('3'), receiptsRoot: word('4'), logsBloom: `0x${'ff'.repeat(256)}` },
    ...{ difficulty: '0x0', gasLimit: '0x1', gasUsed: '0x1', timestamp: '0x1', extraData: '0x' },
    ...{ mixHash: word('5'), nonce: '0x0000000000000000', requestsHash: word('6'), hash: genuineHash },
  }
  change(header)
  const raw = header as ToldBlock['header']
  return { number: 7, hash: raw.hash, parentHash: word('0'), time: new Date(0), baseFee: 1n, header: raw }
}
const genuineHash = '0x2d7352796bdd705a2160f144a305088bec8902b4aaccae54c48f9d51f65ee40a'

for (const field of ['logsBloom', 'requestsHash', 'stateRoot'])
  test(`a provider whose headers lack ${field} has not lied, and tells the same block as one that shows all of it`, () => {
    const whole = account(
      'a',
      toldHeader(() => {}),
      [log('3')],
    )
    assert.equal(isGenuine(whole.block?.header ?? assert.fail()), true)
    const lean = account(
      'b',
      toldHeader((header) => delete header[field]),
      [log('3')],
    )
    assert.deepEqual([outcome([whole, lean]), liars([whole, lean])], ['a,b', []])
    const other = account(
      'b',
      toldHeader((header) => {
        delete header[field]
        header.hash = word('b')
      }),
    )
    assert.deepEqual([outcome([whole, other]), liars([whole, other])], ['a', []])
    const forged = account(
      'b',
      toldHeader((header) => (header[field] = word('b'))),
    )
    assert.deepEqual([outcome([whole, forged]), liars([whole, forged])], ['a', ['b']])
  })
