import type { PaymentRequirements } from '../wire.ts'
import { type EvmSigner, encodeAuthorization, makeTypedData } from './evm.ts'
import type { Chosen, Objection, Offer } from './offer.ts'
import { isOffered, prepareTransaction, type SolanaSigner } from './solana.ts'
import type { Talk } from './submit.ts'

/** A wallet of either family. */
export type Signer = EvmSigner | SolanaSigner

/** EVM wallets sign transactions as well; only they sign typed data. */
export function isSolana(signer: Signer): signer is SolanaSigner {
  return !('signTypedData' in signer)
}

/** What the wallet will be asked to sign, made and checked; nothing is signed yet. */
export async function makeOffer(
  checkoutUrl: string,
  { signer: _, ...chosen }: Chosen,
  options: Talk,
): Promise<Offer | Objection> {
  const { checkoutId, accepted, asset, payer } = chosen
  if (asset.domain) {
    const typedData = await makeTypedData(checkoutId, accepted, asset.domain, payer, Date.now())
    return { ...chosen, typedData, transaction: null }
  }
  const transaction = await prepareTransaction(checkoutUrl, accepted, payer, options)
  if (typeof transaction === 'string')
    return { code: transaction, detail: `The payment was not prepared: ${transaction}. Nothing was signed.` }
  if (!(await isOffered(transaction, checkoutId, accepted, asset, payer)))
    return { code: 'malformed_terms', detail: 'What is to be signed is not what was offered.' }
  return { ...chosen, typedData: null, transaction }
}

/** Has it signed. The PAYMENT-SIGNATURE header of x402 version 2. */
export async function signOffer(offer: Offer, signer: Signer): Promise<string> {
  if (offer.transaction === null) {
    const signature = await (signer as EvmSigner).signTypedData(offer.typedData)
    return encode(offer.accepted, encodeAuthorization(offer.typedData, signature))
  }
  const signed = await (signer as SolanaSigner).signTransaction(offer.transaction)
  return encode(offer.accepted, { transaction: btoa(String.fromCharCode(...signed)) })
}

function encode(accepted: PaymentRequirements, payload: object): string {
  return btoa(JSON.stringify({ x402Version: 2, accepted, payload }))
}
