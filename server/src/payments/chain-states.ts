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
  /** How far it has been followed; null if it has not. */
  readonly follower: Follower | null
  /** Why payments are refused there; null if they are not. */
  readonly obstacle: string | null
  readonly nodes: readonly NodeState[]
}

/** How the nodes of one provider did in the last day. */
export type NodeState = {
  /** The label of the setting, never a URL: those hold keys. */
  readonly provider: string
  /** Null if no process has recorded anything. */
  readonly record: { readonly answered: number; readonly failed: number } | null
  /** What it reported that was false, and how often. */
  readonly fault: { readonly fault: string; readonly faults: string } | null
  /** What its nodes were found to take, in words; null if they refused nothing. */
  readonly limits: string | null
}

/** Reads the state of every network that this deployment offers. */
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
