import { toStored } from '../chains/families.ts'
import { type PastTransfer, type Span, TooManyTransfersError } from '../chains/history.ts'
import type { Context } from '../context.ts'
import type { Network } from '../networks.ts'
import type { Audited } from './audited.ts'
import {
  type Arrived,
  type Credited,
  type Discrepancy,
  describeMissing,
  listArrived,
  listUnaccounted,
} from './finding.ts'
import * as rows from './rows.ts'

export type DayResult = {
  readonly wallets: number
  readonly received: number
  readonly found: number
  readonly resolved: number
  readonly calls: number
}

const dayMs = 86_400_000

/** The books can hold as many false payments as a thief wrote; each costs a question. The others stay findings. */
const confirmedMax = 1_000

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
  const { network, history } = audited
  const callsBefore = history.countCalls()
  const wallets = due.map(({ wallet }) => wallet)
  const from = new Date(`${day}T00:00:00Z`)
  const before = new Date(from.getTime() + dayMs)
  // A wallet’s first day begins when it was registered. Blocks have whole seconds.
  const created = Math.min(...due.map(({ createdAt }) => createdAt.getTime()))
  const start = new Date(Math.max(from.getTime(), created - (created % 1_000)))
  const span = await history.findSpan(start, before)
  if (!span) return null
  let transfers: PastTransfer[]
  try {
    transfers = await history.readTransfers(wallets, span)
  } catch (error) {
    // One busy address must not keep the others from being compared.
    if (!(error instanceof TooManyTransfersError) || due.length < 2) throw error
    return await auditHalves(ctx, audited, day, due)
  }
  const arrived = listArrived(transfers, new Set(wallets))
  const missing = await rows.listUnrecorded(ctx.db, network.caip2, arrived)
  const credits = await rows.listCredits(ctx.db, network.caip2, wallets, day)
  const compared = await sumUp(audited, { wallets, span }, { transfers, credits })
  const differences = [
    ...describeMissing(missing, {
      decimalsOf: (asset) => decimalsOf(network, asset),
      isFollowed: audited.isFollowed,
    }),
    ...(await listUnfounded(audited, credits, arrived)),
    ...(await listUnbalanced(ctx, audited, { day, span }, compared)),
  ]
  const written = await ctx.db.transaction(async (tx) => {
    await rows.writeDays(tx, network.caip2, day, compared)
    const resolved = await rows.resolveOthers(tx, network.caip2, { wallets, day }, differences)
    return { found: await rows.writeFindings(tx, network, day, differences), resolved }
  })
  return {
    ...written,
    wallets: wallets.length,
    received: arrived.length,
    calls: history.countCalls() - callsBefore,
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

function decimalsOf({ assets }: Network, asset: string): number {
  return assets.find(({ address }) => address.toLowerCase() === asset.toLowerCase())?.decimals ?? 6
}

/** Credits for which the chain has no transfer, not even on another day. */
async function listUnfounded(
  { history }: Audited,
  credits: readonly Credited[],
  arrived: readonly Arrived[],
): Promise<Discrepancy[]> {
  const found: Discrepancy[] = []
  for (const [place, credit] of listUnaccounted(credits, arrived).entries()) {
    if (place < confirmedMax && (await history.hasTransfer(credit))) continue
    found.push(toUnfounded(credit))
  }
  return found
}

export function toUnfounded({ to, asset, transaction, amount, checkoutId, storeId }: Credited): Discrepancy {
  return { kind: 'unfounded', wallet: to, asset, transaction, position: 0, amount, checkoutId, storeId }
}

/** What each wallet received and sent, what it holds at the end, and what the books have. */
async function sumUp(
  { network, history }: Audited,
  { wallets, span }: { readonly wallets: readonly string[]; readonly span: Span },
  {
    transfers,
    credits,
  }: { readonly transfers: readonly PastTransfer[]; readonly credits: readonly Credited[] },
): Promise<rows.ComparedDay[]> {
  const days: rows.ComparedDay[] = []
  for (const wallet of wallets)
    for (const { address } of network.assets) {
      const asset = toStored(network.caip2, address)
      const of = transfers.filter((one) => one.asset === asset)
      const total = (some: readonly { readonly amount: bigint }[]) =>
        some.reduce((sum, { amount }) => sum + amount, 0n)
      const booked = credits.filter((one) => one.to === wallet && one.asset === asset)
      days.push({
        ...{ wallet, asset, credits: booked.length, credited: total(booked) },
        received: total(of.filter(({ to }) => to === wallet)),
        sent: total(of.filter(({ from }) => from === wallet)),
        balance: await history.readBalance(wallet, asset, span, 'after'),
      })
    }
  return days
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
    if (balance === null) continue
    const before =
      known.get(`${wallet} ${asset}`) ?? (await history.readBalance(wallet, asset, span, 'before'))
    if (before === null) continue
    const amount = balance - (before + received - sent)
    const unknown = { transaction: '', position: 0, checkoutId: null, storeId: null }
    if (amount !== 0n) found.push({ kind: 'balance', wallet, asset, amount, ...unknown })
  }
  return found
}
