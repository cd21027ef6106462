import { seededRandom } from '../harness/random.ts'
import { type Actor, buyer, follower, Lost, lane, negativeDepth, sweeper, type World } from './actors.ts'
import { openChain } from './chain.ts'
import { type Mutation, openDatabase } from './database.ts'

/**
 * Runs one short history: one or two checkouts with one or two buyers each, and two workers. At every step, chosen by
 * the seed, an actor continues, dies or loses a reply; or the chain mines a block, halts, forgets a transaction or
 * reorganises. Then the faults stop, the actors run until no work is left, and the invariants are checked. Returns the
 * violations. The server's own `evaluate` decides each status: with a copy of it we would test the copy. The checker of
 * fault runs, which must not repeat the server's mistakes, imports nothing of it.
 *
 * Modelled: claims, the lane with its lease and fence, nonces, signed bytes, fills, the follower with reorganisations,
 * finality, proofs that a payment is dead, expiry, answers to payers, front-running, nonces spent elsewhere, a token
 * that refuses, lost replies, and crashes at every await. Not modelled: SQL and its isolation (each statement is atomic
 * here), batches, fees, contract wallets, plain transfers, restores, webhooks, several networks, nodes that lie, and
 * reorganisations deeper than `negativeDepth`: these can bring back a payment that was proven dead, which is then
 * credited and reported.
 */
export function runHistory(seed: number, mutation: Mutation | null = null): string[] {
  const random = seededRandom(seed)
  const validBefore: number[] = []
  const chain = openChain((auth) => validBefore[auth] ?? 0)
  const clock = { now: 10, step: 0 }
  const db = openDatabase(
    () => clock.step,
    () => clock.now,
    mutation,
  )
  const world: World = {
    chain,
    db,
    mutation,
    validBefore,
    answers: [],
    sightings: [],
    hashes: 0,
    random: random.next,
    get now() {
      return clock.now
    },
    set now(value) {
      clock.now = value
    },
    get step() {
      return clock.step
    },
    set step(value) {
      clock.step = value
    },
  }
  // No payment is accepted before the chain has been read.
  db.takeBlock(chain.head(), 0)
  const count = random.between(1, 2)
  for (let id = 0; id < count; id++)
    db.checkouts.push({
      id,
      expiresAt: new Date((clock.now + random.between(10, 80)) * 1_000),
      finality: random.isLucky(0.3) ? 'safe' : 'included',
      status: 'OPEN',
      version: 1,
      events: ['checkout.created'],
    })
  let lives = 0
  const workers: (() => Actor)[] = [
    () => lane(world, `a${lives++}`),
    () => lane(world, `b${lives++}`),
    () => follower(world),
    () => follower(world),
    () => sweeper(world),
  ]
  const actors = workers.map((open) => ({ open, actor: open(), isDone: false, isBuyer: false }))
  for (let id = 0; id < count; id++)
    for (let i = random.between(1, 2); i > 0; i--) {
      const open = () => buyer(world, id)
      actors.push({ open, actor: open(), isDone: false, isBuyer: true })
    }
  const mine = () => {
    clock.now += 1
    chain.mine(clock.now)
  }
  const advance = (one: (typeof actors)[number], isLost: boolean) => {
    try {
      const { done } = isLost ? one.actor.throw(new Lost()) : one.actor.next()
      if (!done) return
    } catch (error) {
      if (!(error instanceof Lost)) throw error
    }
    if (one.isBuyer) one.isDone = true
    else one.actor = one.open()
  }

  try {
    const steps = random.between(40, 260)
    for (; clock.step < steps; clock.step++) {
      const draw = random.next()
      const one = random.pick(actors)
      if (draw < 0.08) mine()
      else if (draw < 0.09) chain.reorg(random.between(1, negativeDepth))
      else if (draw < 0.1) clock.now += random.between(1, 8)
      else if (draw < 0.11 && chain.poolSize() > 0) chain.drop(random.between(0, chain.poolSize() - 1))
      else if (draw < 0.115) {
        const kind = random.isLucky(0.5) ? 'refuse' : 'allow'
        chain.submit({ hash: `word ${world.hashes++}`, nonce: null, acts: [{ kind }] })
      } else if (draw < 0.14 && !one.isBuyer) one.actor = one.open()
      else if (!one.isDone) advance(one, draw < 0.17)
    }
    chain.submit({ hash: `word ${world.hashes++}`, nonce: null, acts: [{ kind: 'allow' }] })
    for (let round = 0; round < calmRounds && !isQuiet(); round++) {
      for (const one of actors)
        for (let i = 0; i < 12 && !one.isDone; i++) {
          clock.step++
          advance(one, false)
        }
      if (round % 2 === 0) mine()
    }
  } catch (error) {
    return [`${error instanceof Error ? error.message : error}`]
  }
  return judge(world, isQuiet())

  function isQuiet(): boolean {
    const tip = db.blocks.at(-1)
    return (
      actors.every(({ isDone, isBuyer }) => isDone || !isBuyer) &&
      tip?.hash === chain.head().hash &&
      db.sent.every(({ isMined }) => isMined) &&
      db.checkouts.every(({ status }) => status !== 'PROCESSING') &&
      [...db.auths].every(([auth, row]) => !db.isUnresolved(row) || db.liveOf(auth) !== undefined)
    )
  }
}

/** More than any payment window needs to end at `negativeDepth`. */
const calmRounds = 160

function judge({ chain, db, answers, sightings, validBefore }: World, isQuiet: boolean): string[] {
  const wrong: string[] = []
  const canonical = new Map(chain.blocks.map((block) => [block.hash, block]))
  const paid = chain.blocks.flatMap(({ logs }) => logs).filter(({ kind }) => kind === 'paid')
  const live = db.credits.filter(({ isOrphaned }) => !isOrphaned)
  if (!isQuiet) wrong.push('I14 work is left')
  for (const { auth, block } of live)
    if (!canonical.get(block)?.logs.some((log) => log.kind === 'paid' && log.auth === auth))
      wrong.push(`I1 the credit of ${auth} is not on the chain`)
  for (const checkout of db.checkouts) {
    const exact = live.filter(
      ({ disposition, checkout: id }) => disposition === 'exact' && id === checkout.id,
    )
    if (checkout.status === 'COMPLETED' && exact.length === 0) wrong.push(`I1 ${checkout.id} was not paid`)
    if (exact.length > 1) wrong.push(`I2 ${checkout.id} has ${exact.length} exact credits`)
    const claims = [...db.auths].filter(([, row]) => row.checkout === checkout.id)
    const inOrder = claims.map(([, row]) => row).toSorted((a, b) => a.claimedAt - b.claimedAt)
    for (const [i, row] of inOrder.entries()) {
      const before = inOrder[i - 1]
      if (before && (before.resolvedAt === null || before.resolvedAt > row.claimedAt))
        wrong.push(`I4 ${checkout.id} had two unresolved payments`)
    }
    const charges = paid.filter(({ auth }) => db.auths.get(auth)?.checkout === checkout.id).length
    const told = checkout.events.filter((type) => /^payment\.(overpaid|late)$/.test(type)).length
    if (charges - 1 > told) wrong.push(`I4 ${checkout.id} was charged ${charges} times with ${told} notices`)
    const moves = checkout.events.filter((type) => type.startsWith('checkout.'))
    if (moves.length !== checkout.version) wrong.push(`I10 ${checkout.id} has too many or too few events`)
  }
  for (const auth of new Set(live.map((credit) => credit.auth)))
    if (live.filter((credit) => credit.auth === auth).length > 1) wrong.push(`I2 ${auth} is credited twice`)
  for (const { auth } of paid)
    if (db.auths.has(auth) && !live.some((credit) => credit.auth === auth))
      wrong.push(`I3 ${auth} is not credited`)
  const mined = chain.blocks.flatMap(({ txs }) => txs).filter(({ nonce }) => nonce !== null)
  for (const [i, { hash, nonce }] of mined.entries()) {
    if (nonce !== i) wrong.push(`I6 ${hash} has nonce ${nonce} instead of ${i}`)
    if (!db.bytes.has(hash)) wrong.push(`I6 ${hash} was never committed`)
  }
  for (const { hash, isCommitted } of sightings)
    if (!isCommitted) wrong.push(`I6 ${hash} was sent before it was committed`)
  for (const [auth, { state }] of db.auths) {
    const isSpent = chain.blocks.some(({ logs }) => logs.some((log) => log.auth === auth))
    if (state === 'dead' && !isSpent && chain.head().time < (validBefore[auth] as number))
      wrong.push(`I7 ${auth} is marked dead but could still pay`)
  }
  for (const { checkout: id, status, askedAt, answeredAt } of answers) {
    const checkout = db.checkouts[id]
    const isReorged = checkout?.events.includes('payment.reorged')
    if (status === 200 && checkout?.status !== 'COMPLETED' && !isReorged)
      wrong.push(`I8 ${id} was answered 200 but is ${checkout?.status}`)
    if (status !== 402) continue
    for (const { auth, checkout: owner, gone } of db.credits)
      for (const { from, until } of gone)
        if (owner === id && from < askedAt && (until === null || answeredAt < until))
          wrong.push(`I9 ${id} was answered 402 while ${auth}, which was reorganised, could return`)
    for (const [auth, row] of db.auths)
      if (
        row.checkout === id &&
        row.firstSignedAt !== null &&
        row.firstSignedAt < askedAt &&
        (row.resolvedAt === null || answeredAt < row.resolvedAt || paid.some((log) => log.auth === auth))
      )
        wrong.push(`I9 ${id} was answered 402 while ${auth} could pay`)
  }
  return wrong
}
