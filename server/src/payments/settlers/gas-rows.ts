import type { Database } from '../../database/db.ts'
import { authorizationOf } from '../rows.ts'

/** SQL for what settlements cost: what settlers hold, what mined transactions took from them, and for whom. */
export type LaneState = {
  readonly address: string | null
  readonly silenceSeconds: number | null
  /** Age of the oldest unmined transaction. */
  readonly unminedSeconds: number | null
  /** Whether nodes refuse its oldest transaction because it cannot pay for it. */
  readonly isUnfunded: boolean
  readonly balanceWei: bigint | null
  /** What a full batch costs on top of its gas. */
  readonly dataFeeWei: bigint
}

/** A claim is usually sent with the next block. */
const overdueSeconds = 6
/** Bounds what is read; a wallet with many payments in progress may have most of them. */
const overdueRead = 640

/** Everything that decides whether a network can settle now, in one query. */
export async function readReadiness(
  db: Database,
  network: string,
): Promise<{
  lanes: LaneState[]
  headAgeSeconds: number | null
  baseFee: bigint
  /** Payments that are claimed and neither paid nor dead. A contract wallet has one in flight, however many it has signed. */
  waiting: number
  /** Ordinary wallets whose payments have been waiting to be sent for longer than that, counted up to a limit. */
  overdue: number
  isRestoring: boolean
  /** How many providers reported the head; null where that is not counted. */
  witnesses: number | null
  /** What the providers contradict each other about. */
  dispute: string | null
}> {
  const rows = await db.query<{
    address: string | null
    silence: number | null
    unmined: number | null
    is_unfunded: boolean
    balance_wei: string | null
    data_fee_wei: string | null
    head_age: number | null
    base_fee: string | null
    waiting: number
    overdue: number
    is_restoring: boolean
    witnesses: number | null
    dispute: string | null
  }>(
    `select s.address, extract(epoch from clock() - s.alive_at)::float8 as silence, s.balance_wei, s.data_fee_wei,
       extract(epoch from clock() - oldest.created_at)::float8 as unmined,
       coalesce(oldest.is_unfunded, false) as is_unfunded,
       extract(epoch from clock() - f.head_seen_at)::float8 as head_age, f.base_fee, f.witnesses, f.dispute,
       (select (count(*) filter (where not a.is_contract) + count(distinct a.payer) filter (where a.is_contract))::integer
          from authorizations a where a.network = f.network
          and a.state in ('claimed', 'sent') and not a.is_credited and a.refund_id is null) as waiting,
       (select count(distinct payer)::integer from (select a.payer from authorizations a where a.network = f.network
          and a.state = 'claimed' and a.refund_id is null and not a.is_contract and a.spent_block_number is null
          and a.claimed_at < clock() - interval '${overdueSeconds} seconds'
          order by a.claimed_at limit ${overdueRead}) waited) as overdue,
       exists (select 1 from restores r where r.network = f.network and r.finished_at is null) as is_restoring
     from followers f left join settlers s on s.network = f.network and s.state = 'active' and s.stopped_at is null
     left join lateral (
       select t.created_at, (select b.unfunded_at is not null from broadcasts b where b.network = t.network
         and b.settler = t.settler and b.nonce = t.nonce order by b.created_at desc limit 1) as is_unfunded
       from transactions t where t.network = s.network and t.settler = s.address and t.mined_at is null
       order by t.nonce limit 1) oldest on true
     where f.network = $1`,
    [network],
  )
  return {
    headAgeSeconds: rows[0]?.head_age ?? null,
    baseFee: BigInt(rows[0]?.base_fee ?? '0'),
    waiting: rows[0]?.waiting ?? 0,
    overdue: rows[0]?.overdue ?? 0,
    isRestoring: rows[0]?.is_restoring ?? false,
    witnesses: rows[0]?.witnesses ?? null,
    dispute: rows[0]?.dispute ?? null,
    lanes: rows.map((row) => ({
      address: row.address,
      silenceSeconds: row.silence,
      unminedSeconds: row.unmined,
      isUnfunded: row.is_unfunded,
      balanceWei: row.balance_wei === null ? null : BigInt(row.balance_wei),
      dataFeeWei: BigInt(row.data_fee_wei ?? '0'),
    })),
  }
}

/** What nodes answered when bytes were sent. */
export type Reception = {
  /** Whether a node took them, now or before. */
  readonly isTaken: boolean
  /** Whether nodes refused them because the settler cannot pay. */
  readonly isUnfunded: boolean
  /** The node's words, if it refused them. */
  readonly refusal: string | null
}

/** Records that bytes were sent. It is news if nodes refused them for a reason that was not recorded before. */
export async function noteSent(
  db: Database,
  hash: string,
  { isTaken, isUnfunded, refusal }: Reception,
): Promise<{ readonly isNews: boolean; readonly network: string; readonly settler: string }> {
  const [row] = await db.query<{ is_news: boolean; network: string; settler: string }>(
    `update broadcasts b set first_sent_at = coalesce(b.first_sent_at, clock()), last_sent_at = clock(),
       taken_at = case when $2::boolean then coalesce(b.taken_at, clock()) else b.taken_at end,
       unfunded_at = case when $3::boolean then coalesce(b.unfunded_at, clock()) when not $2::boolean then b.unfunded_at end,
       refusal = coalesce($4::text, b.refusal)
     from broadcasts old where b.hash = $1 and old.hash = b.hash
     returning b.network, b.settler, $4::text is not null and case when $3::boolean then old.unfunded_at is null
       else old.refusal is distinct from $4::text end as is_news`,
    [hash, isTaken, isUnfunded, refusal],
  )
  return { isNews: row?.is_news ?? false, network: row?.network ?? '', settler: row?.settler ?? '' }
}

export type Uncosted = {
  readonly nonce: number
  /** Of everything that was signed for it. */
  readonly hashes: readonly string[]
  readonly minedAgoSeconds: number
  /** Whether nothing else can have been signed for it. */
  readonly isComplete: boolean
}

/** Mined transactions whose cost is not known yet. */
export async function listUncosted(
  db: Database,
  network: string,
  settler: string,
  limit: number,
): Promise<Uncosted[]> {
  const rows = await db.query<{ nonce: string; hashes: string[]; mined_ago: number; is_complete: boolean }>(
    // After an hour nobody asks again. A restore may have forgotten bytes that were signed for a nonce.
    `select t.nonce, array_agg(b.hash) as hashes, extract(epoch from clock() - t.mined_at)::float8 as mined_ago,
       not exists (select 1 from restores r where r.network = $1
         and (r.finished_at is null or r.finished_at >= t.created_at)) as is_complete
     from transactions t
     join broadcasts b on b.network = t.network and b.settler = t.settler and b.nonce = t.nonce
     where t.network = $1 and t.settler = $2 and t.cost_wei is null and t.mined_at > clock() - interval '1 hour'
       and not exists (select 1 from foreign_nonces f where f.network = $1 and f.settler = $2 and f.nonce = t.nonce)
     group by t.network, t.settler, t.nonce order by t.nonce limit $3`,
    [network, settler, limit],
  )
  return rows.map((row) => ({
    nonce: Number.parseInt(row.nonce, 10),
    hashes: row.hashes,
    minedAgoSeconds: row.mined_ago,
    isComplete: row.is_complete,
  }))
}

/**
 * Records what mined transactions cost. Their calls share the cost equally, and each share is charged to the store of
 * its payment, whether it had effect or not. Those without effect are marked as failed. Returns the transactions that
 * this call recorded, each with the number of its payments.
 */
export async function noteCosts(
  db: Database,
  network: string,
  settler: string,
  costs: readonly { readonly nonce: number; readonly wei: bigint }[],
): Promise<{ readonly nonce: number; readonly payments: number }[]> {
  const rows = await db.query<{ nonce: string; payments: number }>(
    `with costed as (
       update transactions t set cost_wei = i.wei from json_to_recordset($3) as i (nonce bigint, wei numeric)
       where t.network = $1 and t.settler = $2 and t.nonce = i.nonce and t.mined_at is not null and t.cost_wei is null
       returning t.nonce, t.cost_wei
     ), calls as (
       select c.settler_nonce, c.asset, c.payer, c.nonce, a.store_id, a.is_credited,
         trunc(t.cost_wei / count(*) over (partition by t.nonce)) as share
       from costed t
       join transaction_calls c on c.network = $1 and c.settler = $2 and c.settler_nonce = t.nonce
       cross join ${authorizationOf('c')}
     ), locked as (
       -- Never waits for a transaction that locks several authorizations in another order.
       select a.asset, a.payer, a.nonce from calls c
       cross join lateral (select * from authorizations a where a.network = $1 and a.asset = c.asset
         and a.payer = c.payer and a.nonce = c.nonce and a.failed_at is null for no key update skip locked) a
       where not c.is_credited
     ), failed as (
       update authorizations a set failed_at = clock() from locked l
       where a.network = $1 and a.asset = l.asset and a.payer = l.payer and a.nonce = l.nonce
     ), charged as (
       insert into store_gas as g (store_id, network, day, spent, payments, failures)
       select store_id, $1, (clock() at time zone 'utc')::date, sum(share), count(*),
         count(*) filter (where not is_credited)
       from calls where store_id is not null group by store_id order by store_id
       on conflict (store_id, network, day) do update set spent = g.spent + excluded.spent,
         payments = g.payments + excluded.payments, failures = g.failures + excluded.failures
     ), summed as (
       insert into settler_gas as g (network, settler, hour, spent, payments, failures)
       select $1, $2, date_trunc('hour', clock()), sum(cost_wei), (select count(*) from calls),
         (select count(*) from calls where not is_credited)
       from costed having count(*) > 0
       on conflict (network, settler, hour) do update set spent = g.spent + excluded.spent,
         payments = g.payments + excluded.payments, failures = g.failures + excluded.failures
     )
     select t.nonce, (select count(*)::integer from calls c where c.settler_nonce = t.nonce) as payments from costed t`,
    [network, settler, JSON.stringify(costs.map(({ nonce, wei }) => ({ nonce, wei: wei.toString() })))],
  )
  return rows.map(({ nonce, payments }) => ({ nonce: Number.parseInt(nonce, 10), payments }))
}

/** What settlers spent in the last 24 hours and how many payments had effect, by `network address`. */
export async function readSpent(
  db: Database,
): Promise<Map<string, { readonly spent: bigint; readonly payments: bigint }>> {
  const rows = await db.query<{ network: string; settler: string; spent: string; payments: string }>(
    `select network, settler, sum(spent) as spent, sum(payments - failures) as payments
     from settler_gas
     where hour > clock() - interval '24 hours' group by network, settler`,
  )
  return new Map(
    rows.map(({ network, settler, spent, payments }) => [
      `${network} ${settler}`,
      { spent: BigInt(spent), payments: BigInt(payments) },
    ]),
  )
}

/** What a store's settlements have cost today (UTC), by network. */
export async function readStoreGas(db: Database, storeId: string): Promise<Map<string, bigint>> {
  const rows = await db.query<{ network: string; spent: string }>(
    "select network, spent from store_gas where store_id = $1 and day = (clock() at time zone 'utc')::date",
    [storeId],
  )
  return new Map(rows.map(({ network, spent }) => [network, BigInt(spent)]))
}

/** Payments of a network that are claimed and not sent, or sent and not found yet. Counted up to a limit. */
export async function measureInFlight(
  db: Database,
  network: string,
  countMax: number,
): Promise<Readonly<Record<'claimed' | 'sent', { readonly count: number; readonly oldestAt: Date | null }>>> {
  const rows = await db.query<{ state: 'claimed' | 'sent'; count: number; oldestAt: Date }>(
    `select state, count(*)::integer as count, min(claimed_at) as "oldestAt" from (
       select state, claimed_at from authorizations
       where network = $1 and state in ('claimed', 'sent') and not is_credited and refund_id is null limit $2) waiting
     group by state`,
    [network, countMax],
  )
  const of = (state: 'claimed' | 'sent') =>
    rows.find((row) => row.state === state) ?? { count: 0, oldestAt: null }
  return { claimed: of('claimed'), sent: of('sent') }
}
