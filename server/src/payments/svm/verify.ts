import { RpcUnavailableError } from '../../chains/rpc.ts'
import type { SvmChain } from '../../chains/svm/chain.ts'
import { encodeTransaction } from '../../chains/svm/message.ts'
import {
  type ExactTransfer,
  findTokenAccount,
  isSignedByPayer,
  readExact,
} from '../../chains/svm/transfer.ts'
import type { Payment, SvmPayment } from '../payload.ts'
import type { Offer, Verified, Verifier } from '../rail.ts'
import type { FeePayers } from './rows.ts'
import type { Simulate } from './simulate.ts'

/** What `serve` needs from a Solana chain. */
export function openSvmVerifier(chain: SvmChain, feePayers: FeePayers, simulate: Simulate): Verifier {
  return {
    findMismatch: async (checkoutId, offers, payment) => {
      const matched = await matchOffer(chain, feePayers, checkoutId, offers, payment)
      return 'refusal' in matched ? matched.refusal : null
    },
    async verify(checkoutId, offers, payment, { inFlightUnits }) {
      const refuse = (reason: string, blockNumber: number | null = null): Verified => ({
        isValid: false,
        reason,
        payer: payment.payer,
        blockNumber,
      })
      const matched = await matchOffer(chain, feePayers, checkoutId, offers, payment)
      if ('refusal' in matched) return refuse(matched.refusal)
      const { exact, offer, transaction, isAlive } = matched
      if (!isAlive) throw new RpcUnavailableError('The settler that the payment names is not running.')
      const { reason, slot, validBefore } = await simulate(exact, transaction, inFlightUnits)
      if (reason !== null) return refuse(reason, slot)
      const transfer = {
        asset: offer.asset,
        authorization: {
          from: exact.payer,
          to: offer.payTo,
          value: exact.amount,
          validAfter: 0n,
          validBefore,
          nonce: payment.nonce,
        },
        signature: `0x${Buffer.from(encodeTransaction(transaction)).toString('hex')}` as const,
        isContract: false,
        settler: exact.feePayer,
      }
      return { isValid: true, transfer, offer }
    },
  }
}

type Matched = {
  readonly exact: ExactTransfer
  readonly offer: Offer
  readonly transaction: SvmPayment['transaction']
  /** Whether the settler whose signature is missing is running. */
  readonly isAlive: boolean
}

/** The signed transfer and the offer it matches, or the x402 reason why it matches none. Queries no node. */
async function matchOffer(
  { network }: SvmChain,
  feePayers: FeePayers,
  checkoutId: string,
  offers: readonly Offer[],
  payment: Payment,
): Promise<Matched | { readonly refusal: string }> {
  const refuse = (refusal: string) => ({ refusal })
  if (payment.scheme !== 'exact') return refuse('unsupported_scheme')
  if (payment.family !== 'SOLANA') return refuse('invalid_payload')
  const offer = offers.find((one) => one.network === payment.network && one.asset === payment.asset)
  const asset = network.assets.find(({ address }) => address === payment.asset)
  if (!offer || !asset) return refuse('invalid_payment_requirements')
  const { transaction } = payment
  const exact = readExact(transaction, network)
  if ('refusal' in exact) return exact
  const settler = (await feePayers(network.caip2)).find(({ address }) => address === exact.feePayer)
  if (!settler) return refuse('invalid_exact_svm_fee_payer_not_managed_by_facilitator')
  if (exact.mint !== asset.address || exact.decimals !== asset.decimals)
    return refuse('invalid_exact_svm_payload_mint_mismatch')
  if (exact.destination !== (await findTokenAccount(offer.payTo, asset.address)))
    return refuse('invalid_exact_svm_payload_recipient_mismatch')
  if (exact.amount !== BigInt(offer.amount)) return refuse('invalid_exact_svm_payload_amount_mismatch')
  if (exact.memo !== checkoutId) return refuse('invalid_exact_svm_payload_memo_mismatch')
  if (!isSignedByPayer(transaction)) return refuse('invalid_exact_svm_payload_signature_invalid')
  return { exact, offer, transaction, isAlive: settler.isAlive }
}
