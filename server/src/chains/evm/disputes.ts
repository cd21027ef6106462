import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import * as rows from '../rows.ts'
import type { Chain } from './chain.ts'
import type { Lie } from './witnesses.ts'

/** If providers differ above `safe` for longer than this, the reason is not an ordinary reorganisation. */
const forkSeconds = 10

/**
 * Stops asking providers that were caught lying for a while, and warns the operator. Each provider is logged once per
 * read: one that lies about a block often lies about all of them, and payers wait meanwhile.
 */
export async function noteLies(ctx: Context, chain: Chain, lies: readonly Lie[]): Promise<void> {
  for (const { provider, what } of new Map(lies.map((lie) => [lie.provider, lie])).values()) {
    chain.rpc.setAside(provider)
    ctx.metrics.contradictions.inc({ network: chain.network.id, provider })
    await noteFault(ctx.db, chain.network.caip2, provider, what)
    ctx.log.warn(
      { network: chain.network.id, provider, lie: what },
      'a node reported something false and is not asked for a while; if this repeats, replace its provider',
    )
  }
}

type Disagreement =
  | { readonly kind: 'forked'; readonly number: number }
  | { readonly kind: 'disputed'; readonly what: string }

/**
 * Records that providers contradict each other and nothing proves which one lies. Until they agree, no block is
 * accepted and no payment is claimed.
 */
export async function noteDispute(
  ctx: Context,
  chain: Chain,
  follower: rows.Follower,
  disagreement: Disagreement,
): Promise<void> {
  if (
    disagreement.kind === 'forked' &&
    disagreement.number > follower.safeNumber &&
    (follower.headAgeSeconds ?? 0) < forkSeconds
  )
    return
  const what = disagreement.kind === 'forked' ? `block ${disagreement.number}` : disagreement.what
  ctx.metrics.nodeDispute.set({ network: chain.network.id }, 1)
  if (await rows.writeDispute(ctx.db, chain.network.caip2, what))
    ctx.log.error(
      { network: chain.network.id, dispute: what },
      'the nodes contradict each other, so payments are refused; find out which provider is wrong and remove it',
    )
}

export async function noteAgreement(ctx: Context, chain: Chain, { dispute }: rows.Follower): Promise<void> {
  ctx.metrics.nodeDispute.set({ network: chain.network.id }, 0)
  if (dispute !== null && (await rows.writeDispute(ctx.db, chain.network.caip2, null)))
    ctx.log.info({ network: chain.network.id }, 'the nodes agree again')
}

/** Records that a provider was caught lying. The count starts again after a day without a lie. */
async function noteFault(db: Database, network: string, provider: string, fault: string): Promise<void> {
  await db.query(
    `insert into node_faults as f (network, provider, fault, faults, last_at) values ($1, $2, $3, 1, clock())
     on conflict (network, provider) do update set fault = $3, last_at = clock(),
       faults = case when f.last_at > clock() - interval '1 day' then f.faults + 1 else 1 end`,
    [network, provider, fault],
  )
}
