import { createHmac } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Books, Event, History, Violation } from './history.ts'

/** Which status change may follow which. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  '': ['created'],
  created: ['processing', 'completed', 'expired', 'canceled'],
  reopened: ['processing', 'completed', 'expired', 'canceled'],
  processing: ['reopened', 'completed', 'expired'],
  completed: ['processing'],
  expired: ['completed'],
  canceled: ['completed'],
}

const statusAfter: Readonly<Record<string, string>> = {
  created: 'OPEN',
  reopened: 'OPEN',
  processing: 'PROCESSING',
  completed: 'COMPLETED',
  expired: 'EXPIRED',
  canceled: 'CANCELED',
}

/** I7: statuses change only as documented, and a payment declared dead can never pay. */
export function checkArrows(history: History): Violation[] {
  const wrong: string[] = []
  for (const [id, events] of eventsByCheckout(history)) {
    const moves = movesOf(events)
    for (const [i, move] of moves.entries()) {
      const before = moves[i - 1] ?? ''
      if (!arrows[before]?.includes(move)) wrong.push(`${id} went from ${before || 'nothing'} to ${move}`)
      if (before === 'completed' && !events.some(({ type }) => type === 'payment.reorged'))
        wrong.push(`${id} left COMPLETED without a reorganisation`)
    }
  }
  const { books, chain } = history
  const spent = new Map(chain.transfers.map((transfer) => [`${transfer.from} ${transfer.nonce}`, transfer]))
  const credited = new Set(
    books.credits.filter(({ isOrphaned }) => !isOrphaned).map(({ payer, nonce }) => `${payer} ${nonce}`),
  )
  for (const { payer, nonce, payTo, amount, state, validBefore } of books.authorizations) {
    const key = `${payer} ${nonce}`
    if (state !== 'dead' || credited.has(key)) continue
    const transfer = spent.get(key)
    const isSpentElsewhere = transfer && (transfer.to !== payTo || transfer.value !== amount)
    if (!isSpentElsewhere && !chain.canceled.has(key) && BigInt(chain.headTime) < validBefore)
      wrong.push(`${key} is marked dead, but the chain would still accept it`)
  }
  return wrong.map((what) => ({ invariant: 'I7', what }))
}

/** I10: every change has one event, in order, without gaps, delivered word for word. */
export function checkLog(history: History): Violation[] {
  const { books } = history
  const wrong: string[] = []
  for (const { id, version } of books.checkouts) {
    const versions = (eventsByCheckout(history).get(id) ?? [])
      .filter(({ type }) => type.startsWith('checkout.'))
      .map(({ checkoutVersion }) => checkoutVersion)
    const isWhole = versions.length === version && versions.every((told, i) => told === i + 1)
    if (!isWhole) wrong.push(`${id} has version ${version}, but its events have ${versions.join(' ')}`)
  }
  for (const [storeId, events] of Map.groupBy(books.events, ({ storeId }) => storeId)) {
    const sequences = events.map(({ sequence }) => sequence ?? 0).toSorted((a, b) => a - b)
    const gap = sequences.findIndex((sequence, i) => sequence !== i + 1)
    if (gap !== -1) wrong.push(`the log of ${storeId} has sequence ${sequences[gap]} instead of ${gap + 1}`)
    for (const [id, own] of Map.groupBy(events, ({ checkoutId }) => checkoutId ?? '')) {
      const inOrder = own.toSorted((a, b) => (a.sequence ?? 0) - (b.sequence ?? 0))
      const isOrdered = inOrder.every(
        ({ checkoutVersion }, i) => (inOrder[i - 1]?.checkoutVersion ?? 0) <= (checkoutVersion ?? 0),
      )
      if (id !== '' && !isOrdered) wrong.push(`the log of ${storeId} has the events of ${id} out of order`)
    }
  }
  return [
    ...wrong,
    ...findBadDeliveries(history),
    ...findOvertaking(history),
    ...findUnreported(history),
  ].map((what) => ({ invariant: 'I10', what }))
}

function findBadDeliveries({ books, received }: History): string[] {
  const wrong: string[] = []
  const events = new Map(books.events.map((event) => [event.id, event]))
  const endpoints = new Map(books.endpoints.map((endpoint) => [endpoint.id, endpoint]))
  const taken = new Set<string>()
  for (const { endpointId, id, timestamp, signature, body, status } of received) {
    const secret = endpoints.get(endpointId)?.secret ?? ''
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
    const expected = `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
    if (!signature.split(' ').includes(expected)) wrong.push(`${id} was delivered with a wrong signature`)
    const event = events.get(id)
    const told = JSON.parse(body) as { id?: string; type?: string; sequence?: number; data?: object }
    if (!event) wrong.push(`${id} was delivered but is in no log`)
    else if (
      told.id !== id ||
      told.type !== event.type ||
      told.sequence !== event.sequence ||
      !isDeepStrictEqual(told.data, event.data)
    )
      wrong.push(`${id} was delivered with other content than the log has`)
    if (status >= 200 && status < 300) taken.add(`${endpointId} ${id}`)
  }
  const made = new Set(books.deliveries.map(({ endpointId, eventId }) => `${endpointId} ${eventId}`))
  for (const { endpointId, eventId, state } of books.deliveries) {
    if (state === 'delivered' && !taken.has(`${endpointId} ${eventId}`))
      wrong.push(`${eventId} is marked delivered but never arrived`)
  }
  for (const { id, storeId } of books.endpoints) {
    // An endpoint gets everything that is written after it was made, of whatever kind.
    const madeAt = books.events.findIndex(
      ({ type, data }) => type === 'webhook_endpoint.created' && data.webhookEndpoint?.id === id,
    )
    for (const event of books.events.slice(madeAt + 1))
      if (event.storeId === storeId && !made.has(`${id} ${event.id}`))
        wrong.push(`${event.id} (${event.type}) has no delivery to ${id}`)
  }
  return wrong
}

/**
 * At an ordered endpoint, no event arrives before the previous one was accepted. Only events about orders and money
 * wait; an event about a new key or wallet arrives at once. After a restore, the log continues from an earlier place.
 */
function findOvertaking({ books, received, restores = [] }: History): string[] {
  if (restores.length > 0) return []
  return books.endpoints
    .filter(({ isOrdered }) => isOrdered)
    .flatMap(({ id: endpointId }) => {
      const due = new Set(
        books.deliveries.filter((one) => one.endpointId === endpointId).map(({ eventId }) => eventId),
      )
      const line = books.events
        .filter(({ id, type }) => due.has(id) && /^(checkout|payment|refund)\./.test(type))
        .toSorted((a, b) => (a.sequence ?? 0) - (b.sequence ?? 0))
      const places = new Map(line.map(({ id }, place) => [id, place]))
      let next = 0
      return received
        .filter((one) => one.endpointId === endpointId)
        .flatMap(({ id, status }) => {
          const place = places.get(id)
          if (place === undefined) return []
          if (place > next) return [`${id} arrived at ${endpointId} before ${line[next]?.id} was taken`]
          if (place === next && status >= 200 && status < 300) next++
          return []
        })
    })
}

/** A payment that is not exact must have an event. */
function findUnreported(history: History): string[] {
  const byCheckout = eventsByCheckout(history)
  return history.books.credits.flatMap(({ checkoutId, paymentId, disposition, isOrphaned }) => {
    if (checkoutId === null || isOrphaned || disposition === 'exact') return []
    const isTold = byCheckout.get(checkoutId)?.some(({ type }) => type === `payment.${disposition}`)
    return isTold ? [] : [`${paymentId} of ${checkoutId} is ${disposition}, but its store was not notified`]
  })
}

/** I13: a checkout's last event has the same status as its row, and names the payment of its exact credit. */
export function checkReplay(history: History): Violation[] {
  const wrong: string[] = []
  const exact = new Map(
    history.books.credits
      .filter(({ isOrphaned, disposition }) => !isOrphaned && disposition === 'exact')
      .map((credit) => [credit.checkoutId, credit]),
  )
  const byCheckout = eventsByCheckout(history)
  for (const { id, status } of history.books.checkouts) {
    const events = byCheckout.get(id) ?? []
    const last = events.findLast(({ type }) => type.startsWith('checkout.'))
    const replayed = statusAfter[movesOf(events).at(-1) ?? '']
    if (replayed !== status || last?.data.checkout?.status !== status)
      wrong.push(`${id} is ${status}, but its events make it ${replayed}`)
    const transaction = last?.data.checkout?.payment?.transaction
    if (status === 'COMPLETED' && transaction !== exact.get(id)?.transactionHash)
      wrong.push(
        `the events of ${id} name ${transaction}, but its credit is ${exact.get(id)?.transactionHash}`,
      )
  }
  return [...wrong, ...findUntrue(history)].map((what) => ({ invariant: 'I13', what }))
}

/** An event's payment or refund matches the books. */
function findUntrue({ books }: History): string[] {
  const byTransaction = Map.groupBy(
    books.credits,
    ({ checkoutId, transactionHash }) => `${checkoutId} ${transactionHash}`,
  )
  const byId = Map.groupBy(books.credits, ({ paymentId }) => paymentId)
  const refunds = new Map(books.refunds.map((refund) => [refund.id, refund]))
  return books.events.flatMap(({ id, type, checkoutId, data: { checkout, payment, refund } }) => {
    const wrong: string[] = []
    const named = checkout?.payment
    const isSame = (credit: Books['credits'][number], told: NonNullable<typeof named>) =>
      `${credit.amount}` === told.amount &&
      credit.payer === told.payer.toLowerCase() &&
      credit.asset === told.asset.toLowerCase()
    if (
      named &&
      !byTransaction.get(`${checkoutId} ${named.transaction}`)?.some((credit) => isSame(credit, named))
    )
      wrong.push(`${id} (${type}) says that ${named.payer} paid ${named.amount}, which is not so`)
    if (
      payment &&
      !byId
        .get(payment.id)
        ?.some((credit) => isSame(credit, payment) && credit.payTo === payment.payTo.toLowerCase())
    )
      wrong.push(`${id} (${type}) says that ${payment.payer} paid ${payment.amount}, which is not so`)
    const row = refund && refunds.get(refund.id)
    if (refund && row && (`${row.amount}` !== refund.amount || row.paymentId !== refund.paymentId))
      wrong.push(
        `${id} (${type}) says that ${refund.amount} of ${refund.paymentId} goes back, which is not so`,
      )
    return wrong
  })
}

const grouped = new WeakMap<History, Map<string, Event[]>>()

/** Each checkout's events, ordered by version. */
export function eventsByCheckout(history: History): Map<string, Event[]> {
  const known = grouped.get(history)
  if (known) return known
  const groups = Map.groupBy(
    history.books.events.filter(({ checkoutId }) => checkoutId !== null),
    ({ checkoutId }) => checkoutId ?? '',
  )
  for (const events of groups.values())
    events.sort((a, b) => (a.checkoutVersion ?? 0) - (b.checkoutVersion ?? 0))
  grouped.set(history, groups)
  return groups
}

function movesOf(events: readonly Event[]): string[] {
  return events
    .filter(({ type }) => type.startsWith('checkout.'))
    .map(({ type }) => type.slice('checkout.'.length))
}
