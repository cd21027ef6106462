import { formatUnits, parseUnits } from '../units.ts'
import type { PaymentRequired, PaymentRequirements } from '../wire.ts'
import type { Asset } from './assets.ts'
import type { TransferTypedData } from './evm.ts'
import { isSolana, type Signer } from './sign.ts'

type Terms = {
  readonly checkoutId: string
  /** What the store says this is for. Nothing verifies it. */
  readonly description: string
  /** In the asset, for example "12.50". */
  readonly amount: string
  readonly asset: Asset
  readonly payTo: string
  readonly payer: string
  /** The way to pay, exactly as the server sent it. */
  readonly accepted: PaymentRequirements
}

/** What is about to be signed, already checked against the requested checkout and the limit. */
export type Offer = Terms &
  (
    | {
        /** Exactly what the wallet is asked to sign: typed data on EVM networks, a transaction on Solana. */
        readonly typedData: TransferTypedData
        readonly transaction: null
      }
    | { readonly typedData: null; readonly transaction: Uint8Array }
  )

/** A way to pay, and the wallet that will sign. */
export type Chosen = Terms & { readonly signer: Signer }

/** Why nothing is signed. A server that refuses to prepare a payment sends its own codes. */
export type Objection = {
  readonly code: 'wrong_checkout' | 'malformed_terms' | 'unknown_asset' | 'over_limit' | (string & {})
  readonly detail: string
}

type Limits = { readonly max: string; readonly assets: readonly Asset[] }

/** Until its window ends, anyone who holds a signature can cash it in. No honest store needs longer than this. */
const windowSecondsMax = 600

/**
 * The first way to pay that a signer supports and the limit allows, or the reason why none does. `id` is that of the
 * checkout or link that was asked.
 */
export function chooseOffer(
  id: string,
  required: PaymentRequired,
  signers: readonly Signer[],
  limits: Limits,
): Chosen | Objection {
  if (payableIdOf(required.resource?.url) !== id)
    return { code: 'wrong_checkout', detail: `The server sent the terms of something other than ${id}.` }
  // A transaction is prepared for a checkout that is there, and that of a link is made only when it is paid.
  const way = chooseWay(required, signers, { ...limits, evmOnly: isLink(id) })
  if ('code' in way) return way
  const checkoutId = isLink(id) ? quotedCheckoutIn(way.accepted) : id
  if (checkoutId === null)
    return { code: 'malformed_terms', detail: 'The terms of the link name no checkout.' }
  return { ...way, checkoutId, description: String(required.resource.description) }
}

/** One of the ways to pay that a server offers, and the wallet that will sign. */
export type Way = Omit<Chosen, 'checkoutId' | 'description'>

/** The first way that a signer supports and the limit allows, or the reason why none does. */
export function chooseWay(
  required: PaymentRequired,
  signers: readonly Signer[],
  { max, assets, evmOnly }: Limits & { readonly evmOnly: boolean },
): Way | Objection {
  // The list may hold other ways to pay, in any shape.
  const ways: readonly PaymentRequirements[] = Array.isArray(required.accepts) ? required.accepts : []
  const known = ways.flatMap((accepted) => {
    const asset = assets.find((each) => isAsset(each, accepted))
    const signer = signers.find((each) => isSolana(each) === !asset?.domain)
    const isPayable = asset !== undefined && (asset.domain !== undefined || !evmOnly)
    return isPayable && signer ? [{ accepted, asset, signer }] : []
  })
  if (known.length === 0)
    return { code: 'unknown_asset', detail: 'No token is accepted that this wallet can pay with.' }
  if (!known.every(({ accepted }) => isWellFormed(accepted)))
    return { code: 'malformed_terms', detail: 'The terms are malformed or unsafe to sign.' }
  const affordable = known.find(({ accepted, asset }) => {
    const limit = parseUnits(max, asset.decimals)
    return limit !== null && BigInt(accepted.amount) <= limit
  })
  if (!affordable) {
    const [first] = known
    const price =
      first && `${formatUnits(BigInt(first.accepted.amount), first.asset.decimals)} ${first.asset.symbol}`
    return { code: 'over_limit', detail: `The price is ${price}, which is over the limit of ${max}.` }
  }
  const { accepted, asset, signer } = affordable
  return {
    amount: formatUnits(BigInt(accepted.amount), asset.decimals),
    asset,
    payTo: accepted.payTo,
    payer: signer.address,
    accepted,
    signer,
  }
}

/** The id at the end of a URL's path: a checkout's `ch_…` or a link's `lnk_…`. Returns null if it has none. */
export function payableIdOf(url: unknown): string | null {
  return typeof url === 'string' ? (payableForm.exec(url)?.[1] ?? null) : null
}

const payableForm = /\/(ch_[0-9a-z]{28}|lnk_[0-9a-z]{28})\/?(?:\?.*)?$/

export function isLink(id: string): boolean {
  return id.startsWith('lnk_')
}

/** The checkout that a payment on a link's terms is for. It may not be made yet. */
export function quotedCheckoutIn(accepted: unknown): string | null {
  const { extra } = (accepted ?? {}) as { extra?: { quote?: unknown } | null }
  return /^(ch_[0-9a-z]{28})(\.|$)/.exec(String(extra?.quote))?.[1] ?? null
}

/** Compares the EIP-712 domain too: under another domain the signature would authorize something else. */
function isAsset({ network, address, domain }: Asset, accepted: PaymentRequirements | null): boolean {
  if (accepted?.scheme !== 'exact' || accepted.network !== network) return false
  if (!domain) return accepted.asset === address
  const { name, version } = { name: null, version: null, ...accepted.extra }
  return (
    String(accepted.asset).toLowerCase() === address.toLowerCase() &&
    name === domain.name &&
    version === domain.version
  )
}

function isWellFormed({ amount, payTo, maxTimeoutSeconds }: PaymentRequirements): boolean {
  return (
    /^[1-9]\d{0,30}$/.test(amount) &&
    /^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/.test(payTo) &&
    Number.isInteger(maxTimeoutSeconds) &&
    maxTimeoutSeconds > 0 &&
    maxTimeoutSeconds <= windowSecondsMax
  )
}
