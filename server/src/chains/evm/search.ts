import type { Hex } from '../hex.ts'
import type { RpcCall, RpcOutcome } from '../rpc.ts'
import type { Chain, ChainLog } from './chain.ts'
import { topics } from './eip3009.ts'

/**
 * Which logs of our tokens may concern us: transfers to one of `recipients`, and nonces used or canceled by one of
 * `authorizers`. Null stands for all addresses, because there are too many to name.
 */
export type Concerns = {
  readonly recipients: ReadonlySet<Hex> | null
  readonly authorizers: ReadonlySet<Hex> | null
}

/** The most addresses named in one call. Common nodes accept about a thousand. */
export const concernsMax = 500

/**
 * Whether the search included every address that can be paid by `later`. Nonces claimed in between need no new search:
 * if one was spent in these blocks, it was spent before it was claimed.
 */
export function covers(earlier: Concerns, later: Concerns): boolean {
  if (earlier.recipients === null) return true
  return later.recipients?.isSubsetOf(earlier.recipients) === true
}

export function isConcerned(
  { topics: [topic, first, second] }: Pick<ChainLog, 'topics'>,
  { recipients, authorizers }: Concerns,
): boolean {
  if (topic === topics.transfer) return recipients === null || recipients.has(addressIn(second))
  return authorizers === null || authorizers.has(addressIn(first))
}

/** The blocks in which a search has found something, with the hashes that the provider reported. */
export type Hits = ReadonlyMap<number, Hex>

/** Calls that find the blocks with logs that concern us, after one number and up to another. */
export function searchCalls(
  chain: Chain,
  concerns: Concerns,
  { above, upTo }: { readonly above: number; readonly upTo: number },
): RpcCall[] {
  return filtersOf(concerns).map((filter) => ({
    method: 'eth_getLogs',
    params: [
      {
        address: chain.network.assets.map(({ address }) => address),
        fromBlock: toHex(above + 1),
        toBlock: toHex(upTo),
        topics: filter,
      },
    ],
  }))
}

/** An empty list would match every address, so without addresses there is no call. */
function filtersOf({ recipients, authorizers }: Concerns): (Hex[] | Hex | null)[][] {
  const { transfer, authorizationUsed, authorizationCanceled } = topics
  const spent = [authorizationUsed, authorizationCanceled]
  if (recipients === null && authorizers === null) return [[[transfer, ...spent]]]
  const filters: (Hex[] | Hex | null)[][] = []
  if (recipients === null) filters.push([transfer])
  else if (recipients.size > 0) filters.push([transfer, null, [...recipients].map(toWord)])
  if (authorizers === null) filters.push([spent])
  else if (authorizers.size > 0) filters.push([spent, [...authorizers].map(toWord)])
  return filters
}

/** A provider's findings. Null if it left a call unanswered, or answered with logs from outside the range. */
export function hitsIn(
  outcomes: readonly (RpcOutcome | undefined)[],
  { above, upTo }: { readonly above: number; readonly upTo: number },
): Hits | null {
  const hits = new Map<number, Hex>()
  for (const outcome of outcomes) {
    if (!outcome || 'error' in outcome || !Array.isArray(outcome.result)) return null
    for (const log of outcome.result as ({ blockNumber?: unknown; blockHash?: unknown } | null)[]) {
      const number = Number.parseInt(String(log?.blockNumber), 16)
      const hash = String(log?.blockHash).toLowerCase()
      if (!(number > above && number <= upTo) || !/^0x[0-9a-f]{64}$/.test(hash)) return null
      hits.set(number, hash as Hex)
    }
  }
  return hits
}

function addressIn(word: Hex | undefined): Hex {
  return `0x${String(word).slice(26)}`
}

function toWord(address: Hex): Hex {
  return `0x${address.slice(2).padStart(64, '0')}`
}

function toHex(number: number): Hex {
  return `0x${number.toString(16)}`
}
