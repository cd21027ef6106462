/**
 * What following a chain costs: how many calls it takes, and what providers of nodes charge for them. Each family has its
 * own figures.
 */
export type Costs = {
  readonly calls: Calls
  readonly plans: readonly Plan[]
}

/** Calls to one of two providers, by method, as `npm run bench:idle` measures them. */
type Calls = {
  /** In a month in which nobody looks at a checkout. */
  readonly idle: Counts
  /** For an hour in which somebody does, or did in the last five minutes. Null where that was not measured. */
  readonly awakeHour: Counts | null
  readonly payment: Counts
}

type Counts = Readonly<Record<string, number>>

/** What a provider's free plan includes each month, and what a call costs there, as published. */
export type Plan = {
  readonly provider: string
  /** The ends of its nodes' host names. */
  readonly hosts: readonly string[]
  readonly unit: string
  readonly unitsPerMonth: number
  readonly costs: Counts
  /** The cost of a method that is not in `costs`. */
  readonly otherwise: number
  readonly source: string
  /** The month in which it was read, because prices change. */
  readonly readIn: string
}

/** A month, of 30 days. */
export const monthSeconds = 30 * 86_400

/** The units that calls cost, by method. */
export function priceOf(calls: Counts, { costs, otherwise }: Plan): number {
  return Object.entries(calls).reduce((sum, [method, count]) => sum + count * (costs[method] ?? otherwise), 0)
}

/** For operators: how many calls it takes to follow a network. */
export function describeCalls({ calls: { idle, awakeHour, payment } }: Costs): string {
  const awake = awakeHour
    ? `, ${roundTo(100, sum(awakeHour))} an hour while somebody looks at a checkout`
    : ''
  return `about ${roundTo(1_000, sum(idle))} a month to each provider while nobody pays${awake}, and ${roundTo(1, sum(payment))} for a payment`
}

/** For operators: what that takes of a free plan. Null if the host is of no provider whose prices are known. */
export function describePlan({ calls, plans }: Costs, host: string): string | null {
  const plan = plans.find(({ hosts }) => hosts.some((end) => host.endsWith(end)))
  if (!plan) return null
  const { idle, awakeHour, payment } = calls
  const price = priceOf(idle, plan)
  const share = roundTo(1, (100 * price) / plan.unitsPerMonth)
  const left = plan.unitsPerMonth - price
  const uses = awakeHour
    ? `${roundTo(1, left / priceOf(awakeHour, plan))} hours in which somebody looks at a checkout`
    : `${roundTo(100, left / priceOf(payment, plan))} payments`
  const rest = left > 0 ? `the rest is enough for about ${uses}` : 'so it needs a paid one'
  return `following the network takes ${share} % of ${plan.provider}’s free plan, ${rest} (prices of ${plan.readIn})`
}

function sum(counts: Counts): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

function roundTo(step: number, number: number): string {
  return (Math.round(number / step) * step).toLocaleString('en')
}
