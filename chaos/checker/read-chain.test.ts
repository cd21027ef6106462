import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readLogs } from './read-chain.ts'

const used = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5'
const transfer = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const word = (digit: string) => `0x${digit.repeat(64)}`

function log(index: number, topics: string[], transactionHash = '0xa') {
  return {
    address: '0xT',
    topics,
    data: '0x05',
    blockHash: '0xb',
    blockNumber: '0x1',
    transactionHash,
    logIndex: `0x${index.toString(16)}`,
  }
}

test('a Transfer is by authorization only directly after its payer’s AuthorizationUsed in its transaction', () => {
  const noncesOf = (logs: Parameters<typeof readLogs>[0]) =>
    readLogs(logs, () => 0).transfers.map(({ nonce }) => nonce)
  const pay = [transfer, word('1'), word('2')]
  const use = [used, word('1'), word('9')]
  assert.deepEqual(noncesOf([log(4, pay), log(3, use)]), [word('9')])
  assert.deepEqual(noncesOf([log(3, use), log(5, pay)]), [null])
  assert.deepEqual(noncesOf([log(3, use), log(4, pay, '0xother')]), [null])
  assert.deepEqual(noncesOf([log(3, [used, word('3'), word('9')]), log(4, pay)]), [null])
  assert.deepEqual(noncesOf([log(3, use), log(4, pay), log(5, pay)]), [word('9'), null])
})
