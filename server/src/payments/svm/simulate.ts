import { setTimeout as wait } from 'node:timers/promises'
import { agree } from '../../chains/agree.ts'
import { RpcUnavailableError } from '../../chains/rpc.ts'
import { type SvmChain, type SvmSimulated, type SvmSimulation, simulateSvm } from '../../chains/svm/chain.ts'
import type { SvmTransaction } from '../../chains/svm/message.ts'
import type { ExactTransfer } from '../../chains/svm/transfer.ts'
import { openBatcher } from '../../database/batch.ts'

/** Keeps one request below what nodes accept. */
const simulationsPerRequest = 20
const requestsInFlight = 4
/** Behind a load balancer, a node may be this far ahead of the one that named the last valid height. */
const aheadMs = 13_000
/** A node that lacks a new blockhash or the payer's money has it a moment later. */
const triesMax = 3
const againMs = 400

type Simulated = {
  /** The x402 reason why a transfer would not be accepted now; null if it would be. */
  readonly reason: string | null
  /** The slot that all agreeing providers have reached. */
  readonly slot: number
  /** No block above this height can include it. */
  readonly validBefore: bigint
}

/** Asks enough providers what a transfer would do that lacks only a settler's signature. */
export type Simulate = (
  exact: ExactTransfer,
  transaction: SvmTransaction,
  inFlightUnits: bigint,
) => Promise<Simulated>

type Asked = { readonly transaction: SvmTransaction; readonly source: string }

/** Throws if too few providers say the same: an outage is never reported as a bad transfer. */
export function openSimulate(chain: SvmChain): Simulate {
  const simulate = openBatcher<Asked, SvmSimulation>({
    run: (asked) => simulateSvm(chain, asked),
    runAlone: async (asked) => (await simulateSvm(chain, [asked]))[0] as SvmSimulation,
    itemsMax: simulationsPerRequest,
    inFlightMax: requestsInFlight,
  })
  return async (exact, transaction, inFlightUnits) => {
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
        const validBefore = lastValidHeight + BigInt(Math.ceil(aheadMs / chain.network.blockTimeMs))
        return { reason: fact === fine ? null : fact, slot: Math.min(...slots), validBefore }
      }
      if (tries === triesMax) throw new RpcUnavailableError('Too few nodes agree about the payment.')
      await wait(againMs)
    }
  }
}

const fine = 'fine'
const settlerEmpty = 'settler_empty'

/** Why a provider would refuse the transfer now. */
function findObstacle({ err, isGood, isOurFault, balance }: SvmSimulated, needed: bigint): string {
  if (isOurFault) return settlerEmpty
  // Its memo names its checkout, so it can't have paid for anything else. Claim it, and let the chain decide.
  if (err === 'AlreadyProcessed') return fine
  if ((balance ?? 0n) < needed) return 'insufficient_funds'
  return isGood ? fine : reasonOf(err)
}

/** The x402 reason for a node's error, if there is one. */
export function reasonOf(err: unknown): string {
  return err === 'BlockhashNotFound' ? blockhashExpired : 'invalid_exact_svm_transaction_simulation_failed'
}

/** Too old to be included. The payer must sign again with a newer blockhash. */
export const blockhashExpired = 'blockhash_expired'
