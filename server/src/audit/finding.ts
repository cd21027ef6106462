import { isErased } from '../chains/families.ts'
import type { PastTransfer } from '../chains/history.ts'

/**
 * How the books and a chain differ.
 *
 *   missing    money arrived that the books do not have
 *   dust       the same, below a cent: the sum of a day
 *   sibling    money arrived on a network that this deployment does not accept payments on
 *   elsewhere  money arrived that the books do not have, at a wallet that they say another cell owns: the sum of a day
 *   unfounded  the books have a payment that the chain does not have, or more payments of one transfer than one
 *   unpaid     a checkout is COMPLETED without a payment of what it asks for
 *   balance    what a wallet holds did not change by what it received and sent
 *   busy       a wallet had too many transfers for a comparison
 */
export type Kind = 'missing' | 'dust' | 'sibling' | 'elsewhere' | 'unfounded' | 'unpaid' | 'balance' | 'busy'

export type Discrepancy = {
  readonly kind: Kind
  /** Such as 2026-11-16, in UTC. */
  readonly day: string
  readonly wallet: string
  readonly asset: string
  /** Empty for sums. */
  readonly transaction: string
  /** Tells those of one transaction apart. */
  readonly position: number
  readonly amount: bigint
  readonly checkoutId: string | null
  readonly storeId: string | null
}

/** A credit as the audit reads it. */
export type Credited = {
  readonly network: string
  readonly transaction: string
  readonly asset: string
  readonly payer: string
  readonly to: string
  readonly amount: bigint
  readonly at: Date
  readonly checkoutId: string | null
  readonly storeId: string | null
}

/** A transfer that arrived. */
export type Arrived = PastTransfer & {
  /** Its number among the equal ones of its transaction: as in the books, those of one payer and amount. */
  readonly position: number
  /** Its number among all that its transaction brought the wallet. */
  readonly place: number
}

type Equal = {
  readonly transaction: string
  readonly asset: string
  readonly to: string
  readonly amount: bigint
}

function keyOf(payer: string, { transaction, asset, to, amount }: Equal): string {
  return `${transaction} ${asset} ${payer} ${to} ${amount}`
}

/** What arrived at the wallets, numbered. */
export function listArrived(transfers: readonly PastTransfer[], wallets: ReadonlySet<string>): Arrived[] {
  const counts = new Map<string, number>()
  const next = (key: string) => {
    const count = counts.get(key) ?? 0
    counts.set(key, count + 1)
    return count
  }
  return transfers
    .filter(({ to }) => wallets.has(to))
    .map((transfer) => ({
      ...transfer,
      position: next(keyOf(transfer.from, transfer)),
      place: next(`${transfer.transaction} ${transfer.asset} ${transfer.to}`),
    }))
}

/**
 * Compares some transactions with everything that the books say they paid. In the books, equal transfers are told apart
 * by their order alone, so they are counted. `kept` are those whose payments were deleted or their payers erased: they
 * have paid once. Of more payments than transfers, nobody can tell which is false, so all are named.
 */
export function compareTransfers(
  arrived: readonly Arrived[],
  credits: readonly Credited[],
  kept: ReadonlySet<Arrived>,
): { readonly missing: Arrived[]; readonly unfounded: Credited[] } {
  const left = Map.groupBy(credits, (credit) => keyOf(credit.payer, credit))
  const erasedMax = new Map<string, number>()
  const missing: Arrived[] = []
  const unfounded: Credited[] = []
  for (const [key, equals] of Map.groupBy(arrived, (transfer) => keyOf(transfer.from, transfer))) {
    const own = left.get(key) ?? []
    left.delete(key)
    const before = equals.filter((one) => kept.has(one)).length
    const [first] = equals
    if (first) erasedMax.set(keyOf('', first), (erasedMax.get(keyOf('', first)) ?? 0) + before)
    if (own.length + before > equals.length) unfounded.push(...own)
    missing.push(...equals.slice(own.length + before))
  }
  for (const own of left.values()) {
    const [first] = own
    if (!first) continue
    const max = isErased(first.payer) ? (erasedMax.get(keyOf('', first)) ?? 0) : 0
    if (own.length > max) unfounded.push(...own)
  }
  return { missing, unfounded }
}

/** Numbered without their stores: the books may name none, or one that does not exist, and the owner is found later. */
export function describeUnfounded(credits: readonly Credited[]): Discrepancy[] {
  const counts = new Map<string, number>()
  return credits.map(({ to, asset, transaction, amount, checkoutId, storeId, at }) => {
    const day = at.toISOString().slice(0, 10)
    const key = `${day} ${transaction} ${asset} ${to} ${checkoutId}`
    const position = counts.get(key) ?? 0
    counts.set(key, position + 1)
    return { kind: 'unfounded', day, wallet: to, asset, transaction, position, amount, checkoutId, storeId }
  })
}

/** Below a cent is dust: reported as one sum per wallet and day. */
function dustBelow(decimals: number): bigint {
  return 10n ** BigInt(decimals - 2)
}

/** More are told as one sum: an owner would not read a longer list. */
const missingMax = 100

type Described = {
  readonly day: string
  decimalsOf(asset: string): number
  /** Without it payments are not accepted on this network, so all that arrived is meant for another one. */
  readonly isFollowed: boolean
  isElsewhere(wallet: string): boolean
}

/** What the books lack. */
export function describeMissing(
  missing: readonly Arrived[],
  { day, decimalsOf, isFollowed, isElsewhere }: Described,
): Discrepancy[] {
  const kind = isFollowed ? 'missing' : 'sibling'
  const one = (kind: Kind, { to, asset, transaction, place, amount }: Arrived): Discrepancy => {
    const where = { wallet: to, asset, transaction, position: place }
    return { kind, day, ...where, amount, checkoutId: null, storeId: null }
  }
  const sumUp = (kind: Kind, some: readonly Arrived[]): Discrepancy[] => {
    const [first] = some
    if (!first) return []
    const amount = some.reduce((sum, each) => sum + each.amount, 0n)
    return [{ ...one(kind, first), transaction: '', position: 0, amount }]
  }
  return [...Map.groupBy(missing, ({ to, asset }) => `${to} ${asset}`).values()].flatMap((group) => {
    if (group.some(({ to }) => isElsewhere(to))) return sumUp('elsewhere', group)
    const isDust = ({ asset, amount }: Arrived) => amount < dustBelow(decimalsOf(asset))
    const largest = group.filter((each) => !isDust(each)).toSorted((a, b) => (a.amount < b.amount ? 1 : -1))
    return [
      ...largest.slice(0, missingMax).map((each) => one(kind, each)),
      ...sumUp(kind, largest.slice(missingMax)),
      ...sumUp('dust', group.filter(isDust)),
    ]
  })
}
