import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { KeyPairSigner } from '@solana/kit'
import { complaintsOf, unwanted } from '../harness/counts.ts'
import { kill } from '../harness/faults.ts'
import type { Random } from '../harness/random.ts'
import type { Result, Second } from '../harness/report.ts'
import { openTally, type Tally } from '../harness/tally.ts'
import { payOnce } from './buyers.ts'
import { finalizedAfter } from './ledger.ts'
import { lies } from './lies.ts'
import { openSvmStand, type SvmStand } from './stand.ts'

/** A ledger is read as a whole, so a long run is divided into rounds, each with its own stand. */
const episodesPerRound = 100
/** The share of episodes during which a process is killed too. */
const killShare = 0.3
/** How long a payment that is begun after an episode may take: longer than a killed process's leases and a start. */
const recoveryMsMax = 60_000
/** A run with fewer completed payments per second than this proves little. */
const paymentsPerSecondMin = 0.3

type Options = {
  readonly seconds: number
  readonly episodes: number
  readonly providers: readonly string[]
  readonly buyers: number
  readonly evmBuyers: number
  readonly say: (line: string) => void
}
type Outcome = Omit<Result, 'commit' | 'seed' | 'plans' | 'seconds'>

type Strike = (on: SvmStand, random: Random, tally: Tally) => Promise<void>

/** Each fault comes once before any comes again; lies come three times. */
const strikes: readonly Strike[] = [lie, lie, lie, fork, forkAndLie, killNode, expire, killProcess]

/**
 * The plan `solana`. The fleet serves an EVM chain and Solana at once. One episode follows another: a provider of
 * Solana lies or lags, the newest blocks are replaced, nodes die, blockhashes expire before what was sent has landed,
 * and processes are killed. After each, payments must get through again. Finally both chains are checked.
 */
export async function strikeSolana(random: Random, options: Options): Promise<Outcome> {
  const outcomes: Outcome[] = []
  const endsAt = Date.now() + options.seconds * 1_000
  for (
    let done = 0;
    done === 0 || (done < options.episodes && Date.now() < endsAt);
    done += episodesPerRound
  ) {
    const episodes = Math.min(episodesPerRound, options.episodes - done)
    const outcome = await playRound(random.fork(`round ${done}`), { ...options, episodes }, endsAt)
    outcomes.push(outcome)
    if (outcome.violations.length + outcome.shortcomings.length > 0) break
  }
  const counts = openTally()
  for (const [what, times] of outcomes.flatMap((outcome) => Object.entries(outcome.counts)))
    counts.count(what, times)
  return {
    violations: outcomes.flatMap(({ violations }) => violations),
    quietSeconds: Math.max(...outcomes.map(({ quietSeconds }) => quietSeconds)),
    counts: Object.fromEntries(counts.counts),
    shortcomings: outcomes.flatMap(({ shortcomings }) => shortcomings),
    timeline: outcomes.flatMap(({ timeline }) => timeline),
  }
}

async function playRound(random: Random, options: Options, endsAt: number): Promise<Outcome> {
  const { say } = options
  const on = await openSvmStand(random, options)
  let isKept = true
  try {
    const tally = openTally()
    const timeline: Second[] = []
    let begun = 0
    let before = { paid: 0, begun: 0 }
    const ticking = setInterval(() => {
      timeline.push({ paid: on.load.counts.paid - before.paid, faults: begun - before.begun })
      before = { paid: on.load.counts.paid, begun }
    }, 1_000)
    const slow: string[] = []
    const recoveries: number[] = []
    const payer = await on.ledger.newPayer(10n ** 12n)
    // Begins only after everything has started, so that starts do not count as effects of faults.
    await untilPaid(on, 'start', payer, random.fork('start'))
    let deck: Strike[] = []
    for (; begun < options.episodes && (begun < strikes.length || Date.now() < endsAt); begun++) {
      const draw = random.fork(`episode ${begun}`)
      if (deck.length === 0) deck = shuffled(strikes, draw)
      const strike = deck.pop() ?? lie
      await Promise.all([
        strike(on, draw, tally),
        draw.isLucky(killShare) ? kill(on.stand, draw, tally) : null,
      ])
      const recoveredMs = await untilPaid(on, `episode-${begun}`, payer, draw)
      recoveries.push(recoveredMs)
      if (recoveredMs > recoveryMsMax)
        slow.push(`after ${strike.name} no payment got through for ${recoveredMs} ms`)
      tally.count('episodes')
      if (begun % 5 === 4) say(`${begun + 1} episodes: ${on.load.counts.paid} paid, ${describe(tally)}`)
    }
    clearInterval(ticking)
    for (const member of on.stand.fleet.members)
      if (!on.stand.fleet.isAlive(member)) on.stand.fleet.start(member)
    say('no more faults; waiting for the work to finish')
    const { violations, quietSeconds, histories } = await on.judge()
    const complaints = complaintsOf(on.stand)
    const shortcomings = [
      ...slow,
      ...findShortcomings(on, tally, timeline.length),
      ...unwanted.filter((what) => complaints[what]).map((what) => `${what}: ${complaints[what]}`),
    ]
    isKept = violations.length + shortcomings.length > 0
    if (isKept) {
      say(`the histories and all logs are in ${on.stand.folder}`)
      const text = JSON.stringify(histories, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
      await writeFile(join(on.stand.folder, 'histories.json'), text)
    }
    const counts = { ...Object.fromEntries(tally.counts), ...countsOf(on), ...complaints }
    say(`until paid after an episode: ${describeTimes(recoveries)}`)
    return { violations, quietSeconds, counts, shortcomings, timeline }
  } finally {
    await on.close(isKept)
  }
}

/** Every lie is told before one is told again. */
let untold: string[] = []

/** One provider lies, or is late, for a second or two. */
async function lie({ nodes }: SvmStand, random: Random, tally: Tally): Promise<void> {
  if (untold.length === 0) untold = shuffled(Object.keys(lies), random)
  const kind = untold.pop() ?? ''
  const provider = random.pick(nodes.providers)
  const { falsehoods } = nodes
  const told = lies[kind]?.()
  if (told) nodes.liars.set(provider, told)
  await wait(random.between(800, 2_500))
  nodes.liars.delete(provider)
  tally.count(nodes.falsehoods === falsehoods ? 'lies that were never told' : `lie: ${kind}`)
}

/** The newest blocks are replaced. Their transactions come back when the fleet, or a stranger, sends them again. */
async function fork({ ledger, nodes }: SvmStand, random: Random, tally: Tally): Promise<void> {
  const forks = random.between(1, 3)
  for (let i = 0; i < forks; i++) {
    await ledger.fork(random.isLucky(0.5) ? random.between(1, 4) : random.between(5, finalizedAfter))
    tally.count('forks')
    if (random.isLucky(0.5)) await ledger.sendAgain(nodes.sent, 10)
    await wait(random.between(100, 1_200))
  }
}

async function forkAndLie(on: SvmStand, random: Random, tally: Tally): Promise<void> {
  await Promise.all([lie(on, random.fork('lie'), tally), fork(on, random.fork('fork'), tally)])
}

/** One provider's node dies, or all of them, with the transactions that they had not passed on. The ledger stays. */
async function killNode({ ledger, nodes }: SvmStand, random: Random, tally: Tally): Promise<void> {
  const killed = random.isLucky(0.5) ? nodes.providers : [random.pick(nodes.providers)]
  const remember = ledger.forget()
  await wait(random.between(0, 400))
  for (const provider of killed) nodes.down.add(provider)
  await wait(random.between(500, 2_500))
  remember()
  nodes.down.clear()
  tally.count('nodes killed', killed.length)
}

/** Landed transactions are taken back, and neither they nor new ones land before they are too old. */
async function expire(on: SvmStand, random: Random, tally: Tally): Promise<void> {
  const remember = on.ledger.forget()
  await on.ledger.fork(finalizedAfter)
  tally.count('forks')
  await wait(random.between(200, 800))
  await on.ledger.expire()
  remember()
  if (random.isLucky(0.5)) await on.ledger.sendAgain(on.nodes.sent, 60)
  tally.count('blockhashes expired')
}

async function killProcess({ stand }: SvmStand, random: Random, tally: Tally): Promise<void> {
  await kill(stand, random, tally)
}

/** Pays until a payment gets through. Returns how long that took. */
async function untilPaid(
  { load }: SvmStand,
  order: string,
  payer: KeyPairSigner,
  random: Random,
): Promise<number> {
  const begunAt = Date.now()
  const giveUpAt = begunAt + recoveryMsMax * 2
  for (let tries = 0; Date.now() < giveUpAt; tries++)
    if (await payOnce(load, `${order}-${tries}`, payer, random.fork(`try ${tries}`))) break
  return Date.now() - begunAt
}

function findShortcomings({ load, stand }: SvmStand, tally: Tally, lasted: number): string[] {
  const wanted = Math.ceil(lasted * paymentsPerSecondMin)
  const kinds = [/^lie: /, /^forks$/, /^nodes killed$/, /^blockhashes expired$/, /^kill -9/]
  const done = [...tally.counts.keys()]
  return [
    ...load.falseRefusals,
    ...(load.counts.paid < wanted
      ? [`only ${load.counts.paid} payments were completed on Solana; at least ${wanted} are required`]
      : []),
    ...(stand.load.counts.paid === 0 ? ['no payment was completed on the EVM chain'] : []),
    ...kinds
      .filter((kind) => !done.some((what) => kind.test(what)))
      .map((kind) => `nothing happened like ${kind}`),
  ]
}

function countsOf({ load, nodes, stand }: SvmStand): Record<string, number> {
  return {
    'payments completed': load.counts.paid,
    'payments completed on the EVM chain': stand.load.counts.paid,
    'refunds completed on the EVM chain': stand.load.counts.refunded,
    'payments refused': load.counts.refused,
    'checkouts created': load.counts.created + stand.load.counts.created,
    'signatures made': load.counts.signed,
    'answers recorded': load.answers.length,
    'requests without answer': load.counts.unanswered + stand.load.counts.unanswered,
    'webhooks received': stand.receiver.received.length,
    'false answers of nodes': nodes.falsehoods,
    'transactions seen': nodes.sightings.length,
    'tricks refused': [...load.refusedTricks.values()].reduce((sum, times) => sum + times, 0),
  }
}

function describe({ counts }: Tally): string {
  return [...counts]
    .filter(([what]) => !what.startsWith('lie: '))
    .map(([what, times]) => `${times} ${what}`)
    .join(', ')
}

function describeTimes(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b)
  return `median ${sorted[Math.floor(sorted.length / 2)]} ms, longest ${sorted.at(-1)} ms`
}

function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
}
