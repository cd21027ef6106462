/**
 * A buyer's receipt: a row that says who was paid how much, with a number. It is made when a payment completes its
 * checkout, and it is void once the chain has taken that payment back for good, or another payment completes the checkout
 * in its place. It is never deleted.
 *
 * The signed receipts of x402 (`payments/receipts.ts`) are another thing: statements for programs, without a number.
 */
export type BuyerReceipt = {
  readonly number: ReceiptNumber
  readonly checkoutId: string
  readonly paymentId: string
  /** The seller as it was when the receipt was made. */
  readonly seller: ReceiptSeller
  readonly priceAmount: string
  readonly priceCurrency: string
  /** CAIP-2. */
  readonly network: string
  readonly asset: string
  /** Units of the asset. */
  readonly amount: string
  /** The day in the store's time zone, as 2026-11-19. */
  readonly issuedOn: string
  readonly voidAt: Date | null
}

/** 1, 2, 3 … without gaps per store, series and year. */
export type ReceiptNumber = {
  /** Empty until the database is restored. Then the time of the last `reconcile`, in base 36. */
  readonly series: string
  /** In the store's time zone. */
  readonly year: number
  readonly number: number
}

type ReceiptSeller = {
  readonly storeName: string
  readonly legalName: string | null
  readonly legalAddress: string | null
  readonly taxId: string | null
}

/** Where a checkout's receipt is, below the path of the payment pages. */
export function receiptPathOf(pagePath: string, checkoutId: string): string {
  return `${pagePath}/${checkoutId}/receipt`
}

/** So that numbers in lists sort as text. */
const digitsMin = 6

/** As 2026-000017, or 2026-TPDKQ4-000017 in a later series. */
export function numberText({ series, year, number }: ReceiptNumber): string {
  return [year, ...(series === '' ? [] : [series]), String(number).padStart(digitsMin, '0')].join('-')
}

const form = /^(20\d\d)-(?:([0-9A-Z]{6,8})-)?(\d{6,9})$/

/** Null if the text is not a receipt's number. */
export function parseNumber(text: string): ReceiptNumber | null {
  const [, year, series = '', number] = form.exec(text.toUpperCase()) ?? []
  if (year === undefined || number === undefined) return null
  return { series, year: Number.parseInt(year, 10), number: Number.parseInt(number, 10) }
}
