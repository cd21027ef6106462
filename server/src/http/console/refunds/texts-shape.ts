import type { RefundStatus } from '@farthing/sdk'

type Said = { readonly title: string; readonly text: string }

/** Who has to do something, and what: `sign` to `link` is the store. */
export type Turn =
  | 'sign'
  | 'pay'
  | 'confirm'
  | 'link'
  | 'buyer'
  | 'canceling'
  | 'moving'
  | 'done'
  | 'declared'
  | 'failed'
  | 'canceled'

/** What the script says when a wallet does not sign. */
type SignTrouble = 'account' | 'rejected' | 'pending' | 'chain' | 'smart' | 'changed' | 'failed'

export type RefundTexts = {
  readonly title: string
  readonly about: string
  readonly all: string
  readonly statuses: Readonly<Record<RefundStatus, string>>
  readonly turn: string
  readonly turns: Readonly<Record<Turn, string>>
  readonly status: string
  readonly amount: string
  readonly order: string
  readonly to: string
  readonly toNobody: string
  readonly when: string
  readonly older: string
  readonly newest: string
  readonly empty: string
  readonly emptyAbout: string
  readonly emptyFound: string
  readonly toPayments: string

  /** One refund. */
  readonly next: Readonly<Record<Turn, Said>>
  readonly mayNot: string
  readonly happened: string
  readonly facts: string
  readonly by: string
  readonly raw: string
  readonly steps: Readonly<Record<StepId, Said>>
  readonly from: string
  readonly recipient: string
  readonly reason: string
  readonly network: string
  readonly transaction: string
  readonly payment: string
  readonly id: string
  readonly declaredAs: string
  readonly ofPayment: string

  readonly signWith: string
  readonly yourWallet: string
  readonly asking: string
  readonly noWallet: string
  readonly byCommand: string
  readonly signTroubles: Readonly<Record<SignTrouble, string>>
  readonly cancel: string
  readonly cancelAbout: string

  readonly naming: string
  readonly namingAbout: string
  readonly name: string
  readonly declaring: string
  readonly declaringAbout: string
  readonly reference: string
  readonly referenceExample: string
  readonly declare: string

  readonly code: string
  readonly codeAbout: string
  readonly named: string
  readonly confirm: string
  readonly makeLink: string
  readonly newLink: string
  readonly linkMade: string
  readonly linkAbout: string
  readonly copyLink: string
  readonly linkUntil: string
  readonly back: string

  /** The form, and what a payment says about its refunds. */
  readonly refund: string
  readonly refundOf: string
  readonly received: string
  readonly refunded: string
  readonly left: string
  readonly howMuch: string
  readonly howMuchAbout: string
  readonly who: string
  readonly toPayer: string
  readonly toPayerAbout: string
  readonly toBuyer: string
  readonly toBuyerAbout: string
  readonly toAddress: string
  readonly toAddressAbout: string
  readonly address: string
  readonly way: string
  readonly ways: Readonly<Record<'signed' | 'sent', Said>>
  readonly why: string
  readonly whyAbout: string
  readonly create: string
  readonly touch: string
  readonly nothingLeft: string
  readonly notFinal: string
  readonly notFinalSoon: string
  readonly unproven: string
  readonly toWallets: string
  readonly notAllowed: string
  readonly ownersOnly: string
  readonly reversed: string
  readonly limit: string
  readonly notTheirs: string
  readonly refundsOf: string

  readonly problems: Readonly<Record<string, string>>

  /** On Team. */
  readonly limitTitle: string
  readonly limitAbout: string
  readonly limitLabel: string
  readonly limitSave: string
  readonly limitNone: string
  readonly limitIs: string
}

export type StepId =
  | 'requested'
  | 'claimed'
  | 'signed'
  | 'sent'
  | 'completed'
  | 'final'
  | 'awaitFinal'
  | 'reorged'
  | 'declared'
  | 'cancelAsked'
  | 'canceled'
  | 'failed'
