/**
 * Every text on the page. To add a language, add a file of this shape and list it in choose.ts. The server fills in the
 * {names}, except {wallet} and {seconds}, which only the browser knows.
 */
export type Language = {
  /** BCP 47, for the page and for number formats. */
  readonly tag: string
  readonly direction: 'ltr' | 'rtl'
  /** The language's own name for itself. */
  readonly name: string
  readonly texts: Texts
}

type Texts = {
  readonly title: string
  readonly payStore: string
  readonly amountDue: string
  readonly amountExpected: string
  readonly amountPaid: string
  readonly amount: string
  readonly price: string
  readonly rate: string
  readonly onNetwork: string
  readonly order: string
  readonly payTo: string
  readonly paidTo: string
  readonly network: string
  readonly validUntil: string
  readonly direct: string
  readonly testMode: string
  readonly help: string
  readonly languages: string

  readonly chooseWay: string
  readonly ways: Readonly<Record<'wallet' | 'phone' | 'app' | 'send', string>>

  readonly walletTitle: string
  readonly walletAbout: string
  readonly payWith: string
  readonly unnamedWallet: string
  readonly noWallet: string
  /** Instead of wallets, if the network takes no signed payments now. */
  readonly unsignable: string
  readonly usePhone: string
  readonly needsScript: string

  readonly phoneTitle: string
  readonly phoneAbout: string
  readonly appsTitle: string
  readonly appsAbout: string
  readonly qrPage: string
  readonly qrAddress: string
  readonly qrPayment: string

  readonly sendTitle: string
  readonly sendAbout: string
  readonly sendButton: string
  readonly sendNetwork: string
  readonly sendOther: string
  readonly sendDo: string
  readonly sendExact: string
  readonly sendLinked: string
  readonly sendLink: string
  readonly sendAmount: string
  readonly sendAddress: string
  readonly sendWarning: string
  readonly sendFee: string
  readonly sendCheck: string
  readonly hashTitle: string
  readonly hashAbout: string
  readonly hashLabel: string
  readonly hashButton: string
  readonly copy: string
  readonly copied: string

  readonly states: Readonly<Record<State, Message>>
  readonly startOver: string
  readonly notices: Readonly<Record<Notice, string>>
  readonly announced: Message
  readonly notSent: string
  readonly arrived: Message
  readonly noteTitle: string
  readonly notes: Readonly<Record<'late' | 'underpaid' | 'overpaid' | 'unmatched', string>>

  readonly processing: Message
  readonly completed: Message
  readonly expired: Message
  readonly canceled: Message
  readonly notFound: Message
  readonly unavailable: Message

  readonly receipt: string
  readonly date: string
  readonly from: string
  readonly transaction: string
  readonly checkout: string
  readonly print: string
  readonly returnTo: string
  /** With a unit that is the same for every number. */
  readonly leaving: string
  readonly stay: string
  readonly checkAgain: string
}

type Message = { readonly title: string; readonly text: string }

/** What the wallet is doing, or why it stopped. */
export type State =
  | 'connecting'
  | 'switching'
  | 'signing'
  | 'settling'
  | 'rejected'
  | 'pending'
  | 'funds'
  | 'smart'
  | 'chain'
  | 'tab'
  | 'changed'
  | 'offline'
  | 'unavailable'
  | 'failed'

/** The result of a form. */
export type Notice =
  | 'crowded'
  | 'in_progress'
  | 'closed'
  | 'unavailable'
  | 'looking'
  | 'not_found'
  | 'invalid_hash'
  | 'unmatched'
