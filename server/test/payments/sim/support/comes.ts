import type { EventType, SimulatedCase } from '@farthing/sdk'

const paid = ['checkout.processing', 'checkout.completed', 'payment.finalized'] as const
const taken = ['checkout.processing', 'checkout.completed', 'checkout.processing', 'payment.reorged'] as const

/** The events that follow each case, in order: for the table in the docs, and checked against a chain. */
export const comes: Readonly<Record<SimulatedCase, readonly EventType[]>> = {
  'payment.paid': paid,
  'payment.underpaid': ['payment.unmatched'],
  'payment.overpaid': ['payment.unmatched'],
  'payment.late': ['checkout.expired', 'payment.late'],
  'payment.twice': ['checkout.completed', 'payment.finalized', 'payment.overpaid'],
  'payment.reorged': [...taken, 'checkout.completed', 'payment.finalized'],
  'payment.reversed': [...taken, 'checkout.reopened', 'payment.reversed'],
  'payment.unknown_then_paid': paid,
  'payment.unknown_then_dead': ['checkout.processing', 'checkout.reopened'],
  'payment.refused': [],
  'network.down': [],
  'network.no_gas': [],
  'checkout.expired': ['checkout.expired'],
}
