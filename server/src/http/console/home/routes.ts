import type { Payment } from '@farthing/sdk'
import { countOpen } from '../../../audit/read.ts'
import { listHeld } from '../../../checkouts/payments/hold-decision.ts'
import { listPayments } from '../../../checkouts/payments/list.ts'
import { listSummaries, type Summary } from '../../../checkouts/read.ts'
import { type DayRange, type Period, periods, readTakings } from '../../../checkouts/rollups/takings.ts'
import type { Context } from '../../../context.ts'
import { listTroubled } from '../../../events/webhooks/endpoints.ts'
import type { StoreId } from '../../../ids.ts'
import { readSpare } from '../../../members/recovery-codes.ts'
import { Refusal } from '../../../members/refusal.ts'
import { rangeOfDays, readSums } from '../../../movements/sums.ts'
import { listUndecided, type StorePayment } from '../../../payments/credits/store-payments.ts'
import { countForStore } from '../../../refunds/read.ts'
import { sumReturned } from '../../../refunds/rows.ts'
import { listChanges } from '../../../stores/change.ts'
import { listCurrent, readStore } from '../../../stores/rows.ts'
import { networksFor, payToOn, type Wallet } from '../../../stores/store.ts'
import { knownZone } from '../../../zone.ts'
import { isDay } from '../payments/query.ts'
import type { StoreRoutes } from '../screen.ts'
import { type Home, type Latest, renderHome, undecidedMax } from './view.ts'

const latestMax = 6

/** Takings, and tasks for members. */
export function mountHome({ get }: StoreRoutes): void {
  get('', 'payments:read', async (screen) => {
    const { may, storeId } = screen
    const [from, to] = [screen.asked('from'), screen.asked('to')]
    const named = periods.find((each) => each === screen.asked('period')) ?? 'month'
    const period = isDay(from) && isDay(to) ? { from, to } : named
    const shows = {
      endpoints: may('developers:read'),
      refunds: may('refunds:write'),
      findings: may('payments:write'),
      wallets: may('wallets:write'),
    }
    const [home, spare] = await Promise.all([
      readHome(screen.ctx, storeId, period, shows),
      readSpare(screen.ctx.db, storeId, screen.session.member.id),
    ])
    return screen.send({
      title: screen.texts.home.title,
      screen: 'home',
      isLive: true,
      main: renderHome(screen, { ...home, lacksSpare: spare === false }),
    })
  })
}

/**
 * Reads everything in one transaction, because setting the store for each statement would cost more than the statements.
 * `sees` says what the member can act on.
 */
export async function readHome(
  outer: Context,
  storeId: StoreId,
  period: Period | DayRange,
  sees: {
    readonly endpoints: boolean
    readonly refunds: boolean
    readonly findings: boolean
    readonly wallets: boolean
  },
): Promise<Omit<Home, 'lacksSpare'>> {
  return await outer.db.transaction(async (tx) => {
    const ctx: Context = { ...outer, db: { ...outer.db, query: (text, values) => tx.query(text, values) } }
    const now = ctx.now()
    const store = await readStore(ctx.db, storeId)
    if (!store) throw new Refusal('not_found')
    const wallets = await listCurrent(ctx.db, storeId)
    const networks = networksFor(ctx, store.mode)
    const takings = await readTakings(ctx, store, period, now)
    const booked = rangeOfDays(takings.from, takings.to, knownZone(store.timeZone))
    return {
      store,
      takings,
      books: await readSums(ctx.db, storeId, booked, store.reportCurrency),
      period,
      reportCurrency: store.reportCurrency,
      latest: await readLatest(ctx, storeId),
      undecided: await readUndecided(ctx, storeId),
      refunds: sees.refunds ? await countForStore(ctx.db, storeId) : 0,
      findings: sees.findings ? await countOpen(ctx.db, storeId) : 0,
      troubled: sees.endpoints ? await listTroubled(ctx.db, storeId) : [],
      hasWaitingWallet: (await listChanges(ctx.db, storeId)).some(({ madeAt }) => madeAt === null),
      hasWallet: wallets.length > 0,
      isPayable: networks.some((network) => payToOn(network, { store, wallets })),
      unproven: sees.wallets ? wallets.filter(isUnproven) : [],
      now,
    }
  })
}

/** Without those that a member has decided about a moment ago. */
async function readUndecided({ db }: Context, storeId: StoreId): Promise<StorePayment[]> {
  const wanted = undecidedMax + 1
  const { rows } = await listUndecided(db, storeId, wanted, undefined, wanted)
  const held = await listHeld(db, storeId)
  return rows.filter(({ paymentId }) => held.get(paymentId)?.state !== 'waiting')
}

/** Its owner has neither proven it nor said that it cannot sign. */
function isUnproven({ provenAt, custodialType }: Wallet): boolean {
  return provenAt === null && custodialType === 'NON_CUSTODIAL'
}

async function readLatest(ctx: Context, storeId: StoreId): Promise<Latest[]> {
  const { data } = await listPayments(ctx, storeId, { limit: latestMax })
  const ids = data.flatMap(({ checkoutId }) => checkoutId ?? [])
  const summaries = await listSummaries(ctx.db, storeId, ids, latestMax)
  const byId = new Map<string, Summary>(summaries.map((summary) => [summary.id, summary]))
  const paymentIds = data.map(({ id }) => id)
  const returned = await sumReturned(ctx.db, storeId, paymentIds)
  const paid = data.map((payment): Latest => {
    const checkout = byId.get(payment.checkoutId ?? '') ?? null
    const state = stateOf(payment, checkout, returned.get(payment.id) ?? 0n)
    return { state, checkout, payment, paymentId: payment.id, at: new Date(payment.includedAt) }
  })
  const settling = summaries
    .filter(({ id, status }) => status === 'PROCESSING' && !ids.includes(id))
    .map(
      (checkout): Latest => ({
        state: 'settling',
        checkout,
        payment: null,
        paymentId: null,
        at: checkout.createdAt,
      }),
    )
  return [...settling, ...paid].slice(0, latestMax)
}

function stateOf(payment: Payment, checkout: Summary | null, back: bigint): Latest['state'] {
  const { disposition, finality, amount } = payment
  if (finality === 'reversed') return 'reversed'
  if (back > 0n && back >= BigInt(amount)) return 'refunded'
  if (disposition !== 'exact') return disposition
  if (checkout?.status !== 'COMPLETED') return 'settling'
  return back > 0n ? 'partlyRefunded' : 'paid'
}
