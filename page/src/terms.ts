/** The data that the server embeds in the page for this script. */
export type Terms = {
  readonly id: string
  /** If the live feed sends a different digest, there is something new to show. */
  readonly digest: string
  readonly status: 'OPEN' | 'PROCESSING' | 'COMPLETED' | 'EXPIRED' | 'CANCELED'
  /** Whether a wallet may be asked. Not if money has arrived or the buyer has named a transaction. */
  readonly isPayable: boolean
  /** Whether more may happen after it is over: a refund is on its way, or a transaction is being looked for. */
  readonly isAwaiting: boolean
  /** The `place` of the option that the page shows. */
  readonly chosen: number | null
  /** The server's time in milliseconds when it rendered the page: the buyer's clock may be wrong. */
  readonly now: number
  readonly options: readonly Option[]
}

/** One way to pay. */
export type Option = EvmOption | SolanaOption
export type Family = Option['family']

type AnyOption<Extra> = {
  /** As x402 defines it, and as it is sent back. */
  readonly accepted: {
    readonly network: string
    readonly asset: string
    readonly amount: string
    readonly payTo: string
    readonly maxTimeoutSeconds: number
    readonly extra: Extra
  }
  /** Its index among the ways to pay that the page shows. */
  readonly place: number
  readonly decimals: number
  /** The network's name, as the page shows it. */
  readonly name: string
}

export type EvmOption = AnyOption<{ readonly name: string; readonly version: string }> & {
  readonly family: 'EVM'
  readonly chainId: number
  /** As EIP-3085 requires it, for wallets that do not know the chain. */
  readonly chain: { readonly chainId: string }
}

export type SolanaOption = AnyOption<object> & {
  readonly family: 'SOLANA'
  /** As the Wallet Standard names it. */
  readonly chain: string
}

let read: { readonly terms: Terms; readonly clockOffset: number } | null = null

export function terms(): Terms | null {
  return read?.terms ?? null
}

/** Reads the terms again after the page was replaced. */
export function readTerms(): void {
  const next = termsIn(document)
  read = next && { terms: next, clockOffset: next.now - Date.now() }
}

export function termsIn(page: Document): Terms | null {
  const text = page.getElementById('terms')?.textContent
  return text ? JSON.parse(text) : null
}

/** The current time by the server's clock, in seconds. */
export function serverSeconds(): number {
  return Math.floor((Date.now() + (read?.clockOffset ?? 0)) / 1000)
}

/** The path of this page. Everything about its checkout is below it. */
export const path = location.pathname.replace(/\/$/, '')
