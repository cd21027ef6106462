import type { Act, Chain } from './chain.ts'
import type { Checkout, Database, Mutation } from './database.ts'

/**
 * The processes as generators. At every `yield` another actor may run first, the process may die, or the reply that it
 * waits for may get lost. The steps and their order are those of `checkouts/pay.ts`, `payments/lanes`,
 * `chains/evm/follower.ts` and `payments/evm/credit-blocks.ts`; a yield stands for an await there.
 */
export type Actor = Generator<void, void, void>

export type World = {
  readonly chain: Chain
  readonly db: Database
  readonly mutation: Mutation | null
  /** Until when each authorization is valid. */
  readonly validBefore: number[]
  readonly answers: Answer[]
  readonly sightings: { readonly hash: string; readonly isCommitted: boolean }[]
  now: number
  step: number
  hashes: number
  random(): number
}

type Answer = {
  readonly checkout: number
  readonly auth: number | null
  readonly status: 200 | 202 | 402 | 409 | 410 | 503
  readonly askedAt: number
  readonly answeredAt: number
}

/** The reply got lost: the process does not know whether its request took effect. */
export class Lost extends Error {}

/** How many blocks must be on top of a block before it proves that a payment can never arrive. */
export const negativeDepth = 3
const safeDepth = 2
const roundsMax = 20
const patience = 12
const secondsAfterHead = 2
const signaturesMax = 3

/** A buyer that behaves as documented: it signs again only after a 402. */
export function* buyer(world: World, checkout: number): Actor {
  for (let signatures = 0; signatures < signaturesMax; signatures++) {
    const terms = yield* askUntilKnown(world, checkout, null)
    if (terms !== 402) return
    const auth = world.validBefore.length
    world.validBefore.push(world.now + 4 + Math.floor(world.random() * 16))
    if (world.random() < 0.1) submitStranger(world, { kind: 'pay', auth })
    if (world.random() < 0.05) submitStranger(world, { kind: 'spend', auth })
    const answer = yield* askUntilKnown(world, checkout, auth)
    if (answer !== 402) return
  }
}

function submitStranger(world: World, act: Act): void {
  world.chain.submit({ hash: `stranger ${world.hashes++}`, nonce: null, acts: [act] })
}

function* askUntilKnown(world: World, checkout: number, auth: number | null) {
  for (;;) {
    const askedAt = world.step
    let status: Answer['status']
    try {
      status = yield* pay(world, checkout, auth)
    } catch (error) {
      if (!(error instanceof Lost)) throw error
      status = 503
    }
    world.answers.push({ checkout, auth, status, askedAt, answeredAt: world.step })
    const { status: seen } = world.db.checkouts[checkout] as Checkout
    const isUnknown = status === 503 || status === 202 || (status === 409 && seen === 'PROCESSING')
    if (!isUnknown) return status
    yield
  }
}

/** One request, which checks the situations in the same order as `payCheckout`. */
function* pay(world: World, id: number, auth: number | null): Generator<void, Answer['status'], void> {
  const { db, chain } = world
  let hasClaimed = false
  let isRefused = false
  let waits = 0
  for (let round = 0; round < roundsMax; round++) {
    const checkout = { ...(db.checkouts[id] as Checkout) }
    const known = auth === null ? undefined : structuredCopy(db.auths.get(auth))
    const credit = auth === null ? undefined : structuredCopy(db.liveOf(auth))
    yield
    if (auth !== null && known && known.checkout === id) {
      if (credit?.disposition === 'exact') return checkout.status === 'COMPLETED' ? 200 : 202
      if (credit) return 409
      if (known.state === 'claimed' || known.state === 'sent') {
        if (waits++ > patience) return world.mutation === 'terms-on-time-out' ? 402 : 202
        yield
        round--
        continue
      }
      if (known.state === 'dead' || hasClaimed) isRefused = true
    } else if (known) return 409
    if (checkout.status === 'COMPLETED') return auth === null ? 200 : 409
    if (checkout.status === 'PROCESSING') {
      if (auth === null || waits++ > patience) return 409
      yield
      round--
      continue
    }
    const isPast = checkout.expiresAt.getTime() <= world.now * 1_000
    if (checkout.status === 'EXPIRED' || checkout.status === 'CANCELED' || isPast) return 410
    if (auth === null || isRefused) return 402
    // The node that simulates may be behind the head. A refusal from such a node does not count.
    const lag = world.random() < 0.1 ? 1 : 0
    const at = Math.max(0, chain.head().number - lag)
    const { used, isRefused: isBlocked } = chain.stateAt(at)
    const isGood = !used.has(auth) && !isBlocked && world.now + 2 <= (world.validBefore[auth] as number)
    yield
    if (!isGood) {
      const tip = db.blocks.at(-1)?.number ?? 0
      if (at >= tip) isRefused = true
      else if (waits++ > patience) return 503
      continue
    }
    hasClaimed = db.claim(id, auth)
    yield
  }
  return 503
}

function structuredCopy<Row extends object>(row: Row | undefined): Row | undefined {
  return row && { ...row }
}

/** A lane of one process: it takes the lease, then chooses, commits, broadcasts and follows up on transactions. */
export function* lane(world: World, holder: string): Actor {
  const { db, chain } = world
  const epoch = db.lease(holder)
  yield
  for (;;) {
    const unmined = db.sent.filter(({ isMined }) => !isMined)
    yield
    for (const { nonce, hashes, auths } of unmined) {
      const isWanted = auths.some((auth) => db.auths.get(auth)?.state === 'sent')
      if (!isWanted && hashes.length === 1 && nonce === unmined[0]?.nonce) {
        const hash = `fill ${world.hashes++}`
        db.commitFill(nonce, hash)
        yield
        broadcast(world, hash, nonce, [{ kind: 'nothing' }])
      } else {
        const isFill = hashes.length > 1
        const acts: Act[] = isFill ? [{ kind: 'nothing' }] : auths.map((auth) => ({ kind: 'pay', auth }))
        broadcast(world, hashes.at(-1) as string, nonce, acts)
      }
      yield
    }
    const head = db.blocks.at(-1)
    const waiting = [...db.auths].filter(
      ([auth, row]) =>
        row.spentAt === null &&
        (row.state === 'claimed' ||
          (row.state === 'sent' && world.mutation === 'sent-rejected') ||
          (row.state === 'sent' &&
            row.sends < 2 &&
            db.sent.every(({ auths, isMined }) => isMined || !auths.includes(auth)))) &&
        !db.liveOf(auth) &&
        (world.validBefore[auth] as number) > (head?.time ?? 0) + secondsAfterHead,
    )
    const wanted = waiting.map(([auth, { sends }]) => ({ auth, sends }))
    yield
    if (wanted.length > 0 && unmined.length < 3) {
      const at = chain.head().number
      const { used, isRefused } = chain.stateAt(at)
      yield
      const good = wanted.filter(({ auth }) => !used.has(auth) && !isRefused)
      const bad = wanted.filter(({ auth }) => !used.has(auth) && isRefused)
      const tip = db.blocks.at(-1)?.number ?? 0
      for (const { auth, sends } of bad)
        if (at >= tip && (sends === 0 || world.mutation === 'sent-rejected')) db.reject(auth)
      yield
      if (good.length > 0) {
        const hash = `tx ${world.hashes++}`
        const acts = (auths: readonly number[]): Act[] => auths.map((auth) => ({ kind: 'pay', auth }))
        if (world.mutation === 'send-before-commit') {
          broadcast(world, hash, db.sent.length, acts(good.map(({ auth }) => auth)))
          yield
        }
        const made = db.commitSend(epoch, good, hash)
        yield
        // A lane that has lost its lease stops, and starts again with a new one.
        if (!made && db.settler.epoch !== epoch) return
        if (made) broadcast(world, hash, made.nonce, acts(made.auths))
        yield
      }
    }
    yield
  }
}

function broadcast(world: World, hash: string, nonce: number, acts: readonly Act[]): void {
  world.sightings.push({ hash, isCommitted: world.db.bytes.has(hash) })
  if (world.random() < 0.9) world.chain.submit({ hash, nonce, acts })
}

/** Reads the chain in order, steps back after a reorganisation, and advances the safe block. */
export function* follower(world: World): Actor {
  const { db, chain } = world
  for (;;) {
    const head = chain.head()
    const tip = db.blocks.at(-1)
    yield
    const next = tip ? tip.number + 1 : head.number
    const isReplaced = tip && chain.blocks[tip.number] && chain.blocks[tip.number]?.hash !== tip.hash
    if (isReplaced) {
      const common = db.blocks.findLastIndex((block) => chain.blocks[block.number]?.hash === block.hash)
      const seen = tip.hash
      yield
      if (db.blocks.at(-1)?.hash === seen) db.turnBack(db.blocks[common]?.number ?? 0)
      yield
    } else if (head.number >= next) {
      const block = chain.blocks[next]
      const nonce = next === head.number ? chain.stateAt(next).nonce : null
      yield
      if (block && (tip ? block.parent === tip.hash : true)) db.takeBlock(block, nonce)
      yield
    } else if (head.number === tip?.number) {
      const safe = head.number - safeDepth
      yield
      // If another follower has moved the tip meanwhile, nothing is marked safe.
      if (db.blocks.at(-1)?.hash === tip.hash) db.advance(safe)
      yield
    }
    yield
  }
}

/** Proves authorizations dead and expires checkouts. */
export function* sweeper(world: World): Actor {
  const { db, chain } = world
  for (;;) {
    const depth = world.mutation === 'dead-too-early' ? 0 : negativeDepth
    const deep = db.blocks.at(-1 - depth)
    const candidates = [...db.auths]
      .filter(([auth, row]) => !db.liveOf(auth) && (db.isUnresolved(row) || db.isTakenBack(auth)))
      .map(([auth]) => auth)
    yield
    if (deep && chain.blocks[deep.number]?.hash === deep.hash) {
      const { used } = chain.stateAt(deep.number)
      yield
      for (const auth of candidates) {
        const row = db.auths.get(auth)
        const isExpired = !used.has(auth) && deep.time >= (world.validBefore[auth] as number)
        const isEarly =
          world.mutation === 'dead-too-early' && world.now >= (world.validBefore[auth] as number) - 3
        const isSpent = used.has(auth) && row?.spentAt != null && row.spentAt <= deep.number
        // An unknown transaction used it, so before it was claimed; and every block in which it could pay was read.
        const isOver = deep.time >= (world.validBefore[auth] as number)
        const isUnpaid = !chain.blocks.some(({ logs }) =>
          logs.some((log) => log.auth === auth && log.kind === 'paid'),
        )
        if (isExpired || isSpent || isEarly || (used.has(auth) && isOver && isUnpaid)) db.bury(auth)
        yield
      }
    }
    db.review()
    yield
  }
}
