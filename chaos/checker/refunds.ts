import { createHash } from 'node:crypto'
import type { Credit, Event, History, Refund, Transfer, Violation } from './history.ts'

/** The first bytes of every refund's nonce: "fthr". */
const mark = '0x66746872'
const slots = 5
/** Statuses in which it is proven that a refund moves no money. */
const ended = ['FAILED', 'CANCELED']

/**
 * I15. The first part uses the chain alone: it adds up the money that went back for each payment, by the payment's
 * nonces. The other parts compare the records with the chain and with the answers that the store got.
 */
export function checkRefunds(history: History): Violation[] {
  return [
    ...findOverpaid(history),
    ...findUnowned(history),
    ...findUnpaid(history),
    ...findWrongTotals(history),
    ...findChanged(history),
    ...findWrongEvents(history),
    ...findBaseless(history),
    ...findAcceptedAgain(history),
  ].map((what) => ({ invariant: 'I15', what }))
}

/** No payment is refunded above its amount, whatever our tables say, restored or not. */
function findOverpaid({ books, chain }: History): string[] {
  const moved = refundsOn({ books, chain })
  const payments = new Map(books.credits.map((credit) => [`${credit.payTo} ${identityOf(credit)}`, credit]))
  return [...payments.values()].flatMap((credit) => {
    const own = noncesOf(books.network, credit).flatMap(
      (nonce) => moved.get(`${credit.payTo} ${nonce}`) ?? [],
    )
    const back = own.reduce((sum, { value }) => sum + value, 0n)
    return back <= credit.amount
      ? []
      : [
          `${back} went back of ${credit.paymentId}, which paid ${credit.amount}: ${own.map(hashOf).join(', ')}`,
        ]
  })
}

/** Every transfer with a refund's nonce belongs to a refund, has its terms, and is the only one of it. */
function findUnowned({ books, chain }: History): string[] {
  const wrong: string[] = []
  for (const [key, transfers] of refundsOn({ books, chain })) {
    const owners = books.refunds.filter((refund) => keyOf(refund) === key && !ended.includes(refund.status))
    const [owner] = owners
    if (transfers.length > 1) wrong.push(`${key} paid ${transfers.length} times: ${transfers.map(hashOf)}`)
    if (owners.length > 1) wrong.push(`${key} belongs to ${owners.map(({ id }) => id).join(' and ')}`)
    if (!owner) wrong.push(`${transfers.map(hashOf)} moved ${key}, which belongs to no refund that counts`)
    for (const { to, value } of owner ? transfers : [])
      if (to !== owner?.recipient || value !== owner.amount)
        wrong.push(`${owner?.id} is ${owner?.amount} for ${owner?.recipient}, but ${value} went to ${to}`)
    if (owner && !['COMPLETED', 'LOST'].includes(owner.status))
      wrong.push(`${owner.id} is ${owner.status}, but ${transfers.map(hashOf)} paid it`)
  }
  return wrong
}

/** Every COMPLETED refund has its own transfer. */
function findUnpaid({ books, chain }: History): string[] {
  const moved = refundsOn({ books, chain })
  const sent = Map.groupBy(chain.transfers, hashOf)
  const wallets = new Set(books.wallets)
  const wrong: string[] = []
  const proofs = new Map<string, string>()
  for (const refund of books.refunds.filter(({ status }) => status === 'COMPLETED')) {
    const { id, way, recipient, amount, transactionHash, position } = refund
    const found =
      way === 'signed'
        ? (moved.get(keyOf(refund)) ?? [])
        : (sent.get(transactionHash ?? '') ?? []).filter(
            ({ from, nonce }) => nonce === null && wallets.has(from),
          )
    const isPaid = found.some(
      (transfer) =>
        transfer.to === recipient &&
        transfer.value === amount &&
        transfer.transactionHash === transactionHash,
    )
    if (!isPaid) wrong.push(`${id} is COMPLETED by ${transactionHash}, which does not pay it`)
    const proof = way === 'signed' ? keyOf(refund) : `${transactionHash} ${position}`
    const other = proofs.get(proof)
    if (other !== undefined) wrong.push(`${id} and ${other} are COMPLETED by one transfer: ${proof}`)
    proofs.set(proof, id)
  }
  return wrong
}

/** Each total is the sum of the refunds that count, and its amount is its payment's. */
function findWrongTotals({ books }: History): string[] {
  const counted = Map.groupBy(
    books.refunds.filter(({ status }) => ![...ended, 'LOST'].includes(status)),
    ({ asset, identity }) => `${asset} ${identity}`,
  )
  const paid = new Map(books.credits.map((credit) => [credit.paymentId, credit]))
  const wrong: string[] = []
  for (const { paymentId, asset, identity, amount, reserved } of books.refundTotals) {
    const refunds = counted.get(`${asset} ${identity}`) ?? []
    counted.delete(`${asset} ${identity}`)
    const sum = refunds.reduce((all, refund) => all + refund.amount, 0n)
    if (sum !== reserved) wrong.push(`${paymentId} has ${reserved} reserved, but its refunds are ${sum}`)
    if (reserved > amount) wrong.push(`${paymentId} has ${reserved} reserved of ${amount}`)
    const credit = paid.get(paymentId)
    if (credit && credit.amount !== amount)
      wrong.push(`the total of ${paymentId} is ${amount}, but ${credit.amount} were paid`)
  }
  for (const [key, refunds] of counted)
    wrong.push(`${refunds.map(({ id }) => id).join(', ')} of ${key} have no total`)
  return wrong
}

/**
 * No refund goes to another recipient: a key's refund goes to the payer, and every refund matches the answer to the
 * store.
 */
function findChanged({ books, answers }: History): string[] {
  const wrong: string[] = []
  const refunds = new Map(books.refunds.map((refund) => [refund.id, refund]))
  const paid = new Map(books.credits.map((credit) => [credit.paymentId, credit]))
  for (const { id, paymentId, actorType, recipient } of books.refunds) {
    const payer = paid.get(paymentId)?.payer
    if (actorType === 'key' && recipient !== null && payer !== undefined && recipient !== payer)
      wrong.push(`${id} of a key goes to ${recipient}, but ${payer} paid`)
  }
  for (const { kind, status, body, storeId } of answers) {
    if (kind !== 'refund' || status < 200 || status >= 300) continue
    const told = JSON.parse(body) as {
      id: string
      amount: string
      recipient: string | null
      paymentId: string
    }
    const refund = refunds.get(told.id)
    if (refund?.storeId !== storeId)
      wrong.push(`${told.id} was acknowledged to ${storeId} but does not exist`)
    else if (
      `${refund.amount}` !== told.amount ||
      refund.paymentId !== told.paymentId ||
      (told.recipient !== null && refund.recipient !== told.recipient.toLowerCase())
    )
      wrong.push(
        `${told.id} was acknowledged as ${told.amount} of ${told.paymentId} for ${told.recipient}, but is ${refund.amount} of ${refund.paymentId} for ${refund.recipient}`,
      )
  }
  return wrong
}

/** No refund is signed while its payment is off the chain. */
function findBaseless({ books, clocksDifferMs = 0 }: History): string[] {
  const versions = Map.groupBy(books.credits, ({ paymentId }) => paymentId)
  return books.refunds.flatMap(({ id, paymentId, status, signedAt, createdAt }) => {
    if (!['SENT', 'COMPLETED'].includes(status)) return []
    const at = (signedAt ?? createdAt).getTime()
    // PostgreSQL's clock says when a refund was signed, but the process's clock says when it was created.
    const slackMs = signedAt === null ? clocksDifferMs : 0
    const isThere = versions
      .get(paymentId)
      ?.some(
        ({ includedAt, orphanedAt }) =>
          includedAt.getTime() <= at + slackMs &&
          (orphanedAt === null || orphanedAt.getTime() > at - slackMs),
      )
    return isThere ? [] : [`${id} is ${status}, but ${paymentId} was not on the chain when it was signed`]
  })
}

/** Money that is being refunded pays for nothing any more. The store's log gives the order, not the clocks. */
function findAcceptedAgain({ books }: History): string[] {
  const counted = new Set(books.refunds.flatMap(({ id, status }) => (ended.includes(status) ? [] : [id])))
  const returned = new Map<string, string>()
  const wrong: string[] = []
  for (const { type, data } of books.events.toSorted(bySequence)) {
    const { refund, payment } = data
    if (refund && counted.has(refund.id)) returned.set(refund.paymentId, refund.id)
    const by = type === 'payment.accepted' && returned.get(payment?.id ?? '')
    if (by) wrong.push(`${payment?.id} was accepted for a checkout after ${by} returned it`)
  }
  return wrong
}

const follows: Readonly<Record<string, readonly string[]>> = {
  // A refund that a restore had lost is found completed.
  '': ['requested', 'completed'],
  requested: ['claimed', 'declared', 'completed', 'failed', 'canceled'],
  claimed: ['claimed', 'declared', 'completed', 'failed', 'canceled'],
  declared: [],
  completed: ['finalized', 'reorged'],
  finalized: [],
  reorged: ['completed', 'failed'],
  failed: [],
  canceled: [],
}

const statusesAfter: Readonly<Record<string, readonly string[]>> = {
  requested: ['REQUESTED', 'SIGNED', 'SENT'],
  claimed: ['REQUESTED', 'SIGNED', 'SENT'],
  declared: ['DECLARED'],
  completed: ['COMPLETED'],
  finalized: ['COMPLETED'],
  reorged: ['SENT', 'SIGNED'],
  failed: ['FAILED'],
  canceled: ['CANCELED'],
}

/** The events alone tell a store which refunds moved money. */
function findWrongEvents({ books }: History): string[] {
  const wrong: string[] = []
  const told = Map.groupBy(
    books.events.filter(({ type }) => type.startsWith('refund.')),
    ({ data }) => data.refund?.id ?? '',
  )
  for (const { id, status } of books.refunds) {
    if (status === 'LOST') continue
    const moves = (told.get(id) ?? []).toSorted(bySequence).map(({ type }) => type.slice('refund.'.length))
    for (const [i, move] of moves.entries())
      if (!follows[moves[i - 1] ?? '']?.includes(move))
        wrong.push(`${id} went from ${moves[i - 1] ?? 'nothing'} to ${move}`)
    const last = moves.at(-1) ?? ''
    if (!statusesAfter[last]?.includes(status))
      wrong.push(`${id} is ${status}, but its last event is ${last || 'none'}`)
  }
  return wrong
}

function bySequence(a: Event, b: Event): number {
  return (a.sequence ?? 0) - (b.sequence ?? 0)
}

/** The transfers of refunds' nonces from the stores' wallets, by wallet and nonce. */
function refundsOn({ books, chain }: Pick<History, 'books' | 'chain'>): Map<string, Transfer[]> {
  const wallets = new Set(books.wallets)
  return Map.groupBy(
    chain.transfers.filter(({ from, nonce }) => nonce?.startsWith(mark) && wallets.has(from)),
    ({ from, nonce }) => `${from} ${nonce}`,
  )
}

/** The nonces that refunds of a payment may use, by its network, token and identity and the slot. */
export function noncesOf(network: string, credit: Credit): string[] {
  return Array.from({ length: slots }, (_, slot) => {
    const text = [network, credit.asset, identityOf(credit), slot].join('\n')
    return `${mark}${createHash('sha256').update(text).digest('hex').slice(0, 56)}`
  })
}

/** The payment's identity on the chain, which does not depend on its block. */
export function identityOf(credit: Credit): string {
  const { payer, nonce, transactionHash, payTo, amount, position } = credit
  return nonce === null ? `${transactionHash} ${payer} ${payTo} ${amount} ${position}` : `${payer} ${nonce}`
}

function keyOf({ wallet, nonce }: Refund): string {
  return `${wallet} ${nonce}`
}

function hashOf({ transactionHash }: Transfer): string {
  return transactionHash
}
