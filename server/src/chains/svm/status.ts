import { agree, reachedBy } from '../agree.ts'
import type { RpcCall, RpcOutcome } from '../rpc.ts'
import type { SvmChain } from './chain.ts'
import { findTogether, lagMax, readAnswer, whole } from './witnesses.ts'

/** One provider's report about a transaction. */
export type Status = {
  readonly slot: number
  readonly isFailed: boolean
  readonly commitment: 'processed' | 'confirmed' | 'finalized'
}

/** One provider's knowledge at one moment. */
export type View = {
  readonly provider: string
  /** Of its newest confirmed block. */
  readonly slot: number
  readonly finalizedSlot: number
  /** Number of blocks up to the finalized one. The life of a blockhash is counted in blocks. */
  readonly finalizedHeight: number
  /** In the order of the hashes; null if the provider does not know the transaction. */
  readonly statuses: readonly (Status | null)[]
}

type Views = {
  /** The views of providers that are close to each other; empty if there are too few. */
  readonly views: readonly View[]
  /** Providers that are too far from the others to be believed. */
  readonly odd: readonly string[]
  readonly isDisputed: boolean
}

type EpochInfo = { readonly absoluteSlot: number; readonly blockHeight: number }
type RawStatus = {
  readonly slot: number
  readonly err?: unknown
  readonly confirmationStatus?: Status['commitment'] | null
} | null

/** Nodes refuse more. */
const statusesPerCall = 256

/**
 * Asks every provider about these transactions. Its height comes first: a transaction that it does not have afterwards
 * is in no block up to that height.
 *
 * Nodes remember what happened in the last minute or two. To search further back costs them much, and some providers
 * charge ten times as much for it. So their history is searched only if one of them does not know a transaction and
 * `isTelling` says that this would have a consequence.
 */
export async function readViews(
  chain: SvmChain,
  hashes: readonly string[],
  isTelling: (i: number, views: readonly View[]) => boolean,
): Promise<Views> {
  const recent = await askForViews(chain, hashes, false)
  return hashes.some((_, i) => isTelling(i, recent.views)) ? await askForViews(chain, hashes, true) : recent
}

async function askForViews(
  { rpc, network }: SvmChain,
  hashes: readonly string[],
  searchTransactionHistory: boolean,
): Promise<Views> {
  const witnesses = await rpc.askAll([
    ...['finalized', 'confirmed'].map((commitment) => ({ method: 'getEpochInfo', params: [{ commitment }] })),
    ...statusCalls(hashes, searchTransactionHistory),
  ])
  const told = witnesses.flatMap(({ provider, outcomes: [final, head, ...rest] }) => {
    const finalized = readAnswer(final, ({ absoluteSlot, blockHeight }: EpochInfo) => ({
      finalizedSlot: whole(absoluteSlot),
      finalizedHeight: whole(blockHeight),
    }))
    const slot = readAnswer(head, ({ absoluteSlot }: EpochInfo) => whole(absoluteSlot))
    const statuses = readStatuses(rest, hashes)
    if (!finalized || slot === null || statuses === null) return []
    return { provider, slot, ...finalized, statuses }
  })
  if (told.length < network.witnessesMin) return { views: [], odd: [], isDisputed: false }
  // By slots too: otherwise a provider that understates its slot could hide a transaction forever.
  const level = findTogether(told, ({ finalizedHeight }) => finalizedHeight, network.witnessesMin) ?? []
  const together = findTogether(level, ({ finalizedSlot }) => finalizedSlot, network.witnessesMin)
  const views: readonly View[] = together ?? []
  const odd = told.filter((one) => !views.includes(one)).map(({ provider }) => provider)
  return { views, odd, isDisputed: together === null }
}

/**
 * The recent statuses of these transactions, without the providers' heights. That is enough to see that one landed, but
 * never that one did not.
 */
export async function readRecent({ rpc }: SvmChain, hashes: readonly string[]): Promise<readonly View[]> {
  const witnesses = await rpc.askAll(statusCalls(hashes, false))
  return witnesses.flatMap(({ provider, outcomes }) => {
    const statuses = readStatuses(outcomes, hashes)
    return statuses ? { provider, slot: 0, finalizedSlot: 0, finalizedHeight: 0, statuses } : []
  })
}

function statusCalls(hashes: readonly string[], searchTransactionHistory: boolean): RpcCall[] {
  const calls: RpcCall[] = []
  for (let i = 0; i < hashes.length; i += statusesPerCall)
    calls.push({
      method: 'getSignatureStatuses',
      params: [hashes.slice(i, i + statusesPerCall), { searchTransactionHistory }],
    })
  return calls
}

/** In the order of the hashes; null if one of the answers is missing or has another length. */
function readStatuses(
  outcomes: readonly RpcOutcome[],
  hashes: readonly string[],
): readonly (Status | null)[] | null {
  const statuses = outcomes.flatMap(
    (outcome) => readAnswer(outcome, ({ value }: { value: RawStatus[] }) => value.map(toStatus)) ?? [],
  )
  return statuses.length === hashes.length ? statuses : null
}

function toStatus(raw: RawStatus): Status | null {
  if (raw === null) return null
  const commitment = raw.confirmationStatus ?? 'finalized'
  return { slot: whole(raw.slot), isFailed: (raw.err ?? null) !== null, commitment }
}

export type SvmHeads = {
  readonly slot: number
  readonly finalizedSlot: number
  readonly finalizedHeight: number
}

/** The heights that enough providers have reached; null if too few have. */
export function findHeads(views: readonly View[], witnessesMin: number): SvmHeads | null {
  const reached = (numberOf: (view: View) => number) => reachedBy(views.map(numberOf), witnessesMin)
  const slot = reached((view) => view.slot)
  const finalizedSlot = reached((view) => view.finalizedSlot)
  const finalizedHeight = reached((view) => view.finalizedHeight)
  if (slot === null || finalizedSlot === null || finalizedHeight === null) return null
  return { slot, finalizedSlot, finalizedHeight }
}

/** The time of a slot. Null while it is not known; `isDisputed` if the providers report different times. */
export async function readTime(
  { rpc, network }: SvmChain,
  slot: number,
): Promise<{ readonly time: Date | null; readonly odd: readonly string[]; readonly isDisputed: boolean }> {
  const witnesses = await rpc.askAll([{ method: 'getBlockTime', params: [slot] }])
  const told = witnesses.flatMap(({ provider, outcomes: [outcome] }) => {
    const fact = readAnswer(outcome, (seconds: number | null) => (seconds === null ? null : whole(seconds)))
    return fact === null ? [] : { provider, fact }
  })
  const { fact: seconds, odd, isDisputed } = agree(told, String, network.witnessesMin)
  return { time: seconds === null ? null : new Date(seconds * 1_000), odd, isDisputed }
}

export type Judged = {
  /** What enough providers report of the transaction, in a confirmed block; null if too few do. */
  readonly status: Status | null
  readonly odd: readonly string[]
  /** Whether they contradict each other about a finalized block. */
  readonly isDisputed: boolean
}

const keyOf = ({ slot, isFailed }: Status) => `${slot} ${isFailed}`

/**
 * The outcome of a transaction. Until its block is finalized, providers may differ, because one lags or is on a fork.
 * After that, one of them lies. A provider that doesn't know the transaction says something only if it is far past the
 * transaction's slot.
 */
export function judge(views: readonly View[], i: number, witnessesMin: number): Judged {
  const known = views.flatMap(({ provider, statuses }) => {
    const fact = statuses[i]
    return fact && fact.commitment !== 'processed' ? { provider, fact } : []
  })
  const final = known.filter(({ fact }) => fact.commitment === 'finalized')
  const firstSlot = Math.min(...final.map(({ fact }) => fact.slot))
  const without = views.filter(
    ({ statuses, finalizedSlot }) => (statuses[i] ?? null) === null && finalizedSlot > firstSlot + lagMax,
  )
  const history = agree(
    [...final, ...without.map(({ provider }) => ({ provider, fact: null }))],
    (fact) => (fact ? keyOf(fact) : 'unknown'),
    witnessesMin,
  )
  const { fact: confirmed } = agree(known, keyOf, witnessesMin)
  const status = history.fact ?? (confirmed && { ...confirmed, commitment: 'confirmed' as const })
  return { status, odd: history.odd, isDisputed: history.isDisputed }
}

/** The providers that don't know a transaction although they are past the slot in which it was seen. */
export function findWithout(views: readonly View[], i: number, seenIn: number | null): readonly View[] {
  return views.filter(({ statuses, slot }) => (statuses[i] ?? null) === null && slot > (seenIn ?? -1))
}

/**
 * Whether it would have a consequence if a provider, even after searching its history, does not know a transaction that
 * another one knows or that was seen in a slot before.
 */
export function isMissed(views: readonly View[], i: number, seenIn: number | null): boolean {
  const slots = views.flatMap(({ statuses }) => statuses[i]?.slot ?? []).concat(seenIn ?? [])
  return slots.length > 0 && findWithout(views, i, Math.min(...slots)).length > 0
}

/** The providers that know it as successful, even in a block that no other provider has. */
export function countWith(views: readonly View[], i: number): number {
  return views.filter(({ statuses }) => statuses[i] && !statuses[i].isFailed).length
}
