import type { StoreId } from '../ids.ts'

/**
 * Mails are a convenience: every link is also shown to whoever made it, and every piece of news is also an event. A mail
 * is written as a row in the transaction of what it tells (write.ts), so there is none about what did not happen, and no
 * request waits for a mail server. `work` sends it (send.ts) and deletes the row: after a crash in between, the mail goes
 * out a second time with the same Message-ID. What cannot be sent in ten tries, over about four hours, is given up.
 */
export type Mail = {
  readonly to: string
  readonly subject: Subject
  /** Plain text. */
  readonly text: string
}

/**
 * All subjects that there are. None has a word that a store or a member chose: the operator's server would send a
 * phisher's headline to whatever address they enter.
 */
export type Subject =
  | 'Your invitation to a store'
  | 'Your link for a new passkey'
  | 'Your account was used from a new place'
  | `${'The members of your store changed' | 'The wallets of your store changed' | 'The operator decided about your store' | 'Payments to your store need a decision' | 'Webhooks of your store do not arrive'} (${StoreId})`

/**
 * What a mail is about: a link for whoever is to open it, what needs somebody, what changed about members, or about the
 * store itself and where it is paid. Each store has a share of each.
 */
export type MailKind = 'link' | 'alert' | 'member' | 'store'

/** A mail that waits. Its text is sealed. */
export type WaitingMail = {
  readonly id: string
  readonly about: string
  readonly keyId: string
  readonly sealed: string
  readonly tries: number
}

/** SQL: the columns of a waiting mail. */
export const waitingColumns = 'id, about, key_id as "keyId", sealed, tries'

/** What a sealed mail is bound to. */
export function placeOf(id: string): string {
  return `mails ${id}`
}
