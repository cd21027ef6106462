import { eventsByCheckout } from './events.ts'
import type { Credit, History, Violation } from './history.ts'

/** I8. An answer that a reorganisation undid was true at the time, and the store was notified of the change. */
export function checkAcknowledged(history: History): Violation[] {
  const { books, answers } = history
  const wrong: string[] = []
  const checkouts = new Map(books.checkouts.map((checkout) => [checkout.id, checkout]))
  const paidBy = Map.groupBy(
    books.credits.filter(({ disposition }) => disposition === 'exact'),
    ({ checkoutId }) => checkoutId,
  )
  const byCheckout = eventsByCheckout(history)
  for (const { kind, status, checkoutId, storeId, transaction } of answers) {
    if (checkoutId === null || status < 200 || status >= 300) continue
    const checkout = checkouts.get(checkoutId)
    if (checkout?.storeId !== storeId) {
      wrong.push(`${checkoutId} was acknowledged to ${storeId} but does not exist`)
      continue
    }
    if (kind !== 'pay' || status !== 200) continue
    const isReorged = byCheckout.get(checkoutId)?.some(({ type }) => type === 'payment.reorged') ?? false
    if (checkout.status !== 'COMPLETED' && !isReorged)
      wrong.push(`${checkoutId} was answered 200 but is ${checkout.status}`)
    const transactions = (paidBy.get(checkoutId) ?? []).map(({ transactionHash }) => transactionHash)
    if (transaction !== undefined && !transactions.includes(transaction))
      wrong.push(
        `${checkoutId} was answered 200 for ${transaction} but was paid by ${transactions.join(' ')}`,
      )
  }
  return wrong.map((what) => ({ invariant: 'I8', what }))
}

/**
 * I9. A 402 could charge the payer twice from the time when we first sign bytes that carry a payment until it is proven
 * that the payment will never pay. So could a 402 while a reorganised payment may return.
 */
export function checkInvitations({ books, chain, answers }: History): Violation[] {
  const wrong: string[] = []
  const moved = new Set(
    chain.transfers.map(({ from, to, value, nonce }) => `${from} ${nonce} ${to} ${value}`),
  )
  const claims = Map.groupBy(books.authorizations, ({ checkoutId }) => checkoutId)
  const absences = Map.groupBy(
    books.credits.flatMap((credit) => absenceOf(credit, books.credits)),
    ({ checkoutId }) => checkoutId,
  )
  for (const { checkoutId, status, askedAt, answeredAt } of answers) {
    if (status !== 402) continue
    for (const { paymentId, from, until } of absences.get(checkoutId) ?? [])
      if (from < askedAt && (until === null || answeredAt < until))
        wrong.push(`${checkoutId} was answered 402 while ${paymentId}, which was reorganised, could return`)
    for (const { payer, nonce, payTo, amount, firstSignedAt, resolvedAt } of claims.get(checkoutId) ?? [])
      if (
        firstSignedAt !== null &&
        firstSignedAt < askedAt &&
        // A payment that paid in the end could always pay, whatever was considered proven.
        (resolvedAt === null || answeredAt < resolvedAt || moved.has(`${payer} ${nonce} ${payTo} ${amount}`))
      )
        wrong.push(`${checkoutId} was answered 402 while ${payer} ${nonce} could pay`)
  }
  return wrong.map((what) => ({ invariant: 'I9', what }))
}

/** The time while an exact credit was off the chain: until another block included it, or it was proven gone. */
function absenceOf(
  { checkoutId, paymentId, disposition, orphanedAt, reversedAt }: Credit,
  all: readonly Credit[],
) {
  if (disposition !== 'exact' || orphanedAt === null) return []
  const returns = all
    .filter((other) => other.paymentId === paymentId && other.includedAt >= orphanedAt)
    .map(({ includedAt }) => includedAt)
  const ends = [...returns, ...(reversedAt ? [reversedAt] : [])].toSorted((a, b) => a.getTime() - b.getTime())
  return [{ checkoutId, paymentId, from: orphanedAt, until: ends[0] ?? null }]
}

/** I11. In these runs every order has one key, so two checkouts of an order are two checkouts of a key. */
export function checkRepeats({ books, answers }: History): Violation[] {
  const wrong: string[] = []
  const creates = answers.filter(({ kind, key }) => kind === 'create' && key !== undefined)
  const orders = Map.groupBy(books.checkouts, ({ storeId, orderId }) => `${storeId} ${orderId}`)
  for (const [key, group] of Map.groupBy(creates, ({ storeId, key }) => `${storeId} ${key}`)) {
    const made = group.filter(({ status }) => status === 201)
    const [first] = made
    for (const other of made.slice(1))
      if (other.sent !== first?.sent) wrong.push(`${key} was answered 201 for two bodies`)
      else if (other.body !== first?.body) wrong.push(`${key} got two different answers`)
  }
  const refunds = answers.filter(
    ({ kind, key, status }) => kind === 'refund' && key !== undefined && status < 300,
  )
  for (const [key, group] of Map.groupBy(refunds, ({ storeId, key }) => `${storeId} ${key}`)) {
    const made = new Set(group.map(({ body }) => (JSON.parse(body) as { id: string }).id))
    if (made.size > 1) wrong.push(`${key} made ${made.size} refunds: ${[...made].join(', ')}`)
  }
  for (const [order, made] of orders)
    if (made.length > 1) wrong.push(`${order} has ${made.length} checkouts: ${made.map(({ id }) => id)}`)
  return wrong.map((what) => ({ invariant: 'I11', what }))
}

const anyCheckoutId = /ch_[0-9a-z]{20,}/g

/** I12, for answers and deliveries. */
export function checkIsolation({ books, answers, received }: History): Violation[] {
  const ownerOf = new Map(books.checkouts.map(({ id, storeId }) => [id, storeId]))
  const endpoints = new Map(books.endpoints.map(({ id, storeId }) => [id, storeId]))
  const seen = [
    ...answers.map(({ storeId, body }) => ({ storeId, body })),
    ...received.map(({ endpointId, body }) => ({ storeId: endpoints.get(endpointId) ?? '', body })),
  ]
  return seen.flatMap(({ storeId, body }) =>
    (body.match(anyCheckoutId) ?? []).flatMap((id): Violation[] => {
      const owner = ownerOf.get(id)
      const isForeign = owner !== undefined && owner !== storeId
      return isForeign ? [{ invariant: 'I12', what: `${storeId} was shown ${id} of ${owner}` }] : []
    }),
  )
}
