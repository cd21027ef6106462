import type { Hex } from '../hex.ts'
import { type BlockAnswer, blockCall, type Chain, toBlock } from './chain.ts'
import type { Account } from './listener.ts'
import { reachedByEnough } from './witnesses.ts'

/**
 * How far the chain is safe and finalized, as far as enough providers say so. Nodes without such a block yet answer
 * null, which reads as block 0.
 */
export async function readFinality(chain: Chain): Promise<{ safe: number; finalized: number }> {
  const told = await chain.rpc.askAll([blockCall('safe'), blockCall('finalized')])
  const reached = (place: number) => {
    const numbers = told.flatMap(({ outcomes }) => {
      const outcome = outcomes[place]
      return !outcome || 'error' in outcome ? [] : (toBlock(outcome.result as BlockAnswer)?.number ?? 0)
    })
    return reachedByEnough(numbers, chain.network.witnessesMin) ?? 0
  }
  return { safe: reached(0), finalized: reached(1) }
}

/**
 * Account nonces after a block: how many transactions of each account have been mined by then. An account about which
 * providers differ is left out.
 */
export async function readAgreedNonces(
  { rpc, network }: Chain,
  accounts: readonly string[],
  number: number,
): Promise<Account[]> {
  if (accounts.length === 0) return []
  const at = `0x${number.toString(16)}`
  const told = await rpc.askAll(
    accounts.map((account) => ({ method: 'eth_getTransactionCount', params: [account, at] })),
    (answers) => answers.length >= network.witnessesMin,
  )
  return accounts.flatMap((address, place) => {
    const nonces = told.flatMap(({ outcomes }) => {
      const outcome = outcomes[place]
      return !outcome || 'error' in outcome ? [] : Number.parseInt(outcome.result as Hex, 16)
    })
    const counts = [...Map.groupBy(nonces, (nonce) => nonce)].toSorted(([, a], [, b]) => b.length - a.length)
    const [most] = counts
    if (!most || (counts.length > 1 && most[1].length < network.witnessesMin)) return []
    return { address, nonce: most[0], isWitnessed: most[1].length >= network.witnessesMin }
  })
}
