import { agree, enoughOf } from '../agree.ts'
import type { Hex } from '../hex.ts'
import { type ProviderAnswer, type RpcCall, type RpcOutcome, unwrap } from '../rpc.ts'
import { type BlockPlace, type Chain, placeIn } from './chain.ts'
import { topics } from './eip3009.ts'

/**
 * What providers report about transactions. Where money depends on a fact, `witnessesMin` of them and most of those
 * that answer must report the same; reports of fewer only say where to look. Code outside of `chains/` asks only
 * through this file, or through `witnesses.ts` for blocks and their logs.
 */
export type SentTransaction = {
  readonly from: Hex
  readonly nonce: number
  /** Null for a transaction that creates a contract. */
  readonly to: Hex | null
  readonly input: Hex
}

/** Sender and content of each transaction. Those on which too few providers agree are left out. */
export async function readTransactions(
  chain: Chain,
  hashes: readonly string[],
): Promise<Map<string, SentTransaction>> {
  const agreed = await readAgreed(chain, 'eth_getTransactionByHash', hashes, readSent)
  return new Map([...agreed].map(([hash, { fact }]) => [hash, fact]))
}

type RawTransaction = { hash: Hex; from: Hex; nonce: Hex; to: Hex | null; input: Hex } | null

function readSent(raw: unknown, hash: string): Fact<SentTransaction> | null {
  const sent = raw as RawTransaction
  const isSent =
    [sent?.from, sent?.input, sent?.nonce].every(isHex) &&
    (sent?.to === null || isHex(sent?.to)) &&
    isHex(sent?.hash)
  if (!sent || !isSent || sent.hash.toLowerCase() !== hash) return null
  const fact = {
    from: lower(sent.from),
    nonce: Number.parseInt(sent.nonce, 16),
    to: sent.to && lower(sent.to),
    input: lower(sent.input),
  }
  return { fact, key: [fact.from, fact.nonce, fact.to, fact.input].join() }
}

/** What the receipts of mined transactions say, by hash. Those on which too few providers agree are left out. */
export async function readReceipts<Said>(
  chain: Chain,
  hashes: readonly string[],
  read: (receipt: unknown) => Said | null,
  keyOf: (said: Said) => string,
): Promise<Map<string, Said>> {
  const agreed = await readAgreed(chain, 'eth_getTransactionReceipt', hashes, (raw) => {
    const fact = read(raw)
    return fact === null ? null : { fact, key: keyOf(fact) }
  })
  return new Map([...agreed].map(([hash, { fact }]) => [hash, fact]))
}

type Fact<Said> = { readonly fact: Said; readonly key: string }

/** Asks every provider about each transaction, and keeps the facts that enough of them report alike. */
async function readAgreed<Said>(
  { rpc, network: { witnessesMin } }: Chain,
  method: string,
  hashes: readonly string[],
  read: (raw: unknown, hash: string) => Fact<Said> | null,
): Promise<Map<string, Fact<Said>>> {
  const asked = [...new Set(hashes)]
  const calls = asked.map((hash): RpcCall => ({ method, params: [hash] }))
  const parsed = new Map<RpcOutcome, Fact<Said> | null>()
  const factIn = (outcome: RpcOutcome | undefined, hash: string) => {
    if (!outcome || 'error' in outcome) return null
    const fact = parsed.has(outcome) ? parsed.get(outcome) : read(outcome.result, hash)
    parsed.set(outcome, fact ?? null)
    return fact ?? null
  }
  const agreedAmong = (told: readonly ProviderAnswer[], needed: number) =>
    new Map(
      asked.flatMap((hash, i) => {
        const said = told.flatMap(({ provider, outcomes }) => {
          const fact = factIn(outcomes[i], hash)
          return fact ? { provider, fact } : []
        })
        const { fact } = agree(said, ({ key }) => key, needed)
        return fact ? [[hash, fact] as const] : []
      }),
    )
  const enough = enoughOf(rpc.providers, witnessesMin)
  const told = await rpc.askAll(calls, (some) => agreedAmong(some, enough).size === asked.length)
  return agreedAmong(told, witnessesMin)
}

export type Inclusion = {
  /** The blocks that any provider names, which says only where to look. */
  readonly named: readonly BlockPlace[]
  readonly numbers: readonly number[]
  /** The block that enough of them name. */
  readonly number: number | null
  /** Whether enough of them say that it is in no block, and none names a block. */
  readonly isAbsent: boolean
}

/** In which block a transaction is. Throws if no provider answers. */
export async function readInclusion({ rpc, network }: Chain, hash: string): Promise<Inclusion> {
  const { witnessesMin } = network
  const told = await rpc.askAll([{ method: 'eth_getTransactionReceipt', params: [hash] }])
  const answers = told.flatMap(({ provider, outcomes: [outcome] }) =>
    outcome && 'result' in outcome ? { provider, raw: outcome.result } : [],
  )
  if (answers.length === 0) unwrap(told[0]?.outcomes[0])
  const places = answers.flatMap(({ provider, raw }) => {
    const fact = placeIn(raw)
    return fact ? { provider, fact } : []
  })
  const silent = answers.filter(({ raw }) => raw === null)
  const { fact } = agree(places, (place) => `${place.hash} ${place.number}`, witnessesMin)
  return {
    named: distinct(places.map((place) => place.fact)),
    numbers: [...new Set(places.map((place) => place.fact.number))],
    number: fact?.number ?? null,
    isAbsent: places.length === 0 && silent.length >= witnessesMin,
  }
}

/**
 * The blocks of a range in which a nonce was used, according to any provider. Null if none names one, but too few have
 * answered to rule it out.
 */
export async function readUses(
  { rpc, network }: Chain,
  { asset, from, nonce }: { readonly asset: string; readonly from: Hex; readonly nonce: Hex },
  range: { readonly first: number; readonly last: number },
): Promise<BlockPlace[] | null> {
  const answers = await rpc.callAll<{ blockHash: Hex; blockNumber: Hex }[]>('eth_getLogs', [
    {
      address: asset,
      fromBlock: toHex(range.first),
      toBlock: toHex(range.last),
      topics: [topics.authorizationUsed, `0x${from.slice(2).padStart(64, '0')}`, nonce],
    },
  ])
  const lists = answers.filter((answer) => Array.isArray(answer))
  const found = lists.flat().flatMap((log): BlockPlace[] => {
    const number = Number.parseInt(String(log?.blockNumber), 16)
    return isHex(log?.blockHash) && number >= range.first && number <= range.last
      ? [{ hash: lower(log.blockHash), number }]
      : []
  })
  if (found.length > 0) return distinct(found)
  return lists.length >= network.witnessesMin ? [] : null
}

function distinct(places: readonly BlockPlace[]): BlockPlace[] {
  return [...new Map(places.map((place) => [place.hash, place])).values()]
}

/** Whether enough providers say that by this block the account has used the nonce, and none says otherwise. */
export async function isNonceUsed(
  { rpc, network }: Chain,
  { address, nonce }: { readonly address: string; readonly nonce: number },
  blockNumber: number,
): Promise<boolean> {
  const counts = await rpc.callAll<Hex>('eth_getTransactionCount', [address, toHex(blockNumber)])
  return counts.length >= network.witnessesMin && counts.every((count) => Number.parseInt(count, 16) > nonce)
}

function isHex(text: unknown): text is Hex {
  return typeof text === 'string' && /^0x[0-9a-f]*$/i.test(text)
}

function lower(hex: Hex): Hex {
  return hex.toLowerCase() as Hex
}

function toHex(number: number): Hex {
  return `0x${number.toString(16)}`
}
