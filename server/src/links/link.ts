import type { CreateInvoice, LinkKind, LinkStatus, Link as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { CheckoutId, LinkId, StoreId } from '../ids.ts'
import { sumInvoice } from './invoice.ts'

/**
 * An address that a store sends or prints. It can be paid until a time that the store sets, up to months later. A checkout
 * lives for a day at most, or an hour if its price needs a rate, so it is made only when somebody wants to pay
 * (checkouts/links/). All buyers of a `once` link share one checkout; each buyer of a `many` link gets one.
 */
export type Link = {
  readonly id: LinkId
  readonly storeId: StoreId
  readonly kind: LinkKind
  readonly title: string
  readonly description: string | null
  readonly price: LinkPrice
  readonly priceCurrency: string
  readonly invoice: CreateInvoice | null
  readonly metadata: Readonly<Record<string, string>> | null
  readonly until: Date
  /** Past `until`, by the database's clock. */
  readonly isOver: boolean
  readonly closedAt: Date | null
  /** When one of its checkouts was paid; null if none is. Only for `once` links. */
  readonly paidAt: Date | null
  /** For `once` links: the checkout that all buyers share. It is replaced only when it can no longer be paid. */
  readonly checkoutId: CheckoutId | null
  /** How many checkouts were made for it. */
  readonly made: number
  /** Increases with every change of what buyers see. */
  readonly revision: number
  readonly createdAt: Date
}

/** In the link's currency: one amount, or the limits between which the buyer chooses. */
export type LinkPrice = { readonly amount: string } | { readonly min: string; readonly max: string }

/** Mails and prints are kept for about a year. A store would forget a link without an end, and buyers could still pay it. */
export const untilDaysMax = 400
export const titleBytesMax = 200
/** A paragraph. */
export const descriptionBytesMax = 1_000

/** A link's status, from its facts. A paid link stays paid, whatever happens later. */
export function statusOf({
  paidAt,
  closedAt,
  isOver,
}: Pick<Link, 'paidAt' | 'closedAt' | 'isOver'>): LinkStatus {
  if (paidAt !== null) return 'PAID'
  if (closedAt !== null) return 'CLOSED'
  return isOver ? 'ENDED' : 'ACTIVE'
}

/** What the checkouts of a `once` link say about it. */
export type LinkFacts = { readonly hasCompleted: boolean; readonly hasProcessing: boolean }

/**
 * Whether a `once` link is paid. A payment whose block the chain dropped may return: until it is proven gone, its checkout
 * is PROCESSING, and the link stays paid.
 */
export function isPaid(wasPaid: boolean, { hasCompleted, hasProcessing }: LinkFacts): boolean {
  return hasCompleted || (wasPaid && hasProcessing)
}

/** Where a link is, below the payment pages. */
export function linkPathOf(id: string): string {
  return `l/${id}`
}

/** The address of a link. */
function urlOf({ config }: Context, id: string): string {
  return `${config.checkoutPageUrl}/${linkPathOf(id)}`
}

export function linkToWire(ctx: Context, link: Link): Wire {
  const { description, metadata, invoice, price } = link
  return {
    id: link.id,
    url: urlOf(ctx, link.id),
    kind: link.kind,
    status: statusOf(link),
    title: link.title,
    priceAmount: 'amount' in price ? price.amount : null,
    priceCurrency: link.priceCurrency,
    ...('min' in price && { minAmount: price.min, maxAmount: price.max }),
    until: link.until.toISOString(),
    revision: link.revision,
    checkoutId: link.checkoutId,
    createdAt: link.createdAt.toISOString(),
    ...(description !== null && { description }),
    ...(metadata !== null && { metadata }),
    ...(invoice !== null && { invoice: sumInvoice(invoice, link.priceCurrency) }),
  }
}
