import { evaluateRefund, eventOf, isCounted, noncesOf } from '../../../server/src/refunds/refund.ts'
import type { Block, Terms } from './chain.ts'

/**
 * The refund tables in memory, with the constraints of the real ones. Every function is one atomic transaction. The
 * server's own functions decide the status, what counts, and the nonces.
 */
type Status = Parameters<typeof isCounted>[0]

export type Payment = { readonly identity: string; readonly amount: bigint; readonly payer: string }

export type Refund = {
  readonly id: number
  /** The idempotency key that it was asked for with; null for one that was found on the chain. */
  key: string | null
  readonly payment: number
  readonly amount: bigint
  readonly recipient: string
  status: Status
  nonce: string | null
  isSigned: boolean
  isCancelAsked: boolean
  readonly events: string[]
}

type Auth = Omit<Terms, 'nonce' | 'validBefore'> & {
  validBefore: number
  readonly refund: number
  state: 'prepared' | 'claimed' | 'sent' | 'dead'
  /** Whether a restore found it unsent. Such a refund is not sent again. */
  isHeld: boolean
}

type Credit = Terms & { readonly block: number; isOrphaned: boolean }

type State = {
  refunds: Refund[]
  reserved: bigint[]
  auths: Map<string, Auth>
  credits: Credit[]
  blocks: Block[]
  /** When the database was restored; null once no terms prepared before it can move money. */
  restoredAt: number | null
}

/** Bugs that a test can inject, to prove that the simulation finds them. */
export type RefundMutation =
  | 'total-not-raised'
  | 'lowered-before-death'
  | 'slot-shared'
  | 'terms-changed'
  | 'dead-too-early'
  | 'window-forgotten'
  | 'used-slot-skipped'
  | 'key-refunded-again'
  | 'any-transfer-completes'
  | 'orphans-stay'

export type RefundDatabase = ReturnType<typeof openRefundDatabase>

/** How long prepared terms can be signed and used, in seconds. */
export const windowSeconds = 20
/** How many blocks must be on top of a block before it proves that a signature can no longer move money. */
export const negativeDepth = 3
/** Terms that are valid for less than this are not prepared. */
const leftSecondsMin = 5
const network = 'eip155:31337'
const asset = '0xtoken'

function isFor(refund: Refund, payment: number, amount: bigint, recipient: string): boolean {
  return refund.payment === payment && refund.amount === amount && refund.recipient === recipient
}

export function openRefundDatabase(payments: readonly Payment[], mutation: RefundMutation | null) {
  let state: State = {
    refunds: [],
    reserved: payments.map(() => 0n),
    auths: new Map(),
    credits: [],
    blocks: [],
    restoredAt: null,
  }
  let ids = 0
  const nonces = payments.map(({ identity }) => noncesOf(network, asset, identity))
  const refundOf = (id: number) => state.refunds.find((refund) => refund.id === id)
  const isLive = ({ isOrphaned }: Credit) => !isOrphaned || mutation === 'orphans-stay'
  const ownerOf = (nonce: string) =>
    state.refunds.find((refund) => refund.nonce === nonce && isCounted(refund.status))
  const forgotten = (payment: number) =>
    state.credits.filter(
      (credit) => isLive(credit) && nonces[payment]?.includes(credit.nonce) && !ownerOf(credit.nonce),
    )

  function reserve(payment: number, amount: bigint): boolean {
    const before = state.reserved[payment] as bigint
    if (mutation === 'total-not-raised' && before > 0n) return true
    if (before + amount > (payments[payment] as Payment).amount) return false
    state.reserved[payment] = before + amount
    return true
  }

  function add(
    refund: Pick<Refund, 'key' | 'payment' | 'amount' | 'recipient' | 'nonce'>,
    status: Status,
  ): Refund {
    const added = { ...refund, id: ids++, status, isSigned: status === 'COMPLETED', isCancelAsked: false }
    const events = status === 'COMPLETED' ? ['refund.completed'] : ['refund.requested']
    const row = { ...added, events }
    state.refunds.push(row)
    return row
  }

  /**
   * Records refunds that are on the chain but that a restore has forgotten. If a waiting refund has the same terms,
   * only its preparation was forgotten, and it takes the transfer; otherwise a new refund is recorded. False if they
   * exceed the payment.
   */
  function adopt(payment: number): boolean {
    return forgotten(payment).every(({ nonce, to, value }) => {
      const waiting = state.refunds.find(
        (refund) =>
          refund.status === 'REQUESTED' && refund.nonce === null && isFor(refund, payment, value, to),
      )
      if (waiting && mutation !== 'key-refunded-again') {
        Object.assign(waiting, { nonce, isSigned: true, status: 'SENT' })
        return true
      }
      if (!reserve(payment, value)) return false
      add({ key: null, payment, amount: value, recipient: to, nonce }, 'COMPLETED')
      return true
    })
  }

  /** A refund that was found on the chain and not requested since: the request with a lost key was for it. */
  function isFoundFor(refund: Refund, payment: number, amount: bigint, recipient: string): boolean {
    const isOpen = refund.key === null && isCounted(refund.status)
    return mutation !== 'key-refunded-again' && isOpen && isFor(refund, payment, amount, recipient)
  }

  function factsOf(refund: Refund) {
    const auth = refund.nonce === null ? undefined : state.auths.get(refund.nonce)
    const own = auth?.refund === refund.id ? auth : undefined
    const isOwn = ({ nonce, to, value }: Credit) =>
      nonce === refund.nonce &&
      (mutation === 'any-transfer-completes' || (to === refund.recipient && value === refund.amount))
    return {
      status: refund.status,
      way: 'signed' as const,
      isSigned: refund.isSigned,
      isCancelAsked: refund.isCancelAsked,
      isDeclared: false,
      isNamed: false,
      authorization: own?.state ?? null,
      isTransferred: state.credits.some((credit) => isLive(credit) && isOwn(credit)),
    }
  }

  function end(refund: Refund): void {
    const left = (state.reserved[refund.payment] as bigint) - refund.amount
    state.reserved[refund.payment] = mutation === 'total-not-raised' && left < 0n ? 0n : left
  }

  return {
    get state(): Readonly<State> {
      return state
    },
    nonces,
    copy: (): State => structuredClone(state),
    /** The operator restores a copy: unsent refunds are no longer sent, and nothing is prepared for a while. */
    restore(copy: State, now: number): void {
      state = structuredClone(copy)
      state.restoredAt = mutation === 'window-forgotten' ? null : now
      for (const auth of state.auths.values())
        if (auth.state === 'claimed') Object.assign(auth, { state: 'sent', isHeld: true })
    },
    create(key: string, payment: number, amount: bigint, recipient: string): number | null {
      const replayed = state.refunds.find((refund) => refund.key === key)
      if (replayed) return replayed.id
      const before = structuredClone(state)
      const isAdopted = adopt(payment)
      const found = state.refunds.find((refund) => isFoundFor(refund, payment, amount, recipient))
      if (found && isAdopted) return Object.assign(found, { key }).id
      if (isAdopted && reserve(payment, amount))
        return add({ key, payment, amount, recipient, nonce: null }, 'REQUESTED').id
      state = before
      return null
    },
    /**
     * The terms to sign; null if nothing may be signed. `used`: the nonces of the payment that a node reports as used.
     */
    prepare(id: number, used: ReadonlySet<string>, now: number): Terms | null {
      const refund = refundOf(id)
      if (refund?.status !== 'REQUESTED' || refund.isCancelAsked || state.restoredAt !== null) return null
      const { payment, amount, recipient } = refund
      const known = refund.nonce === null ? undefined : state.auths.get(refund.nonce)
      // The status may be older than the signature, so only a refund that is proven dead is prepared again.
      if (known?.refund === id && known.state !== 'dead' && known.state !== 'prepared') return null
      if (known?.refund === id && known.state === 'prepared') {
        if (mutation === 'terms-changed')
          return {
            nonce: refund.nonce as string,
            to: 'stranger',
            value: known.value,
            validBefore: known.validBefore,
          }
        // The end moves only later, because the earlier terms may be signed already.
        if (known.validBefore - now < leftSecondsMin) known.validBefore = now + windowSeconds
        const { to, value, validBefore } = known
        return { nonce: refund.nonce as string, to, value, validBefore }
      }
      // A refund that a restore has forgotten must not be paid again. It is found when the refund is requested again.
      if (mutation !== 'used-slot-skipped' && forgotten(payment).length > 0) return null
      const own = nonces[payment] as string[]
      const isFree = (nonce: string) => {
        const auth = state.auths.get(nonce)
        return (
          !used.has(nonce) &&
          (auth === undefined ||
            auth.state === 'dead' ||
            (mutation === 'slot-shared' && auth.state === 'prepared'))
        )
      }
      const nonce = refund.nonce !== null && isFree(refund.nonce) ? refund.nonce : own.find(isFree)
      if (nonce === undefined) return null
      const terms = { nonce, to: recipient, value: amount, validBefore: now + windowSeconds }
      const { nonce: _, ...rest } = terms
      state.auths.set(nonce, { ...rest, refund: id, state: 'prepared', isHeld: false })
      for (const other of state.refunds)
        if (other.nonce === nonce && other.id !== id && other.status === 'REQUESTED') other.nonce = null
      refund.nonce = nonce
      refund.isSigned = false
      return terms
    },
    /** Presents the wallet's signature. It is accepted only for exactly the prepared terms. */
    sign(id: number, { nonce, to, value, validBefore }: Terms, now: number): void {
      const refund = refundOf(id)
      const auth = state.auths.get(nonce)
      if (refund?.status !== 'REQUESTED' || refund.isCancelAsked) return
      if (auth?.refund !== id || auth.state !== 'prepared' || validBefore <= now) return
      const isSame = auth.to === to && auth.value === value && auth.validBefore === validBefore
      if (!isSame && mutation !== 'terms-changed') return
      Object.assign(auth, { state: 'claimed', to, value })
      refund.isSigned = true
    },
    cancel(id: number): void {
      const refund = refundOf(id)
      if (refund?.status !== 'REQUESTED' || refund.isCancelAsked) return
      const { authorization } = factsOf(refund)
      refund.isCancelAsked = true
      const isOut = authorization !== null && authorization !== 'dead'
      if (isOut && mutation !== 'lowered-before-death') return
      refund.status = 'CANCELED'
      refund.events.push('refund.canceled')
      end(refund)
    },
    /** The refunds that a lane sends. Each is marked as sent before any node sees it. */
    takeToSend(used: ReadonlySet<string>, now: number): Terms[] {
      return [...state.auths].flatMap(([nonce, auth]) => {
        const { to, value, validBefore } = auth
        const isDue =
          (auth.state === 'claimed' || (auth.state === 'sent' && !auth.isHeld)) && !used.has(nonce)
        if (!isDue || validBefore <= now) return []
        auth.state = 'sent'
        return [{ nonce, to, value, validBefore }]
      })
    },
    takeBlock(block: Block): void {
      const tip = state.blocks.at(-1)
      if (tip ? block.parent !== tip.hash : block.number !== 0) return
      state.blocks.push(block)
      for (const terms of block.transfers) {
        const back = state.credits.find(
          (credit) => credit.block === block.hash && credit.nonce === terms.nonce,
        )
        if (back) back.isOrphaned = false
        else state.credits.push({ ...terms, block: block.hash, isOrphaned: false })
      }
    },
    turnBack(number: number): void {
      const gone = new Set(state.blocks.splice(number + 1).map(({ hash }) => hash))
      for (const credit of state.credits) if (gone.has(credit.block)) credit.isOrphaned = true
    },
    /**
     * Marks a refund dead if its nonce is unused in a deep block after its time, or was spent on something else by
     * then. Also ends the wait after a restore.
     */
    bury(deep: Block, used: ReadonlySet<string>): void {
      if (!state.blocks.some(({ hash }) => hash === deep.hash)) return
      if (state.restoredAt !== null && deep.time > state.restoredAt + windowSeconds) state.restoredAt = null
      const slack = mutation === 'dead-too-early' ? windowSeconds : 0
      for (const [nonce, auth] of state.auths) {
        // After a restore, the prepared window may be later than the recorded one.
        const isOver = !used.has(nonce) && deep.time + slack >= auth.validBefore && state.restoredAt === null
        const spent = state.credits.find((credit) => credit.nonce === nonce && !credit.isOrphaned)
        const isElsewhere = spent && used.has(nonce) && (spent.to !== auth.to || spent.value !== auth.value)
        if (isOver || isElsewhere) auth.state = 'dead'
      }
    },
    watch(id: number): void {
      const refund = refundOf(id)
      if (!refund || !isCounted(refund.status)) return
      const status = evaluateRefund(factsOf(refund))
      if (status === refund.status) return
      const event = eventOf(refund.status, status)
      refund.status = status
      if (event) refund.events.push(event)
      if (!isCounted(status)) end(refund)
    },
  }
}
