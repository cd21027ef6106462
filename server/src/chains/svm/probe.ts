import type { Node } from '../../config/parse.ts'
import type { SolanaNetwork } from '../../networks.ts'
import { type Probed, probeNodes } from '../probe.ts'
import type { RpcCall } from '../rpc.ts'
import { openSvmChain } from './chain.ts'
import { readAnswer, whole } from './witnesses.ts'

/**
 * Probes the nodes of a Solana cluster, each by itself: whether it answers every call that is made, and how many of
 * them at once. The text next to each call (`without`) says what fails without it.
 */
export async function probeSvmChain(
  network: SolanaNetwork,
  nodes: readonly Node[],
  now: () => Date,
): Promise<Probed[]> {
  const [{ address }] = network.assets as [SolanaNetwork['assets'][number]]
  const account = { encoding: 'base64', commitment: 'confirmed' }
  const needed: readonly (RpcCall & { readonly without: string })[] = [
    ...(['confirmed', 'finalized'] as const).map((commitment) => ({
      method: 'getEpochInfo',
      params: [{ commitment }],
      without: 'nothing becomes final',
    })),
    {
      method: 'getSignatureStatuses',
      params: [[signature], { searchTransactionHistory: true }],
      without: 'no payment is seen',
    },
    {
      method: 'getSignaturesForAddress',
      params: [nobody, { commitment: 'confirmed', limit: 1 }],
      without: 'transfers by hand are not found',
    },
    {
      method: 'getTransaction',
      params: [signature, { ...account, maxSupportedTransactionVersion: 1 }],
      without: 'no payment is confirmed',
    },
    { method: 'getLatestBlockhash', params: [{ commitment: 'confirmed' }], without: 'nobody can pay' },
    { method: 'getAccountInfo', params: [address, account], without: 'no payment is verified' },
    { method: 'getMultipleAccounts', params: [[address], account], without: 'wallets cannot be checked' },
    { method: 'getBalance', params: [nobody, { commitment: 'confirmed' }], without: 'settlers send nothing' },
  ]
  return await probeNodes({
    nodes,
    open: (node) => openSvmChain(network, [node], now),
    usual: needed.map(({ method, params }) => ({ method, params })),
    async examine(_chain, { outcomes }) {
      const slotOf = (place: number) =>
        readAnswer(outcomes[place], ({ absoluteSlot }: { absoluteSlot: number }) => whole(absoluteSlot))
      const [confirmed, finalized] = [slotOf(0), slotOf(1)]
      return {
        facts:
          confirmed === null || finalized === null ? [] : [`finalized after ${confirmed - finalized} slots`],
        troubles: needed.flatMap(({ method, without }, i) => {
          const outcome = outcomes[i]
          return outcome && 'error' in outcome
            ? [
                {
                  says: `refuses ${method} (${outcome.error.message}), so ${without}`,
                  wanted: `that answers ${method}`,
                },
              ]
            : []
        }),
      }
    },
  })
}

const nobody = '11111111111111111111111111111111'
/** No transaction has this signature. */
const signature = '1'.repeat(64)
