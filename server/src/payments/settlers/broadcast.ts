import { RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { noteSent } from './rows.ts'

/** Sends committed bytes to every node. Whatever the nodes answer, what happened is found on the chain. */
export async function broadcast(ctx: Context, hash: string, send: () => Promise<void>): Promise<void> {
  try {
    await send()
  } catch (error) {
    if (!(error instanceof RpcAnswerError) && !(error instanceof RpcUnavailableError)) throw error
    // When the same bytes go out again, "already known" and "nonce too low" are what success looks like.
    ctx.log.debug(
      { txHash: hash, err: error },
      'no node accepted a transaction; its lane sends it again in a few seconds',
    )
  }
  crashPoint(ctx, 'broadcast-before-note')
  await noteSent(ctx.db, hash)
  crashPoint(ctx, 'broadcast-after-note')
}
