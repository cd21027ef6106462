import { arrows, evaluate } from '../../server/src/checkouts/checkout.ts'
import type { Block } from './chain.ts'

/**
 * The payment tables in memory, with the constraints of the real ones. Every function is one atomic transaction. Status
 * and dispositions are computed by the server's own `evaluate`.
 */
type Status = keyof typeof arrows
type Finality = 'included' | 'safe' | 'finalized'

export type Checkout = {
  readonly id: number
  readonly expiresAt: Date
  readonly finality: Finality
  status: Status
  version: number
  readonly events: string[]
}

export type Auth = {
  readonly checkout: number
  state: 'claimed' | 'sent' | 'rejected' | 'dead'
  sends: number
  claimedAt: number
  resolvedAt: number | null
  firstSignedAt: number | null
  spentAt: number | null
}

export type Credit = {
  readonly auth: number
  readonly checkout: number
  readonly block: number
  readonly number: number
  readonly place: number
  readonly firstTime: number
  disposition: 'exact' | 'late' | 'underpaid' | 'overpaid' | 'unmatched'
  isOrphaned: boolean
  isReversed: boolean
  /** The times in which it was off the chain: until it was included again, or proven gone for good. */
  gone: { readonly from: number; until: number | null }[]
  announced: string | null
}

export type Sent = {
  readonly nonce: number
  readonly auths: readonly number[]
  hashes: string[]
  isMined: boolean
}

/** Bugs that a test can inject, to prove that the simulation finds them. */
export type Mutation =
  | 'sent-rejected'
  | 'two-unresolved'
  | 'send-before-commit'
  | 'spent-is-paid'
  | 'orphans-stay'
  | 'dead-too-early'
  | 'terms-on-time-out'
  | 'taken-back-forgotten'

export type Database = ReturnType<typeof openDatabase>

export function openDatabase(step: () => number, now: () => number, mutation: Mutation | null) {
  const checkouts: Checkout[] = []
  const auths = new Map<number, Auth>()
  const credits: Credit[] = []
  const blocks: Block[] = []
  const sent: Sent[] = []
  const bytes = new Set<string>()
  const settler = { epoch: 0, holder: '' }
  let safe = 0

  const isUnresolved = ({ state }: Auth) => state === 'claimed' || state === 'sent'
  const liveOf = (auth: number) => credits.find((credit) => credit.auth === auth && !credit.isOrphaned)
  const finalityOf = ({ number }: Credit): Finality => (number <= safe ? 'safe' : 'included')

  /** An exact payment that was reorganised and not proven gone: it may return. */
  const isTakenBack = (auth: number) =>
    mutation !== 'taken-back-forgotten' &&
    credits.some(
      (credit) =>
        credit.auth === auth && credit.disposition === 'exact' && credit.isOrphaned && !credit.isReversed,
    )

  const findPaid = (auth: number): { block: Block; place: number } | null => {
    for (const block of blocks) {
      const place = block.logs.findIndex(
        (log) => log.auth === auth && (log.kind === 'paid' || mutation === 'spent-is-paid'),
      )
      if (place !== -1) return { block, place }
    }
    return null
  }

  const endAbsence = ({ gone }: Credit) => {
    for (const absence of gone) absence.until ??= step()
  }

  const updateStatus = (ids: Iterable<number>): void => {
    for (const id of new Set(ids)) {
      const checkout = checkouts[id] as Checkout
      const all = credits.filter((credit) => credit.checkout === id)
      const live = all.filter(({ isOrphaned }) => !isOrphaned)
      const hasUnresolved = [...auths].some(
        ([auth, row]) => row.checkout === id && !liveOf(auth) && (isUnresolved(row) || isTakenBack(auth)),
      )
      const { status, dispositions } = evaluate(
        checkout,
        {
          credits: live.map((credit) => ({
            key: `${credit.block} ${credit.place}`,
            amount: 1n,
            due: 1n,
            isAccepted: false,
            isClaimed: isUnresolved(auths.get(credit.auth) as Auth),
            firstBlockTime: new Date(credit.firstTime * 1_000),
            blockNumber: credit.number,
            logIndex: credit.place,
            disposition: credit.disposition,
            finality: finalityOf(credit),
            counts: true,
            isRefunded: false,
          })),
          hasUnresolved,
          readUntil: null,
        },
        new Date(now() * 1_000),
      )
      for (const credit of live)
        credit.disposition = dispositions.get(`${credit.block} ${credit.place}`) ?? credit.disposition
      if (status !== checkout.status) {
        const event = arrows[checkout.status][status]
        if (!event) throw new Error(`no transition from ${checkout.status} to ${status}`)
        checkout.status = status
        checkout.version++
        checkout.events.push(event)
      }
      for (const credit of all) {
        const isBack = credits.some((other) => other.auth === credit.auth && !other.isOrphaned)
        const told = credit.isReversed
          ? 'reversed'
          : credit.isOrphaned
            ? isBack
              ? null
              : 'reorged'
            : credit.disposition === 'exact'
              ? null
              : credit.disposition
        if (told === null || told === credit.announced) continue
        credit.announced = told
        checkout.events.push(`payment.${told}`)
      }
      const isPaid = live.some(({ disposition }) => disposition === 'exact')
      for (const [auth, row] of auths)
        if (isPaid && row.checkout === id && row.state === 'claimed' && !liveOf(auth)) {
          row.state = 'rejected'
          row.resolvedAt = step()
        }
    }
  }

  return {
    checkouts,
    auths,
    credits,
    blocks,
    sent,
    bytes,
    settler,
    liveOf,
    isUnresolved,
    isTakenBack,
    updateStatus,
    claim(checkoutId: number, auth: number): boolean {
      const checkout = checkouts[checkoutId] as Checkout
      if (checkout.status !== 'OPEN' && mutation !== 'two-unresolved') return false
      if (checkout.expiresAt.getTime() <= now() * 1_000) return false
      const known = auths.get(auth)
      if (known && (known.checkout !== checkoutId || known.state !== 'rejected')) return false
      const isTaken = [...auths.values()].some((row) => row.checkout === checkoutId && isUnresolved(row))
      if (isTaken && mutation !== 'two-unresolved') return false
      auths.set(auth, {
        ...(known ?? { checkout: checkoutId, sends: 0, firstSignedAt: null, spentAt: null }),
        ...{ state: 'claimed', claimedAt: step(), resolvedAt: null },
      })
      if (checkout.status === 'OPEN') {
        checkout.status = 'PROCESSING'
        checkout.version++
        checkout.events.push('checkout.processing')
      }
      return true
    },
    lease(holder: string): number {
      if (settler.holder !== holder) {
        settler.holder = holder
        settler.epoch++
      }
      return settler.epoch
    },
    /** Stores nonce, calls and signed bytes, and marks the authorizations as sent. Returns null if the lease was lost. */
    commitSend(epoch: number, wanted: readonly { auth: number; sends: number }[], hash: string): Sent | null {
      if (settler.epoch !== epoch) return null
      const taken = wanted.filter(({ auth, sends }) => {
        const row = auths.get(auth)
        if (!row || row.sends !== sends) return false
        return row.state === 'claimed' || (row.state === 'sent' && sends < 2)
      })
      if (taken.length === 0) return null
      for (const { auth } of taken) {
        const row = auths.get(auth) as Auth
        row.state = 'sent'
        row.sends++
        row.firstSignedAt ??= step()
      }
      const made = {
        nonce: sent.length,
        auths: taken.map(({ auth }) => auth),
        hashes: [hash],
        isMined: false,
      }
      sent.push(made)
      bytes.add(hash)
      return made
    },
    commitFill(nonce: number, hash: string): void {
      sent[nonce]?.hashes.push(hash)
      bytes.add(hash)
    },
    reject(auth: number): void {
      const row = auths.get(auth)
      if (!row || (row.state !== 'claimed' && mutation !== 'sent-rejected')) return
      if (!isUnresolved(row)) return
      row.state = 'rejected'
      row.resolvedAt = step()
      updateStatus([row.checkout])
    },
    /** Returns false if the block's parent is not the tip. */
    takeBlock(block: Block, minedBelow: number | null): boolean {
      const tip = blocks.at(-1)
      if (tip && tip.hash !== block.parent) return false
      blocks.push(block)
      const changed: number[] = []
      for (const { kind, auth } of block.logs) {
        const row = auths.get(auth)
        if (row && kind === 'spent' && mutation !== 'spent-is-paid') row.spentAt = block.number
      }
      // A payment that was on the chain before its claim was written is credited with the next block.
      for (const [auth, row] of auths) {
        if (liveOf(auth)) continue
        const found = findPaid(auth)
        if (!found) continue
        const before = credits.filter((credit) => credit.auth === auth)
        const back = before.find((credit) => credit.block === found.block.hash)
        for (const credit of before) endAbsence(credit)
        if (back) Object.assign(back, { isOrphaned: false, isReversed: false, announced: null })
        else
          credits.push({
            ...{
              auth,
              checkout: row.checkout,
              block: found.block.hash,
              number: found.block.number,
              place: found.place,
            },
            firstTime: Math.min(found.block.time, ...before.map(({ firstTime }) => firstTime)),
            ...{ disposition: 'overpaid', isOrphaned: false, isReversed: false, announced: null, gone: [] },
          })
        changed.push(row.checkout)
      }
      if (minedBelow !== null) for (const one of sent) one.isMined = one.nonce < minedBelow
      updateStatus(changed)
      return true
    },
    turnBack(number: number): void {
      const gone = new Set(blocks.splice(number + 1).map(({ hash }) => hash))
      const changed: number[] = []
      for (const credit of credits)
        if (gone.has(credit.block) && !credit.isOrphaned && mutation !== 'orphans-stay') {
          credit.isOrphaned = true
          if (credit.disposition === 'exact') credit.gone.push({ from: step(), until: null })
          changed.push(credit.checkout)
        }
      for (const row of auths.values()) if (row.spentAt !== null && row.spentAt > number) row.spentAt = null
      safe = Math.min(safe, number)
      updateStatus(changed)
    },
    advance(to: number): void {
      safe = Math.max(safe, to)
      updateStatus(
        credits
          .filter(({ isOrphaned, number }) => !isOrphaned && number <= safe)
          .map(({ checkout }) => checkout),
      )
    },
    bury(auth: number): void {
      const row = auths.get(auth)
      if (!row || liveOf(auth) || !(isUnresolved(row) || isTakenBack(auth))) return
      row.state = 'dead'
      row.resolvedAt ??= step()
      for (const credit of credits)
        if (credit.auth === auth && credit.isOrphaned) {
          credit.isReversed = true
          endAbsence(credit)
        }
      updateStatus([row.checkout])
    },
    /** Reevaluates checkouts that are PROCESSING, and OPEN ones that have expired. */
    review(): void {
      updateStatus(checkouts.filter(({ status }) => status === 'PROCESSING').map(({ id }) => id))
      const over = checkouts.filter(
        ({ status, expiresAt }) => status === 'OPEN' && expiresAt.getTime() <= now() * 1_000,
      )
      updateStatus(over.map(({ id }) => id))
    },
  }
}
