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

/** A difference as its store sees it. */
export type StoreFinding = Omit<AuditFinding, 'storeId'> & {
  readonly foundAt: Date
  /** Since the books and the chain agree. */
  readonly resolvedAt: Date | null
  /** Whether its transaction was found minutes ago, so that the next comparison will tell. */
  readonly isAwaited: boolean
  /** What came of the look at its transaction that somebody asked for. */
  readonly lookUp: string | null
  readonly note: string | null
  readonly notedBy: string | null
}

/**
 * SQL: the look at the transaction of the finding `f`, and for how long after it the finding may be over. Not whether the
 * books have such a payment: of two equal transfers they may have one.
 */
const looked = `lookups l on l.network = f.network and l.transaction_hash = f.transaction_hash and f.kind = 'missing'`
const isAwaited = `coalesce(l.outcome = 'found' and l.looked_at > clock() - interval '15 minutes', false)`

/** SQL: what the store said about the finding `f`, as long as it is about the same amount. */
const explained = `audit_explanations e on e.finding_id = f.id and e.store_id = f.store_id and e.amount = f.amount`

/** The store's findings, those that are open first. */
export async function listOfStore(
  db: Database,
  storeId: string,
  limit: number,
): Promise<readonly StoreFinding[]> {
  const rows = await db.query<Omit<StoreFinding, 'amount'> & { amount: string }>(
    `select f.id::text as id, f.kind, f.network, f.wallet, f.asset, f.day::text as day,
       f.transaction_hash as "transaction", f.amount::text as amount, f.checkout_id as "checkoutId",
       f.found_at as "foundAt", f.resolved_at as "resolvedAt", ${isAwaited} as "isAwaited", l.outcome as "lookUp",
       e.note, coalesce(e.actor ->> 'name', e.actor ->> 'id') as "notedBy"
     from audit_findings f left join ${explained}
     left join ${looked}
     where f.store_id = $1
     order by f.resolved_at is not null or e.note is not null, f.day desc, f.id desc limit $2`,
    [storeId, limit],
  )
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }))
}

/** How many of the store's findings wait for somebody. About dust and busy wallets there is nothing to do. */
export async function countOpen(db: Database, storeId: string): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from audit_findings f left join ${explained}
     left join ${looked}
     where f.store_id = $1 and f.resolved_at is null and e.note is null and f.kind not in ('dust', 'busy')
       and not ${isAwaited}`,
    [storeId],
  )
  return row?.count ?? 0
}

/** Up to which day a wallet was compared with a network. */
export type ComparedUpTo = {
  readonly network: string
  readonly wallet: string
  readonly day: string
  /** Since when the nodes cannot answer. */
  readonly troubleSince: Date | null
}

export async function listCompared(db: Database, storeId: string): Promise<readonly ComparedUpTo[]> {
  return await db.query<ComparedUpTo>(
    `select d.network, d.wallet, max(d.day)::text as day, max(r.trouble_since) as "troubleSince"
     from audit_days d left join audit_runs r on r.network = d.network
     where d.wallet in (select w.pay_to from wallets w where w.store_id = $1 and w.registration > 0)
     group by d.network, d.wallet order by d.network, d.wallet`,
    [storeId],
  )
}

/** When the audit of each network last ended, and how far it is with the wallet that is furthest behind. */
export async function listRuns(db: Database): Promise<
  readonly {
    readonly network: string
    readonly ranAt: Date
    readonly trouble: string | null
    readonly day: string | null
  }[]
> {
  return await db.query(
    `select r.network, r.ran_at as "ranAt", r.trouble, (select min(each.day)::text from (select max(d.day) as day
         from audit_days d join wallets w on w.pay_to = d.wallet and w.registration > 0 and w.retired_at is null
         where d.network = r.network group by d.wallet) each) as day
     from audit_runs r order by r.network`,
  )
}

/** Open findings of all stores, by kind. */
export async function countAllOpen(db: Database): Promise<readonly { kind: Kind; count: number }[]> {
  return await db.query(
    `select kind, count(*)::integer as count from audit_findings where resolved_at is null group by kind order by kind`,
  )
}

/** Since when the change that waits longest could have been compared; null if none waits. */
export async function readWaitingSince(db: Database): Promise<Date | null> {
  const [row] = await db.query<{ since: Date | null }>(
    `select min(case when day > changed_at::date + 1 then changed_at
       else greatest(changed_at, (day + 1)::timestamp at time zone 'UTC') end) as since from audit_changes`,
  )
  return row?.since ?? null
}
