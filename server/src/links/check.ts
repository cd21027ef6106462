import type { CreateLink, UpdateLink } from '@farthing/sdk'
import { parseDecimal, parsePrice } from '../money.ts'
import { invalid, type Mistake } from '../problems.ts'
import { parseCurrency } from '../rates/iso4217.ts'
import { checkMetadata, checkText } from '../stores/check-text.ts'
import { checkInvoice, sumInvoice } from './invoice.ts'
import { descriptionBytesMax, type LinkPrice, titleBytesMax, untilDaysMax } from './link.ts'

const dayMs = 86_400_000

/** Refuses a link with mistakes, all at once. Returns its currency in upper case. */
export function checkNewLink(input: CreateLink, now: Date): string {
  const { invoice, kind } = input
  const currency = parseCurrency(input.priceCurrency)
  const mistakes = [
    ...checkFields(input, now),
    ...(currency
      ? []
      : [{ pointer: '/priceCurrency', code: 'currency', detail: 'Must be an ISO 4217 code, such as USD.' }]),
    ...(invoice ? checkWithInvoice(input) : checkPrice(input)),
    ...(invoice && kind === 'many'
      ? [{ pointer: '/kind', code: 'kind', detail: 'An invoice is paid once.' }]
      : []),
    ...(invoice && currency ? checkInvoice(invoice, currency) : []),
  ]
  if (!currency || mistakes.length > 0) throw invalid(...mistakes)
  return currency
}

/** Lists the mistakes in the fields that a link may have at any time. */
export function checkFields(input: UpdateLink, now: Date): Mistake[] {
  const { title, description, until, metadata } = input
  return [
    ...(title === undefined ? [] : checkText('/title', title, titleBytesMax)),
    ...(description === undefined || description === null
      ? []
      : checkText('/description', description, descriptionBytesMax)),
    ...(until === undefined ? [] : checkUntil(until, now)),
    ...(metadata === undefined ? [] : checkMetadata('/metadata', metadata)),
  ]
}

function checkUntil(text: string, now: Date): Mistake[] {
  const until = Date.parse(text)
  if (until > now.getTime() && until <= now.getTime() + untilDaysMax * dayMs) return []
  return [
    {
      pointer: '/until',
      code: 'until',
      detail: `Must be an ISO 8601 time from now on, and at most ${untilDaysMax} days from now.`,
    },
  ]
}

/** Exactly one of a price, two limits, and an invoice. */
export function checkPrice({ priceAmount, minAmount, maxAmount }: UpdateLink): Mistake[] {
  if (priceAmount !== undefined) {
    const others = { minAmount, maxAmount }
    return [
      ...checkAmount('/priceAmount', priceAmount),
      ...refuseAll(others, 'Leave it out where there is a priceAmount.'),
    ]
  }
  if (minAmount === undefined || maxAmount === undefined)
    return [
      {
        pointer: '/priceAmount',
        code: 'required',
        detail: 'Required, unless the buyer chooses an amount between minAmount and maxAmount.',
      },
    ]
  const mistakes = [...checkAmount('/minAmount', minAmount), ...checkAmount('/maxAmount', maxAmount)]
  if (mistakes.length > 0 || isLess(minAmount, maxAmount)) return mistakes
  return [{ pointer: '/maxAmount', code: 'amount', detail: 'Must be more than minAmount.' }]
}

function checkWithInvoice({ priceAmount, minAmount, maxAmount }: CreateLink): Mistake[] {
  const why = 'Leave it out: the lines of an invoice say what is paid.'
  return refuseAll({ priceAmount, minAmount, maxAmount }, why)
}

function refuseAll(given: Readonly<Record<string, string | undefined>>, detail: string): Mistake[] {
  return Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [{ pointer: `/${name}`, code: 'unknown', detail }],
  )
}

function checkAmount(pointer: string, text: string): Mistake[] {
  if (parsePrice(text)) return []
  const detail =
    'Must be a decimal above zero, such as "12.50", with at most 15 digits before the point and 6 after it.'
  return [{ pointer, code: 'amount', detail }]
}

/** No price has more decimals. */
const decimalsMax = 6

/** Whether a buyer may choose this amount. */
export function isWithin(
  amount: string,
  { min, max }: { readonly min: string; readonly max: string },
): boolean {
  return parsePrice(amount) !== null && !isLess(amount, min) && !isLess(max, amount)
}

/** Whether one price is less than another. Both were checked. */
function isLess(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => {
    const { coefficient, scale } = parseDecimal(text)
    return coefficient * 10n ** BigInt(decimalsMax - scale)
  })
  return (a ?? 0n) < (b ?? 0n)
}

/** The price of a link whose fields were checked. */
export function readPrice(
  {
    priceAmount,
    minAmount,
    maxAmount,
    invoice,
  }: Pick<CreateLink, 'priceAmount' | 'minAmount' | 'maxAmount' | 'invoice'>,
  currency: string,
): LinkPrice {
  if (invoice) return { amount: sumInvoice(invoice, currency).gross }
  return priceAmount === undefined ? { min: minAmount ?? '', max: maxAmount ?? '' } : { amount: priceAmount }
}
