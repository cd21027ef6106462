import type { Option } from '../../checkouts/checkout.ts'
import { type CheckoutView, isPayable, type ReservedTransfer } from '../../checkouts/view.ts'
import type { Language, Notice } from './languages/language.ts'

/**
 * A buyer chooses once how to pay and, if there are several networks, on which. The page's URL holds the choice, so
 * that it works without the script and survives a reload. Each way shows one amount and one address.
 */
export const ways = ['wallet', 'phone', 'send'] as const
export type Way = (typeof ways)[number]

/** The choices in the page's URL. */
export type Asked = {
  readonly language: Language
  /** Whether the URL names the language, so that links and forms keep it. */
  readonly isLanguageNamed: boolean
  readonly notice: Notice | null
  readonly way: Way | null
  /** The index of one of the checkout's options. */
  readonly place: number | null
  /** The buyer named a transaction by mistake and has not sent anything. */
  readonly isUnsent: boolean
}

export type Choice = {
  readonly way: Way
  readonly place: number
  /** One of the ways to pay that the checkout offers. */
  readonly option: Option
  /** What to send, once it is reserved for this buyer. Only if that is the chosen way. */
  readonly transfer: ReservedTransfer | null
}

/** A reserved transfer counts as the chosen way, unless the URL names another. */
export function chooseWay({ checkout, transfers }: CheckoutView, asked: Asked): Choice | null {
  const way = asked.way ?? (asked.notice !== null || transfers.length > 0 ? 'send' : 'wallet')
  const place = asked.place ?? 0
  const option = checkout.options[place] ?? checkout.options[0]
  if (!option) return null
  return {
    way,
    place: checkout.options.indexOf(option),
    option,
    transfer: way === 'send' ? findTransfer(checkout.options.length > 1, transfers, option, asked) : null,
  }
}

/**
 * The transfer reserved on the chosen network. If there are several networks and the URL names neither a network nor a
 * way, the reserved transfer, if there is only one.
 */
function findTransfer(
  isMany: boolean,
  transfers: readonly ReservedTransfer[],
  option: Option,
  asked: Asked,
): ReservedTransfer | null {
  const [first = null, ...others] = transfers
  if (isMany && asked.place === null) return asked.way === null && others.length === 0 ? first : null
  return (
    transfers.find(({ network, asset }) => network === option.network && isSame(asset, option.asset)) ?? null
  )
}

/**
 * The stage that the page shows. Once money has arrived, or the buyer has named a transaction, nothing on the page may
 * invite a second payment until all of that money was returned or the store has dismissed it.
 */
export function stageOf(view: CheckoutView, asked: Asked): 'choose' | 'announced' | 'arrived' | 'over' {
  if (!isPayable(view)) return 'over'
  if (view.notes.some(({ isSettled }) => !isSettled)) return 'arrived'
  return view.announced.length > 0 && !asked.isUnsent ? 'announced' : 'choose'
}

/** The query of a link to this page with another choice. */
export function queryOf(
  asked: Asked,
  change: Partial<Pick<Asked, 'way' | 'place'>> & { readonly lang?: string; readonly isUnsent?: true } = {},
): string {
  const { way, place, isUnsent, lang } = {
    lang: asked.isLanguageNamed ? asked.language.tag : undefined,
    ...asked,
    ...change,
  }
  const query = new URLSearchParams()
  if (way) query.set('way', way)
  if (place !== null) query.set('option', String(place))
  if (isUnsent) query.set('unsent', '1')
  if (lang) query.set('lang', lang)
  return `?${query}`
}

function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}
