import { enoughOf, isMost } from '../agree.ts'
import type { Hex } from '../hex.ts'
import type { ProviderAnswer, RpcOutcome } from '../rpc.ts'
import { blockCall, blockIn, type Chain, type ChainLog, logsCall, type ToldBlock, toLogs } from './chain.ts'
import { topics } from './eip3009.ts'
import { canContain, countHashed, isGenuine, isPartOf } from './header.ts'

/**
 * What the providers report about a block, and what we believe of it.
 *
 *   lag     a provider does not have the block or its logs yet, or has no logs where another one does: it does not count
 *   fork    providers have different blocks at one height. Above `safe` that is a reorganisation, and we wait
 *   lie     a header that does not hash to its name, or a log that its block's bloom filter excludes. That is proven, so
 *           the provider does not count. Where enough others agree, a provider that contradicts them about the logs of a
 *           block has lied too
 *   dispute providers contradict each other and nothing proves who lies: neither is believed. Two of four prove nothing:
 *           it takes most of those who answer
 */
export type Account = {
  readonly provider: string
  readonly block: ToldBlock | null
  /** Null if the provider does not have them. */
  readonly logs: readonly ChainLog[] | null
}

export type Lie = { readonly provider: string; readonly what: string }

export type BlockVerdict = { readonly lies: readonly Lie[] } & (
  | {
      readonly kind: 'believed'
      readonly block: ToldBlock
      readonly logs: readonly ChainLog[]
      /** Who reported this. Fewer than `witnessesMin` if the others are silent or lag. */
      readonly toldBy: readonly string[]
      /** Whether others answered but do not have the block yet. */
      readonly isAwaited: boolean
      /** Whether others have the block but no logs of it. They may lag, or the ones who reported these made them up. */
      readonly isDoubted: boolean
    }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'forked'; readonly number: number }
  | { readonly kind: 'disputed'; readonly what: string }
)

/** Decides what to believe about one block from the accounts of the providers, in the order of the setting. */
export function judge(accounts: readonly Account[], witnessesMin: number): BlockVerdict {
  const lies: Lie[] = []
  const known = accounts.flatMap(({ block, ...account }) => (block ? { ...account, block } : []))
  const genuine = dropForged(known, lies)
  const forks = groupBySize(genuine, ({ block }) => block.hash)
  const [fork = []] = forks
  const [first] = fork
  if (!first) return { kind: 'unknown', lies }
  const { block } = first
  if (forks.length > 1 && !isDecided(fork.length, genuine.length, witnessesMin))
    return { kind: 'forked', number: block.number, lies }

  const told = fork.flatMap(({ provider, logs }) => (logs ? { provider, logs } : []))
  const possible = told.filter(({ provider, logs }) => {
    const excluded = logs.find((log) => !canContain(block.header, log))
    if (excluded && told.length > 1)
      lies.push({
        provider,
        what: `log ${excluded.logIndex} of block ${block.number}, which its bloom excludes`,
      })
    return !excluded || told.length === 1
  })
  const isSome = possible.some(({ logs }) => logs.length > 0)
  const telling = possible.filter(({ logs }) => !isSome || logs.length > 0)
  const groups = groupBySize(telling, ({ logs }) => textOf(logs))
  const [group] = groups
  if (!group?.[0]) return { kind: 'unknown', lies }
  if (groups.length > 1 && !isDecided(group.length, telling.length, witnessesMin))
    return { kind: 'disputed', what: `the logs of block ${block.number} (${block.hash})`, lies }
  if (witnessesMin > 1)
    for (const { provider } of groups.slice(1).flat())
      lies.push({ provider, what: `other logs of block ${block.number} than ${group.length} others` })
  // Those without logs may lag. But as long as they are as many, it is not known who is right: fewer than enough count.
  const isContested = group.length >= witnessesMin && !isDecided(group.length, possible.length, witnessesMin)
  const toldBy = group.slice(0, isContested ? witnessesMin - 1 : group.length).map(({ provider }) => provider)
  const isAwaited = accounts.length - lies.length > toldBy.length
  const isDoubted = isSome && possible.some(({ logs }) => logs.length === 0)
  return { kind: 'believed', block, logs: group[0].logs, toldBy, isAwaited, isDoubted, lies }
}

/** Where one provider is enough, the one that reports more is believed. */
function isDecided(count: number, answered: number, witnessesMin: number): boolean {
  return witnessesMin === 1 || isMost(count, answered, witnessesMin)
}

const texts = new WeakMap<readonly ChainLog[], string>()

/** Logs as one text, to compare what providers report. */
function textOf(logs: readonly ChainLog[]): string {
  const text = texts.get(logs) ?? JSON.stringify(logs)
  texts.set(logs, text)
  return text
}

/** Removes headers that do not hash to their names, if any other does: one under the right name may be false too. */
function dropForged<Known extends { provider: string; block: ToldBlock }>(
  known: readonly Known[],
  lies: Lie[],
): readonly Known[] {
  if (known.length < 2) return known
  const genuine = known.filter(({ block }) => isGenuine(block.header))
  if (genuine.length === 0) return known
  const lean = known
    .filter((one) => !genuine.includes(one))
    .flatMap((one) => completeHeader(one, genuine) ?? [])
  for (const { provider, block } of known)
    if (![...genuine, ...lean].some((one) => one.provider === provider) && !lacksField(block, genuine))
      lies.push({ provider, what: `a header of block ${block.number} that does not hash to its name` })
  return known.flatMap(({ provider }) => [...genuine, ...lean].find((one) => one.provider === provider) ?? [])
}

/**
 * Some gateways leave out fields of a header, which then hashes to nothing. If it is otherwise that of a provider that shows
 * all of it, both have told the same block. Null if no provider does: then this one cannot be a witness, but has not lied.
 */
function completeHeader<Known extends { block: ToldBlock }>(
  one: Known,
  genuine: readonly Known[],
): Known | null {
  const whole = genuine.find(({ block }) => block.hash === one.block.hash)
  return whole && isPartOf(one.block.header, whole.block.header) ? { ...one, block: whole.block } : null
}

function lacksField({ header }: ToldBlock, genuine: readonly { readonly block: ToldBlock }[]): boolean {
  return genuine.some(({ block }) => countHashed(header) < countHashed(block.header))
}

/** Largest group first; of equal ones, the one with the most logs, then the provider listed first. */
function groupBySize<Item extends { readonly logs: readonly unknown[] | null }>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
): Item[][] {
  const size = (group: readonly Item[]) => group[0]?.logs?.length ?? 0
  return [...Map.groupBy(items, keyOf).values()].toSorted((a, b) => b.length - a.length || size(b) - size(a))
}

/** A block to read: by number, and by hash where it is known. */
export type WantedBlock = { readonly number: number; readonly hash: Hex | null }

/**
 * Reads blocks and the logs of our tokens in them from every provider. Usually that is one request each; where the
 * hash is not known, the logs of the block that most providers have are a second one.
 */
export async function readAccounts(
  chain: Chain,
  wanted: readonly WantedBlock[],
  isHasty: boolean,
): Promise<readonly (readonly Account[])[]> {
  const { rpc, network } = chain
  const logTopics = Object.values(topics)
  const calls = wanted.map(({ number, hash }) => [
    blockCall(number),
    ...(hash ? [logsCall(chain, hash, logTopics)] : []),
  ])
  const starts = calls.map((_, i) => calls.slice(0, i).reduce((sum, { length }) => sum + length, 0))
  const toAccounts = (told: readonly ProviderAnswer[]) =>
    wanted.map(({ hash }, i) =>
      inOrder(told, rpc.providers).map(({ provider, outcomes }) => {
        const start = starts[i] ?? 0
        const block = blockIn(outcomes[start])
        const isAsked = hash !== null && block?.hash === hash
        return { provider, block, logs: isAsked ? logsIn(outcomes[start + 1]) : null }
      }),
    )
  const enough = enoughOf(rpc.providers, network.witnessesMin)
  const isTold = (told: readonly ProviderAnswer[]) =>
    told.length >= enough &&
    toAccounts(told).every((accounts) => isWitnessed(judge(accounts, network.witnessesMin), enough))
  const first = toAccounts(await rpc.askAll(calls.flat(), isHasty ? isTold : undefined))

  const later = first.flatMap((accounts, i) => {
    const hash = mostTold(accounts)
    return hash && hash !== wanted[i]?.hash ? { i, hash } : []
  })
  if (later.length === 0) return first
  const told = await rpc.askAll(later.map(({ hash }) => logsCall(chain, hash, logTopics)))
  return first.map((accounts, i) => {
    const place = later.findIndex((one) => one.i === i)
    const hash = later[place]?.hash
    if (!hash) return accounts
    return accounts.map((account) => {
      const outcomes = told.find(({ provider }) => provider === account.provider)?.outcomes
      return account.block?.hash === hash ? { ...account, logs: logsIn(outcomes?.[place]) } : account
    })
  })
}

/**
 * The headers of blocks alone, from every provider that shows in the same answer that it is on our chain: unlike a new
 * block, which must name our last one as its parent, they may take blocks away.
 */
export async function readHeaders(
  chain: Chain,
  numbers: readonly number[],
): Promise<readonly (readonly Account[])[]> {
  const told = inOrder(await chain.rpc.askAll(numbers.map(blockCall), undefined, true), chain.rpc.providers)
  return numbers.map((_, i) =>
    told.map(({ provider, outcomes }) => ({
      provider,
      block: blockIn(outcomes[i]),
      logs: [],
    })),
  )
}

function isWitnessed(verdict: BlockVerdict, enough: number): boolean {
  return verdict.kind === 'believed' && verdict.toldBy.length >= enough
}

/** An answer is looked at whenever another one arrives. Reading its logs once is enough. */
const logsRead = new WeakMap<RpcOutcome, ChainLog[]>()

function logsIn(outcome: RpcOutcome | undefined): ChainLog[] | null {
  if (!outcome || 'error' in outcome || !Array.isArray(outcome.result)) return null
  const logs = logsRead.get(outcome) ?? toLogs(outcome.result)
  logsRead.set(outcome, logs)
  return logs
}

function mostTold(accounts: readonly Account[]): Hex | null {
  const hashes = accounts.flatMap(({ block }) => block?.hash ?? [])
  const groups = [...Map.groupBy(hashes, (hash) => hash).values()].toSorted((a, b) => b.length - a.length)
  return groups[0]?.[0] ?? null
}

export function inOrder(
  told: readonly ProviderAnswer[],
  providers: readonly string[],
): readonly ProviderAnswer[] {
  return told.toSorted((a, b) => providers.indexOf(a.provider) - providers.indexOf(b.provider))
}
