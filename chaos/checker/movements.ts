import type { Books, Credit, History, Movement, Refund, Scan, Transfer, Violation } from './history.ts'

/**
 * I19. The lines of each store's books are in order and take each other back at most once; every final payment and
 * refund has one line, and nothing else has any; and what the lines of a wallet add up to is what the chain moved.
 */
export function checkMovements({ books, chain }: History): Violation[] {
  const ours = books.movements.filter(({ network }) => network === books.network)
  return [
    ...findDisorder(books),
    ...findWrongPayments({ ...books, movements: ours }),
    ...findWrongRefunds({ ...books, movements: ours }),
    ...findWrongSums({ ...books, movements: ours }, chain),
  ].map((what) => ({ invariant: 'I19', what }))
}

const opposites: Readonly<Record<string, readonly string[]>> = {
  payment_reversed: ['payment'],
  payment_ceded: ['payment'],
  refund_reversed: ['refund'],
}

/** Numbered 1, 2, 3 …, never back in time, and each counter line is the opposite of one line before it. */
function findDisorder({ movements }: Books): string[] {
  const wrong: string[] = []
  for (const [storeId, lines] of Map.groupBy(movements, ({ storeId }) => storeId)) {
    const inOrder = lines.toSorted((a, b) => a.number - b.number)
    const taken = new Set<number>()
    for (const [i, line] of inOrder.entries()) {
      const name = `line ${line.number} of ${storeId}`
      const before = inOrder[i - 1]
      if (line.number !== i + 1) wrong.push(`${name} is at place ${i + 1}`)
      if (before && before.bookedAt > line.bookedAt)
        wrong.push(`${name} was booked before line ${before.number}`)
      const expected = opposites[line.type]
      if ((expected === undefined) !== (line.reverses === null))
        wrong.push(`${name} is a ${line.type} that takes back ${line.reverses}`)
      if (line.reverses === null || expected === undefined) continue
      const reversed = inOrder[line.reverses - 1]
      if (
        reversed === undefined ||
        reversed.number >= line.number ||
        !expected.includes(reversed.type) ||
        reversed.amount !== -line.amount ||
        reversed.paymentId !== line.paymentId ||
        reversed.refundId !== line.refundId ||
        reversed.wallet !== line.wallet
      )
        wrong.push(`${name} is not the opposite of line ${line.reverses}`)
      if (taken.has(line.reverses)) wrong.push(`line ${line.reverses} of ${storeId} is taken back twice`)
      taken.add(line.reverses)
    }
  }
  return wrong
}

/** Lines of this type that were not taken back. */
function open({ movements }: Books, type: string): Movement[] {
  const taken = new Set(
    movements.flatMap(({ storeId, reverses }) => (reverses === null ? [] : `${storeId} ${reverses}`)),
  )
  return movements.filter((line) => line.type === type && !taken.has(`${line.storeId} ${line.number}`))
}

/** What a process that was ended in between had yet to book. */
function waiting({ due, events }: Books): ReadonlySet<string> {
  const told = events.filter(({ sequence }) => sequence === null)
  return new Set([...due, ...told.flatMap(({ data }) => [data.payment?.id ?? '', data.refund?.id ?? ''])])
}

function findWrongPayments(books: Books): string[] {
  const wrong: string[] = []
  const late = waiting(books)
  const wallets = new Set(books.wallets)
  const storeOf = new Map(books.checkouts.map(({ id, storeId }) => [id, storeId]))
  const lines = open(books, 'payment')
  const byPayment = Map.groupBy(lines, ({ paymentId }) => paymentId)
  const live = new Map(
    books.credits.filter(({ isOrphaned }) => !isOrphaned).map((credit) => [credit.paymentId, credit]),
  )
  for (const credit of live.values()) {
    const { paymentId, checkoutId } = credit
    if (credit.finalizedAt === null || late.has(paymentId)) continue
    const own = byPayment.get(paymentId) ?? []
    const owner = checkoutId === null ? null : (storeOf.get(checkoutId) ?? '')
    const stores = own.map(({ storeId }) => storeId)
    if (own.length === 0 && (owner !== null || wallets.has(credit.payTo)))
      wrong.push(`${paymentId} is final and in no books`)
    if (new Set(stores).size < stores.length) wrong.push(`${paymentId} is twice in the books of ${stores}`)
    if (owner !== null && stores.some((storeId) => storeId !== owner))
      wrong.push(`${paymentId} belongs to ${owner}, but is in the books of ${stores}`)
  }
  for (const line of lines) {
    const credit = live.get(line.paymentId)
    const gone = books.credits.filter(({ paymentId }) => paymentId === line.paymentId)
    // A final payment that left the chain may return until it is reversed.
    const mayReturn = credit === undefined && gone.some(({ reversedAt }) => reversedAt === null)
    if (late.has(line.paymentId) || mayReturn) continue
    if (!credit) wrong.push(`line ${line.number} of ${line.storeId} is for ${line.paymentId}, which is gone`)
    else if (!isOf(line, credit))
      wrong.push(`line ${line.number} of ${line.storeId} differs from ${line.paymentId}`)
  }
  return wrong
}

function isOf(line: Movement, credit: Credit): boolean {
  return (
    line.amount === credit.amount &&
    line.wallet === credit.payTo &&
    line.asset === credit.asset &&
    line.transactionHash === credit.transactionHash
  )
}

function findWrongRefunds(books: Books): string[] {
  const wrong: string[] = []
  const late = waiting(books)
  const [paid, declared] = [open(books, 'refund'), open(books, 'refund_declared')]
  const known = new Map(books.refunds.map((refund) => [refund.id, refund]))
  for (const refund of books.refunds.filter(({ id }) => !late.has(id))) {
    const own = paid.filter(({ refundId }) => refundId === refund.id)
    const said = declared.filter(({ refundId }) => refundId === refund.id)
    const expected = refund.status === 'COMPLETED' && refund.finality === 'finalized' ? 1 : 0
    if (own.length !== expected) wrong.push(`${refund.id} has ${own.length} lines instead of ${expected}`)
    if (said.length !== (refund.status === 'DECLARED' ? 1 : 0))
      wrong.push(`${refund.id} is ${refund.status} and has ${said.length} lines as declared`)
  }
  for (const line of [...paid, ...declared]) {
    const refund = known.get(line.refundId ?? '')
    if (refund?.amount !== -line.amount || refund.storeId !== line.storeId)
      wrong.push(`line ${line.number} of ${line.storeId} differs from ${line.refundId}`)
    if ((line.wallet === null) !== (line.type === 'refund_declared'))
      wrong.push(`line ${line.number} of ${line.storeId} is a ${line.type} of wallet ${line.wallet}`)
  }
  return wrong
}

/**
 * For each wallet, all lines add up to what the chain moved there in blocks that the books call final. A payment that
 * several stores share counts once. What is not final yet is left out on both sides.
 */
function findWrongSums(books: Books, chain: Scan): string[] {
  const late = waiting(books)
  const left = (paymentId: string, refundId: string | null) => late.has(refundId ?? paymentId)
  const live = new Map(
    books.credits.filter(({ isOrphaned }) => !isOrphaned).map((credit) => [placeOf(credit), credit]),
  )
  const onChain = new Map(books.credits.map(({ paymentId, isOrphaned }) => [paymentId, !isOrphaned]))
  for (const { paymentId } of live.values()) onChain.set(paymentId, true)
  return books.wallets.flatMap((wallet) => {
    const sums = new Map<string, bigint>()
    for (const line of books.movements) {
      if (line.wallet !== wallet || left(line.paymentId, line.refundId)) continue
      // A final payment that left the chain stays booked until it is reversed.
      if (line.refundId === null && onChain.get(line.paymentId) === false) continue
      const key = `${line.storeId} ${line.refundId ?? line.paymentId}`
      sums.set(key, (sums.get(key) ?? 0n) + line.amount)
    }
    const shared = new Map<string, bigint>()
    for (const [key, sum] of sums) {
      const [, item = ''] = key.split(' ')
      if (sum !== 0n || !shared.has(item)) shared.set(item, sum)
    }
    const booked = total([...shared.values()])
    const into = chain.transfers.filter((transfer) => {
      const credit = live.get(placeOf(transfer))
      return transfer.to === wallet && credit && credit.finalizedAt !== null && !late.has(credit.paymentId)
    })
    const final = books.refunds.filter(
      ({ id, status, finality }) => status === 'COMPLETED' && finality === 'finalized' && !late.has(id),
    )
    const out = chain.transfers.filter(
      (transfer) => transfer.from === wallet && final.some((refund) => isPaidBy(refund, transfer)),
    )
    const moved = total(into.map(({ value }) => value)) - total(out.map(({ value }) => value))
    return booked === moved
      ? []
      : [`${wallet} moved ${moved} units in final blocks, but its lines are ${booked}`]
  })
}

function isPaidBy({ recipient, amount, nonce, transactionHash }: Refund, transfer: Transfer): boolean {
  if (transfer.to !== recipient || transfer.value !== amount) return false
  return nonce === null ? transfer.transactionHash === transactionHash : transfer.nonce === nonce
}

function placeOf({ blockHash, logIndex }: { blockHash: string; logIndex: number }): string {
  return `${blockHash} ${logIndex}`
}

function total(values: readonly bigint[]): bigint {
  return values.reduce((sum, value) => sum + value, 0n)
}
