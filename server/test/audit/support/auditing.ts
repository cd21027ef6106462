import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { listAudited } from '../../../src/audit/audited.ts'
import type { AuditFinding } from '../../../src/audit/read.ts'
import { listFindings } from '../../../src/audit/read.ts'
import { auditDue, type Comparison } from '../../../src/audit/run.ts'
import { findUnpaidSince } from '../../../src/audit/unpaid.ts'
import type { Context } from '../../../src/context.ts'
import { newId } from '../../../src/ids.ts'
import { openAs } from '../../support/database.ts'
import { type Call, openFaultyNode } from '../../support/faulty-node.ts'
import { openShop, payTo, type ShopOptions } from '../../support/shop.ts'
import { assertPaid, untilRead } from '../../support/watch.ts'

export const dayMs = 86_400_000
/** So many blocks later anvil calls a block final. */
const finalBlocks = 70

/**
 * A shop whose follower asks one node, and whose audit asks three others. Its chain is mined by hand, so that its days
 * pass when the test says so.
 */
export async function openAuditedShop(options: ShopOptions & { readonly transfersMax?: number } = {}) {
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
  const audited = listAudited(ctx, options.transfersMax)
  const time = async () => new Date(Number(await shop.chain.time()) * 1_000)
  const asking = (told: Comparison[]) => ({
    isOver: () => false,
    tell: (one: Comparison) => void told.push(one),
    tellStray: () => {},
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
    /** The nightly look at all checkouts that are called paid. */
    findUnpaid: async (): Promise<number> => await findUnpaidSince(ctx.db, ctx.config.cell, await time()),
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

/** Pays a checkout and returns its id. */
export async function sell(shop: AuditedShop): Promise<string> {
  const id = await shop.create()
  const payer = await shop.fund(5_000_000n)
  await shop.chain.setAutomine(true)
  const answer = await shop.pay(id, await shop.sign(id, payer))
  await shop.chain.setAutomine(false)
  assertPaid(answer)
  return id
}

/** Money that the chain has and the follower is not shown: no other transfer may have this amount. */
export async function receiveUnseen(shop: AuditedShop, units: bigint): Promise<string> {
  const seen = shop.followed.lie
  shop.followed.lie = (call, result) => {
    const told = seen(call, result)
    return call.method === 'eth_getLogs' && Array.isArray(told)
      ? told.filter((log: { readonly data: string }) => log.data === '0x' || BigInt(log.data) !== units)
      : told
  }
  return await shop.receive(units)
}

type Planted = {
  readonly at: Date
  readonly network?: string
  readonly transaction?: string
  readonly payer?: string
  readonly payTo?: string
  readonly amount?: bigint
  readonly position?: number
  readonly checkoutId?: string
}

/** No key is known for it. */
export const nobody = '0x000000000000000000000000000000000000dead'

/** As `work`: a credit of a checkout that nobody paid. Without more it says what the checkout asks for. */
export async function plantCredit(
  shop: Pick<AuditedShop, 'create' | 'databaseUrl'> & {
    readonly chain: { readonly network: { readonly caip2: string } }
  },
  { at, network = shop.chain.network.caip2, position = 0, amount, checkoutId, ...said }: Planted,
): Promise<string> {
  const id = checkoutId ?? (await shop.create())
  const work = openAs('work', shop.databaseUrl)
  const hash = `0x${randomBytes(32).toString('hex')}`
  const { transaction = hash, payer = nobody, payTo: to = null } = said
  await work.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time, included_at,
       safe_at, finalized_at, witnessed_at)
     select $1, $2, 0, $3, 1, $4::timestamptz, $5, $6, case when $11 then lower(o.asset) else o.asset end, $7,
       coalesce($8, case when $11 then lower(o."payTo") else o."payTo" end),
       coalesce($9, o.amount), c.store_id, c.id, 'exact', $4, $4, $4, $4, $4
     from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
     where c.id = $10 limit 1`,
    [
      ...[network, hash, newId('pay', '00', at), at, transaction, position, payer, to],
      ...[amount?.toString() ?? null, id, network.startsWith('eip155:')],
    ],
  )
  await work.query(`update checkouts set status = 'COMPLETED', version = version + 1 where id = $1`, [id])
  return id
}
