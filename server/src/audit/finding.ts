import type { PastTransfer } from '../chains/history.ts'

/**
 * How the books and a chain differ.
 *
 *   missing    money arrived that the books do not have
 *   dust       the same, below a cent: the sum of a day
 *   sibling    money arrived on a network that this deployment does not accept payments on
 *   unfounded  the books have a payment that the chain does not have
 *   unpaid     a checkout is COMPLETED without any payment
 *   balance    what a wallet holds did not change by what it received and sent
 */
export type Kind = 'missing' | 'dust' | 'sibling' | 'unfounded' | 'unpaid' | 'balance'

export type Discrepancy = {
  readonly kind: Kind
  readonly wallet: string
  readonly asset: string
  /** Empty for sums. */
  readonly transaction: string
  /** Among equal transfers of the transaction. */
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
  readonly to: string
  readonly amount: bigint
  readonly at: Date
  readonly checkoutId: string | null
  readonly storeId: string | null
}

/** A transfer that arrived, and its place among the equal ones of its transaction. */
export type Arrived = PastTransfer & { readonly position: number }

/** In the books, equal transfers of one transaction are told apart by their order alone. So they are counted. */
function keyOf({ transaction, asset, to, amount }: Omit<PastTransfer, 'from' | 'block'>): string {
  return `${transaction} ${asset} ${to} ${amount}`
}

/** What arrived at the wallets, each with its place among equals. */
export function listArrived(transfers: readonly PastTransfer[], wallets: ReadonlySet<string>): Arrived[] {
  const counts = new Map<string, number>()
  return transfers
    .filter(({ to }) => wallets.has(to))
    .map((transfer) => {
      const key = keyOf(transfer)
      const position = counts.get(key) ?? 0
      counts.set(key, position + 1)
      return { ...transfer, position }
    })
}

/** The credits beyond those that the chain accounts for. */
export function listUnaccounted(credits: readonly Credited[], arrived: readonly Arrived[]): Credited[] {
  const left = new Map<string, number>()
  for (const transfer of arrived) left.set(keyOf(transfer), (left.get(keyOf(transfer)) ?? 0) + 1)
  return credits.filter((credit) => {
    const count = left.get(keyOf(credit)) ?? 0
    left.set(keyOf(credit), count - 1)
    return count <= 0
  })
}

/** Below a cent is dust: reported as one sum per wallet and day. */
function dustBelow(decimals: number): bigint {
  return 10n ** BigInt(decimals - 2)
}

/** More are told as one sum: an owner would not read a longer list. */
const missingMax = 100

/**
 * What the books lack. Without `isFollowed` payments are not accepted on this network, so all that arrived is meant for
 * another one.
 */
export function describeMissing(
  missing: readonly Arrived[],
  { decimalsOf, isFollowed }: { decimalsOf(asset: string): number; readonly isFollowed: boolean },
): Discrepancy[] {
  const kind = isFollowed ? 'missing' : 'sibling'
  return [...Map.groupBy(missing, ({ to, asset }) => `${to} ${asset}`).values()].flatMap((group) => {
    const isDust = ({ asset, amount }: Arrived) => amount < dustBelow(decimalsOf(asset))
    const largest = group.filter((one) => !isDust(one)).toSorted((a, b) => (a.amount < b.amount ? 1 : -1))
    return [
      ...largest.slice(0, missingMax).map((one) => toDifference(kind, one)),
      ...sumUp(kind, largest.slice(missingMax)),
      ...sumUp('dust', group.filter(isDust)),
    ]
  })
}

function toDifference(kind: Kind, { to, asset, transaction, position, amount }: Arrived): Discrepancy {
  return { kind, wallet: to, asset, transaction, position, amount, checkoutId: null, storeId: null }
}

function sumUp(kind: Kind, some: readonly Arrived[]): Discrepancy[] {
  const [first] = some
  if (!first) return []
  const amount = some.reduce((sum, one) => sum + one.amount, 0n)
  return [{ ...toDifference(kind, first), transaction: '', position: 0, amount }]
}
