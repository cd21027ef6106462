import { isCounted } from '../../../server/src/refunds/refund.ts'
import { seededRandom } from '../../harness/random.ts'
import { type Actor, follower, lane, owner, undertaker, type Wish, type World, watcher } from './actors.ts'
import { openRefundChain } from './chain.ts'
import {
  negativeDepth,
  openRefundDatabase,
  type Payment,
  type RefundMutation,
  windowSeconds,
} from './database.ts'

/**
 * Runs one short history: one or two final payments, and up to five requested refunds of them, of any amount and to
 * anyone. At every step, chosen by the seed, an actor continues or dies, a block is mined, time passes, the chain
 * reorganises, a stranger submits what the owner has signed, the owner spends a nonce on something else, or the
 * database is copied or restored. After every step, four rules are checked. No more can go back than was paid, even if
 * all prepared terms that can still be used were signed and submitted. No nonce has two prepared terms that can both be
 * used. Money went only to the requested recipients, and once per request. Totals are the sum of the refunds that
 * count. Then the faults stop, and every refund must end as the chain says. Returns the violations.
 *
 * Modelled: reserving, slots and nonces, preparing, signing, presenting, canceling, sending, blocks and
 * reorganisations, proofs of death, restores with what they forget and find again, crashes at every await. Not
 * modelled: SQL and its isolation, several nodes that disagree, refunds that the store sends itself, address request links,
 * Solana, and reorganisations that remove a payment or are deeper than `negativeDepth`.
 */
export function runRefunds(seed: number, mutation: RefundMutation | null = null): string[] {
  const random = seededRandom(seed)
  const payments = Array.from(
    { length: random.between(1, 2) },
    (_, i): Payment => ({
      identity: `payer${i} 0x${i}`,
      amount: BigInt(random.between(1, 6)),
      payer: `payer${i}`,
    }),
  )
  const chain = openRefundChain()
  const db = openRefundDatabase(payments, mutation)
  const world: World = { chain, db, mutation, handed: [], signed: [], now: 10, random: random.next }
  const wishes = Array.from({ length: random.between(1, 5) }, (_, i): Wish => {
    const payment = random.between(0, payments.length - 1)
    const { amount, payer } = payments[payment] as Payment
    return {
      key: `key ${i}`,
      payment,
      amount: random.isLucky(0.4) ? amount : BigInt(random.between(1, Number(amount))),
      recipient: random.isLucky(0.7) ? payer : `friend ${i}`,
    }
  })
  const actors: { open: () => Actor; actor: Actor; isDone: boolean; isOwner: boolean }[] = []
  const join = (open: () => Actor, isOwner: boolean) =>
    actors.push({ open, actor: open(), isDone: false, isOwner })
  for (const wish of wishes) join(() => owner(world, wish), true)
  for (const work of [lane, lane, follower, follower, undertaker, watcher]) join(() => work(world), false)
  const copies: ReturnType<typeof db.copy>[] = []
  let restores = 0
  let seen = { head: -1, handed: -1 }
  const mine = () => {
    world.now += 1
    chain.mine(world.now)
  }
  const advance = (one: (typeof actors)[number]) => {
    if (!one.actor.next().done) return
    if (one.isOwner) one.isDone = true
    else one.actor = one.open()
  }

  try {
    const steps = random.between(60, 320)
    for (let step = 0; step < steps; step++) {
      const draw = random.next()
      const one = random.pick(actors)
      if (draw < 0.1) mine()
      else if (draw < 0.12)
        chain.reorg(random.between(1, negativeDepth), random.isLucky(0.5), random.isLucky(0.5))
      else if (draw < 0.13) world.now += random.between(1, windowSeconds)
      else if (draw < 0.135) chain.forget()
      else if (draw < 0.16 && world.signed.length > 0) chain.submit(random.pick(world.signed))
      else if (draw < 0.164 && world.handed.length > 0) {
        // The owner spends the nonce on something else.
        chain.submit({ ...random.pick(world.handed), to: 'elsewhere' })
      } else if (draw < 0.18) copies.push(db.copy())
      else if (draw < 0.186 && copies.length > 0) {
        db.restore(random.pick(copies), world.now)
        restores++
        for (const each of actors) Object.assign(each, { actor: each.open(), isDone: false })
      } else if (draw < 0.21) Object.assign(one, { actor: one.open(), isDone: false })
      else if (!one.isDone) advance(one)
      const wrong = look()
      if (wrong.length > 0) return wrong
    }
    for (let round = 0; round < calmRounds && !isQuiet(); round++) {
      for (const one of actors) for (let i = 0; i < 5 && !one.isDone; i++) advance(one)
      if (round % 2 === 0) mine()
      const wrong = look()
      if (wrong.length > 0) return wrong
    }
  } catch (error) {
    return [`${error instanceof Error ? error.message : error}`]
  }
  return judgeEnd(world, restores > 0)

  /** Reads the chain again only if it, or the prepared terms, have changed. */
  function look(): string[] {
    const before = seen
    seen = { head: chain.head().hash, handed: world.handed.length }
    const isSame = before.head === seen.head && before.handed === seen.handed
    return [...judgeTotals(world, payments), ...(isSame ? [] : judgeChain(world, payments, wishes))]
  }

  function isQuiet(): boolean {
    return (
      actors.every(({ isDone, isOwner }) => isDone || !isOwner) &&
      db.state.blocks.at(-1)?.hash === chain.head().hash &&
      db.state.refunds.every(
        ({ status, isCancelAsked }) =>
          !/SIGNED|SENT/.test(status) && !(status === 'REQUESTED' && isCancelAsked),
      ) &&
      // The prepared terms can no longer be used.
      world.handed.every(({ validBefore }) => validBefore <= chain.head().time)
    )
  }
}

/** More than all windows of one refund need to end at `negativeDepth`. */
const calmRounds = 240

function judgeTotals({ db }: World, payments: readonly Payment[]): string[] {
  return payments.flatMap((_, i) => {
    let sum = 0n
    for (const { payment, status, amount } of db.state.refunds)
      if (payment === i && isCounted(status)) sum += amount
    return sum === db.state.reserved[i] ? [] : [`total: ${db.state.reserved[i]} is reserved for ${sum}`]
  })
}

function judgeChain(
  { chain, db, handed }: World,
  payments: readonly Payment[],
  wishes: readonly Wish[],
): string[] {
  const wrong: string[] = []
  const paid = chain.paid().filter(({ to }) => to !== 'elsewhere')
  // The terms that a block may still include, whatever reorganisations do.
  const deep = chain.blocks.at(-1 - negativeDepth)
  const spent = chain.usedUntil(deep?.number ?? -1)
  const usable = handed.filter(
    ({ validBefore, nonce }) => validBefore > (deep?.time ?? 0) && !spent.has(nonce),
  )
  for (const [i, { amount }] of payments.entries()) {
    let most = 0n
    for (const nonce of db.nonces[i] ?? []) {
      const values = [...paid, ...usable].filter((terms) => terms.nonce === nonce)
      most += values.reduce((max, { value }) => (value > max ? value : max), 0n)
      const offers = new Set(
        usable.filter((terms) => terms.nonce === nonce).map(({ to, value }) => `${value} to ${to}`),
      )
      if (offers.size > 1) wrong.push(`slot: ${nonce} was offered as ${[...offers].join(' and as ')}`)
    }
    if (most > amount) wrong.push(`more: ${most} of ${amount} went back or still can`)
  }
  for (const { key, recipient, amount, payment } of wishes) {
    const isEqual = (other: Wish) =>
      other.payment === payment && other.recipient === recipient && other.amount === amount
    // Equal requests are interchangeable, because after a restore it is unknown which of them was paid.
    const equal = wishes.filter(isEqual).map((wish) => wish.key)
    const own = handed.filter((terms) => equal.includes(terms.key))
    const moved = paid.filter((transfer) => own.some((terms) => isSame(terms, transfer)))
    if (moved.length > equal.length) wrong.push(`twice: ${key} was paid ${moved.length} times`)
    for (const { to, value } of moved)
      if (to !== recipient || value !== amount) wrong.push(`recipient: ${value} went to ${to} for ${key}`)
  }
  return wrong
}

function isSame(
  terms: { nonce: string; to: string; value: bigint; validBefore: number },
  transfer: typeof terms,
): boolean {
  return (
    terms.nonce === transfer.nonce &&
    terms.to === transfer.to &&
    terms.value === transfer.value &&
    terms.validBefore === transfer.validBefore
  )
}

function judgeEnd({ chain, db }: World, isRestored: boolean): string[] {
  const wrong: string[] = []
  const paid = new Map(chain.paid().map((terms) => [terms.nonce, terms]))
  for (const { id, status, nonce, recipient, amount, isSigned, isCancelAsked, events } of db.state.refunds) {
    const transfer = nonce === null ? undefined : paid.get(nonce)
    const isPaid = transfer?.to === recipient && transfer.value === amount
    const isAlone = db.state.refunds.every((other) => other.id === id || other.nonce !== nonce)
    if (status === 'COMPLETED' && !isPaid) wrong.push(`unpaid: ${id} is COMPLETED`)
    if (status !== 'COMPLETED' && isPaid && isAlone) wrong.push(`paid: ${id} is ${status}`)
    const isOpen = status === 'SIGNED' || status === 'SENT' || (status === 'REQUESTED' && isCancelAsked)
    // A refund that a restore found without its signature cannot be proven dead after a reorganisation, so it counts
    // forever.
    if (isOpen && !isRestored) wrong.push(`open: ${id} is ${status}${isSigned ? ', signed' : ''}`)
    const last = events.at(-1)
    if ((status === 'COMPLETED') !== (last === 'refund.completed'))
      wrong.push(`events: ${id} ends with ${last}`)
  }
  for (const [nonce, { to }] of isRestored ? [] : paid)
    if (
      to !== 'elsewhere' &&
      !db.state.refunds.some((refund) => refund.nonce === nonce && isCounted(refund.status))
    )
      wrong.push(`unowned: ${nonce} moved money for no refund`)
  return wrong
}
