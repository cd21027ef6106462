import { setTimeout as wait } from 'node:timers/promises'
import { leaderFaults } from '../database/patroni.ts'
import type { Member } from './fleet.ts'
import { allLeased, endLeases } from './leases.ts'
import { tellLies } from './lies.ts'
import { type NodeFault, nodeFaults } from './node-proxy.ts'
import { crash } from './points.ts'
import type { Random } from './random.ts'
import { restore } from './restore.ts'
import type { Stand } from './stand.ts'
import type { Tally } from './tally.ts'
import { makeNextVersion, rollOver } from './upgrade.ts'

/** A fault that can be injected into a deployment. It draws its details from the seed and returns when it is over. */
export type Fault = {
  readonly name: string
  readonly plan: Plan
  /** How often it is drawn, relative to the others. */
  readonly weight: number
  readonly inject: (stand: Stand, random: Random, tally: Tally, turnEndsAt: number) => Promise<void>
}

/**
 * The default plans. `failover` needs three PostgreSQL, `liar` a live network with several providers; `upgrade` and
 * `restore` need the whole fleet.
 */
export const plans = ['kills', 'points', 'database', 'disk', 'node', 'chain', 'freeze', 'skew'] as const
export type Plan = (typeof plans)[number] | 'failover' | 'upgrade' | 'restore' | 'liar'

/**
 * Reserves a member that no other fault uses and whose twin is running. Without the twin, nothing would be left to
 * disturb.
 */
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

export async function kill(stand: Stand, random: Random, tally: Tally): Promise<void> {
  const member = takeIdle(stand, random)
  if (!member) return
  await stand.fleet.end(member, 'SIGKILL')
  tally.count(`kill -9 ${member.command}`)
  if (member.command === 'work' && random.isLucky(0.8)) await endLeases(stand, allLeased, tally)
  stand.fleet.start(member)
  // Sometimes it may be killed again while it starts; mostly it gets to work first.
  if (random.isLucky(0.9)) await stand.fleet.untilReady(member)
  await wait(random.between(0, 500))
  member.isBusy = false
}

/** A worker that is frozen past its lease wakes up in the middle of work that another has taken over. */
async function freeze(stand: Stand, random: Random, tally: Tally): Promise<void> {
  const isPast = random.isLucky(0.7)
  const member = takeIdle(stand, random, isPast ? 'work' : undefined)
  if (!member) return
  member.child?.kill('SIGSTOP')
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
      const choose = () => (random.isLucky(chance) ? (random.isLucky(0.8) ? 'reply' : 'request') : null)
      databaseProxy.choosers.add(choose)
      await wait(random.between(500, 2_500))
      databaseProxy.choosers.delete(choose)
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
      const choose = () => {
        const fault = random.isLucky(chance) ? random.pick(some) : null
        // A hanging call takes as much time as many others, so it is drawn less often.
        return fault === 'hanging' && random.isLucky(0.8) ? null : fault
      }
      nodes.choosers.add(choose)
      await wait(random.between(1_000, 4_000))
      nodes.choosers.delete(choose)
    },
  },
  {
    name: 'reorganisation',
    plan: 'chain',
    weight: 3,
    async inject({ chain }, random, tally) {
      // Mostly shallow, as in reality: payments must get through between them.
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
      // Sometimes longer than a short payment window.
      const ms = random.isLucky(0.1) ? random.between(15_000, 25_000) : random.between(1_000, 4_000)
      if (await chain.halt(ms)) tally.count('halt')
    },
  },
  { name: 'freeze', plan: 'freeze', weight: 1, inject: freeze },
  { name: 'skew', plan: 'skew', weight: 0.7, inject: skew },
  ...leaderFaults.map(
    (leaderFault): Fault => ({
      name: leaderFault,
      plan: 'failover',
      weight: 1,
      async inject({ database: { cluster } }, random, tally) {
        if (!cluster) return
        await wait(random.between(0, 1_000))
        await cluster.strike(leaderFault, tally.count)
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
  {
    name: 'lies',
    plan: 'liar',
    weight: 1,
    inject: (stand, random, tally, turnEndsAt) =>
      tellLies(
        stand,
        random,
        tally,
        () => kill(stand, random, tally),
        () => Date.now() >= turnEndsAt,
      ),
  },
]
