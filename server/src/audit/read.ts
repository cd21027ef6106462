import type { Database } from '../database/db.ts'
import type { Kind } from './finding.ts'

/** An open difference between the books and a chain. */
export type AuditFinding = {
  readonly id: string
  readonly kind: Kind
  readonly network: string
  readonly wallet: string
  readonly asset: string
  readonly day: string
  readonly transaction: string
  readonly amount: bigint
  readonly checkoutId: string | null
  readonly storeId: string | null
}

/** A longer list is cut: nobody decides about so many one by one. */
const listedMax = 1_000

/** Open findings, the latest day first: of one store, or of all. */
export async function listFindings(
  db: Database,
  {
    storeId = null,
    from = null,
    to = null,
  }: {
    readonly storeId?: string | null
    readonly from?: string | null
    readonly to?: string | null
  },
): Promise<AuditFinding[]> {
  const rows = await db.query<Omit<AuditFinding, 'amount'> & { amount: string }>(
    `select id::text as id, kind, network, wallet, asset, day::text as day, transaction_hash as "transaction",
       amount::text as amount, checkout_id as "checkoutId", store_id as "storeId"
     from audit_findings where resolved_at is null and ($1::text is null or store_id = $1)
       and ($2::date is null or day >= $2::date) and ($3::date is null or day <= $3::date)
     order by day desc, id desc limit $4`,
    [storeId, from, to, listedMax],
  )
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }))
}
