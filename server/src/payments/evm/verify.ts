import assert from 'node:assert/strict'
import { showEvmAddress } from '../../chains/evm/address.ts'
import type { Chain } from '../../chains/evm/chain.ts'
import { digest } from '../../chains/evm/eip3009.ts'
import { recoverSigner } from '../../chains/evm/recover.ts'
import type { SignedTransfer, SimulateTransfer } from '../../chains/evm/simulate.ts'
import type { Hex } from '../../chains/hex.ts'
import { isBound, isBoundTo, isRefundNonce } from '../nonces.ts'
import type { EvmPayment, Payment } from '../payload.ts'
import { type KnownOfPayer, maxTimeoutSeconds, type Offer, type Verified } from '../rail.ts'

/** The most that a client's clock may differ from ours. */
const skewSeconds = 60
/** If less time than this is left, a payment may not be mined in time. */
const remainingSecondsMin = 10

export type EvmVerifier = {
  readonly chain: Chain
  readonly simulate: SimulateTransfer
  readonly hasCode: HasCode
}

/** Whether an address has code. With `recently`, an answer from the last seconds is enough. */
export type HasCode = (address: Hex, when: 'now' | 'recently') => Promise<boolean>

/**
 * Compares a payment with the offers: terms, validity window, and the checkout that its nonce may be bound to. Costs
 * nothing and queries no node. Returns the x402 reason why it does not match, or null.
 */
export function findMismatch(
  verifier: EvmVerifier,
  checkoutId: string,
  offers: readonly Offer[],
  payment: Payment,
  now: Date,
): string | null {
  if (payment.scheme !== 'exact') return 'unsupported_scheme'
  if (payment.family !== 'EVM') return 'invalid_payload'
  const { authorization } = payment
  const found = findOffer(verifier, offers, payment)
  if (!found) return 'invalid_payment_requirements'
  if (authorization.to !== found.offer.payTo.toLowerCase()) return 'invalid_exact_evm_recipient_mismatch'
  if (authorization.value !== BigInt(found.offer.amount))
    return 'invalid_exact_evm_payload_authorization_value_mismatch'
  const seconds = BigInt(Math.floor(now.getTime() / 1_000))
  if (authorization.validAfter > seconds) return 'invalid_exact_evm_payload_authorization_valid_after'
  if (
    authorization.validBefore < seconds + BigInt(remainingSecondsMin) ||
    authorization.validBefore > seconds + BigInt(maxTimeoutSeconds + skewSeconds)
  ) {
    return 'invalid_exact_evm_payload_authorization_valid_before'
  }
  if (isBound(authorization.nonce) && !isBoundTo(authorization.nonce, checkoutId))
    return 'nonce_bound_to_another_checkout'
  if (isRefundNonce(authorization.nonce)) return 'nonce_of_a_refund'
  return null
}

function findOffer(verifier: EvmVerifier, offers: readonly Offer[], payment: EvmPayment) {
  const offer = offers.find(
    ({ network, asset }) => network === payment.network && asset.toLowerCase() === payment.asset,
  )
  const asset = verifier.chain.network.assets.find(({ address }) => address.toLowerCase() === payment.asset)
  return offer && asset ? { offer, asset } : null
}

/**
 * Decides whether a payment would settle. The checks that cost nothing come first: terms, window, signature. Only then
 * is a node queried, once for all waiting payments. Throws if no node answers: an outage is our fault and never
 * reported to the payer as a bad payment.
 */
export async function verifyPayment(
  verifier: EvmVerifier,
  { checkoutId, offers }: { readonly checkoutId: string; readonly offers: readonly Offer[] },
  payment: Payment,
  { inFlightUnits, isUsed, headNumber }: KnownOfPayer,
  now: Date,
): Promise<Verified> {
  const refuse = (reason: string, blockNumber: number | null = null, message?: string): Verified => ({
    isValid: false,
    reason,
    message,
    payer: payment.payer,
    blockNumber,
  })

  const mismatch = findMismatch(verifier, checkoutId, offers, payment, now)
  const found = payment.family === 'EVM' ? findOffer(verifier, offers, payment) : null
  if (mismatch !== null || !found || payment.family !== 'EVM')
    return refuse(mismatch ?? 'invalid_payment_requirements')
  const { authorization, signature } = payment
  const { from } = authorization
  const { offer, asset } = found

  const domain = { ...asset.domain, chainId: verifier.chain.chainId, verifyingContract: payment.asset }
  const recovered = recoverSigner(digest(domain, authorization), Buffer.from(signature.slice(2), 'hex'))
  const isSigned = recovered?.address === from
  // A nonce bound to this checkout can't have paid for anything else. Claim it, and let the logs decide.
  const isOwn = isBoundTo(authorization.nonce, checkoutId)
  const isSpent = isUsed && !isOwn
  const simulate = (transfer: SignedTransfer) => verifier.simulate(transfer, inFlightUnits, headNumber)
  // If the payer has not signed it with its key, only code at its address can accept the signature, and that code may
  // be new. If it has, there is rarely code, so the token is asked at the same time.
  const [isContract, asOrdinary] = await Promise.all([
    verifier.hasCode(from, isSigned ? 'recently' : 'now'),
    isSigned && !isSpent
      ? simulate({ asset: payment.asset, authorization, signature: recovered.normalised, isContract: false })
      : null,
  ])
  if (!isSigned && !isContract)
    return payment.hasContractForm
      ? refuse('invalid_exact_evm_payload_undeployed_smart_wallet', null, sayUndeployed(verifier.chain, from))
      : refuse('invalid_exact_evm_signature', null, sayUnsigned(verifier.chain, from))
  const transfer: SignedTransfer = {
    asset: payment.asset,
    authorization,
    signature: isSigned && !isContract ? recovered.normalised : signature,
    isContract,
  }

  if (isSpent) return refuse('invalid_exact_evm_nonce_already_used')
  const simulated = isContract ? await simulate(transfer) : asOrdinary
  assert(simulated, 'without code, only the signature of the payer’s key gets here')
  if (simulated.isNonceUsed)
    return isOwn
      ? { isValid: true, transfer, offer }
      : refuse('invalid_exact_evm_nonce_already_used', simulated.blockNumber)
  if (simulated.balance < authorization.value + inFlightUnits)
    return refuse('invalid_exact_evm_insufficient_balance', simulated.blockNumber)
  if (!simulated.isGood) return refuse(reasonOf(simulated.revertReason), simulated.blockNumber)
  return { isValid: true, transfer, offer }
}

function sayUndeployed({ network }: Chain, payer: Hex): string {
  return `This form of signature is that of a smart wallet, but no wallet is deployed at ${showEvmAddress(payer)} on ${network.name}, so nothing there can confirm it. Deploy the wallet, for example by sending any transaction from it, then send the same payment again. Nothing was charged.`
}

/** Used if a smart wallet signed in the form of a key's signature, as a Safe with one owner does. */
function sayUnsigned({ network }: Chain, payer: Hex): string {
  return `The key of ${showEvmAddress(payer)} has not signed these terms, and no contract is deployed there on ${network.name} that could accept the signature. If the payer is a smart wallet, send any transaction from it first, which deploys it, then send the same payment again. Nothing was charged.`
}

/** The x402 reason for a token's revert message. */
export function reasonOf(words: string): string {
  if (/signature/i.test(words)) return 'invalid_exact_evm_signature'
  if (/expired/i.test(words)) return 'invalid_exact_evm_payload_authorization_valid_before'
  if (/not yet valid/i.test(words)) return 'invalid_exact_evm_payload_authorization_valid_after'
  return 'invalid_exact_evm_transaction_simulation_failed'
}
