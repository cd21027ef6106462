import { openHistory } from '../chains/families.ts'
import type { History } from '../chains/history.ts'
import type { Context } from '../context.ts'
import { type Network, networks } from '../networks.ts'

/** A network as the audit sees it. */
export type Audited = {
  readonly network: Network
  readonly history: History
  /** Whether payments are accepted on it. */
  readonly isFollowed: boolean
}

/** The networks that have nodes, whether payments are accepted there or not. */
export function listAudited(ctx: Context, transfersMax?: number): Audited[] {
  return networks.flatMap((network) => {
    const history = openHistory(ctx, network, transfersMax)
    const isFollowed = ctx.config.networks.includes(network.id)
    return history === null ? [] : [{ network, history, isFollowed }]
  })
}
