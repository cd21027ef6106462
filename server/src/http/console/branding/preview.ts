import type { CheckoutStatus, PaymentRequirements } from '@farthing/sdk'
import type { Checkout, Option } from '../../../checkouts/checkout.ts'
import type { CheckoutView } from '../../../checkouts/view.ts'
import type { Context } from '../../../context.ts'
import { firstIdAt } from '../../../ids.ts'
import { networksFor, type Store } from '../../../stores/store.ts'
import { openAssets } from '../../page/assets.ts'
import type { Way } from '../../page/choice.ts'
import type { Document } from '../../page/document.ts'
import type { Language } from '../../page/languages/language.ts'
import { renderPage } from '../../page/render.ts'

/** What buyers may see, in this order. */
export const previewStates = [
  'open',
  'phone',
  'send',
  'processing',
  'paid',
  'short',
  'expired',
  'canceled',
] as const
export type PreviewState = (typeof previewStates)[number]

const hourMs = 3_600_000
const statuses: Readonly<Record<PreviewState, CheckoutStatus>> = {
  ...({ open: 'OPEN', phone: 'OPEN', send: 'OPEN', short: 'OPEN' } as const),
  ...({ processing: 'PROCESSING', paid: 'COMPLETED', expired: 'EXPIRED', canceled: 'CANCELED' } as const),
}
const ways: Partial<Readonly<Record<PreviewState, Way>>> = { open: 'wallet', phone: 'phone', send: 'send' }
/** Not a real account: the preview asks for no money. */
const examplePayer = '0x1111111111111111111111111111111111111111'
const exampleHash = `0x${'ab'.repeat(32)}`

/** The payment page of the store for an example, in one state, by the functions that make the real one. */
export function renderPreview(
  ctx: Context,
  store: Store,
  state: PreviewState,
  language: Language,
  now: Date,
): Document {
  const [network] = networksFor(ctx, store.mode)
  const [asset] = network?.assets ?? []
  const decimals = asset?.decimals ?? 6
  const option: Option = {
    network: network?.caip2 ?? '',
    asset: asset?.address ?? '',
    amount: (48n * 10n ** BigInt(decimals)).toString(),
    payTo: examplePayer,
  }
  const checkout = exampleOf(ctx, store, state, option, now)
  const paid = { ...option, transaction: exampleHash, payer: examplePayer, finality: 'finalized' } as const
  const view: CheckoutView = {
    checkout,
    isPastExpiry: false,
    isRestoring: false,
    store: { ...store, hasLogo: isImage(store.logoUrl) },
    payment: state === 'paid' ? { ...paid, paidAt: now } : null,
    refunds: [],
    pending: state === 'processing' ? { network: option.network, transaction: exampleHash } : null,
    transfers: state === 'send' ? [{ ...option, reference: null, expiresAt: checkout.expiresAt }] : [],
    announced: [],
    notes: state === 'short' ? [shortOf(option)] : [],
  }
  const accepts: PaymentRequirements[] = [
    { ...option, scheme: 'exact', maxTimeoutSeconds: 60, extra: { name: '', version: '' } },
  ]
  const place = {
    url: ctx.config.checkoutPageUrl,
    path: '',
    assets: openAssets(),
    cell: ctx.config.cell,
    still: { logo: isImage(store.logoUrl) ? store.logoUrl : null },
  }
  const asked = {
    language,
    isLanguageNamed: false,
    notice: null,
    way: ways[state] ?? null,
    place: 0,
    isUnsent: false,
  }
  return renderPage(ctx, place, { view, accepts, asked, now })
}

function exampleOf(ctx: Context, store: Store, state: PreviewState, option: Option, now: Date): Checkout {
  return {
    id: firstIdAt('ch', ctx.config.cell, now),
    storeId: store.id,
    linkId: null,
    orderId: '2041',
    priceAmount: '48',
    priceCurrency: 'USD',
    successRedirectUrl: null,
    cancelUrl: null,
    description: null,
    metadata: null,
    rate: null,
    options: [option],
    finality: 'included',
    status: statuses[state],
    version: 1,
    createdAt: now,
    expiresAt: new Date(now.getTime() + hourMs),
  }
}

function shortOf(option: Option) {
  const amount = ((BigInt(option.amount) * 5n) / 6n).toString()
  return {
    disposition: 'underpaid',
    ...option,
    amount,
    due: option.amount,
    transaction: exampleHash,
    refunds: [],
    isSettled: false,
  } as const
}

function isImage(logoUrl: string | null): boolean {
  return logoUrl?.startsWith('data:') ?? false
}
