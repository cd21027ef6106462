import { RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { noteSent } from './rows.ts'

/** Sends committed bytes to every node. The nodes' answers decide nothing: the outcome is read from the chain. */
export async function broadcast(ctx: Context, hash: string, send: () => Promise<void>): Promise<void> {
  try {
    await send()
  } catch (error) {
    if (!(error instanceof RpcAnswerError) && !(error instanceof RpcUnavailableError)) throw error
    // When the same bytes are sent again, "already known" and "nonce too low" mean success.
    ctx.log.debug(
      { txHash: hash, err: error },
      'no node accepted the transaction; its lane sends it again within seconds',
    )
  }
  crashPoint(ctx, 'broadcast-before-note')
  await noteSent(ctx.db, hash)
  crashPoint(ctx, 'broadcast-after-note')
}
