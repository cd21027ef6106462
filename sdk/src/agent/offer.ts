import { formatUnits, parseUnits } from '../units.ts'
import type { PaymentRequired, PaymentRequirements } from '../wire.ts'
import type { Asset } from './assets.ts'
import type { TransferTypedData } from './evm.ts'
import { isSolana, type Signer } from './sign.ts'

type Terms = {
  readonly checkoutId: string
  /** What the store says this is for. Its word alone. */
  readonly description: string
  /** "12.50" of the asset. */
  readonly amount: string
  readonly asset: Asset
  readonly payTo: string
  readonly payer: string
  /** The way to pay, as the server wrote it. */
  readonly accepted: PaymentRequirements
}

/** What is about to be signed, checked against what was asked for and against the limit. */
export type Offer = Terms &
  (
    | {
        /** The very thing that the wallet is asked to sign: typed data on EVM networks, a transaction on Solana. */
        readonly typedData: TransferTypedData
        readonly transaction: null
      }
    | { readonly typedData: null; readonly transaction: Uint8Array }
  )

/** A way to pay, and who will sign. */
export type Chosen = Terms & { readonly signer: Signer }

/** Why nothing is signed. A server that will not prepare a payment has codes of its own. */
export type Objection = {
  readonly code: 'wrong_checkout' | 'malformed_terms' | 'unknown_asset' | 'over_limit' | (string & {})
  readonly detail: string
}

type Limits = { readonly max: string; readonly assets: readonly Asset[] }

/** A signature is money for whoever holds it until its window ends: longer than this nobody has use for. */
const windowSecondsMax = 600

/** The first way to pay that one of the signers knows and the limit allows, or the reason why there is none. */
export function chooseOffer(
  checkoutId: string,
  required: PaymentRequired,
  signers: readonly Signer[],
  { max, assets }: Limits,
): Chosen | Objection {
  if (checkoutIdOf(required.resource?.url) !== checkoutId)
    return { code: 'wrong_checkout', detail: `The terms are not those of ${checkoutId}.` }
  // Other ways to pay may stand beside ours, and look as they like.
  const ways: readonly PaymentRequirements[] = Array.isArray(required.accepts) ? required.accepts : []
  const known = ways.flatMap((accepted) => {
    const asset = assets.find((each) => isAsset(each, accepted))
    const signer = signers.find((each) => isSolana(each) === !asset?.domain)
    return asset && signer ? [{ accepted, asset, signer }] : []
  })
  if (known.length === 0)
    return { code: 'unknown_asset', detail: 'The checkout takes no token that this wallet may pay with.' }
  if (!known.every(({ accepted }) => isWellFormed(accepted)))
    return { code: 'malformed_terms', detail: 'The terms are not ones that a wallet should sign.' }
  const affordable = known.find(({ accepted, asset }) => {
    const limit = parseUnits(max, asset.decimals)
    return limit !== null && BigInt(accepted.amount) <= limit
  })
  if (!affordable) {
    const [first] = known
    const price =
      first && `${formatUnits(BigInt(first.accepted.amount), first.asset.decimals)} ${first.asset.symbol}`
    return { code: 'over_limit', detail: `The checkout asks ${price}; the limit is ${max}.` }
  }
  const { accepted, asset, signer } = affordable
  return {
    checkoutId,
    description: String(required.resource.description),
    amount: formatUnits(BigInt(accepted.amount), asset.decimals),
    asset,
    payTo: accepted.payTo,
    payer: signer.address,
    accepted,
    signer,
  }
}

/** The checkout that an address is about: `ch_…` at its end. */
export function checkoutIdOf(url: unknown): string | null {
  return typeof url === 'string' ? (/\/(ch_[0-9a-z]{28})\/?$/.exec(url)?.[1] ?? null) : null
}

/** The domain as well, where there is one: a signature under another name would be one for something else. */
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
