/** What the machine and finished programs have used, from /proc. */
import { readFileSync } from 'node:fs'

const ticksPerSecond = 100

/** User and system time of this process's children that have exited, in ms. */
export function endedChildrenCpuMs(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  // Counted from the state field, which follows the name in brackets: cutime and cstime are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number.parseInt(fields[13] ?? '', 10) + Number.parseInt(fields[14] ?? '', 10)
  return (ticks * 1_000) / ticksPerSecond
}

/** Starts to watch the processors. Returns how much of their time other machines on the same host took since, in %. */
export function watchSteal(): () => number {
  const before = readProcessors()
  return () => {
    const after = readProcessors()
    return (100 * (after.stolen - before.stolen)) / Math.max(1, after.total - before.total)
  }
}

function readProcessors(): { stolen: number; total: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  // user, nice, system, idle, iowait, irq, softirq, steal. Guest time, which follows, is part of user.
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number)
  return { stolen: ticks[7] ?? 0, total: ticks.reduce((sum, count) => sum + count, 0) }
}
