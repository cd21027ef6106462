import { enoughOf, isMost, reachedBy } from '../agree.ts'
import type { Hex } from '../hex.ts'
import type { ProviderAnswer } from '../rpc.ts'
import { blockCall, blockIn, type Chain } from './chain.ts'
import type { AccountNonce } from './listener.ts'

/**
 * The safe and the finalized block, as far as enough providers report them. A node that has no such block yet answers
 * null, which counts as block 0.
 */
export async function readFinality(chain: Chain): Promise<{ safe: number; finalized: number }> {
  // Each answer must show that its provider is on our chain: a provider on another chain may report a higher block.
  const told = await chain.rpc.askAll([blockCall('safe'), blockCall('finalized')], undefined, true)
  const reached = (place: number) => {
    const numbers = told.map(({ outcomes }) => blockIn(outcomes[place])?.number ?? 0)
    return reachedBy(numbers, chain.network.witnessesMin) ?? 0
  }
  return { safe: reached(0), finalized: reached(1) }
}

/**
 * The nonce of each account after a block, which is the number of its mined transactions; or with pending ones.
 * Accounts about which providers differ are left out.
 */
export async function readAgreedNonces(
  { rpc, network }: Chain,
  accounts: readonly string[],
  after: number | 'latest' | 'pending',
): Promise<AccountNonce[]> {
  if (accounts.length === 0) return []
  const at = typeof after === 'string' ? after : `0x${after.toString(16)}`
  const calls = accounts.map((account) => ({ method: 'eth_getTransactionCount', params: [account, at] }))
  const agreed = (told: readonly ProviderAnswer[]) => agreeOnNonces(accounts, told, network.witnessesMin)
  const isEnough = (told: readonly ProviderAnswer[]) =>
    told.length >= enoughOf(rpc.providers, network.witnessesMin) &&
    agreed(told).filter(({ isWitnessed }) => isWitnessed).length === accounts.length
  return agreed(await rpc.askAll(calls, isEnough))
}

/**
 * The nonce that each account uses next, pending transactions included. Not every provider has a pending block: for one
 * that does not answer, the mined ones count.
 */
export async function readNextNonces(
  { rpc, network }: Chain,
  accounts: readonly string[],
): Promise<AccountNonce[]> {
  const method = 'eth_getTransactionCount'
  const calls = accounts.flatMap((account) => [
    { method, params: [account, 'pending'] },
    { method, params: [account, 'latest'] },
  ])
  const told = (await rpc.askAll(calls)).map(({ provider, outcomes }) => ({
    provider,
    outcomes: accounts.flatMap((_, i) => {
      const pending = outcomes[2 * i]
      return (pending && 'result' in pending ? pending : outcomes[2 * i + 1]) ?? []
    }),
  }))
  return agreeOnNonces(accounts, told, network.witnessesMin)
}

function agreeOnNonces(
  accounts: readonly string[],
  told: readonly ProviderAnswer[],
  witnessesMin: number,
): AccountNonce[] {
  return accounts.flatMap((address, place) => {
    const nonces = told.flatMap(({ outcomes }) => {
      const outcome = outcomes[place]
      return !outcome || 'error' in outcome ? [] : Number.parseInt(outcome.result as Hex, 16)
    })
    const counts = [...Map.groupBy(nonces, (nonce) => nonce)].toSorted(([, a], [, b]) => b.length - a.length)
    const [most] = counts
    const isWitnessed = most !== undefined && isMost(most[1].length, nonces.length, witnessesMin)
    if (!most || (counts.length > 1 && !isWitnessed)) return []
    return { address, nonce: most[0], isWitnessed }
  })
}

/**
 * The balance that an account can rely on: the highest that enough providers reach. If fewer answer, the lowest answer.
 */
export async function readFunds({ rpc, network }: Chain, account: string): Promise<bigint> {
  const told = await rpc.callAll<Hex>('eth_getBalance', [account, 'latest'])
  const amounts = told.filter((wei) => /^0x[0-9a-f]+$/i.test(String(wei))).map((wei) => BigInt(wei))
  const highestFirst = amounts.toSorted((a, b) => (a < b ? 1 : -1))
  const needed = Math.max(network.witnessesMin, Math.floor(amounts.length / 2) + 1)
  return highestFirst[needed - 1] ?? highestFirst.at(-1) ?? 0n
}
