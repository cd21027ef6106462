/** `once`: one payment ends it, and all who open it share one checkout. `many`: each buyer gets a checkout. */
export type LinkKind = 'once' | 'many'

/** PAID: only a `once` link. CLOSED: by the store. ENDED: its `until` has passed. */
export type LinkStatus = 'ACTIVE' | 'PAID' | 'CLOSED' | 'ENDED'

/** A URL at which buyers can pay until a given time. A buyer who wants to pay gets a checkout. */
export type Link = {
  id: string
  /** What to send to buyers. x402 clients pay at the same URL. */
  url: string
  kind: LinkKind
  status: LinkStatus
  /** What is paid for. The buyer sees it. */
  title: string
  /** Null if the buyer chooses the amount. */
  priceAmount: string | null
  /** ISO 4217 code. */
  priceCurrency: string
  /** The range in which the buyer chooses the amount. Absent if the price is fixed. */
  minAmount?: string
  maxAmount?: string
  /** ISO 8601, UTC. */
  until: string
  /** Increases with every change of what buyers see. */
  revision: number
  /** The last checkout of a `once` link, which has its payment. Null if no buyer has wanted to pay yet. */
  checkoutId: string | null
  createdAt: string
  /** Absent if none was given. */
  description?: string
  metadata?: Record<string, string>
  /** Absent unless it is an invoice. */
  invoice?: Invoice
}

/** One position of an invoice. All numbers are decimals as text. */
export type InvoiceLine = {
  text: string
  /** Above zero, with at most 6 decimals. */
  quantity: string
  /** The price of one, with at most 6 decimals. */
  unitAmount: string
  /** In percent, from "0" to "100", with at most 3 decimals. */
  taxRate: string
}

type InvoiceFields = {
  /** Unique among the store's invoices. */
  number: string
  /** The day it is due, such as "2026-12-31". It can be paid until the link's `until`. */
  dueDate?: string
  lines: InvoiceLine[]
  /** Whether the unit amounts include tax. */
  taxIncluded: boolean
  /** In the buyer's own words. */
  buyerName?: string
  buyerAddress?: string
}

/** The invoice of a link. It never changes. */
export type Invoice = InvoiceFields & {
  /** One for each tax rate, lowest first. Each figure is rounded once, half up, to the currency's smallest unit. */
  taxes: { taxRate: string; net: string; tax: string; gross: string }[]
  net: string
  tax: string
  /** What is paid: the link's `priceAmount`. */
  gross: string
}

export type CreateInvoice = InvoiceFields

export type CreateLink = {
  /** Default `once`. An invoice is paid once. */
  kind?: LinkKind
  /** What is paid for, in up to 200 bytes of plain text. */
  title: string
  /** More about it, in up to 2,000 bytes. */
  description?: string | null
  /** As in a checkout. Leave it out where the buyer chooses, and for an invoice. */
  priceAmount?: string
  minAmount?: string
  maxAmount?: string
  priceCurrency: string
  /** Until when it can be paid: ISO 8601, at most 400 days from now. */
  until: string
  /** The store's own values, which are copied to each of the link's checkouts. The buyer never sees them. */
  metadata?: Record<string, string>
  invoice?: CreateInvoice
}

/** What to change. For an invoice: only `until`, `metadata` and `status`. */
export type UpdateLink = {
  title?: string
  description?: string | null
  /** Either this or both limits. Checkouts of the link whose payment has not begun are canceled. */
  priceAmount?: string
  minAmount?: string
  maxAmount?: string
  until?: string
  metadata?: Record<string, string>
  /** Closes the link for good. Its checkouts whose payment has not begun are canceled. */
  status?: 'CLOSED'
}
