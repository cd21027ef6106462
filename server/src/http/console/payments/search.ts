import { parseNumber, type ReceiptNumber } from '../../../checkouts/buyer-receipts/receipt.ts'
import { orderIdBytesMax } from '../../../checkouts/checkout.ts'
import { isId } from '../../../ids.ts'
import { parseDecimal, unitsToText } from '../../../money.ts'
import { networks } from '../../../networks.ts'
import { parseCurrency } from '../../../rates/iso4217.ts'
import type { Locale } from '../formats.ts'
import { dateIn } from './dates.ts'

/**
 * The ways to read what a member types or pastes, the most exact first. The list shows the first reading that finds
 * something, says which one that is, and links to the others.
 */
export type Search = { readonly text: string } & Meaning

type Meaning =
  | { readonly kind: 'checkout' | 'payment' | 'refund' | 'link'; readonly id: string }
  | { readonly kind: 'receipt'; readonly number: ReceiptNumber }
  | { readonly kind: 'transaction' | 'address'; readonly value: string }
  /** An address or a hash as lists show it: its first and last characters. */
  | { readonly kind: 'short'; readonly starts: string; readonly ends: string }
  /** Days in the store's zone; both are included. */
  | { readonly kind: 'days'; readonly from: string; readonly to: string }
  | { readonly kind: 'order'; readonly orders: readonly string[] }
  /** A price in this currency, or in any. */
  | {
      readonly kind: 'price'
      readonly currency: string | null
      readonly least: string
      readonly most: string
    }
  | { readonly kind: 'received'; readonly least: string; readonly most: string }
  | { readonly kind: 'words'; readonly words: readonly string[] }

export function readSearch(typed: string, locale: Locale, now: Date): Search[] {
  // PostgreSQL stores no zero bytes, and nobody types control characters.
  const text = typed.replaceAll(/\p{Cc}/gu, ' ').trim()
  if (text === '') return []
  const exact = namedIn(text)
  if (exact) return [exact, ordersIn(text)].flatMap((each) => (each ? [{ ...each, text }] : []))
  const dates = dateIn(text, locale, now)
  return [
    dates && { kind: 'days' as const, ...dates },
    ordersIn(text),
    ...amountsIn(text, locale),
    wordsIn(text),
  ]
    .filter((each) => each !== null)
    .map((each) => ({ ...each, text }))
}

/** Base58 as Solana writes it: 32 bytes make up to 44 characters, 64 bytes up to 88. */
const base58 = '[1-9A-HJ-NP-Za-km-z]'
const ids = { checkout: 'ch', payment: 'pay', refund: 'rf', link: 'lnk' } as const

/** Recognizes text that can mean only one thing: alone, in a sentence, or in the address of an explorer's page or ours. */
function namedIn(text: string): Meaning | null {
  for (const each of text.split(/[\s/?#&=<>()"]+/).toReversed()) {
    // Drops the mark that ends a sentence.
    const part = each.replace(/[.,;:!]+$/, '')
    for (const kind of Object.keys(ids) as (keyof typeof ids)[])
      if (isId(ids[kind], part)) return { kind, id: part }
    const number = parseNumber(part)
    if (number) return { kind: 'receipt', number }
    const hex = /^(?:0x)?([0-9a-f]{64}|[0-9a-f]{40})$/i.exec(part)?.[1]?.toLowerCase()
    if (hex) return { kind: hex.length === 64 ? 'transaction' : 'address', value: `0x${hex}` }
    if (new RegExp(`^${base58}{85,88}$`).test(part)) return { kind: 'transaction', value: part }
    if (new RegExp(`^${base58}{32,44}$`).test(part)) return { kind: 'address', value: part }
    const short = /^([0-9A-Za-z]{4,12})(?:…|\.{2,3})([0-9A-Za-z]{4,12})$/.exec(part)
    if (short) {
      const [, starts = '', ends = ''] = short
      const lower = (side: string) => (starts.startsWith('0x') ? side.toLowerCase() : side)
      return { kind: 'short', starts: lower(starts), ends: lower(ends) }
    }
  }
  return null
}

/** "Order 1273", "#1273" and "1273" mean the same order, however the store writes it. */
function ordersIn(text: string): Meaning | null {
  const form = /^(?:\p{L}+[\s:.]+)?(?:(?:no|nº|n°|num|number|número)[\s.]*)?#?\s*([^\s#]*\d[^\s#]*)$/iu
  const [, number = text] = form.exec(text) ?? []
  const forms = [text, number, `#${number}`, `Order ${number}`, `order ${number}`, `order-${number}`]
  const orders = [...new Set(forms)].filter((each) => Buffer.byteLength(each) <= orderIdBytesMax)
  return orders.length > 0 ? { kind: 'order', orders } : null
}

const symbols = new Map([
  ['€', 'EUR'],
  ['£', 'GBP'],
  ['US$', 'USD'],
])
const tokens = new Set(networks.flatMap(({ assets }) => assets.map(({ symbol }) => symbol)))

/** An amount, give or take 1 %: people write rounded ones. A "$" is not only the dollar of the United States. */
function amountsIn(text: string, locale: Locale): Meaning[] {
  const form = /^([^\d\s.,]{0,4})\s*(\d[\d.,’'\s]*?)\s*([^\d\s.,]{0,5})$/u
  const [, before = '', digits = '', after = ''] = form.exec(text) ?? []
  const amount = digits && decimalOf(digits, locale)
  const unit = before || after
  if (!amount || (before && after)) return []
  const token = [...tokens].find((each) => each.toLowerCase() === unit.toLowerCase())
  if (token) return [{ kind: 'received', ...around(amount) }]
  const currency = symbols.get(unit) ?? parseCurrency(unit.toUpperCase())
  if (currency === null && unit !== '' && !/^\p{L}{0,2}\p{Sc}$/u.test(unit)) return []
  const price = { kind: 'price', currency, ...around(amount) } as const
  return unit === '' ? [price, { kind: 'received', ...around(amount) }] : [price]
}

/** The plain decimal that the digits mean. A lone separator before three digits groups where the locale's does. */
function decimalOf(digits: string, { tag }: Locale): string | null {
  const plain = digits.replaceAll(/[’'\s]/g, '')
  const marks = plain.match(/[.,]/g) ?? []
  const last = marks.at(-1)
  const groups = new Intl.NumberFormat(tag)
    .formatToParts(1_234_567)
    .find(({ type }) => type === 'group')?.value
  const isGrouped =
    last !== undefined &&
    marks.every((each) => each === last) &&
    (marks.length > 1 || (last === groups && /[.,]\d{3}$/.test(plain)))
  const at = last === undefined || isGrouped ? plain.length : plain.lastIndexOf(last)
  const whole = plain.slice(0, at).replaceAll(/[.,]/g, '')
  const fraction = plain.slice(at + 1)
  const amount = fraction === '' ? whole : `${whole}.${fraction}`
  return /^\d{1,15}(\.\d{1,6})?$/.test(amount) && /[1-9]/.test(amount) ? amount : null
}

/** To six decimals, as the filters of lists take them. */
const decimalsMax = 6

function around(amount: string): { readonly least: string; readonly most: string } {
  const { coefficient, scale } = parseDecimal(amount)
  const units = coefficient * 10n ** BigInt(decimalsMax - scale)
  const least = (units * 99n) / 100n
  const most = (units * 101n + 99n) / 100n
  return { least: unitsToText(least, decimalsMax), most: unitsToText(most, decimalsMax) }
}

/** More words narrow a search no further. */
const wordsMax = 6

function wordsIn(text: string): Meaning | null {
  const words = text.split(/\s+/).slice(0, wordsMax)
  return words.some((word) => /[\p{L}\p{N}]/u.test(word)) ? { kind: 'words', words } : null
}
