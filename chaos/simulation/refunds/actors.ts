import type { RefundChain, Terms } from './chain.ts'
import { negativeDepth, type RefundDatabase, type RefundMutation } from './database.ts'

/** The people and processes around refunds. At every `yield` another may act first, or this one may die. */
export type Actor = Generator<void, void, void>

/** One refund that the owner wants, whatever happens to the requests for it. */
export type Wish = {
  readonly key: string
  readonly payment: number
  readonly amount: bigint
  readonly recipient: string
}

type Handed = Terms & { readonly key: string; readonly payment: number }

export type World = {
  readonly chain: RefundChain
  readonly db: RefundDatabase
  readonly mutation: RefundMutation | null
  /** All terms that were ever prepared for signing. Restores do not change them. */
  readonly handed: Handed[]
  /** The terms that the wallet's owner has signed. Anyone who sees them can submit them. */
  readonly signed: Terms[]
  now: number
  random(): number
}

const looks = 30
const preparations = 4

/**
 * The store's owner, who has the wallet: requests the refund, signs the prepared terms, and presents the signature
 * once, several times, late or never. Sometimes the owner cancels, even after signing.
 */
export function* owner(world: World, wish: Wish): Actor {
  const { db, chain, random } = world
  for (let delay = random() < 0.3 ? random() * 20 : 0; delay > 0; delay--) yield
  const id = db.create(wish.key, wish.payment, wish.amount, wish.recipient)
  yield
  if (id === null) return
  if (random() < 0.1) db.cancel(id)
  for (let turn = 0; turn < preparations; turn++) {
    yield
    // The queried node may be a block behind.
    const used = chain.usedUntil(chain.head().number - (random() < 0.2 ? 1 : 0))
    yield
    const terms = db.prepare(id, used, world.now)
    if (terms) {
      world.handed.push({ ...terms, key: wish.key, payment: wish.payment })
      yield
      if (random() < 0.1) return
      world.signed.push(terms)
      yield
      if (random() < 0.15) db.cancel(id)
      yield
      for (let times = random() < 0.2 ? 2 : 1; times > 0; times--) {
        if (random() < 0.9) db.sign(id, terms, world.now)
        yield
      }
    }
    for (let i = 0; i < looks; i++) {
      yield
      const status = db.state.refunds.find((refund) => refund.id === id)?.status
      if (status === undefined || status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELED')
        return
    }
    if (random() < 0.2) db.cancel(id)
  }
}

/** Sends signed refunds. It marks each as sent first, and sends it again until it is mined or dead. */
export function* lane(world: World): Actor {
  const { db, chain } = world
  for (;;) {
    const used = chain.usedUntil(chain.head().number)
    yield
    const due = db.takeToSend(used, world.now)
    yield
    for (const terms of due) {
      if (world.random() < 0.8) chain.submit(terms)
      yield
    }
    yield
  }
}

export function* follower({ db, chain }: World): Actor {
  for (;;) {
    const tip = db.state.blocks.at(-1)
    const next = chain.blocks[tip ? tip.number + 1 : 0]
    const isReplaced = tip && chain.blocks[tip.number]?.hash !== tip.hash
    yield
    if (isReplaced) {
      const common = db.state.blocks.findLastIndex(({ number, hash }) => chain.blocks[number]?.hash === hash)
      yield
      if (db.state.blocks.at(-1)?.hash === tip.hash) db.turnBack(common)
    } else if (next) db.takeBlock(next)
    yield
  }
}

export function* undertaker({ db, chain }: World): Actor {
  for (;;) {
    const deep = db.state.blocks.at(-1 - negativeDepth)
    yield
    if (deep && chain.blocks[deep.number]?.hash === deep.hash) {
      const used = chain.usedUntil(deep.number)
      yield
      db.bury(deep, used)
    }
    yield
  }
}

export function* watcher({ db }: World): Actor {
  for (;;) {
    for (const { id } of [...db.state.refunds]) {
      db.watch(id)
      yield
    }
    yield
  }
}
