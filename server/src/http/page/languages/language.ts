import type { english } from './en.ts'

/**
 * Every text on the page. To add a language, add a file with the texts of en.ts and list it in choose.ts. The server fills
 * in the {names}, except {wallet} and {seconds}, which only the browser knows.
 */
export type Language = {
  /** BCP 47, for the page and for number formats. */
  readonly tag: string
  readonly direction: 'ltr' | 'rtl'
  /** The language's own name for itself. */
  readonly name: string
  readonly texts: Texts
}

type Texts = Readonly<(typeof english)['texts']>

/** Why an address that a buyer entered was not taken. */
export type AddressMistake = keyof Texts['addressRequest']['mistakes']

/** What the wallet is doing, or why it stopped. */
export type WalletState = keyof Texts['states']

/** The result of a form. */
export type Notice = keyof Texts['notices']
