import type { StoreId } from '../ids.ts'

/**
 * Mails are a convenience: every link is also shown to the member who made it, and all news is also an event. A mail is
 * a row, written in the transaction of the event that it reports (write.ts), so no mail reports an event that did not
 * happen, and no request waits for a mail server. `work` sends it (send.ts) and deletes the row. After a crash in
 * between, the mail goes out a second time with the same Message-ID. A mail that cannot be sent in ten tries, over
 * about four hours, is given up.
 */
export type Mail = {
  readonly to: string
  readonly subject: MailSubject
  /** Plain text. */
  readonly text: string
  /** Where a POST stops mails of this kind without a sign-in (RFC 8058). */
  readonly stopUrl?: string
}

/**
 * All subjects. None contains a word that a store or a member chose: the operator's server would otherwise send a
 * phisher's headline to any address they enter.
 */
export type MailSubject =
  | 'Your invitation to a store'
  | 'Your link for a new passkey'
  | 'Your account was used from a new place'
  | 'Confirm your address'
  | (typeof receiptSubjects)[keyof typeof receiptSubjects]
  | `${'The members of your store changed' | 'The wallets of your store changed' | 'The operator decided about your store' | 'Payments to your store need a decision' | 'Webhooks of your store do not arrive' | 'A payment to your store' | 'Payments to your store'} (${StoreId})`

/** By the language of the payment page. */
export const receiptSubjects = {
  en: 'Your receipt',
  de: 'Ihr Beleg',
  es: 'Su recibo',
  fr: 'Votre reçu',
  ar: 'إيصالك',
  zh: '您的收据',
} as const

/**
 * The kinds of mail: a link for the person who will open it, an alert, payments, a change of members, a recovery code that
 * was used or an address that was changed, a change of the store or its wallets, and a receipt for a buyer. Each kind has
 * its own share per store.
 */
export type MailKind = 'link' | 'alert' | 'payment' | 'member' | 'code' | 'store' | 'receipt'

/** A waiting mail. Its text is sealed. */
export type WaitingMail = {
  readonly id: string
  readonly about: string
  readonly keyId: string
  readonly sealed: string
  readonly tries: number
}

/** SQL: the columns of a waiting mail. */
export const waitingColumns = 'id, about, key_id as "keyId", sealed, tries'

/** The place to which a sealed mail is bound. */
export function placeOf(id: string): string {
  return `mails ${id}`
}
