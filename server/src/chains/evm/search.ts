import { enoughOf } from '../agree.ts'
import type { Hex } from '../hex.ts'
import type { StoredBlock } from '../rows.ts'
import type { ProviderAnswer, RpcCall, RpcOutcome } from '../rpc.ts'
import { blockCall, blockIn, type Chain, type ChainLog, type ToldBlock } from './chain.ts'
import { topics } from './eip3009.ts'
import { type Account, type BlockVerdict, inOrder, judge } from './witnesses.ts'

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
type Hits = ReadonlyMap<number, Hex>

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
function hitsIn(
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

/**
 * Reads a range of blocks from every provider: which blocks in it may concern us, the header of its last block, and
 * whether the block that was read before it is still part of the chain. Each provider gets one request.
 *
 * The last call in the request asks for the block that was read before. If the chain is reorganised during the request,
 * either that answer shows it, or the next range will.
 */
export type Range = {
  /** The block that was read last. */
  readonly tip: StoredBlock
  /**
   * The search begins after this block. It covers some blocks below the tip again, because a node may have been late
   * with their logs.
   */
  readonly above: number
  readonly end: number
}

/** What one provider says about a range. */
export type RangeAccount = {
  readonly provider: string
  readonly end: ToldBlock | null
  readonly tip: ToldBlock | null
  readonly hits: Hits | null
}

export type RangeVerdict = {
  readonly end: BlockVerdict
  /** Null if the end names the tip as its parent, because then nobody was asked. */
  readonly tip: BlockVerdict | null
  /** Whether the chain no longer has the block that was read last. */
  readonly isTurned: boolean
  /** The accounts that count: their providers have searched, and have the end and the tip that are believed. */
  readonly telling: readonly RangeAccount[]
  /** Whether other providers answered and may report the same in a moment. */
  readonly isAwaited: boolean
}

export async function readRange(chain: Chain, range: Range, concerns: Concerns): Promise<RangeVerdict> {
  const { rpc, network } = chain
  const isNext = range.end === range.tip.number + 1
  const searched = { above: range.above, upTo: range.end }
  const search = searchCalls(chain, concerns, searched)
  const calls = [blockCall(range.end), ...search, ...(isNext ? [] : [blockCall(range.tip.number)])]
  const judgeAll = (told: readonly ProviderAnswer[]) => {
    const accounts = inOrder(told, rpc.providers).map(
      ({ provider, outcomes }): RangeAccount => ({
        provider,
        end: blockIn(outcomes[0]),
        tip: isNext ? null : blockIn(outcomes[1 + search.length]),
        hits: hitsIn(
          search.map((_, i) => outcomes[1 + i]),
          searched,
        ),
      }),
    )
    return judgeRange(accounts, range, network.witnessesMin)
  }
  const enough = enoughOf(rpc.providers, network.witnessesMin)
  const isTold = (told: readonly ProviderAnswer[]) => {
    if (told.length < enough) return false
    const { telling } = judgeAll(told)
    return telling.length >= enough && listDiffering(telling).length === 0
  }
  return judgeAll(await rpc.askAll(calls, isTold))
}

/**
 * Searches again blocks that every provider has had long enough to have all their logs. Returns each provider's
 * findings, and the last block searched.
 */
export async function searchAgain(
  chain: Chain,
  { above, upTo }: { readonly above: number; readonly upTo: number },
  concerns: Concerns,
): Promise<{ readonly telling: readonly RangeAccount[]; readonly searchedUpTo: number }> {
  const range = { above, upTo: Math.min(upTo, above + blocksPerLook(chain, concerns)) }
  const calls = searchCalls(chain, concerns, range)
  // There are no addresses to search for.
  const told =
    calls.length === 0
      ? chain.rpc.providers.map((provider) => ({ provider, outcomes: [] }))
      : await chain.rpc.askAll(calls, undefined, true)
  const accounts = told.map(
    ({ provider, outcomes }): RangeAccount => ({
      provider,
      end: null,
      tip: null,
      hits: hitsIn(
        calls.map((_, i) => outcomes[i]),
        range,
      ),
    }),
  )
  return { telling: accounts.filter(({ hits }) => hits !== null), searchedUpTo: range.upTo }
}

/**
 * The most blocks that one look searches. A provider with a lower limit is asked in parts (see endpoint.ts): at ten
 * blocks per request, this many take 100 requests.
 */
export const blocksPerLookMax = 1_000
/** Fewer would keep a look from searching the last seconds again. */
const blocksPerLookMin = 100
/**
 * A look at providers that limit us searches about as many blocks as they allow in this time. What a look has read is
 * stored at its end, so a long one holds up payments, and is lost as a whole if a provider falls silent.
 */
const lookMs = 3_000

export function blocksPerLook({ rpc, network }: Chain, concerns: Concerns): number {
  const searches = Math.max(1, filtersOf(concerns).length)
  const blocks = Math.floor(rpc.blocksIn(lookMs, network.witnessesMin) / searches)
  return Math.min(blocksPerLookMax, Math.max(blocksPerLookMin, blocks))
}

function judgeRange(accounts: readonly RangeAccount[], range: Range, witnessesMin: number): RangeVerdict {
  const isNext = range.end === range.tip.number + 1
  const end = judge(
    accounts.map(({ provider, end }) => toHeader(provider, end)),
    witnessesMin,
  )
  const tip = isNext
    ? null
    : judge(
        accounts.map(({ provider, tip }) => toHeader(provider, tip)),
        witnessesMin,
      )
  const below = hashBelow(end, tip)
  const isLinked = ({ tip: told }: RangeAccount) => isNext || told?.hash === range.tip.hash
  const telling =
    end.kind === 'believed' && below === range.tip.hash
      ? accounts.filter((one) => end.toldBy.includes(one.provider) && isLinked(one) && one.hits !== null)
      : []
  const lies = end.lies.length + (tip?.lies.length ?? 0)
  return {
    end,
    tip,
    isTurned: below !== null && below !== range.tip.hash,
    telling,
    isAwaited: accounts.length - lies > telling.length,
  }
}

/** The believed hash of the tip: as reported, or the end's parent if there is no block in between. */
function hashBelow(end: BlockVerdict, tip: BlockVerdict | null): Hex | null {
  if (tip) return tip.kind === 'believed' ? tip.block.hash : null
  return end.kind === 'believed' ? end.block.parentHash : null
}

function toHeader(provider: string, block: ToldBlock | null): Account {
  return { provider, block, logs: [] }
}

/** The blocks that some of them have not found, or not with the same hash. */
function listDiffering(told: readonly Pick<RangeAccount, 'hits'>[]): number[] {
  return listFound(told).flatMap(({ number, hash }) =>
    told.every(({ hits }) => hits?.get(number) === hash) ? [] : number,
  )
}

/** The blocks that any of them has found, in order, each with the first hash reported for it. */
export function listFound(
  told: readonly Pick<RangeAccount, 'hits'>[],
): { readonly number: number; readonly hash: Hex }[] {
  const found = new Map<number, Hex>()
  for (const { hits } of told)
    for (const [number, hash] of hits ?? []) if (!found.has(number)) found.set(number, hash)
  return [...found].map(([number, hash]) => ({ number, hash })).toSorted((a, b) => a.number - b.number)
}
