/** The cost of a measurement for PostgreSQL and the machine. */
import { readFileSync } from 'node:fs'
import type { Database } from '../server/src/database/db.ts'
import { round } from './figures.ts'

/** Settings for PostgreSQL that `readUse` needs. */
export const meterSettings = ['shared_preload_libraries=pg_stat_statements']

export type Use = { readonly walBytes: number; readonly commits: number; readonly statements: number }

/** WAL of the whole server, and commits and statements of this database, since it was started. */
export async function readUse(db: Database): Promise<Use> {
  await db.query('create extension if not exists pg_stat_statements')
  const [row] = await db.query<Use>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as "walBytes", d.xact_commit::float8 as commits,
       (select sum(calls)::float8 from pg_stat_statements where dbid = d.datid and toplevel) as statements
     from pg_stat_database d where d.datname = current_database()`,
  )
  return row ?? { walBytes: 0, commits: 0, statements: 0 }
}

export function addUse(one: Use, other: Use): Use {
  return {
    walBytes: one.walBytes + other.walBytes,
    commits: one.commits + other.commits,
    statements: one.statements + other.statements,
  }
}

export function subtract(after: Use, before: Use): Use {
  return {
    walBytes: after.walBytes - before.walBytes,
    commits: after.commits - before.commits,
    statements: after.statements - before.statements,
  }
}

/** A share of processor time above this makes rates, and to a lesser degree ratios, unreliable. */
const stealPercentMax = 10

/** Starts to measure how much of the processors' time other machines take. */
export function watchSteal(): () => { readonly stealPercent: number; readonly warning: string | null } {
  const before = readTimes()
  return () => {
    const after = readTimes()
    const stealPercent = round(
      (100 * (after.steal - before.steal)) / Math.max(1, after.total - before.total),
      1,
    )
    const warning =
      stealPercent > stealPercentMax
        ? `${stealPercent} % of the processors' time went to other machines: compare ratios only`
        : null
    return { stealPercent, warning }
  }
}

function readTimes(): { readonly total: number; readonly steal: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  // user nice system idle iowait irq softirq steal; guest time is part of user time.
  const times = line.split(/\s+/).slice(1, 9).map(Number)
  return { total: times.reduce((sum, time) => sum + time, 0), steal: times[7] ?? 0 }
}

const ticksPerSecond = 100

/** User and system time of this process's children that have exited, in ms. */
export function endedChildrenCpuMs(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  // Counted from the state field, which follows the name in brackets: cutime and cstime are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number.parseInt(fields[13] ?? '', 10) + Number.parseInt(fields[14] ?? '', 10)
  return (ticks * 1_000) / ticksPerSecond
}
