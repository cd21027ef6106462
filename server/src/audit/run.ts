import { TooManyTransfersError } from '../chains/history.ts'
import { isNodeError } from '../chains/rpc.ts'
import type { Context } from '../context.ts'
import { addDays } from '../zone.ts'
import type { Audited } from './audited.ts'
import { auditDay, type DayResult } from './day.ts'
import * as rows from './rows.ts'
import { findSuspects, lookedBackDays } from './suspects.ts'

/** As many as one question to a node names. */
const walletsPerQuestion = 500
/** Days with open findings that are looked at again in each run. */
const openDaysMax = 50

/** Told after each comparison, and where one was not possible. */
export type Comparison = {
  readonly network: string
  readonly day: string
} & ({ readonly result: DayResult } | { readonly trouble: string })

type Asked = {
  /** Whether to go on with the next question. */
  isOver(): boolean
  tell(told: Comparison): void
}

/** Wallets of one day that are asked about together. Those that nobody has proven can be anybody’s busy address. */
function groupDue(due: readonly rows.DueWallet[]): rows.DueWallet[][] {
  const days = Map.groupBy(due, ({ day, isProven, createdAt }) => {
    const isFirst = createdAt.toISOString().slice(0, 10) === day
    return `${day} ${isProven} ${isFirst ? createdAt.getTime() : ''}`
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
    for (let isMore = true; isMore && !asked.isOver(); ) {
      const due = (await rows.listDue(ctx.db, one.network, today)).filter(
        ({ wallet }) => !one.busy.has(wallet),
      )
      isMore = await auditGroups(ctx, one, due, asked, troubles)
    }
    for (const day of await rows.listOpenDays(ctx.db, caip2, openDaysMax))
      await auditChanged(ctx, one, day, asked, troubles)
    await rows.noteRun(ctx.db, caip2, one.history.countCalls() - before, troubles[0] ?? null)
  }
}

/** Compares days again whose books have changed, and looks at every checkout that is called paid. */
export async function auditAgain(
  ctx: Context,
  audited: readonly Audited[],
  now: Date,
  asked: Asked,
): Promise<number> {
  const today = now.toISOString().slice(0, 10)
  for (const one of audited)
    for (let ago = 1; ago <= lookedBackDays && !asked.isOver(); ago++)
      await auditChanged(ctx, one, addDays(today, -ago), asked, [])
  return await findSuspects(ctx, audited, now)
}

async function auditChanged(
  ctx: Context,
  audited: Audited,
  day: string,
  asked: Asked,
  troubles: string[],
): Promise<void> {
  const changed = await rows.listChanged(ctx.db, audited.network.caip2, day)
  if (changed.length === 0) return
  const wallets = await rows.listOn(ctx.db, audited.network, day)
  await auditGroups(
    ctx,
    audited,
    wallets.filter(({ wallet }) => changed.includes(wallet)),
    asked,
    troubles,
  )
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
      const isBusy = error instanceof TooManyTransfersError
      if (!isBusy && !isNodeError(error)) throw error
      const trouble = isBusy ? `${group[0]?.wallet} has too many transfers on ${day}` : error.message
      troubles.push(trouble)
      tell({ network, day, trouble })
      if (!isBusy) return false
      for (const { wallet } of group) audited.busy.add(wallet)
    }
  }
  return isAny
}
