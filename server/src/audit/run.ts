import { isNodeError } from '../chains/rpc.ts'
import type { Context } from '../context.ts'
import { networks } from '../networks.ts'
import { addDays } from '../zone.ts'
import type { Audited } from './audited.ts'
import { auditDay, auditStray, type DayResult } from './day.ts'
import type { Ledger } from './judge.ts'
import * as rows from './rows.ts'

/** As many as one question to a node names. */
const walletsPerQuestion = 500
/** Days whose books have changed that are compared again in each run. */
const againMax = 50
/** A day may still be compared this long after it ended, because nodes were away. */
const behindDays = 3

/** Told after each comparison, and where one was not possible. */
export type Comparison = {
  readonly network: string
  readonly day: string
} & ({ readonly result: DayResult } | { readonly trouble: string })

type Asked = {
  /** Whether to go on with the next question. */
  isOver(): boolean
  tell(told: Comparison): void
  tellStray(told: { readonly network: string; readonly day: string; readonly found: number }): void
}

/**
 * Wallets of one day that are asked about together. Those that nobody has proven can be anybody’s busy address, and one
 * that was busy the day before is asked about alone.
 */
function groupDue(due: readonly rows.DueWallet[]): rows.DueWallet[][] {
  const days = Map.groupBy(due, ({ day, wallet, isProven, wasBusy, createdAt }) => {
    const isFirst = createdAt.toISOString().slice(0, 10) === day
    return `${day} ${isProven} ${isFirst ? createdAt.getTime() : ''} ${wasBusy ? wallet : ''}`
  })
  return [...days.values()].flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / walletsPerQuestion) }, (_, i) =>
      group.slice(i * walletsPerQuestion, (i + 1) * walletsPerQuestion),
    ),
  )
}

/**
 * Compares every day that is over and was not compared, of every wallet, the oldest first; then again the days whose
 * books have changed since. Whoever dies is followed by one who goes on with the next day.
 */
export async function auditDue(
  ctx: Context,
  audited: readonly Audited[],
  now: Date,
  asked: Asked,
): Promise<void> {
  const today = now.toISOString().slice(0, 10)
  for (const one of audited) {
    const { caip2 } = one.network
    const before = one.history.countCalls()
    const troubles: string[] = []
    // A first pass for what is due may make more due: the next day.
    for (let isMore = true; isMore && !asked.isOver(); )
      isMore = await auditGroups(ctx, one, await rows.listDue(ctx.db, one.network, today), asked, troubles)
    await auditChanged(ctx, one, today, asked, troubles)
    await rows.noteRun(ctx.db, caip2, one.history.countCalls() - before, troubles[0] ?? null)
  }
  const here = new Set(audited.map(({ network }) => network.caip2))
  for (const caip2 of await rows.listChangedNetworks(ctx.db))
    if (!here.has(caip2)) await auditStrays(ctx, toUnknown(caip2), { today, asked })
}

/** Days that were compared before the books changed, and payments that no day’s comparison covers. */
async function auditChanged(
  ctx: Context,
  audited: Audited,
  today: string,
  asked: Asked,
  troubles: string[],
): Promise<void> {
  const changed = await rows.listChanged(ctx.db, audited.network.caip2, today)
  const again = Map.groupBy(
    changed.filter(({ isCompared }) => isCompared),
    ({ day }) => day,
  )
  for (const [day, those] of [...again].slice(0, againMax)) {
    const wallets = new Set(those.map(({ wallet }) => wallet))
    const on = await rows.listOn(ctx.db, audited.network, day)
    const due = on.filter(({ wallet }) => wallets.has(wallet))
    await auditGroups(ctx, audited, due, asked, troubles)
  }
  await auditStrays(ctx, audited, { today, asked })
}

/** Payments to wallets that no store has on that day, of days to come, or on networks that have no nodes. */
async function auditStrays(
  ctx: Context,
  audited: Ledger | Audited,
  { today, asked }: { readonly today: string; readonly asked: Asked },
): Promise<void> {
  const { network } = audited
  const recent = addDays(today, -behindDays)
  const changed = await rows.listChanged(ctx.db, network.caip2, today)
  for (const [day, those] of Map.groupBy(changed, ({ day }) => day)) {
    if (day >= recent && day <= today) continue
    const on = 'family' in network && day < today ? await rows.listOn(ctx.db, network, day) : []
    const covered = new Set(on.map(({ wallet }) => wallet))
    for (const one of those) {
      if (asked.isOver()) return
      if (covered.has(one.wallet)) continue
      const found = await auditStray(ctx, audited, one)
      if (found > 0) asked.tellStray({ network: network.caip2, day, found })
    }
  }
}

/** A network that cannot be asked. */
function toUnknown(caip2: string): Ledger {
  const mode = networks.find((one) => one.caip2 === caip2)?.mode ?? ''
  return { network: { caip2, mode }, history: { readTransaction: async () => [] } }
}

/** On request: every wallet on each of these days, whether it was compared before or not. */
export async function auditDays(
  ctx: Context,
  audited: readonly Audited[],
  days: readonly string[],
  asked: Asked,
): Promise<void> {
  for (const one of audited)
    for (const day of days)
      await auditGroups(ctx, one, await rows.listOn(ctx.db, one.network, day), asked, [])
}

/** Whether any was compared. Stops at the first trouble with the nodes: they are the same for every wallet. */
async function auditGroups(
  ctx: Context,
  audited: Audited,
  due: readonly rows.DueWallet[],
  { isOver, tell }: Asked,
  troubles: string[],
): Promise<boolean> {
  const network = audited.network.id
  let isAny = false
  for (const group of groupDue(due)) {
    const [{ day } = { day: '' }] = group
    if (isOver()) return false
    try {
      const result = await auditDay(ctx, audited, day, group)
      if (!result) continue
      isAny = true
      tell({ network, day, result })
    } catch (error) {
      if (!isNodeError(error)) throw error
      troubles.push(error.message)
      tell({ network, day, trouble: error.message })
      return false
    }
  }
  return isAny
}
