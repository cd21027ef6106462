import { RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import type { EvmNetwork } from '../../networks.ts'

/**
 * Looks at candidates one after another. If nodes fail at one, it is left for a later run, so that a payment about
 * which nodes can't answer does not keep the others from being looked at.
 */
export async function lookAtEach<Candidate>(
  { log }: Context,
  { id }: EvmNetwork,
  candidates: readonly Candidate[],
  look: (candidate: Candidate) => Promise<void>,
): Promise<void> {
  for (const candidate of candidates)
    await look(candidate).catch((error: unknown) => {
      if (!(error instanceof RpcAnswerError) && !(error instanceof RpcUnavailableError)) throw error
      log.debug(
        { network: id, err: error },
        'the nodes did not answer about a payment; the next run looks at it again',
      )
    })
}
