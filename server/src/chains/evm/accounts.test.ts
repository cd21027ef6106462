import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { findUse } from './accounts.ts'
import type { Chain } from './chain.ts'

const address = `0x${'5e'.repeat(20)}` as const
const hash = `0x${'ab'.repeat(32)}` as const

test('a nonce’s use is found however many blocks ago it was, with few questions', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(200_000_000), fc.nat(40_000_000), fc.nat(9), async (head, ago, nonce) => {
      const usedIn = Math.max(1, head - ago)
      let asked = 0
      const use = { hash, from: address, nonce: `0x${nonce.toString(16)}` }
      const answers: Readonly<Record<string, (params: readonly string[]) => unknown>> = {
        eth_blockNumber: () => `0x${head.toString(16)}`,
        eth_getTransactionCount: ([, block = '']) =>
          `0x${(Number.parseInt(block, 16) >= usedIn ? nonce + 1 : nonce).toString(16)}`,
        eth_getBlockByNumber: ([block = '']) => ({
          transactions: Number.parseInt(block, 16) === usedIn ? [use] : [],
        }),
      }
      const rpc = {
        call: async (method: string, params: readonly string[]) => {
          asked++
          return answers[method]?.(params)
        },
        callAll: async () => [use, use],
      }
      const chain = { rpc, network: { witnessesMin: 2 } } as unknown as Chain
      assert.equal(await findUse(chain, address, nonce), head === 0 ? null : hash)
      assert(asked <= 8 + 2 * Math.log2(ago + 64), `${asked} questions`)
    }),
    {
      examples: [
        [0, 0, 0],
        [1, 0, 0],
        [64, 0, 0],
        [100_000_000, 25, 7],
        [100, 100, 1],
      ],
    },
  )
})
