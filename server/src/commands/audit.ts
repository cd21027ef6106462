import { setTimeout as wait } from 'node:timers/promises'
import { type Audited, listAudited } from '../audit/audited.ts'
import { listFindings } from '../audit/read.ts'
import { auditDays, auditDue, type Comparison } from '../audit/run.ts'
import { findUnpaidSince } from '../audit/unpaid.ts'
import { toShown } from '../chains/families.ts'
import { ConfigError } from '../config/read.ts'
import type { Context } from '../context.ts'
import { runIfDue } from '../database/schedule.ts'
import { unitsToText } from '../money.ts'
import { networks } from '../networks.ts'
import { openRails } from '../payments/rails.ts'
import { askToLookUp, readLookUp } from '../payments/transfers/look-ups.ts'
import { addDays, daysBetween } from '../zone.ts'
import { type Options, UsageError } from './usage.ts'

/** A day is over at midnight in UTC, and its blocks are final some minutes later. */
const everySeconds = 300
const againSeconds = 86_400
/** A run stops after this long, before its lease ends, and the next goes on. */
const runMs = 600_000
const leaseSeconds = 1_200
const restMs = 1_000
/** More at once would hide which day the nodes could not answer about. */
const daysMax = 366

const unfounded = 'the books have payments that the chain does not'

/** `audit`: compares each day once it is over, until the process is told to stop. */
export function startAudit(ctx: Context): { stop(): Promise<void> } {
  const audited = openAudited(ctx)
  if (audited.length === 0) ctx.log.warn('no network that the audit can compare has nodes')
  const stopping = new AbortController()
  const asked = () => {
    const until = ctx.now().getTime() + runMs
    return {
      isOver: () => stopping.signal.aborted || ctx.now().getTime() > until,
      tell: (told: Comparison) => note(ctx, told),
      tellStray: (told: object) => ctx.log.warn(told, unfounded),
    }
  }
  const run = async () => {
    const task = { everySeconds, leaseSeconds, name: 'audit' }
    await runIfDue(ctx.db, { ...task, run: () => auditDue(ctx, audited, ctx.now(), asked()) })
    const again = { ...task, name: 'audit-unpaid', everySeconds: againSeconds }
    await runIfDue(ctx.db, {
      ...again,
      run: async () => {
        const found = await findUnpaidSince(ctx.db, ctx.config.cell, ctx.now())
        if (found > 0) ctx.log.warn({ found }, 'checkouts are completed without a payment that pays them')
      },
    })
  }
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await run().catch((error: unknown) =>
        ctx.log.error({ err: error }, 'the audit failed; it goes on where it stopped'),
      )
      await wait(restMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}

function note({ log }: Context, told: Comparison): void {
  const { network, day } = told
  if ('trouble' in told && told.wallet !== undefined)
    return void log.error(
      { network, day, wallet: told.wallet, trouble: told.trouble },
      'a wallet could not be compared with the chain; repair or delete what the trouble names, and the audit tries again',
    )
  if ('trouble' in told)
    return void log.warn(
      { network, day, trouble: told.trouble },
      'a day could not be compared with the chain; the audit tries again',
    )
  const { found } = told.result
  if (found > 0)
    log.warn(
      { network, day, ...told.result },
      'the books and the chain differ; read the table audit_findings',
    )
  else log.info({ network, day, ...told.result }, 'a day was compared with the chain')
}

/** `audit check FROM [TO]`. Returns the text to print. */
export async function checkCommand(
  ctx: Context,
  [from = '', to = from]: readonly string[],
  { network: id }: Options,
): Promise<string> {
  const days = listDays(ctx, from, to)
  const all = openAudited(ctx)
  const audited = id === undefined ? all : all.filter(({ network }) => network.id === id)
  if (audited.length === 0)
    throw new UsageError(
      id === undefined ? 'No network can be compared here.' : `${String(id)} cannot be compared here.`,
    )
  const lines: string[] = []
  const tell = (told: Comparison) => lines.push(describe(told))
  await auditDays(ctx, audited, days, { isOver: () => false, tell, tellStray: () => {} })
  await findUnpaidSince(ctx.db, ctx.config.cell, ctx.now())
  const open = await listFindings(ctx.db, { from, to })
  const none =
    lines.length === 0
      ? ['Nothing to compare: no store had a wallet, or these blocks are not final yet.']
      : []
  const found = open.map(({ network, day, kind, wallet, asset, transaction, amount, checkoutId }) => {
    const name = networks.find(({ caip2 }) => caip2 === network)
    const token = name?.assets.find(({ address }) => address.toLowerCase() === asset.toLowerCase())
    const about = [name?.id, wallet && toShown(network, wallet), transaction, checkoutId].filter(
      (each) => each,
    )
    return `${day} ${kind} ${unitsToText(amount, token?.decimals ?? 0)} ${token?.symbol ?? ''} ${about.join(' ')}`
  })
  return [...none, ...lines, ...(found.length > 0 ? ['Differences:', ...found] : ['No differences.'])].join(
    '\n',
  )
}

/** How long the command waits for `work`, which looks within seconds. */
const patienceMs = 30_000

/** `audit recover NETWORK TRANSACTION`. Returns the text to print. */
export async function recoverCommand(
  ctx: Context,
  [id = '', transaction = '']: readonly string[],
): Promise<string> {
  const rail = [...openRails(ctx).values()].find(({ network }) => network.id === id)
  if (!rail || !ctx.config.networks.includes(id)) throw new UsageError(`${id} is not in NETWORKS.`)
  const hash = rail.parseTransactionHash?.(transaction)
  if (!hash) throw new UsageError(`${transaction} cannot be looked up on ${id}.`)
  await askToLookUp(ctx.db, rail.network.caip2, hash)
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += restMs) {
    const outcome = await readLookUp(ctx.db, rail.network.caip2, hash)
    if (outcome === 'found')
      return 'The books have it now. The store finds it in its inbox, or on its checkout.'
    if (outcome === 'not_found')
      throw new UsageError('It paid no store’s wallet, or the nodes do not have it.')
    await wait(restMs)
  }
  return 'Nothing has come of it yet: work looks it up when it runs.'
}

function describe(told: Comparison): string {
  if ('trouble' in told) return `${told.network} ${told.day}: not compared: ${told.trouble}`
  const { wallets, received, found, resolved, calls } = told.result
  return `${told.network} ${told.day}: ${wallets} wallets, ${received} transfers, ${found} new differences, ${resolved} resolved, ${calls} calls to nodes`
}

function listDays({ now }: Context, from: string, to: string): string[] {
  for (const day of [from, to])
    if (!/^\d{4}-\d{2}-\d{2}$/.test(day) || Number.isNaN(Date.parse(day)))
      throw new UsageError(`${day} is not a day such as 2026-11-16.`)
  const today = now().toISOString().slice(0, 10)
  if (to >= today) throw new UsageError(`${to} is not over in UTC.`)
  const count = daysBetween(from, to) + 1
  if (count < 1) throw new UsageError('The second day is before the first.')
  if (count > daysMax) throw new UsageError(`That is more than ${daysMax} days.`)
  return Array.from({ length: count }, (_, i) => addDays(from, i))
}

/** The networks to audit. One with too few providers would never be compared. */
function openAudited(ctx: Context): Audited[] {
  const audited = listAudited(ctx)
  for (const { network, history } of audited)
    if (history.providers.length < network.witnessesMin)
      throw new ConfigError(
        `${network.id}_AUDIT_RPC_URLS or ${network.id}_RPC_URLS must name nodes of at least ${network.witnessesMin} providers: a single one is not trusted.`,
      )
  return audited
}
