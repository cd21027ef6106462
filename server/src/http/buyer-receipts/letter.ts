import assert from 'node:assert/strict'
import { type BuyerReceipt, numberText } from '../../checkouts/buyer-receipts/receipt.ts'
import { toPlain } from '../../checkouts/checkout.ts'
import { type Mail, receiptSubjects } from '../../mails/mail.ts'
import { unitsToText } from '../../money.ts'
import type { Language } from '../page/languages/language.ts'
import { describeOption, formatPrice } from '../page/parts/summary.ts'
import { dayText } from './render.ts'

type Told = {
  readonly receipt: BuyerReceipt
  readonly orderId: string
  readonly transaction: string
  /** Of the receipt. */
  readonly url: string
}

/**
 * A receipt as a mail. Anybody can have it sent to anybody, so of the store's words it has only the name and the order,
 * each one short line in which a mail program finds no address to link to.
 */
export function writeLetter(
  { tag, texts }: Language,
  { receipt, orderId, transaction, url }: Told,
): Pick<Mail, 'subject' | 'text'> {
  const { number, date, store, open, ignore } = texts.buyerReceipt
  const { symbol, decimals, name } = describeOption(receipt)
  const facts = [
    [number, numberText(receipt.number)],
    [date, dayText(receipt.issuedOn, tag)],
    [store, unlinked(receipt.seller.storeName)],
    [texts.order, unlinked(orderId)],
    [texts.price, formatPrice(receipt.priceAmount, receipt.priceCurrency, tag)],
    [texts.amountPaid, `${unitsToText(BigInt(receipt.amount), decimals)} ${symbol}`],
    [texts.network, name],
    [texts.transaction, transaction],
  ]
  const text = `${facts.map((fact) => fact.join(': ')).join('\n')}\n\n${open}\n${url}\n\n${ignore}\n`
  assert(isKnown(tag), `${tag} has no subject for receipts`)
  return { subject: receiptSubjects[tag], text }
}

function isKnown(tag: string): tag is keyof typeof receiptSubjects {
  return Object.hasOwn(receiptSubjects, tag)
}

/** Word joiners inside what looks like an address: invisible, and no mail program makes a link of it. */
function unlinked(text: string): string {
  return toPlain(text).replace(/[.:/@](?=\S)/g, '$&\u2060')
}
