import { isNodeError } from '../chains/rpc.ts'
import type { Context } from '../context.ts'
import { type Network, networks } from '../networks.ts'
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

/** Told after each comparison, and where one was not possible: of one wallet, if the reason is what its payments say. */
export type Comparison = {
  readonly network: string
  readonly day: string
} & ({ readonly result: DayResult } | { readonly trouble: string; readonly wallet?: string })

type Asked = {
  /** Whether to go on with the next question. */
  isOver(): boolean
  tell(told: Comparison): void
  tellStray(told: { readonly network: string; readonly day: string; readonly found: number }): void
}

/** A run of the audit of one network. */
type Run = Asked & {
  readonly troubles: string[]
  /** Wallets and days that are not tried again in this run. */
  readonly failed: Set<string>
}

/** Longer ones would not be read. */
const troubleCharsMax = 300

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
 * books have changed since. Whoever dies is followed by one who goes on with the next day. The books hold what a taken
 * `work` wrote, so no row of them may keep the audit from the others: it costs the comparison of its own wallet and day.
 */
export async function auditDue(
  ctx: Context,
  audited: readonly Audited[],
  now: Date,
  asked: Asked,
): Promise<void> {
  const today = now.toISOString().slice(0, 10)
  for (const one of audited) {
    const before = one.history.countCalls()
    const run = openRun(asked)
    await auditNetwork(ctx, one, today, run)
    await noteRun(ctx, one.network.caip2, one.history.countCalls() - before, run)
  }
  const here = new Set(audited.map(({ network }) => network.caip2))
  for (const caip2 of await rows.listChangedNetworks(ctx.db)) {
    if (here.has(caip2)) continue
    const known = networks.find((one) => one.caip2 === caip2)
    if (known) await noteUnasked(ctx, known, today)
    else await auditStrays(ctx, toUnknown(caip2), today, openRun(asked))
  }
}

function openRun(asked: Asked): Run {
  return { ...asked, troubles: [], failed: new Set() }
}

async function noteRun({ db }: Context, caip2: string, calls: number, { troubles }: Run): Promise<void> {
  await rows.noteRun(db, caip2, calls, troubles[0] ?? null)
}

async function auditNetwork(ctx: Context, audited: Audited, today: string, run: Run): Promise<void> {
  // A first pass for what is due may make more due: the next day.
  for (let isMore = true; isMore && !run.isOver(); )
    isMore = await auditGroups(ctx, audited, await rows.listDue(ctx.db, audited.network, today), run)
  await auditChanged(ctx, audited, today, run)
  await auditStrays(ctx, audited, today, run)
}

/** Days that were compared before the books changed. */
async function auditChanged(ctx: Context, audited: Audited, today: string, run: Run): Promise<void> {
  const changed = await rows.listChanged(ctx.db, audited.network, today)
  const days = Map.groupBy(changed, ({ day }) => day)
  for (const [day, those] of [...days].slice(0, againMax)) {
    const wallets = new Set(those.map(({ wallet }) => wallet))
    const on = await rows.listOn(ctx.db, audited.network, day)
    const due = on.filter(({ wallet }) => wallets.has(wallet))
    await auditGroups(ctx, audited, due, run)
  }
}

/** Payments to wallets that no store has on that day, of days to come, or on networks that do not exist. */
async function auditStrays(
  ctx: Context,
  audited: Audited | Ledger<rows.Booked>,
  today: string,
  run: Run,
): Promise<void> {
  const { network } = audited
  const recent = addDays(today, -behindDays)
  for (const one of await rows.listStrays(ctx.db, network, { today, recent })) {
    if (run.isOver()) return
    const { day, wallet } = one
    const told = { network: network.caip2, day }
    try {
      const found = await auditStray(ctx, audited, one)
      if (found > 0) run.tellStray({ ...told, found })
    } catch (error) {
      if (isNodeError(error)) return noteTrouble(run, told, error.message)
      await noteFailed(ctx, network.caip2, { day, wallet }, run, error)
    }
  }
}

/** A network that no deployment has: nothing of it is on a chain. */
function toUnknown(caip2: string): Ledger<rows.Booked> {
  return { network: { caip2, family: '', mode: '' }, history: { readTransaction: async () => [] } }
}

/**
 * A network that this audit has no nodes of, be it that payments are no longer accepted on it. Honest payments change
 * too, such as when their payers are erased, so nothing is said of them. Their checkouts are looked at every night.
 */
async function noteUnasked(ctx: Context, { id, caip2 }: Network, today: string): Promise<void> {
  const { network } = toUnknown(caip2)
  const waiting = await rows.listStrays(ctx.db, network, { today, recent: addDays(today, -behindDays) })
  if (waiting.length === 0) return
  const trouble = `The books of ${id} have changed, and no node can be asked: set ${id}_AUDIT_RPC_URLS.`
  await rows.noteRun(ctx.db, caip2, 0, trouble)
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
      await auditGroups(ctx, one, await rows.listOn(ctx.db, one.network, day), openRun(asked))
}

/** Whether any was compared. Stops at the first trouble with the nodes: they are the same for every wallet. */
async function auditGroups(
  ctx: Context,
  audited: Audited,
  due: readonly rows.DueWallet[],
  run: Run,
): Promise<boolean> {
  const left = due.filter(({ day, wallet }) => !run.failed.has(`${day} ${wallet}`))
  let isAny = false
  for (const group of groupDue(left)) {
    const outcome = await auditGroup(ctx, audited, group, run)
    if (outcome === 'stopped') return false
    if (outcome === 'compared') isAny = true
  }
  return isAny
}

/** A wallet whose payments cannot be read is found by halves, and costs the others of its group nothing. */
async function auditGroup(
  ctx: Context,
  audited: Audited,
  group: readonly rows.DueWallet[],
  run: Run,
): Promise<'compared' | 'nothing' | 'stopped'> {
  const [{ day, wallet } = { day: '', wallet: '' }] = group
  if (run.isOver()) return 'stopped'
  const told = { network: audited.network.id, day }
  try {
    const result = await auditDay(ctx, audited, day, group)
    if (!result) return 'nothing'
    run.tell({ ...told, result })
    return 'compared'
  } catch (error) {
    if (isNodeError(error)) {
      noteTrouble(run, told, error.message)
      return 'stopped'
    }
    if (group.length === 1) {
      await noteFailed(ctx, audited.network.caip2, { day, wallet }, run, error)
      return 'nothing'
    }
    const middle = Math.ceil(group.length / 2)
    const first = await auditGroup(ctx, audited, group.slice(0, middle), run)
    if (first === 'stopped') return first
    const second = await auditGroup(ctx, audited, group.slice(middle), run)
    return second === 'nothing' ? first : second
  }
}

function noteTrouble(run: Run, told: Pick<Comparison, 'network' | 'day'>, trouble: string): void {
  run.troubles.push(trouble)
  run.tell({ ...told, trouble })
}

/** The next run tries again, after everything else. */
async function noteFailed(
  { db }: Context,
  caip2: string,
  { day, wallet }: { readonly day: string; readonly wallet: string },
  run: Run,
  error: unknown,
): Promise<void> {
  const reason = error instanceof Error ? error.message : String(error)
  const trouble = `The payments of ${wallet} on ${day} could not be compared: ${reason}`
  run.failed.add(`${day} ${wallet}`)
  run.troubles.push(trouble.slice(0, troubleCharsMax))
  run.tell({ network: caip2, day, wallet, trouble: trouble.slice(0, troubleCharsMax) })
  await rows.putOff(db, caip2, wallet, day)
}
