import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { unitsToText } from '../../money.ts'
import type { Network } from '../../networks.ts'
import type { Rail } from '../rail.ts'
import { readReadiness } from './readiness.ts'
import { listSettlers } from './rows.ts'

/** How long an active settler's balance lasts. Amounts are in the smallest unit of the native currency. */
export type Runway = {
  readonly address: string
  /** Null until it was read. */
  readonly balance: bigint | null
  /** Whether nodes refuse its transactions because it cannot pay. */
  readonly isUnfunded: boolean
  /** The average of the last 24 hours, failures included; null if nothing was settled. */
  readonly costPerPayment: bigint | null
  /** The balance it needs for payments to be accepted; null while fees are above the limit. */
  readonly needed: bigint | null
  /** How many payments it can settle before payers are refused. */
  readonly paymentsLeft: bigint | null
  /** How long that lasts at the rate of the last 24 hours; null if nothing was spent. */
  readonly hoursLeft: bigint | null
}

export async function readRunways({ db }: Context, rail: Rail): Promise<Runway[]> {
  const network = rail.network.caip2
  const [{ lanes, baseFee }, spent] = await Promise.all([readReadiness(db, network), readSpent(db)])
  return lanes.flatMap(({ address, balanceWei, dataFeeWei, isUnfunded }) => {
    if (address === null) return []
    const day = spent.get(`${network} ${address}`) ?? { spent: 0n, payments: 0n }
    const costPerPayment = day.payments > 0n ? day.spent / day.payments : null
    // While fees are too high, it can settle no payment.
    const reserve = rail.reserveCost(baseFee, dataFeeWei, 0)
    const left = balanceWei === null || reserve === null ? 0n : balanceWei - reserve
    const free = left > 0n ? left : 0n
    const isKnown = balanceWei !== null
    return {
      address,
      balance: balanceWei,
      isUnfunded,
      costPerPayment,
      needed: reserve,
      paymentsLeft: isKnown ? free / (costPerPayment || rail.settlementCost(baseFee)) : null,
      hoursLeft: isKnown && day.spent > 0n ? (free * 24n) / day.spent : null,
    }
  })
}

/** In one line for operators. */
export function describeRunway({ nativeCurrency }: Network, runway: Runway): string {
  const { balance, isUnfunded, costPerPayment, needed, paymentsLeft, hoursLeft } = runway
  const { decimals, symbol } = nativeCurrency
  if (balance === null || paymentsLeft === null) return 'work has not read its balance yet'
  const amount = (units: bigint) => `${unitsToText(units, decimals)} ${symbol}`
  const refused = isUnfunded ? '; nodes say that it cannot pay' : ''
  if (needed === null)
    return `holds ${amount(balance)}; fees are above the limit, so nothing is sent now${refused}`
  if (balance < needed)
    return `holds ${amount(balance)}: 0 payments left, because none is accepted below ${amount(needed)}, the most that a full batch can cost at the present fees${refused}`
  const cost =
    costPerPayment === null
      ? 'nothing settled in the last day'
      : `${amount(roundUp(costPerPayment))} per payment in the last day`
  const hours = hoursLeft === null ? '' : `, ${describeHours(hoursLeft)} at the last day’s rate`
  return `${cost}, ${paymentsLeft} payments left${hours}${refused}`
}

/** To three significant digits. */
function roundUp(units: bigint): bigint {
  const step = 10n ** BigInt(Math.max(0, `${units}`.length - 3))
  return ((units + step - 1n) / step) * step
}

/** So long that the number of hours says nothing. */
const hoursShownMax = 365n * 24n

function describeHours(hours: bigint): string {
  return hours > hoursShownMax ? 'more than a year' : `${hours} hours`
}

/**
 * Updates the metrics of the settlers. Metrics are floating-point numbers in the native currency, so the last digits
 * are lost.
 */
export async function measureRunways(ctx: Context, rails: readonly Rail[]): Promise<void> {
  const { settlerBalance, settlerUnfunded, settlerStopped, paymentCost, paymentsLeft, hoursLeft } =
    ctx.metrics
  for (const rail of rails) {
    const { id, caip2, nativeCurrency } = rail.network
    const toNumber = (units: bigint) => Number.parseInt(`${units}`, 10)
    const toCurrency = (units: bigint) => toNumber(units) / 10 ** nativeCurrency.decimals
    for (const { address, state, stoppedAt } of await listSettlers(ctx.db, caip2))
      settlerStopped.set({ network: id, settler: address }, stoppedAt !== null && state !== 'retired' ? 1 : 0)
    for (const runway of await readRunways(ctx, rail)) {
      const labels = { network: id, settler: runway.address }
      settlerUnfunded.set(labels, runway.isUnfunded ? 1 : 0)
      if (runway.balance !== null) settlerBalance.set(labels, toCurrency(runway.balance))
      if (runway.costPerPayment !== null) paymentCost.set(labels, toCurrency(runway.costPerPayment))
      if (runway.paymentsLeft !== null) paymentsLeft.set(labels, toNumber(runway.paymentsLeft))
      if (runway.hoursLeft === null) hoursLeft.remove(labels)
      else hoursLeft.set(labels, toNumber(runway.hoursLeft))
    }
  }
}

/** The settlers' costs in the last 24 hours and how many payments had effect, by `network address`. */
async function readSpent(
  db: Database,
): Promise<Map<string, { readonly spent: bigint; readonly payments: bigint }>> {
  const rows = await db.query<{ network: string; settler: string; spent: string; payments: string }>(
    `select network, settler, sum(spent) as spent, sum(payments - failures) as payments
     from settler_gas
     where hour > clock() - interval '24 hours' group by network, settler`,
  )
  return new Map(
    rows.map(({ network, settler, spent, payments }) => [
      `${network} ${settler}`,
      { spent: BigInt(spent), payments: BigInt(payments) },
    ]),
  )
}
