import { describeLimits } from '../chains/probe.ts'
import { listLimitsRecords, listNodeRecords } from '../chains/record-nodes.ts'
import { type Follower, listFaults, readFollower } from '../chains/rows.ts'
import { nodesOf } from '../config/settings.ts'
import type { Context } from '../context.ts'
import { type Network, networks } from '../networks.ts'
import type { Rails } from './rail.ts'
import { openReadiness } from './settlers/readiness.ts'

/** A chain as an operator sees it. */
export type ChainState = {
  readonly network: Network
  /** How far it has been followed; null if it has not been. */
  readonly follower: Follower | null
  /** Why payments on it are refused; null if they are accepted. */
  readonly obstacle: string | null
  readonly nodes: readonly NodeState[]
}

/** The answers of one provider's nodes in the last day. */
export type NodeState = {
  /** The label in the setting, never a URL, because URLs contain keys. */
  readonly provider: string
  /** Null if no process has recorded anything. */
  readonly record: { readonly answered: number; readonly failed: number } | null
  /** The false report it made, and how often. */
  readonly fault: { readonly fault: string; readonly faults: string } | null
  /** The limits that its nodes have shown, in words; null if they refused nothing. */
  readonly limits: string | null
}

/** Reads the state of every network of this deployment. */
export function openChainStates(ctx: Context, rails: Rails): () => Promise<ChainState[]> {
  const { db, config } = ctx
  const readiness = openReadiness(ctx, rails)
  return async () => {
    const [records, found] = await Promise.all([listNodeRecords(db), listLimitsRecords(db)])
    const offered = networks.filter(({ id }) => config.networks.includes(id))
    return await Promise.all(
      offered.map(async (network) => {
        const [follower, obstacle, faults] = await Promise.all([
          readFollower(db, network.caip2),
          readiness(network.caip2),
          listFaults(db, network.caip2),
        ])
        const providers = new Set(nodesOf(config, network.id).map(({ provider }) => provider))
        const nodes = [...providers].map((provider) => {
          const isIts = (each: { readonly network: string; readonly provider: string }) =>
            each.network === network.id && each.provider === provider
          const limits = found.find(isIts)
          return {
            provider,
            record: records.find(isIts) ?? null,
            fault: faults.find((each) => each.provider === provider) ?? null,
            limits: limits ? describeLimits(limits) : null,
          }
        })
        return { network, follower, obstacle, nodes }
      }),
    )
  }
}
