import { decimalsOf, toStored } from '../chains/families.ts'
import { type PastTransfer, type Span, TooManyTransfersError } from '../chains/history.ts'
import type { Context } from '../context.ts'
import type { Audited } from './audited.ts'
import {
  type Credited,
  type Discrepancy,
  describeMissing,
  describeUnfounded,
  listArrived,
} from './finding.ts'
import { judge, type Ledger } from './judge.ts'
import * as rows from './rows.ts'
import { findUnpaid } from './unpaid.ts'

export type DayResult = {
  readonly wallets: number
  readonly received: number
  readonly found: number
  readonly resolved: number
  readonly calls: number
}

const dayMs = 86_400_000

/**
 * Compares one day of some wallets with the chain, in both directions, and writes what was found in one transaction: a
 * process that dies has compared the day, or not. Null while the day’s blocks are not final.
 */
export async function auditDay(
  ctx: Context,
  audited: Audited,
  day: string,
  due: readonly rows.DueWallet[],
): Promise<DayResult | null> {
  const { history } = audited
  const callsBefore = history.countCalls()
  const wallets = due.map(({ wallet }) => wallet)
  const from = new Date(`${day}T00:00:00Z`)
  const before = new Date(from.getTime() + dayMs)
  // A wallet’s first day begins when it was registered. Blocks have whole seconds.
  const created = Math.min(...due.map(({ createdAt }) => createdAt.getTime()))
  const start = new Date(Math.max(from.getTime(), created - (created % 1_000)))
  const span = await history.findSpan(start, before)
  if (!span) return null
  let transfers: PastTransfer[] | null = null
  try {
    transfers = await history.readTransfers(wallets, span)
  } catch (error) {
    if (!(error instanceof TooManyTransfersError)) throw error
    // One busy address must not keep the others from being compared.
    if (due.length > 1) return await auditHalves(ctx, audited, day, due)
  }
  const counts = await compareDay(ctx, audited, { day, due, span }, transfers)
  return { ...counts, wallets: wallets.length, calls: history.countCalls() - callsBefore }
}

type Day = { readonly day: string; readonly due: readonly rows.DueWallet[]; readonly span: Span }

/** Without the transfers of a busy wallet, what the books say of it is looked up all the same. */
async function compareDay(
  ctx: Context,
  audited: Audited,
  { day, due, span }: Day,
  transfers: readonly PastTransfer[] | null,
): Promise<Pick<DayResult, 'received' | 'found' | 'resolved'>> {
  const { network, isFollowed } = audited
  const { caip2 } = network
  const wallets = due.map(({ wallet }) => wallet)
  const elsewhere = new Set(due.filter((one) => one.isElsewhere).map(({ wallet }) => wallet))
  const arrived = listArrived(transfers ?? [], new Set(wallets))
  // Read before the credits: what changes from here on is compared again.
  const changes = await rows.readChanges(ctx.db, caip2, wallets, day)
  const credits = await rows.listCredits(ctx.db, caip2, wallets, day)
  const again = await rows.listOpenTransactions(ctx.db, caip2, wallets, day)
  const asked = { wallets, credits, arrived, again, isRead: transfers !== null }
  const { missing, unfounded, transactions } = await judge(ctx, audited, asked)
  const compared = await sumUp(audited, { wallets, span }, { transfers, credits })
  const described = {
    ...{ day, isFollowed },
    decimalsOf: (asset: string) => decimalsOf(caip2, asset),
    isElsewhere: (wallet: string) => elsewhere.has(wallet),
  }
  const differences = [
    ...describeMissing(missing, described),
    ...describeUnfounded(unfounded),
    ...(transfers ? await listUnbalanced(ctx, audited, { day, span }, compared) : wallets.map(toBusy(day))),
  ]
  const written = await ctx.db.transaction(async (tx) => {
    await rows.writeDays(tx, caip2, day, compared)
    const resolved = await rows.resolveOthers(tx, caip2, { wallets, day, transactions }, differences)
    const found = await rows.writeFindings(tx, network, differences)
    await rows.endChanges(tx, caip2, day, changes)
    return { found, resolved }
  })
  const unpaid = await findUnpaid(
    ctx.db,
    credits.flatMap(({ checkoutId }) => checkoutId ?? []),
  )
  return { found: written.found + unpaid, resolved: written.resolved, received: arrived.length }
}

function toBusy(day: string) {
  return (wallet: string): Discrepancy => {
    const nothing = { transaction: '', position: 0, amount: 0n, checkoutId: null, storeId: null }
    return { kind: 'busy', day, wallet, asset: '', ...nothing }
  }
}

async function auditHalves(
  ctx: Context,
  audited: Audited,
  day: string,
  due: readonly rows.DueWallet[],
): Promise<DayResult | null> {
  const middle = Math.ceil(due.length / 2)
  const first = await auditDay(ctx, audited, day, due.slice(0, middle))
  const second = await auditDay(ctx, audited, day, due.slice(middle))
  if (!first || !second) return null
  const sum = (field: keyof DayResult) => first[field] + second[field]
  return {
    ...{ wallets: sum('wallets'), received: sum('received') },
    ...{ found: sum('found'), resolved: sum('resolved'), calls: sum('calls') },
  }
}

/** Credits that no comparison of a day covers: of a wallet that no store has on that day, or of a day to come. */
export async function auditStray(
  ctx: Context,
  audited: Ledger,
  { day, wallet, changes }: rows.Changed,
): Promise<number> {
  const { caip2 } = audited.network
  const wallets = [wallet]
  const credits = await rows.listCredits(ctx.db, caip2, wallets, day)
  const again = await rows.listOpenTransactions(ctx.db, caip2, wallets, day)
  const asked = { wallets, credits, arrived: [], again, isRead: true }
  const { unfounded, transactions } = await judge(ctx, audited, asked)
  const differences = describeUnfounded(unfounded)
  const found = await ctx.db.transaction(async (tx) => {
    await rows.resolveOthers(tx, caip2, { wallets, day, transactions }, differences)
    const found = await rows.writeFindings(tx, audited.network, differences)
    await rows.endChanges(tx, caip2, day, [{ wallet, changes }])
    return found
  })
  const ids = credits.flatMap(({ checkoutId }) => checkoutId ?? [])
  return found + (await findUnpaid(ctx.db, ids))
}

/** What each wallet received and sent, what it holds at the end, and what the books have. */
async function sumUp(
  { network, history }: Audited,
  { wallets, span }: { readonly wallets: readonly string[]; readonly span: Span },
  {
    transfers,
    credits,
  }: { readonly transfers: readonly PastTransfer[] | null; readonly credits: readonly Credited[] },
): Promise<rows.ComparedDay[]> {
  const days: rows.ComparedDay[] = []
  for (const wallet of wallets)
    for (const { address } of network.assets) {
      const asset = toStored(network.caip2, address)
      const of = transfers?.filter((one) => one.asset === asset)
      const booked = credits.filter((one) => one.to === wallet && one.asset === asset)
      days.push({
        ...{ wallet, asset, credits: booked.length, credited: total(booked) },
        received: of ? total(of.filter(({ to }) => to === wallet)) : null,
        sent: of ? total(of.filter(({ from }) => from === wallet)) : null,
        balance: await history.readBalance(wallet, asset, span, 'after'),
      })
    }
  return days
}

function total(some: readonly { readonly amount: bigint }[]): bigint {
  return some.reduce((sum, { amount }) => sum + amount, 0n)
}

/** Wallets that do not hold what they held before, and received, and did not send. */
async function listUnbalanced(
  { db }: Context,
  { network, history }: Audited,
  { day, span }: { readonly day: string; readonly span: Span },
  days: readonly rows.ComparedDay[],
): Promise<Discrepancy[]> {
  const wallets = days.map(({ wallet }) => wallet)
  const known = await rows.readBalances(db, network.caip2, wallets, day)
  const found: Discrepancy[] = []
  for (const { wallet, asset, balance, received, sent } of days) {
    if (balance === null || received === null || sent === null) continue
    const before =
      known.get(`${wallet} ${asset}`) ?? (await history.readBalance(wallet, asset, span, 'before'))
    if (before === null) continue
    const amount = balance - (before + received - sent)
    const unknown = { transaction: '', position: 0, checkoutId: null, storeId: null }
    if (amount !== 0n) found.push({ kind: 'balance', day, wallet, asset, amount, ...unknown })
  }
  return found
}
