import { setTimeout as wait } from 'node:timers/promises'
import type { Load } from './buyers.ts'
import { lies } from './liar.ts'
import type { Random } from './random.ts'
import type { Stand } from './stand.ts'
import type { Tally } from './tally.ts'

/** One lie of one provider. */
export type Episode = {
  readonly kind: string
  readonly begunAt: number
  readonly endedAt: number
  /**
   * Time from the end of the lie to the success answer of a payment that was begun after it. Null if it was not
   * measured.
   */
  readonly recoveredMs: number | null
}

/** A time in which providers lied, or one in which none did. */
export type Phase = { readonly isQuiet: boolean; readonly begunAt: number; readonly endedAt: number }

const kinds = Object.keys(lies) as (keyof typeof lies)[]
const episodesPerRound = 30
/**
 * After each round no provider lies for this long, and processes are killed as often as before. Payments that begin in
 * this time are compared with those that begin during lies. Payments that begin right after a lie are left out, and so
 * are those that begin so late that the next lie may delay them.
 */
const quietMs = { all: 26_000, first: 5_000, last: 13_000 }
/** The share of lies, and of turns of a quiet time, in which a process is killed. */
const killShare = 0.3
/** The share of lies of one of two providers during which the other is silent. */
const aloneShare = 0.25
/** The longest wait for the first payment after a lie. */
const recoveryMsMax = 60_000

/**
 * One lie after another, each by one provider, then a time without lies. Processes are killed meanwhile. With two
 * providers nothing can be decided during some lies, so each is followed by a wait until payments get through again.
 */
export async function tellLies(
  stand: Stand,
  random: Random,
  tally: Tally,
  disturb: () => Promise<void>,
  isOver: () => boolean,
): Promise<void> {
  const { nodes, episodes } = stand
  const mayDisturb = () => (random.isLucky(killShare) ? disturb() : null)
  /** As long as a lie lasts. */
  const takeTurn = () => Promise.all([wait(random.between(600, 1_500)), mayDisturb()])
  // Begins only after everything has started, so that starts do not count as effects of lies.
  await untilPaid(stand.load, 0)
  const lyingAt = Date.now()
  for (let told = 0; told < episodesPerRound && !isOver(); told++) {
    const kind = random.pick(kinds)
    const falsehoods = nodes.falsehoods
    const begunAt = Date.now()
    const liar = random.pick(nodes.providers)
    nodes.liars.set(liar, lies[kind]())
    // With more than two providers, the others would still be enough, and payments must get through.
    if (nodes.providers.length === 2 && random.isLucky(aloneShare))
      for (const other of nodes.providers) if (other !== liar) nodes.silent.add(other)
    await takeTurn()
    nodes.liars.clear()
    if (nodes.silent.size > 0) tally.count('lies of the only provider that answered')
    nodes.silent.clear()
    const endedAt = Date.now()
    if (nodes.falsehoods === falsehoods) tally.count('lies that were never told')
    else {
      const recoveredMs = nodes.providers.length === 2 ? await untilPaid(stand.load, endedAt) : null
      episodes.push({ kind, begunAt, endedAt, recoveredMs })
      tally.count(`lie: ${kind}`)
    }
    await wait(random.between(0, 500))
  }
  const quietAt = Date.now()
  stand.phases.push({ isQuiet: false, begunAt: lyingAt, endedAt: quietAt })
  while (!isOver() && Date.now() < quietAt + quietMs.all) {
    await takeTurn()
    await wait(random.between(0, 500))
  }
  stand.phases.push({ isQuiet: true, begunAt: quietAt, endedAt: Date.now() })
}

/** Waits for a payment that began at `since` or later. Returns how long after `since` it was completed. */
async function untilPaid(load: Load, since: number): Promise<number> {
  const giveUpAt = Date.now() + recoveryMsMax
  while (Date.now() < giveUpAt) {
    const first = load.paid.find(({ begunAt }) => begunAt >= since)
    if (first) return first.endedAt - since
    await wait(50)
  }
  return recoveryMsMax
}

/** The 99th percentile of the durations of payments: of those that began during lies, and of the others. */
export function compareTimes({
  load,
  phases,
}: Pick<Stand, 'load' | 'phases'>): Record<'lied' | 'quiet', { count: number; p99Ms: number }> {
  const begins = (isQuiet: boolean, from: number, before: number) =>
    load.paid.filter((paid) =>
      phases.some(
        (phase) =>
          phase.isQuiet === isQuiet &&
          paid.begunAt >= phase.begunAt + from &&
          paid.begunAt < phase.endedAt - before,
      ),
    )
  const measure = (paid: Load['paid']) => {
    const times = paid.map(({ begunAt, endedAt }) => endedAt - begunAt).toSorted((a, b) => a - b)
    return { count: times.length, p99Ms: times[Math.ceil(times.length * 0.99) - 1] ?? 0 }
  }
  return { lied: measure(begins(false, 0, 0)), quiet: measure(begins(true, quietMs.first, quietMs.last)) }
}
