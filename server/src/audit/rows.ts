import type { Database, Transaction } from '../database/db.ts'
import type { Network } from '../networks.ts'
import type { Arrived, Credited, Discrepancy } from './finding.ts'

/** A store's wallet and the first day that was not compared yet. */
export type DueWallet = {
  readonly wallet: string
  readonly isProven: boolean
  /** Whether the books say that another cell owns it. `work` writes that, so it is compared all the same. */
  readonly isElsewhere: boolean
  /** Whether it had too many transfers on the day before. */
  readonly wasBusy: boolean
  readonly createdAt: Date
  /** Such as 2026-11-16, in UTC. */
  readonly day: string
}

/** Money to a wallet that its store has retired without proving it is recorded for this long. */
const retiredDays = 9

/** SQL: the wallets of a network’s stores, $1 its family and $2 its mode. */
const ours = `select w.pay_to as wallet, min(w.created_at) as created_at, bool_or(w.proven_at is not null) as is_proven,
    bool_and(w.elsewhere) as is_elsewhere,
    case when bool_and(w.proven_at is null and w.retired_at is not null)
      then max(w.retired_at) + interval '${retiredDays} days' end as ended_at
  from wallets w join stores s on s.id = w.store_id and s.mode = $2
  where w.family = $1 and w.registration > 0 and not w.unowned group by w.pay_to`

/** SQL: the columns of `DueWallet`, on a network and day. */
const dueOn = (
  network: string,
  day: string,
) => `wallet, is_proven as "isProven", is_elsewhere as "isElsewhere",
  created_at as "createdAt", ${day}::text as day, exists (select 1 from audit_days b where b.network = ${network}
    and b.wallet = o.wallet and b.day = ${day} - 1 and b.received is null) as "wasBusy"`

/** The wallets whose next day is over, the earliest day first. */
export async function listDue(
  db: Database,
  { family, mode, caip2 }: Network,
  today: string,
): Promise<DueWallet[]> {
  return await db.query<DueWallet>(
    `with ours as (${ours}), next as (
       select o.*, coalesce((select max(d.day) + 1 from audit_days d where d.network = $3 and d.wallet = o.wallet),
         (o.created_at at time zone 'UTC')::date) as day
       from ours o)
     select ${dueOn('$3', 'o.day')} from next o
     where day < $4::date and (ended_at is null or day <= (ended_at at time zone 'UTC')::date)
     order by day, is_proven desc, wallet`,
    [family, mode, caip2, today],
  )
}

/** The wallets as they are compared for one day, whether that was done before or not. */
export async function listOn(
  db: Database,
  { family, mode, caip2 }: Network,
  day: string,
): Promise<DueWallet[]> {
  return await db.query<DueWallet>(
    `with ours as (${ours})
     select ${dueOn('$4', '$3::date')} from ours o
     where (created_at at time zone 'UTC')::date <= $3::date and (ended_at is null or ended_at > $3::date)
     order by is_proven desc, wallet`,
    [family, mode, day, caip2],
  )
}

/** How often the credits of a wallet and day have changed since they were compared. */
export type Changed = { readonly wallet: string; readonly day: string; readonly changes: string }

/** More wallets and days of each kind are left for the next run. */
const changedMax = 2_000

/** SQL: the changes of a network, $3, and which wallet of ours they are about. Those that waited longest come first. */
const waiting = `with ours as (${ours})
  select c.wallet, c.day::text as day, c.changes::text as changes from audit_changes c
  left join ours o on o.wallet = c.wallet and c.day < $4::date and (o.created_at at time zone 'UTC')::date <= c.day
    and (o.ended_at is null or o.ended_at > c.day)
  left join lateral (select max(d.checked_at) as at from audit_days d
    where d.network = c.network and d.wallet = c.wallet and d.day = c.day) compared on true
  where c.network = $3`
const inTurn = 'order by greatest(c.changed_at, compared.at), c.day, c.wallet limit $5'

/** Days of wallets that were compared before the books changed. */
export async function listChanged(
  db: Database,
  { family, mode, caip2 }: Network,
  today: string,
): Promise<readonly Changed[]> {
  return await db.query(`${waiting} and o.wallet is not null and compared.at is not null ${inTurn}`, [
    ...[family, mode, caip2, today, changedMax],
  ])
}

/** What identifies a network in the books. Without a family no wallet is of it. */
export type Booked = Pick<Network, 'caip2'> & { readonly family: string; readonly mode: string }

/** Days before this one, or to come, of wallets that no store has then. */
export async function listStrays(
  db: Database,
  { family, mode, caip2 }: Booked,
  { today, recent }: { readonly today: string; readonly recent: string },
): Promise<readonly Changed[]> {
  return await db.query(
    `${waiting} and o.wallet is null and (c.day < $6::date or c.day > $4::date + 1) ${inTurn}`,
    [family, mode, caip2, today, changedMax, recent],
  )
}

/** Networks of which the books have changed. */
export async function listChangedNetworks(db: Database): Promise<string[]> {
  const rows = await db.query<{ network: string }>('select distinct network from audit_changes order by 1')
  return rows.map(({ network }) => network)
}

export async function readChanges(
  db: Database,
  network: string,
  wallets: readonly string[],
  day: string,
): Promise<readonly Omit<Changed, 'day'>[]> {
  return await db.query(
    `select wallet, changes::text as changes from audit_changes
     where network = $1 and wallet = any($2) and day = $3`,
    [network, wallets, day],
  )
}

/** Those that changed meanwhile wait again. Those that are changing now stay as they are. */
export async function endChanges(
  tx: Transaction,
  network: string,
  day: string,
  changes: readonly Omit<Changed, 'day'>[],
): Promise<void> {
  await tx.query(
    `with free as (select a.wallet, a.changes = i.changes as is_over from audit_changes a
         join json_to_recordset($3) as i (wallet text, changes bigint) on i.wallet = a.wallet
         where a.network = $1 and a.day = $2 for update of a skip locked),
       over as (delete from audit_changes c using free
         where c.network = $1 and c.day = $2 and c.wallet = free.wallet and free.is_over)
     update audit_changes c set changed_at = clock_timestamp() from free
     where c.network = $1 and c.day = $2 and c.wallet = free.wallet and not free.is_over`,
    [network, day, JSON.stringify(changes)],
  )
}

/** What cannot be compared goes behind the others, so that it does not keep them waiting. */
export async function putOff(db: Database, network: string, wallet: string, day: string): Promise<void> {
  await db.query(
    `update audit_changes c set changed_at = clock_timestamp() from (select 1 as one from audit_changes a
         where a.network = $1 and a.wallet = $2 and a.day = $3 for update of a skip locked) free
     where c.network = $1 and c.wallet = $2 and c.day = $3`,
    [network, wallet, day],
  )
}

/** Transactions of payments that an earlier comparison called unfounded. */
export async function listOpenTransactions(
  db: Database,
  network: string,
  wallets: readonly string[],
  day: string,
): Promise<string[]> {
  const rows = await db.query<{ hash: string }>(
    `select distinct transaction_hash as hash from audit_findings
     where network = $1 and wallet = any($2) and day = $3 and kind = 'unfounded' and resolved_at is null`,
    [network, wallets, day],
  )
  return rows.map(({ hash }) => hash)
}

/** SQL: whether the credit’s block is of this day in UTC. */
function onDay(credit: string, day: string): string {
  return `${credit}.block_time >= ${day}::date::timestamp at time zone 'UTC'
    and ${credit}.block_time < (${day}::date + 1)::timestamp at time zone 'UTC'`
}

/** SQL: the columns of `Credited`. */
const credited = `k.network, k.transaction_hash as "transaction", k.asset, k.payer, k.pay_to as "to",
  k.amount::text as amount, k.block_time as at, k.checkout_id as "checkoutId", k.store_id as "storeId"`

type RawCredited = Omit<Credited, 'amount'> & { readonly amount: string }

function toCredited(row: RawCredited): Credited {
  return { ...row, amount: BigInt(row.amount) }
}

/** What the books have for these wallets on a day. */
export async function listCredits(
  db: Database,
  network: string,
  wallets: readonly string[],
  day: string,
): Promise<Credited[]> {
  const rows = await db.query<RawCredited>(
    `select ${credited} from credits k
     where k.network = $1 and k.pay_to = any($2) and k.orphaned_at is null and ${onDay('k', '$3')}`,
    [network, wallets, day],
  )
  return rows.map(toCredited)
}

/** What the books have of these transactions for these wallets, on any day. */
export async function listCreditsOf(
  db: Database,
  network: string,
  wallets: readonly string[],
  transactions: readonly string[],
): Promise<Credited[]> {
  if (transactions.length === 0) return []
  const rows = await db.query<RawCredited>(
    `select ${credited} from credits k
     where k.transaction_hash = any($3) and k.network = $1 and k.pay_to = any($2) and k.orphaned_at is null
     order by k.payment_id`,
    [network, wallets, transactions],
  )
  return rows.map(toCredited)
}

/** Those whose payments retention has deleted, or whose payers were erased: the books have had them. */
export async function listKept(
  db: Database,
  network: string,
  arrived: readonly Arrived[],
): Promise<ReadonlySet<Arrived>> {
  if (arrived.length === 0) return new Set()
  const rows = await db.query<{ at: number }>(
    `select i.at from json_to_recordset($2) as i
       (at integer, transaction_hash text, asset text, payer text, pay_to text, amount numeric, position integer)
     where exists (select 1 from kept_credits x where x.key =
       credit_key($1, i.transaction_hash, i.asset, i.payer, i.pay_to, i.amount, i.position))`,
    [
      network,
      toJson(
        arrived.map(({ transaction, asset, from, to, amount, position }, at) => ({
          ...{ at, transaction_hash: transaction, asset, payer: from, pay_to: to, amount, position },
        })),
      ),
    ],
  )
  return new Set(rows.flatMap(({ at }) => arrived[at] ?? []))
}

/** What a wallet held at the end of the day before; absent if that day was not compared, or nobody could tell. */
export async function readBalances(
  db: Database,
  network: string,
  wallets: readonly string[],
  day: string,
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await db.query<{ wallet: string; asset: string; balance: string }>(
    `select wallet, asset, balance::text as balance from audit_days
     where network = $1 and wallet = any($2) and day = $3::date - 1 and balance is not null`,
    [network, wallets, day],
  )
  return new Map(rows.map(({ wallet, asset, balance }) => [`${wallet} ${asset}`, BigInt(balance)]))
}

/** A day as it was compared, for one wallet and token. */
export type ComparedDay = {
  readonly wallet: string
  readonly asset: string
  /** Null if there were too many transfers. */
  readonly received: bigint | null
  readonly sent: bigint | null
  readonly balance: bigint | null
  readonly credits: number
  readonly credited: bigint
}

export async function writeDays(
  tx: Transaction,
  network: string,
  day: string,
  days: readonly ComparedDay[],
): Promise<void> {
  await tx.query(
    `insert into audit_days (network, wallet, asset, day, received, sent, balance, credits, credited, checked_at)
     select $1, i.wallet, i.asset, $2, i.received, i.sent, i.balance, i.credits, i.credited, clock()
     from json_to_recordset($3) as i (wallet text, asset text, received numeric, sent numeric, balance numeric,
       credits integer, credited numeric)
     on conflict (network, wallet, asset, day) do update set received = excluded.received, sent = excluded.sent,
       balance = coalesce(excluded.balance, audit_days.balance), credits = excluded.credits,
       credited = excluded.credited, checked_at = excluded.checked_at`,
    [network, day, toJson(days)],
  )
}

/** Amounts are text in JSON, whose numbers are exact only up to 2^53. */
function toJson(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? each.toString() : each))
}

/**
 * Writes what was found, once for each store that owns the wallet. A finding that is known says nothing new. Returns how
 * many are new.
 */
export async function writeFindings(
  db: Database | Transaction,
  { caip2, mode }: { readonly caip2: string; readonly mode: string },
  differences: readonly Discrepancy[],
): Promise<number> {
  if (differences.length === 0) return 0
  const rows = await db.query<{ isNew: boolean }>(
    `insert into audit_findings as f
       (kind, network, wallet, asset, day, transaction_hash, position, amount, checkout_id, store_id, found_at)
     select i.kind, $1, i.wallet, i.asset, i.day, i.transaction, i.position, i.amount, i."checkoutId",
       coalesce(s.id, o.store_id), clock()
     from json_to_recordset($3) as i (kind text, day date, wallet text, asset text, transaction text, position integer,
       amount numeric, "checkoutId" text, "storeId" text)
     left join stores s on s.id = i."storeId"
     left join lateral (select store_id from payment_owners(i.wallet, (i.day + 1)::timestamp at time zone 'UTC', $2)
       where s.id is null) o on true
     on conflict (network, wallet, asset, day, kind, transaction_hash, position, checkout_id, store_id)
       do update set resolved_at = null, amount = excluded.amount
         where f.resolved_at is not null or f.amount <> excluded.amount
     returning true as "isNew"`,
    [caip2, mode, toJson(differences)],
  )
  return rows.length
}

/**
 * Ends the findings about these wallets that the last comparison did not make again: those of the day, and those about
 * payments of the transactions that were looked at, whatever day they say.
 */
export async function resolveOthers(
  tx: Transaction,
  network: string,
  {
    wallets,
    day,
    transactions,
  }: {
    readonly wallets: readonly string[]
    readonly day: string
    readonly transactions: readonly string[]
  },
  differences: readonly Discrepancy[],
): Promise<number> {
  const rows = await tx.query(
    `update audit_findings f set resolved_at = clock()
     where f.network = $1 and f.wallet = any($2) and f.resolved_at is null and f.kind <> 'unpaid'
       and (f.day = $3 or (f.kind = 'unfounded' and f.transaction_hash = any($5)))
       and not exists (select 1 from json_to_recordset($4) as i (kind text, day date, wallet text, asset text,
           transaction text, position integer, "checkoutId" text)
         where i.kind = f.kind and i.day = f.day and i.wallet = f.wallet and i.asset = f.asset and i.transaction = f.transaction_hash
           and i.position = f.position and i."checkoutId" is not distinct from f.checkout_id)
     returning 1 as one`,
    [network, wallets, day, toJson(differences), transactions],
  )
  return rows.length
}

/** How the audit of a network ended. */
export async function noteRun(
  db: Database,
  network: string,
  calls: number,
  trouble: string | null,
): Promise<void> {
  await db.query(
    `insert into audit_runs as r (network, ran_at, calls, trouble, trouble_since)
     values ($1, clock(), $2, $3, case when $3::text is not null then clock() end)
     on conflict (network) do update set ran_at = clock(), calls = $2, trouble = $3,
       trouble_since = case when $3::text is not null then coalesce(r.trouble_since, clock()) end`,
    [network, calls, trouble],
  )
}
