import { setTimeout as wait } from 'node:timers/promises'
import { RpcUnavailableError } from '../../chains/rpc.ts'
import { type SvmChain, type SvmSimulated, type SvmSimulation, simulateSvm } from '../../chains/svm/chain.ts'
import { encodeTransaction } from '../../chains/svm/message.ts'
import {
  type ExactTransfer,
  findTokenAccount,
  isSignedByPayer,
  readExact,
} from '../../chains/svm/transfer.ts'
import { agree } from '../../chains/svm/witnesses.ts'
import { openBatcher } from '../../database/batch.ts'
import type { Payment, SvmPayment } from '../payload.ts'
import type { Offer, Verified, Verifier } from '../rail.ts'
import type { FeePayers } from './fee-payers.ts'

/** Keeps one request below what nodes accept. */
const simulationsPerRequest = 20
const requestsInFlight = 4
/** Behind a load balancer, a node may be this many blocks ahead of the one that named the last valid height. */
const heightSlack = 32n
/** A node that has not seen a new blockhash, or the payer's money, has it a block or two later. */
const triesMax = 3

/** What `serve` needs from a Solana chain. */
export function openSvmVerifier(chain: SvmChain, feePayers: FeePayers): Verifier {
  const simulate = openBatcher<Asked, SvmSimulation>({
    run: (asked) => simulateSvm(chain, asked),
    runAlone: async (asked) => (await simulateSvm(chain, [asked]))[0] as SvmSimulation,
    itemsMax: simulationsPerRequest,
    inFlightMax: requestsInFlight,
  })

  /** What enough providers say of a payment: why they refuse it, or null, and the slot that all of them have reached. */
  const ask = async (exact: ExactTransfer, transaction: SvmPayment['transaction'], inFlightUnits: bigint) => {
    for (let tries = 1; ; tries++) {
      const { told, lastValidHeight } = await simulate({ transaction, source: exact.source })
      if (lastValidHeight === null)
        throw new RpcUnavailableError('Too few nodes agree on the height of the chain.')
      const facts = told.map((one) => ({
        provider: one.provider,
        fact: findObstacle(one, exact.amount + inFlightUnits),
      }))
      const { fact, odd } = agree(facts, String, chain.network.witnessesMin)
      if (fact === settlerEmpty) throw new RpcUnavailableError('A settler cannot pay the transaction fee.')
      if (fact !== null) {
        const slots = told.flatMap(({ provider, slot }) => (odd.includes(provider) ? [] : slot))
        return { reason: fact === fine ? null : fact, slot: Math.min(...slots), lastValidHeight }
      }
      if (tries === triesMax) throw new RpcUnavailableError('Too few nodes agree about the payment.')
      await wait(chain.network.blockTimeMs)
    }
  }

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
      const { reason, slot, lastValidHeight } = await ask(exact, transaction, inFlightUnits)
      if (reason !== null) return refuse(reason, slot)
      const transfer = {
        asset: offer.asset,
        authorization: {
          from: exact.payer,
          to: offer.payTo,
          value: exact.amount,
          validAfter: 0n,
          validBefore: lastValidHeight + heightSlack,
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

const fine = 'fine'
const settlerEmpty = 'settler_empty'

/** Why a provider would not accept the payment now. */
function findObstacle({ err, isGood, isOurFault, balance }: SvmSimulated, needed: bigint): string {
  if (isOurFault) return settlerEmpty
  // Its memo names this checkout, so it cannot have paid for anything else: claim it, and let the chain decide.
  if (err === 'AlreadyProcessed') return fine
  if ((balance ?? 0n) < needed) return 'insufficient_funds'
  return isGood ? fine : reasonOf(err)
}

/** The x402 reason, where there is one, for why a node would not run a transaction. */
export function reasonOf(err: unknown): string {
  return err === 'BlockhashNotFound' ? blockhashExpired : 'invalid_exact_svm_transaction_simulation_failed'
}

/** Too old to be included. The payer has to sign again with a newer blockhash. */
export const blockhashExpired = 'blockhash_expired'
