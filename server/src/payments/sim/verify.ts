import { RpcUnavailableError } from '../../chains/rpc.ts'
import { parseSimulatedAddress } from '../../chains/sim/address.ts'
import type { SimulatedNetwork } from '../../networks.ts'
import type { Payment } from '../payload.ts'
import type { Offer, Verified, Verifier } from '../rail.ts'
import { NotReadyError, whyEmpty } from '../settlers/readiness.ts'
import type { SignedCase } from './cases.ts'

/** The reasons are those of EVM networks, which agents and shops know. */
const refusedByToken = 'invalid_exact_evm_transaction_simulation_failed'

/** Longer than any test waits for an outcome. No proof depends on it: a step says when a payment is dead. */
const validBefore = 10n ** 12n

/** Nothing is signed, so there is nothing to check but the terms, and that the case does not refuse the payment here. */
export function openSimulatedVerifier(network: SimulatedNetwork): Verifier {
  return {
    findMismatch: async (_checkoutId, offers, payment) => {
      const found = findOffer(network, offers, payment)
      return typeof found === 'string' ? found : null
    },
    async verify(_checkoutId, offers, payment): Promise<Verified> {
      const refuse = (reason: string): Verified => ({
        isValid: false,
        reason,
        payer: payment.payer,
        blockNumber: null,
      })
      const found = findOffer(network, offers, payment)
      if (typeof found === 'string') return refuse(found)
      const { offer, what } = found
      if (what === 'network.down') throw new RpcUnavailableError('The simulated nodes do not answer.')
      if (what === 'network.no_gas') throw new NotReadyError(whyEmpty)
      if (what === 'payment.refused') return refuse(refusedByToken)
      const { payer: from, nonce } = payment
      const authorization = {
        ...{ from, to: offer.payTo, value: BigInt(offer.amount), nonce },
        ...{ validAfter: 0n, validBefore },
      }
      const transfer = { asset: offer.asset, authorization, signature: sign(what), isContract: false }
      return { isValid: true, transfer, offer }
    },
  }
}

function findOffer(
  network: SimulatedNetwork,
  offers: readonly Offer[],
  payment: Payment,
): string | { readonly offer: Offer; readonly what: SignedCase } {
  if (payment.scheme !== 'exact') return 'unsupported_scheme'
  if (payment.family !== network.family) return 'invalid_payload'
  if ('refusal' in parseSimulatedAddress(payment.payer)) return 'invalid_payload'
  const offer = offers.find((each) => each.network === payment.network && each.asset === payment.asset)
  return offer ? { offer, what: payment.what } : 'invalid_payment_requirements'
}

/** What stands for a signature: the case, so that the claim carries it to `work`. */
function sign(what: SignedCase): `0x${string}` {
  return `0x${Buffer.from(what).toString('hex')}`
}

export function readSigned(signature: string): string {
  return Buffer.from(signature.slice(2), 'hex').toString()
}
