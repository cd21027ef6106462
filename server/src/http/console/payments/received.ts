import type { CreditRow } from '../../../payments/credits/credit.ts'

/** The money that a row of the list is about: what paid the checkout, or else the newest that waits for a decision. */
export function mainOf(received: readonly CreditRow[]): CreditRow | null {
  const live = received.filter(({ isOrphaned, isReversed }) => !isOrphaned && !isReversed)
  const exact = live.find(({ disposition }) => disposition === 'exact')
  const [newest = null] = live
    .filter(({ dismissedAt }) => dismissedAt === null)
    .toSorted((a, b) => (a.paymentId < b.paymentId ? 1 : -1))
  return exact ?? newest
}
