import assert from 'node:assert/strict'
import { listAudited } from '../../../src/audit/audited.ts'
import type { AuditFinding } from '../../../src/audit/read.ts'
import { listFindings } from '../../../src/audit/read.ts'
import { auditAgain, auditDue, type Comparison } from '../../../src/audit/run.ts'
import type { Context } from '../../../src/context.ts'
import { openAs } from '../../support/database.ts'
import { type Call, openFaultyNode } from '../../support/faulty-node.ts'
import { openShop, payTo, type ShopOptions } from '../../support/shop.ts'
import { untilRead } from '../../support/watch.ts'

export const dayMs = 86_400_000
/** So many blocks later anvil calls a block final. */
const finalBlocks = 70

/**
 * A shop whose follower asks one node, and whose audit asks three others. Its chain is mined by hand, so that its days
 * pass when the test says so.
 */
export async function openAuditedShop(options: ShopOptions = {}) {
  const followed = await openFaultyNode('')
  const nodes = await Promise.all([openFaultyNode(''), openFaultyNode(''), openFaultyNode('')])
  const shop = await openShop({
    ...options,
    blockTimeSeconds: null,
    nodes: [followed],
    settings: {
      LOCAL_AUDIT_RPC_URLS: nodes.map(({ url }, i) => `auditor-${i + 1}=${url}`).join(','),
      ...options.settings,
    },
  })
  for (const node of nodes) node.target = shop.chain.url
  const ctx: Context = { ...shop.ctx, db: openAs('audit', shop.databaseUrl) }
  const audited = listAudited(ctx)
  const time = async () => new Date(Number(await shop.chain.time()) * 1_000)
  const asking = (told: Comparison[]) => ({
    isOver: () => false,
    tell: (one: Comparison) => void told.push(one),
  })
  return {
    ...shop,
    followed,
    nodes,
    audited,
    auditCtx: ctx,
    time,
    /** Ends the chain’s day: the next block is of the day after, and with `isFinal` everything before it is final. */
    async endDay({ isFinal = true } = {}): Promise<void> {
      const next = (BigInt((await time()).getTime()) / BigInt(dayMs) + 1n) * BigInt(dayMs)
      await shop.chain.setNextBlockTimestamp(next / 1_000n + 60n)
      await shop.chain.mine(isFinal ? finalBlocks : 1)
    },
    /** One block with a transfer to the store’s wallet; returns its transaction. */
    async receive(units: bigint): Promise<string> {
      await shop.chain.mint(payTo, units)
      await untilRead(shop)
      const logs = await shop.chain.transferLogs({ to: payTo })
      return logs.at(-1)?.transactionHash ?? assert.fail()
    },
    /** A run of the audit at the chain’s time, as the process makes it. */
    async audit(): Promise<Comparison[]> {
      const told: Comparison[] = []
      await auditDue(ctx, audited, await time(), asking(told))
      return told
    },
    /** The nightly second look. */
    async auditAgain(): Promise<Comparison[]> {
      const told: Comparison[] = []
      await auditAgain(ctx, audited, await time(), asking(told))
      return told
    },
    findings: async (): Promise<AuditFinding[]> => await listFindings(ctx.db, {}),
  }
}

export type AuditedShop = Awaited<ReturnType<typeof openAuditedShop>>

export function kindsOf(findings: readonly AuditFinding[]): string[] {
  return findings.map(({ kind, amount }) => `${kind} ${amount}`).toSorted()
}

/** A node’s answer without the logs of this transaction. */
export function without(hash: string) {
  return ({ method }: Call, result: unknown): unknown =>
    method === 'eth_getLogs' && Array.isArray(result)
      ? result.filter((log: { readonly transactionHash: string }) => log.transactionHash !== hash)
      : result
}
