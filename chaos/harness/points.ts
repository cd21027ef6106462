/**
 * Crashes at the points that `server/src/crash.ts` names. A process is started with one point armed, kills itself there,
 * and is started again with the next. If normal operation does not reach a point, the harness provokes it: a payer's
 * money disappears, or a block is reorganised.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { prepareToWithdraw, shortLifeSeconds } from './buyers.ts'
import { type Member, readCrashPoints } from './fleet.ts'
import { allLeased, endLeases, freeLanes, holdLanes, type Leased } from './leases.ts'
import type { Random } from './random.ts'
import type { Stand } from './stand.ts'
import type { Tally } from './tally.ts'

/** Any payment reaches a common point, but there may be few payments just now. */
const pointPatienceMs = 20_000
/** A provoked point is reached within a few seconds, if at all. */
const provokedPatienceMs = 8_000
/** A rare point may not be reached at all. */
const rarePatienceMs = 3_000
/** Long enough for a lane or a follower to take a lease and do something with it. */
const leasePatienceMs = 750
/** Long enough for a payment to be in the blocks that are reorganised next. */
const reorgRestMs = 2_000
const takenBackMax = 5
/** Long enough for a payment to be claimed, and for a block in which its payer spends the money elsewhere. */
const withdrawnMs = 800
/** Long enough for a lane to process waiting payments, under this process's lease or its twin's. */
const refusedMs = 1_500
/** On average half of them are handled by the twin. */
const withdrawersMax = 4
/** Prepared in advance, because it takes some blocks until they are funded. */
const withdrawersAhead = 4

/** Points that any payment reaches: a run that arms one must reach it. */
export const commonPoints = readCrashPoints().filter((name) =>
  /^(create|verify|claim|wait|answer|simulate|send|broadcast|block|finality|sequence)-/.test(name),
)

/**
 * Points that are reached if a payer's money is gone, a checkout expires, a block is reorganised, or a store refunds a
 * payment. These happen less often than payments.
 */
const provokedPoints = readCrashPoints().filter((name) =>
  /^(reject|expire|orphan|prepare|sign|watch)-/.test(name),
)

/** Points that are reached only by chance, for example by a halt past a payment's window or a higher fee. */
const rarePoints = readCrashPoints().filter((name) => /^(bury|fill|replace|adopt)-/.test(name))
/** The share of rare points among those that `work` is armed with. */
const rareShare = 0.03
export const armable = [...commonPoints, ...provokedPoints, ...rarePoints]

function belongsTo(point: string): Member['command'] {
  return /^(create|verify|claim|wait|answer|prepare|sign)-/.test(point) ? 'serve' : 'work'
}

/** The point that was armed least often, or occasionally a rare one. */
function nextPoint(stand: Stand, command: Member['command'], random: Random): string {
  const rare = pointsOf(stand, command, rarePoints)
  const others = pointsOf(stand, command, [...commonPoints, ...provokedPoints])
  if (rare.length > 0 && (others.length === 0 || random.isLucky(rareShare))) return random.pick(rare)
  const { armed } = stand
  const times = (point: string) => armed.get(point) ?? 0
  const least = Math.min(...others.map(times))
  const point = random.pick(others.filter((other) => times(other) === least))
  armed.set(point, least + 1)
  return point
}

/** The points among `some` that a process of this kind can be armed with now. */
function pointsOf({ load, points }: Stand, command: Member['command'], some: readonly string[]): string[] {
  const isEarly = Date.now() < load.begunAt + shortLifeSeconds * 1_000
  return some.filter(
    (point) =>
      belongsTo(point) === command && points.test(point) && !(isEarly && point.startsWith('expire-')),
  )
}

/** Arms both `work`, because only the holder of a lease gets far; of `serve` only one, because payers use either. */
export async function crash(stand: Stand, random: Random, tally: Tally, turnEndsAt: number): Promise<void> {
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

/** Crashes a process again and again, with a new point armed at every start, until the turn is over. */
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
    const { child } = member
    if (command === 'work') await endLeases(stand, allLeased, tally)
    await fleet.untilReady(member)
    const isEnded = await untilMet(stand, member, point, random, tally)
    const isReached = isEnded && child?.signalCode === 'SIGKILL'
    // If it exited otherwise, it could not start because the database was down.
    if (isEnded && !isReached) continue
    tally.count(isReached ? `crash ${point}` : `not reached ${point}`)
    if (!isReached) await fleet.end(member, 'SIGKILL')
  }
  fleet.start(member)
  if (command === 'work') await endLeases(stand, allLeased, tally)
}

/** Waits until the process has reached the point, and provokes it if needed. Returns false if it was not reached. */
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

/** The leases that a process must hold to reach the point. */
function leasesFor(point: string): readonly Leased[] {
  if (/^(simulate|reject|send|broadcast|replace|fill)-/.test(point)) return ['settlers']
  return /^(block|orphan|finality|adopt)-/.test(point) ? ['followers'] : []
}

/**
 * Expires leases repeatedly, because a process gets nowhere while its twin holds them. Sooner or later the process
 * takes them first.
 */
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

/** Makes claimed payments fail until the process meets one. The lanes are held until the payer's money is gone. */
async function refuseUntilDead(stand: Stand, member: Member, random: Random, tally: Tally): Promise<boolean> {
  const { load } = stand
  for (let tries = 0; tries < withdrawersMax; tries++) {
    const withdraw = await nextWithdrawer(stand, random)
    await holdLanes(stand)
    load.guests.push(withdraw())
    await wait(withdrawnMs)
    await freeLanes(stand)
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

/** Reorganises the chain until the process loses a block that it had read. */
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
