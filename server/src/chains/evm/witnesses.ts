import { keccak_256 } from '@noble/hashes/sha3'
import { toRlp } from 'viem/utils'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { enoughOf, isMost } from '../agree.ts'
import type { Hex } from '../hex.ts'
import * as rows from '../rows.ts'
import type { ProviderAnswer, RpcOutcome } from '../rpc.ts'
import {
  blockCall,
  blockIn,
  type Chain,
  type ChainLog,
  logsCall,
  type RawHeader,
  type ToldBlock,
  toLogs,
} from './chain.ts'
import { topics } from './eip3009.ts'

/**
 * What the providers report about a block, and what we believe of it.
 *
 *   lag     a provider lacks the block or its logs, or has no logs although another one has: it does not count
 *   fork    providers have different blocks at one height. Above `safe` that is a reorganisation, and we wait
 *   lie     a header that does not hash to its name, or a log that its block's bloom filter excludes. That is proven, so
 *           the provider does not count. Where enough others agree, a provider that contradicts them about the logs of a
 *           block has lied too
 *   dispute providers contradict each other and nothing proves who lies: neither is believed. Two of four prove nothing,
 *           because most of those that answer must agree
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
      /** The providers that reported this. Fewer than `witnessesMin` if the others are silent or lag. */
      readonly toldBy: readonly string[]
      /** Whether others answered but do not have the block yet. */
      readonly isAwaited: boolean
      /** Whether others have the block but none of these logs. They may lag, or the logs may be made up. */
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
  // Those without logs may lag. But if they are as many as the others, it is unknown who is right, so the block counts
  // as reported by too few.
  const isContested = group.length >= witnessesMin && !isDecided(group.length, possible.length, witnessesMin)
  const toldBy = group.slice(0, isContested ? witnessesMin - 1 : group.length).map(({ provider }) => provider)
  const isAwaited = accounts.length - lies.length > toldBy.length
  const isDoubted = isSome && possible.some(({ logs }) => logs.length === 0)
  return { kind: 'believed', block, logs: group[0].logs, toldBy, isAwaited, isDoubted, lies }
}

/** If one provider is enough, the one that reports more is believed. */
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

/**
 * Removes headers that don't hash to the block's hash, if another header does. Without such a header, a false one could
 * not be told from one with unknown fields.
 */
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
 * Some gateways leave out fields of a header, which then does not hash to the block's hash. If all its other fields
 * equal a complete header from another provider, both have reported the same block. Null if there is no complete one:
 * then this provider can't be a witness, but has not lied.
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

/** A block to read: its number, and its hash if that is known. */
export type WantedBlock = { readonly number: number; readonly hash: Hex | null }

/**
 * Reads blocks and the logs of our tokens in them from every provider. Usually that takes one request each. If the hash
 * is not known, a second request asks for the logs of the block that most providers have.
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
 * Only the headers of blocks, from every provider that shows in the same answer that it is on our chain. This matters
 * because these headers can orphan blocks; a new block proves its chain by naming our last one as its parent.
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

/** The answers are read again whenever another one arrives. Each is parsed only once. */
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

/** The header's fields in the order in which they are hashed. Later forks added fields at the end. */
const words = [
  'parentHash',
  'sha3Uncles',
  'miner',
  'stateRoot',
  'transactionsRoot',
  'receiptsRoot',
  'logsBloom',
]
const quantities = ['difficulty', 'number', 'gasLimit', 'gasUsed', 'timestamp']
const seals = ['extraData', 'mixHash', 'nonce']
const added: readonly { readonly name: string; readonly isQuantity: boolean }[] = [
  { name: 'baseFeePerGas', isQuantity: true },
  { name: 'withdrawalsRoot', isQuantity: false },
  { name: 'blobGasUsed', isQuantity: true },
  { name: 'excessBlobGas', isQuantity: true },
  { name: 'parentBeaconBlockRoot', isQuantity: false },
  { name: 'requestsHash', isQuantity: false },
]

/**
 * Whether a header hashes to the hash it claims. False may also mean that a newer fork added an unknown field. So it
 * proves a lie only if another provider's header of the same height does hash to its own hash.
 */
export function isGenuine(header: RawHeader): boolean {
  const hex = (name: string) => String(header[name] ?? '0x') as Hex
  const fields = [
    ...words.map(hex),
    ...quantities.map((name) => minimal(hex(name))),
    ...seals.map(hex),
    ...added
      .filter(({ name }) => header[name] !== undefined && header[name] !== null)
      .map(({ name, isQuantity }) => (isQuantity ? minimal(hex(name)) : hex(name))),
  ]
  try {
    return hash(Buffer.from(toRlp(fields).slice(2), 'hex')) === header.hash.toLowerCase()
  } catch {
    // Not hex, so it can't hash to anything.
    return false
  }
}

const hashed = [...words, ...quantities, ...seals, ...added.map(({ name }) => name)]

/** How many of the hashed fields a header has. */
function countHashed(header: RawHeader): number {
  return hashed.filter((name) => (header[name] ?? null) !== null).length
}

/** The fields that a header lacks, if it does not hash to its hash. All missing fields of later forks are listed. */
export function listLacking(header: RawHeader): string[] {
  const lacks = (name: string) => (header[name] ?? null) === null
  const lost = [...words, ...quantities, ...seals].filter(lacks)
  return lost.length > 0 ? lost : added.map(({ name }) => name).filter(lacks)
}

/** Whether two headers are equal, apart from fields that this one lacks. */
function isPartOf(header: RawHeader, whole: RawHeader): boolean {
  const text = (value: unknown) =>
    String(value)
      .toLowerCase()
      .replace(/^0x0+(?=.)/, '0x')
  return hashed.every(
    (name) => (header[name] ?? null) === null || text(header[name]) === text(whole[name] ?? ''),
  )
}

/** Whether a block with this bloom filter can contain a log with this address and these topics. */
export function canContain(header: RawHeader, log: { address: Hex; topics: readonly Hex[] }): boolean {
  const bloom = bloomOf(header)
  // A node that leaves out the bloom filter proves nothing.
  if (bloom.length !== bloomBytes) return true
  return isInBloom(bloom, log.address) && log.topics.every((value) => isInBloom(bloom, value))
}

const bloomBytes = 256
/** A full block has thousands of logs to compare with its bloom filter. */
const blooms = new WeakMap<RawHeader, Buffer>()

function bloomOf(header: RawHeader): Buffer {
  const bloom = blooms.get(header) ?? Buffer.from(String(header.logsBloom ?? '').slice(2), 'hex')
  blooms.set(header, bloom)
  return bloom
}

function isInBloom(bloom: Buffer, value: Hex): boolean {
  return bitsOf(value).every((bit) => {
    const byte = bloom[bloomBytes - 1 - (bit >> 3)] ?? 0
    return (byte & (1 << (bit & 7))) !== 0
  })
}

/**
 * The bits of values seen before. Every provider reports the same values, a block is read more than once, and each
 * value of a payment is in two logs. Hashing them each time would take a third of the worker's time.
 */
const remembered = new Map<Hex, readonly number[]>()
/** The values of some thirty full batches; 2 MB. */
const rememberedMax = 10_000

/** Each value sets three bits: the lowest 11 bits of the first three 16-bit words of its hash. */
function bitsOf(value: Hex): readonly number[] {
  const known = remembered.get(value)
  if (known) return known
  const digest = Buffer.from(keccak_256(Buffer.from(value.slice(2), 'hex')))
  const bits = [0, 2, 4].map((offset) => digest.readUInt16BE(offset) & 0x7ff)
  if (remembered.size >= rememberedMax) remembered.clear()
  remembered.set(value, bits)
  return bits
}

/** RLP has no leading zeros, and zero is empty. */
function minimal(quantity: Hex): Hex {
  const digits = quantity.slice(2).replace(/^0+/, '')
  return digits === '' ? '0x' : `0x${digits.length % 2 === 0 ? '' : '0'}${digits}`
}

function hash(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(keccak_256(bytes)).toString('hex')}`
}

/** If providers differ above `safe` for longer than this, the reason is not an ordinary reorganisation. */
const forkSeconds = 10

/**
 * Stops asking providers that were caught lying for a while, and warns the operator. Each provider is logged once per
 * read: one that lies about a block often lies about all of them, and payers wait meanwhile.
 */
export async function noteLies(ctx: Context, chain: Chain, lies: readonly Lie[]): Promise<void> {
  for (const { provider, what } of new Map(lies.map((lie) => [lie.provider, lie])).values()) {
    chain.rpc.setAside(provider)
    ctx.metrics.contradictions.inc({ network: chain.network.id, provider })
    await noteFault(ctx.db, chain.network.caip2, provider, what)
    ctx.log.warn(
      { network: chain.network.id, provider, lie: what },
      'a node reported something false and is not asked for a while; if this repeats, replace its provider',
    )
  }
}

type Disagreement =
  | { readonly kind: 'forked'; readonly number: number }
  | { readonly kind: 'disputed'; readonly what: string }

/**
 * Records that providers contradict each other and nothing proves which one lies. Until they agree, no block is
 * accepted and no payment is claimed.
 */
export async function noteDispute(
  ctx: Context,
  chain: Chain,
  follower: rows.Follower,
  disagreement: Disagreement,
): Promise<void> {
  if (
    disagreement.kind === 'forked' &&
    disagreement.number > follower.safeNumber &&
    (follower.headAgeSeconds ?? 0) < forkSeconds
  )
    return
  const what = disagreement.kind === 'forked' ? `block ${disagreement.number}` : disagreement.what
  ctx.metrics.nodeDispute.set({ network: chain.network.id }, 1)
  if (await rows.writeDispute(ctx.db, chain.network.caip2, what))
    ctx.log.error(
      { network: chain.network.id, dispute: what },
      'the nodes contradict each other, so payments are refused; find out which provider is wrong and remove it',
    )
}

export async function noteAgreement(ctx: Context, chain: Chain, { dispute }: rows.Follower): Promise<void> {
  ctx.metrics.nodeDispute.set({ network: chain.network.id }, 0)
  if (dispute !== null && (await rows.writeDispute(ctx.db, chain.network.caip2, null)))
    ctx.log.info({ network: chain.network.id }, 'the nodes agree again')
}

/** Records that a provider was caught lying. The count starts again after a day without a lie. */
async function noteFault(db: Database, network: string, provider: string, fault: string): Promise<void> {
  await db.query(
    `insert into node_faults as f (network, provider, fault, faults, last_at) values ($1, $2, $3, 1, clock())
     on conflict (network, provider) do update set fault = $3, last_at = clock(),
       faults = case when f.last_at > clock() - interval '1 day' then f.faults + 1 else 1 end`,
    [network, provider, fault],
  )
}

/** Blocks per request, at most and at first, and the number of logs that a request should not exceed. */
const blocksPerRead = 20
const blocksPerFirstRead = 5
const logsPerRead = 10_000

/**
 * Reads blocks from every provider, decides what to believe of each, and stops asking those that were caught lying for
 * a while.
 */
export async function readVerdicts(
  ctx: Context,
  chain: Chain,
  wanted: readonly WantedBlock[],
  isHasty: boolean,
): Promise<BlockVerdict[]> {
  if (wanted.length === 0) return []
  // If no provider can answer in time, the next read asks for less.
  paces.set(chain, Math.ceil(wanted.length / 2))
  const accounts = await readAccounts(chain, wanted, isHasty)
  const verdicts = accounts.map((one) => judge(one, chain.network.witnessesMin))
  const logs = verdicts.reduce((sum, one) => sum + (one.kind === 'believed' ? one.logs.length : 0), 0)
  const logsPerBlock = Math.max(1, logs / Math.max(1, verdicts.length))
  paces.set(chain, Math.min(blocksPerRead, Math.max(1, Math.floor(logsPerRead / logsPerBlock))))
  const lies = verdicts.flatMap((verdict) => verdict.lies)
  await noteLies(ctx, chain, lies)
  return verdicts
}

/** How many blocks of each chain this process reads at a time, adapted to how many logs the last ones had. */
const paces = new WeakMap<Chain, number>()

export function paceOf(chain: Chain): number {
  return paces.get(chain) ?? blocksPerFirstRead
}
