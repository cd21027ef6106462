import { RpcUnavailableError } from '../../chains/rpc.ts'
import { type SvmChain, type SvmSimulated, simulateSvm } from '../../chains/svm/chain.ts'
import { encodeTransaction } from '../../chains/svm/message.ts'
import {
  type ExactTransfer,
  findTokenAccount,
  isSignedByPayer,
  readExact,
} from '../../chains/svm/transfer.ts'
import { openBatcher } from '../../database/batch.ts'
import type { Payment, SvmPayment } from '../payload.ts'
import type { Offer, Verified, Verifier } from '../rail.ts'
import type { FeePayers } from './fee-payers.ts'

/** Keeps one request below what nodes accept. */
const simulationsPerRequest = 20
const requestsInFlight = 4
/** Behind a load balancer, a node may be this many blocks ahead of the one that named the last valid height. */
const heightSlack = 32n

/** What `serve` needs from a Solana chain. */
export function openSvmVerifier(chain: SvmChain, feePayers: FeePayers): Verifier {
  const simulate = openBatcher<Asked, SvmSimulated>({
    run: (asked) => simulateSvm(chain, asked),
    runAlone: async (asked) => (await simulateSvm(chain, [asked]))[0] as SvmSimulated,
    itemsMax: simulationsPerRequest,
    inFlightMax: requestsInFlight,
  })
  return {
    findMismatch: async (checkoutId, offers, payment) => {
      const matched = await matchOffer(chain, feePayers, checkoutId, offers, payment)
      return 'refusal' in matched ? matched.refusal : null
    },
    async verify(checkoutId, offers, payment, inFlightUnits) {
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
      const simulated = await simulate({ transaction, source: exact.source })
      const transfer = {
        asset: offer.asset,
        authorization: {
          from: exact.payer,
          to: offer.payTo,
          value: exact.amount,
          validAfter: 0n,
          validBefore: simulated.lastValidHeight + heightSlack,
          nonce: payment.nonce,
        },
        signature: `0x${Buffer.from(encodeTransaction(transaction)).toString('hex')}` as const,
        isContract: false,
        settler: exact.feePayer,
      }
      // Its memo names this checkout, so it cannot have paid for anything else: claim it, and let the chain decide.
      if (simulated.err === 'AlreadyProcessed') return { isValid: true, transfer, offer }
      if ((simulated.balance ?? 0n) < exact.amount + inFlightUnits)
        return refuse('insufficient_funds', simulated.slot)
      if (!simulated.isGood) return refuse(reasonOf(simulated.err), simulated.slot)
      return { isValid: true, transfer, offer }
    },
  }
}

type Asked = Pick<SvmPayment, 'transaction'> & { readonly source: string }

type Matched = {
  readonly exact: ExactTransfer
  readonly offer: Offer
  readonly transaction: SvmPayment['transaction']
  /** Whether the settler that must sign is running. */
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

/** The x402 reason, where there is one, for why a node would not run a transaction. */
export function reasonOf(err: unknown): string {
  return err === 'BlockhashNotFound' ? blockhashExpired : 'invalid_exact_svm_transaction_simulation_failed'
}

/** Too old to be included. The payer has to sign again with a newer blockhash. */
export const blockhashExpired = 'blockhash_expired'
