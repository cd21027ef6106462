import type { SimulatedCase } from '@farthing/sdk'

/**
 * What can be made to happen to a checkout of a test store. `way` is how it is paid: by a signature, as wallets and
 * programs do, or by a plain transfer, as a buyer does from an exchange. `steps` is what happens to the payment on the
 * simulated chain, in order; a signed case without steps is refused before.
 */
type Case = {
  readonly way: 'signed' | 'transfer' | 'nothing'
  readonly says: string
  readonly steps: readonly Step[]
}

/** `unknown` is a while in which nobody can say what becomes of it. */
export type Step = 'included' | 'safe' | 'finalized' | 'orphaned' | 'unknown' | 'dead'

const final = ['included', 'safe', 'finalized'] as const

export const cases = {
  'payment.paid': { way: 'signed', says: 'It is paid.', steps: final },
  'payment.underpaid': {
    way: 'transfer',
    says: 'The buyer sends too little.',
    steps: final,
  },
  'payment.overpaid': {
    way: 'transfer',
    says: 'The buyer sends too much.',
    steps: final,
  },
  'payment.late': {
    way: 'transfer',
    says: 'The money comes after the checkout has expired.',
    steps: final,
  },
  'payment.twice': {
    way: 'transfer',
    says: 'The buyer pays twice.',
    steps: final,
  },
  'payment.reorged': {
    way: 'signed',
    says: 'The chain takes the payment back, and brings it again.',
    steps: ['included', 'orphaned', ...final],
  },
  'payment.reversed': {
    way: 'signed',
    says: 'The chain takes the payment back for good.',
    steps: ['included', 'orphaned', 'dead'],
  },
  'payment.unknown_then_paid': {
    way: 'signed',
    says: 'For a while nobody knows what became of the payment, then it is paid.',
    steps: ['unknown', ...final],
  },
  'payment.unknown_then_dead': {
    way: 'signed',
    says: 'For a while nobody knows what became of the payment, then it is certain never to arrive.',
    steps: ['unknown', 'dead'],
  },
  'payment.refused': { way: 'signed', says: 'The token refuses the payment.', steps: [] },
  'network.down': { way: 'signed', says: 'The network’s nodes do not answer.', steps: [] },
  'network.no_gas': { way: 'signed', says: 'Nobody can pay the network’s fees.', steps: [] },
  'checkout.expired': {
    way: 'nothing',
    says: 'The checkout expires now.',
    steps: [],
  },
} as const satisfies Readonly<Record<SimulatedCase, Case>>

type CaseOf<Way> = {
  [Name in SimulatedCase]: (typeof cases)[Name]['way'] extends Way ? Name : never
}[SimulatedCase]
export type SignedCase = CaseOf<'signed'>
export type TransferCase = CaseOf<'transfer'>

const names = Object.keys(cases) as SimulatedCase[]
export const signedCases = names.filter(isSigned)

export function isSigned(name: SimulatedCase): name is SignedCase {
  return cases[name].way === 'signed'
}

export function isTransfer(name: SimulatedCase): name is TransferCase {
  return cases[name].way === 'transfer'
}
