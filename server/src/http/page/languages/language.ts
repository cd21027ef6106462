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
  /** What is paid for, in the store's words. */
  readonly description: string
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
  readonly refund: string
  readonly refunds: {
    /** Instead of `completed`, once all of it is back. */
    readonly whole: Message
    readonly part: string
    /** Instead of a note that says that the store will decide: it has. */
    readonly arrived: string
    readonly sent: string
    /** Of what the store sends by itself, until its transaction is found. */
    readonly named: string
    readonly completed: string
    readonly declared: string
  }

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

  readonly addressRequest: AddressRequestTexts
}

/** The page behind the link with which a store asks a buyer where a refund should go. */
type AddressRequestTexts = {
  readonly title: string
  readonly amount: string
  readonly before: string
  readonly help: string
  readonly ask: Message
  readonly label: string
  readonly hint: string
  readonly once: string
  readonly button: string
  readonly mistakes: Readonly<Record<AddressMistake, string>>
  readonly named: Message
  readonly code: string
  readonly codeHint: string
  readonly address: string
  readonly wrong: string
  readonly confirmed: Message
  readonly returned: Message
  readonly used: Message
  readonly expired: Message
  readonly canceled: Message
  readonly unknown: Message
  readonly elsewhere: Message
}

/** Why an address that a buyer entered was not taken. */
export type AddressMistake = 'empty' | 'malformed' | 'refused' | 'unavailable'

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
  | 'undeployed'
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
