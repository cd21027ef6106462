import type { PaymentRequirements } from '../wire.ts'
import {
  type EvmSigner,
  encodeAuthorization,
  makeBoundNonce,
  makeTypedData,
  type TransferTypedData,
} from './evm.ts'
import type { Chosen, Objection, Offer } from './offer.ts'
import { isOffered, prepareTransaction, type SolanaSigner } from './solana.ts'
import type { CallOptions } from './submit.ts'

/** A wallet of either family. */
export type Signer = EvmSigner | SolanaSigner

/** Wallets of both families can sign transactions, but only EVM wallets sign typed data. */
export function isSolana(signer: Signer): signer is SolanaSigner {
  return !('signTypedData' in signer)
}

/** Builds and checks what the wallet will be asked to sign. Nothing is signed yet. */
export async function makeOffer(
  checkoutUrl: string,
  { signer: _, ...chosen }: Chosen,
  options: CallOptions,
): Promise<Offer | Objection> {
  const { checkoutId, accepted, asset, payer } = chosen
  if (asset.domain) {
    const nonce = await makeBoundNonce(checkoutId)
    const typedData = makeTypedData(accepted, asset.domain, payer, nonce, Date.now())
    return { ...chosen, typedData, transaction: null }
  }
  const transaction = await prepareTransaction(checkoutUrl, accepted, payer, options)
  if (typeof transaction === 'string')
    return {
      code: transaction,
      detail: `The server did not prepare the payment: ${transaction}. Nothing was signed.`,
    }
  if (!(await isOffered(transaction, checkoutId, accepted, asset, payer)))
    return {
      code: 'malformed_terms',
      detail: 'The server prepared a different payment than it offered. Nothing was signed.',
    }
  return { ...chosen, typedData: null, transaction }
}

/** Has the wallet sign the offer. Returns the PAYMENT-SIGNATURE header of x402 version 2. */
export async function signOffer(offer: Offer, signer: Signer): Promise<string> {
  if (offer.transaction === null) {
    return await signTransfer(offer.accepted, offer.typedData, signer as EvmSigner)
  }
  const signed = await (signer as SolanaSigner).signTransaction(offer.transaction)
  return encode(offer.accepted, { transaction: btoa(String.fromCharCode(...signed)) })
}

export async function signTransfer(
  accepted: PaymentRequirements,
  typedData: TransferTypedData,
  signer: EvmSigner,
): Promise<string> {
  const signature = await signer.signTypedData(typedData)
  return encode(accepted, encodeAuthorization(typedData, signature))
}

function encode(accepted: PaymentRequirements, payload: object): string {
  return btoa(JSON.stringify({ x402Version: 2, accepted, payload }))
}
