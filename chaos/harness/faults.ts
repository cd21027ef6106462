import { setTimeout as wait } from 'node:timers/promises'
import { blows } from '../database/patroni.ts'
import { prepareToWithdraw, shortLifeSeconds } from './buyers.ts'
import { type Member, readCrashPoints } from './fleet.ts'
import { type NodeFault, nodeFaults } from './node-proxy.ts'
import type { Random } from './random.ts'
import { restore } from './restore.ts'
import type { Stand } from './stand.ts'
import { makeNextVersion, rollOver } from './upgrade.ts'

/** What can be done to a deployment. Each draws its details from the seed, and returns when it is over. */
export type Fault = {
  readonly name: string
  readonly plan: Plan
  /** How often it is drawn beside the others. */
  readonly weight: number
  readonly inject: (stand: Stand, random: Random, tally: Tally, turnEndsAt: number) => Promise<void>
}

/** Drawn by themselves. `failover` needs three PostgreSQL, `upgrade` and `restore` have the fleet to themselves. */
export const plans = ['kills', 'points', 'database', 'disk', 'node', 'chain', 'freeze', 'skew'] as const
export type Plan = (typeof plans)[number] | 'failover' | 'upgrade' | 'restore'

/** What was done, by name. */
export type Tally = {
  count(what: string, times?: number): void
  readonly counts: Map<string, number>
}

/** Any payment reaches a common point, but payments may be few at the moment. */
const pointPatienceMs = 20_000
/** What is provoked comes a few seconds after it was asked for, if it comes. */
const provokedPatienceMs = 8_000
/** A rare point may not be reached at all. */
const rarePatienceMs = 3_000
/** Long enough for a lane or a follower to take a lease and do something with it. */
const leasePatienceMs = 750
/** Long enough for a payment to be in the blocks that are taken back next. */
const reorgRestMs = 2_000
const takenBackMax = 5
/** Long enough for a payment to be claimed, and for a block in which its payer's money goes elsewhere. */
const withdrawnMs = 800
const refusedMs = 1_500
const withdrawersMax = 4
/** Prepared before they are needed: it takes some blocks until their money is there. */
const withdrawersAhead = 4

/** Reached by any payment: a run that arms one must reach it. */
export const commonPoints = readCrashPoints().filter((name) =>
  /^(create|verify|claim|wait|answer|simulate|send|broadcast|block|finality|sequence)-/.test(name),
)

/** Reached where a payer's money is gone, somebody leaves a checkout to its end, or a block is taken back. */
const provokedPoints = readCrashPoints().filter((name) => /^(reject|expire|orphan)-/.test(name))

/** Reached by chance: a halt past a window, a fee that rose. */
const rarePoints = readCrashPoints().filter((name) => /^(bury|fill|replace|adopt)-/.test(name))
/** How many of the points that `work` is armed with are rare ones. */
const rareShare = 0.03
const armable = [...commonPoints, ...provokedPoints, ...rarePoints]

function belongsTo(point: string): Member['command'] {
  return /^(create|verify|claim|wait|answer)-/.test(point) ? 'serve' : 'work'
}

/** A member that nothing else is at, and whose twin works: with both away there would be nothing to disturb. */
function takeIdle({ fleet }: Stand, random: Random, command?: Member['command']): Member | null {
  const idle = fleet.members.filter(
    (member) =>
      !member.isBusy &&
      (command === undefined || member.command === command) &&
      fleet.members.some((other) => other !== member && other.command === member.command && other.isReady),
  )
  if (idle.length === 0) return null
  const member = random.pick(idle)
  member.isBusy = true
  return member
}

/** Of what one process at a time is in charge. */
const allLeased = ['settlers', 'followers'] as const
type Leased = (typeof allLeased)[number]

/**
 * Ends leases, as if their time were over. Whoever was killed would be waited for otherwise, which is ten seconds in
 * which nothing happens; and whoever is alive loses its lease in the middle of its work, which must do no harm.
 */
async function endLeases({ eyes }: Stand, leases: readonly Leased[], tally: Tally): Promise<void> {
  // What is locked belongs to somebody in the middle of a transaction: it keeps its lease.
  for (const table of leases)
    await eyes.query(
      `update ${table} set leased_until = now() where ctid = any (array(
         select ctid from ${table} where leased_until > now() for update skip locked))`,
    )
  tally.count('leases ended')
}

async function kill(stand: Stand, random: Random, tally: Tally): Promise<void> {
  const member = takeIdle(stand, random)
  if (!member) return
  await stand.fleet.end(member, 'SIGKILL')
  tally.count(`kill -9 ${member.command}`)
  if (member.command === 'work' && random.isLucky(0.8)) await endLeases(stand, allLeased, tally)
  stand.fleet.start(member)
  // Killed again while it starts is one way to die; more often it gets to work first.
  if (random.isLucky(0.9)) await stand.fleet.untilReady(member)
  await wait(random.between(0, 500))
  member.isBusy = false
}

/** Which point is next. All but the rare ones take turns, from a place that the seed draws. */
const turns = new Map<Member['command'], number>()

function nextPoint(stand: Stand, command: Member['command'], random: Random): string {
  const rare = pointsOf(stand, command, rarePoints)
  const others = pointsOf(stand, command, [...commonPoints, ...provokedPoints])
  if (rare.length > 0 && (others.length === 0 || random.isLucky(rareShare))) return random.pick(rare)
  const turn = turns.get(command) ?? random.between(0, others.length - 1)
  turns.set(command, turn + 1)
  return others[turn % others.length] as string
}

function pointsOf({ load, points }: Stand, command: Member['command'], some: readonly string[]): string[] {
  const isEarly = Date.now() < load.begunAt + shortLifeSeconds * 1_000
  return some.filter(
    (point) =>
      belongsTo(point) === command && points.test(point) && !(isEarly && point.startsWith('expire-')),
  )
}

/** Only the holder of a lease gets far in `work`, so both are armed; of `serve` one is, and payers go to either. */
async function crash(stand: Stand, random: Random, tally: Tally, turnEndsAt: number): Promise<void> {
  const [serve, ...others] = stand.fleet.members
  const workers = others.filter(({ command }) => command === 'work')
  const armed = [workers, serve ? [serve] : []].find((some) =>
    some.every(({ isBusy, command }) => !isBusy && pointsOf(stand, command, armable).length > 0),
  )
  if (!armed) return
  for (const member of armed) member.isBusy = true
  await Promise.all(
    armed.map((member) => dieInARow(stand, member, random.fork(member.name), tally, turnEndsAt)),
  )
  for (const member of armed) {
    await stand.fleet.untilReady(member)
    member.isBusy = false
  }
}

/** Armed again at every start after a death, until the turn is over. */
async function dieInARow(
  stand: Stand,
  member: Member,
  random: Random,
  tally: Tally,
  turnEndsAt: number,
): Promise<void> {
  const { fleet } = stand
  const { command } = member
  await fleet.end(member, 'SIGKILL')
  while (Date.now() < turnEndsAt) {
    const point = nextPoint(stand, command, random)
    fleet.start(member, { crashAt: point })
    if (command === 'work') await endLeases(stand, allLeased, tally)
    await fleet.untilReady(member)
    const isEnded = await untilMet(stand, member, point, random, tally)
    const isReached = isEnded && member.child?.signalCode === 'SIGKILL'
    // One that ended otherwise could not start, because the database was away.
    if (isEnded && !isReached) continue
    tally.count(isReached ? `crash ${point}` : `not reached ${point}`)
    if (!isReached) await fleet.end(member, 'SIGKILL')
  }
  fleet.start(member)
  if (command === 'work') await endLeases(stand, allLeased, tally)
}

/** Does what brings the process to the point, where something must be done for it. False if it did not get there. */
function untilMet(
  stand: Stand,
  member: Member,
  point: string,
  random: Random,
  tally: Tally,
): Promise<boolean> {
  if (point.startsWith('reject-')) return refuseUntilDead(stand, member, random, tally)
  if (point.startsWith('orphan-')) return takeBackUntilDead(stand, member, random, tally)
  return untilDead(stand, member, patienceMsFor(point), leasesFor(point), tally)
}

/** Whose leases a process must have to reach the point. */
function leasesFor(point: string): readonly Leased[] {
  if (/^(simulate|reject|send|broadcast|replace|fill)-/.test(point)) return ['settlers']
  return /^(block|orphan|finality|adopt|bury)-/.test(point) ? ['followers'] : []
}

/** Whoever waits for a lease that its twin holds gets nowhere, so leases end again and again: one time it is faster. */
async function untilDead(
  stand: Stand,
  member: Member,
  patienceMs: number,
  leases: readonly Leased[],
  tally: Tally,
): Promise<boolean> {
  let isOver = false
  const ended = stand.fleet.untilEnded(member, patienceMs).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await Promise.race([ended, wait(leasePatienceMs)])
    if (!isOver && leases.length > 0) await endLeases(stand, leases, tally)
  }
  return await ended
}

function patienceMsFor(point: string): number {
  if (commonPoints.includes(point)) return pointPatienceMs
  return provokedPoints.includes(point) ? provokedPatienceMs : rarePatienceMs
}

/**
 * Has payments refused that were taken in, until the process has met one. The lanes rest until the money is gone, as if
 * one that is frozen had the leases.
 */
async function refuseUntilDead(stand: Stand, member: Member, random: Random, tally: Tally): Promise<boolean> {
  const { load, eyes } = stand
  for (let tries = 0; tries < withdrawersMax; tries++) {
    const withdraw = await nextWithdrawer(stand, random)
    await eyes.query(
      `update settlers set lease_holder = 'frozen', leased_until = now() + interval '10 s' where ctid = any (array(
         select ctid from settlers for update skip locked))`,
    )
    load.guests.push(withdraw())
    await wait(withdrawnMs)
    await endLeases(stand, ['settlers'], tally)
    if (await untilDead(stand, member, refusedMs, ['settlers'], tally)) return true
  }
  return false
}

function nextWithdrawer({ load }: Stand, random: Random) {
  const { stores, guests, withdrawers } = load
  while (withdrawers.length <= withdrawersAhead) {
    const order = `guest-${guests.length}`
    const prepared = prepareToWithdraw(load, random.pick(stores), order, random.fork(order))
    withdrawers.push(prepared)
    guests.push(prepared)
  }
  return withdrawers.shift() as (typeof withdrawers)[number]
}

/** Takes blocks back until the process has met one that held a payment. */
async function takeBackUntilDead(
  stand: Stand,
  member: Member,
  random: Random,
  tally: Tally,
): Promise<boolean> {
  for (let tries = 0; tries < takenBackMax; tries++) {
    await stand.chain.reorg(random.between(1, 4))
    if (await untilDead(stand, member, reorgRestMs, ['followers'], tally)) return true
  }
  return false
}

/** Frozen past its lease, a worker wakes up in the middle of what another has taken over. */
async function freeze(stand: Stand, random: Random, tally: Tally): Promise<void> {
  const member = takeIdle(stand, random)
  if (!member) return
  member.child?.kill('SIGSTOP')
  const isPast = random.isLucky(0.7)
  await wait(random.between(200, 1_000))
  if (isPast) await endLeases(stand, allLeased, tally)
  await wait(random.between(500, 4_000))
  member.child?.kill('SIGCONT')
  tally.count(isPast ? `freeze ${member.command} past its lease` : `freeze ${member.command}`)
  member.isBusy = false
}

async function skew(stand: Stand, random: Random, tally: Tally): Promise<void> {
  const member = takeIdle(stand, random)
  if (!member) return
  await stand.fleet.end(member, 'SIGTERM')
  stand.fleet.start(member, { skewSeconds: random.between(1, 45) * (random.isLucky(0.5) ? 1 : -1) })
  tally.count('clock skew')
  await wait(random.between(3_000, 8_000))
  member.isBusy = false
}

let next: ReturnType<typeof makeNextVersion> | null = null

export const faults: readonly Fault[] = [
  { name: 'kill', plan: 'kills', weight: 8, inject: kill },
  { name: 'crash point', plan: 'points', weight: 6, inject: crash },
  {
    name: 'database killed',
    plan: 'database',
    weight: 1,
    async inject(stand, random, tally) {
      if (stand.database.isDown()) return
      await stand.database.killAndStart()
      tally.count('PostgreSQL killed')
      await wait(random.between(200, 1_500))
    },
  },
  {
    name: 'connections crowded out',
    plan: 'database',
    weight: 0.2,
    async inject(stand, random, tally) {
      stand.databaseProxy.cutAll()
      await stand.database.crowd(random.between(500, 2_000))
      tally.count('connections crowded out')
    },
  },
  {
    name: 'replies lost',
    plan: 'database',
    weight: 4,
    async inject({ databaseProxy }, random) {
      const chance = random.next() * 0.3
      databaseProxy.choose = () =>
        random.isLucky(chance) ? (random.isLucky(0.8) ? 'reply' : 'request') : null
      await wait(random.between(500, 2_500))
      databaseProxy.choose = () => null
    },
  },
  {
    name: 'disk full',
    plan: 'disk',
    weight: 0.3,
    async inject(stand, random, tally) {
      if (!stand.database.isOwnDisk || stand.database.isDown()) return
      await stand.database.fillDisk(random.between(500, 2_500))
      tally.count('disk full')
    },
  },
  {
    name: 'bad node',
    plan: 'node',
    weight: 4,
    async inject({ nodes }, random) {
      const chance = 0.2 + random.next() * 0.75
      const some: readonly NodeFault[] = random.isLucky(0.5) ? nodeFaults : [random.pick(nodeFaults)]
      nodes.choose = () => {
        const fault = random.isLucky(chance) ? random.pick(some) : null
        // A call that hangs takes the time of many others.
        return fault === 'hanging' && random.isLucky(0.8) ? null : fault
      }
      await wait(random.between(1_000, 4_000))
      nodes.choose = () => null
    },
  },
  {
    name: 'reorganisation',
    plan: 'chain',
    weight: 3,
    async inject({ chain }, random, tally) {
      // Mostly shallow, as they are: payments must get through between them.
      await chain.reorg(random.isLucky(0.8) ? random.between(1, 3) : random.between(4, 12))
      tally.count('reorganisation')
      await wait(random.between(100, 800))
    },
  },
  {
    name: 'halt',
    plan: 'chain',
    weight: 0.3,
    async inject({ chain }, random, tally) {
      // Now and then past the window of whoever signed for a short time.
      await chain.halt(random.isLucky(0.1) ? random.between(15_000, 25_000) : random.between(1_000, 4_000))
      tally.count('halt')
    },
  },
  { name: 'freeze', plan: 'freeze', weight: 1, inject: freeze },
  { name: 'skew', plan: 'skew', weight: 0.7, inject: skew },
  ...blows.map(
    (blow): Fault => ({
      name: blow,
      plan: 'failover',
      weight: 1,
      async inject({ database: { cluster } }, random, tally) {
        if (!cluster) return
        await wait(random.between(0, 1_000))
        await cluster.strike(blow, tally.count)
      },
    }),
  ),
  {
    name: 'upgrade',
    plan: 'upgrade',
    weight: 1,
    async inject(stand, _random, tally) {
      next ??= makeNextVersion(stand.folder)
      await rollOver(stand, next, false)
      tally.count('rolled over to the next version, across a migration')
      await rollOver(stand, next, true)
      tally.count('rolled back with the newer schema')
    },
  },
  { name: 'restore', plan: 'restore', weight: 1, inject: restore },
]
