import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Chain } from '../../chains/evm/chain.ts'
import type { Context } from '../../context.ts'
import { findForeign } from './find-foreign.ts'

const address = `0x${'5e'.repeat(20)}` as const
const made = `0x${'ab'.repeat(32)}` as const

/** Of two providers, this is what one says, and what both say of a transaction that it made up. */
function openLane(transactions: readonly unknown[]) {
  const answers: Readonly<Record<string, (block: string) => unknown>> = {
    eth_blockNumber: () => '0x64',
    eth_getTransactionCount: (block) => (block === '0x64' ? '0x8' : '0x7'),
    eth_getBlockByNumber: () => ({ transactions }),
  }
  const rpc = {
    call: async (method: string, params: readonly string[]) => answers[method]?.(params[1] ?? ''),
    callAll: async () => [{ hash: made, from: address, nonce: '0x7' }, null],
  }
  const network = { caip2: 'eip155:1', id: 'ONE', blockTimeMs: 2_000, witnessesMin: 2 }
  return { chain: { rpc, network } as unknown as Chain, signer: { address } as never }
}

test('a provider that makes up a use of a nonce neither stops a settler nor breaks its lane', async () => {
  const ctx = {
    now: () => new Date(),
    db: { query: () => assert.fail('the settler was stopped') },
  } as unknown as Context
  const doubted = [{ nonce: 7, hashes: [], minedAgoSeconds: 60, isComplete: true }]
  for (const transactions of [[{ hash: made, from: address, nonce: '0x7' }], [made], [null]])
    await findForeign(ctx, openLane(transactions), doubted)
})
