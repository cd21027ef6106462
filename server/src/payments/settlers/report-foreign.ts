import type { Context } from '../../context.ts'
import { idOfNetwork } from '../../networks.ts'

/** Tells the operator that a settler was stopped because somebody else uses its key. */
export function reportForeign(
  ctx: Context,
  {
    network,
    ...found
  }: {
    readonly network: string
    readonly settler: string
    readonly nonce: number
    /** The transaction that used it, if we have seen it. */
    readonly txHash?: string
  },
): void {
  ctx.log.error(
    { network: idOfNetwork(network), ...found },
    'a transaction that is not ours used a settler’s nonce, so somebody else has its key: nothing more is sent from it, and its payments go on by other settlers; run doctor',
  )
}
