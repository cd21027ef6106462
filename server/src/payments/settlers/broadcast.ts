import { RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { idOfNetwork } from '../../networks.ts'
import { noteSent, type Reception } from './gas-rows.ts'

/**
 * What a node's refusal means: it has the transaction, or another one in its place (`taken`); the settler cannot pay for
 * it (`unfunded`); or it will not take it (`refused`).
 */
export type Meaning = 'taken' | 'unfunded' | 'refused'

/**
 * Sends committed bytes to every node, and records whether one took them. The nodes' answers decide nothing about the
 * payment: its outcome is read from the chain.
 */
export async function broadcast(
  ctx: Context,
  hash: string,
  send: () => Promise<void>,
  meaningOf: (error: RpcAnswerError) => Meaning = () => 'taken',
): Promise<void> {
  const { meaning, refusal } = await send().then(
    () => ({ meaning: 'taken', refusal: null }) as const,
    (error: unknown) => {
      if (!(error instanceof RpcAnswerError) && !(error instanceof RpcUnavailableError)) throw error
      ctx.log.debug(
        { txHash: hash, err: error },
        'no node accepted the transaction; its lane sends it again within seconds',
      )
      if (error instanceof RpcUnavailableError) return { meaning: 'unknown', refusal: null } as const
      const meaning = meaningOf(error)
      return { meaning, refusal: meaning === 'taken' ? null : error.message } as const
    },
  )
  crashPoint(ctx, 'broadcast-before-note')
  const reception: Reception = {
    isTaken: meaning === 'taken',
    isUnfunded: meaning === 'unfunded',
    refusal,
  }
  const { isNews, network, settler } = await noteSent(ctx.db, hash, reception)
  crashPoint(ctx, 'broadcast-after-note')
  if (!isNews) return
  const fields = { network: idOfNetwork(network), settler, txHash: hash, refusal }
  if (meaning === 'unfunded')
    ctx.log.warn(
      fields,
      'a settler cannot pay for its transaction; everything behind it waits: send it money, see settler list',
    )
  else
    ctx.log.warn(
      fields,
      'the nodes refuse a transaction; its lane sends it again every few seconds: check what they say',
    )
}
