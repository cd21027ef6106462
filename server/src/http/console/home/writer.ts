import type { Locale } from '../formats.ts'
import type { Texts } from '../texts/choose.ts'

/** What every part of the screen needs to write a sentence. */
export type Writer = {
  readonly texts: Texts['home']
  readonly locale: Locale
  /** An amount in the store's own currency. */
  money(millionths: bigint): string
  /** Days such as "1–16 October". */
  days(from: string, to: string): string
}
