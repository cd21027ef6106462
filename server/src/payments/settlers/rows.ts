import type { Hex } from '../../chains/hex.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { isAwakeOn } from '../looks.ts'
import { type AuthorizationKey, authorizationOf, isUncreditedOf } from '../rows.ts'
import { sendsMax } from './foreign-nonces.ts'

/** SQL for settlers, their nonces, and the transactions signed with them. */

export type Settler = {
  readonly network: string
  readonly address: string
  readonly state: 'active' | 'draining' | 'retired'
  readonly nextNonce: number
  readonly minedNonce: number
  readonly balanceWei: bigint | null
  /** A full batch's cost beyond its gas. */
  readonly dataFeeWei: bigint
  /** Null until it was read. */
  readonly balanceAgeSeconds: number | null
  readonly epoch: bigint
  /** Since when nothing is sent from it, because somebody else used one of its nonces. */
  readonly stoppedAt: Date | null
  /** Another cell owns it, so nothing new is sent from it. */
  readonly isElsewhere: boolean
}

/**
 * Within this time, everything that a stopped settler left behind expires: a contract wallet's refund is valid for 7
 * days.
 */
const strandedDays = 8

/** A settler as its lane sees it. */
export type Leased = Settler & {
  /** Whether somebody may be paying on this network. */
  readonly isAwake: boolean
  /** Whether a settler of this network was stopped lately. Then others may have to send its payments. */
  readonly isAnyStopped: boolean
}

type SettlerRow = Omit<Settler, 'nextNonce' | 'minedNonce' | 'balanceWei' | 'dataFeeWei' | 'epoch'> & {
  readonly balanceWei: string | null
} & Readonly<Record<'nextNonce' | 'minedNonce' | 'dataFeeWei' | 'epoch', string>>

const settlerColumns = `network, address, state, next_nonce as "nextNonce", mined_nonce as "minedNonce",
  balance_wei as "balanceWei", data_fee_wei as "dataFeeWei", epoch, stopped_at as "stoppedAt",
  elsewhere as "isElsewhere", extract(epoch from clock() - balance_at)::float8 as "balanceAgeSeconds"`

function toSettler<Row extends SettlerRow>(row: Row): Settler & Omit<Row, keyof SettlerRow> {
  return {
    ...row,
    nextNonce: Number.parseInt(row.nextNonce, 10),
    minedNonce: Number.parseInt(row.minedNonce, 10),
    balanceWei: row.balanceWei === null ? null : BigInt(row.balanceWei),
    dataFeeWei: BigInt(row.dataFeeWei),
    epoch: BigInt(row.epoch),
  }
}

/** Adds a settler, or activates a retired or stopped one again. False if it is already active. */
export async function insertSettler(
  db: Database | Transaction,
  network: string,
  address: string,
  nextNonce: number,
): Promise<boolean> {
  const rows = await db.query(
    `insert into settlers (network, address, next_nonce, mined_nonce) values ($1, $2, $3, $3)
     on conflict (network, address) do update set state = 'active', stopped_at = null,
       next_nonce = greatest(settlers.next_nonce, excluded.next_nonce)
       where settlers.state <> 'active' or settlers.stopped_at is not null returning address`,
    [network, address, nextNonce],
  )
  return rows.length > 0
}

export async function listSettlers(db: Database, network: string | null): Promise<Settler[]> {
  const rows = await db.query<SettlerRow>(
    `select ${settlerColumns} from settlers where ($1::text is null or network = $1) order by network, created_at, address`,
    [network],
  )
  return rows.map((row) => toSettler(row))
}

/**
 * Drains a settler. A stopped one is retired at once, because nothing more is sent from it. False if there is nothing to
 * drain.
 */
export async function drainSettler(db: Database, network: string, address: string): Promise<boolean> {
  const rows = await db.query(
    `update settlers set state = case when stopped_at is null then 'draining' else 'retired' end
     where network = $1 and address = $2 and (state = 'active' or (state = 'draining' and stopped_at is not null))
     returning address`,
    [network, address],
  )
  return rows.length > 0
}

/**
 * Acquires or renews the lease on a settler. A new holder gets a new epoch, so that the old one can no longer use a
 * nonce.
 */
export async function leaseSettler(
  db: Database,
  network: string,
  address: string,
  holder: string,
  seconds: number,
): Promise<Leased | null> {
  const [row] = await db.query<SettlerRow & Pick<Leased, 'isAwake' | 'isAnyStopped'>>(
    `update settlers set lease_holder = $3, leased_until = clock() + make_interval(secs => $4), alive_at = clock(),
       epoch = epoch + case when lease_holder = $3 and leased_until > clock() then 0 else 1 end
     where network = $1 and address = $2 and state <> 'retired'
       and (lease_holder = $3 or leased_until is null or leased_until <= clock())
     returning ${settlerColumns}, ${isAwakeOn('settlers.network')} as "isAwake",
       exists (select 1 from settlers o where o.network = $1
         and o.stopped_at > clock() - interval '${strandedDays} days') as "isAnyStopped"`,
    [network, address, holder, seconds],
  )
  return row ? toSettler(row) : null
}

export async function releaseSettler(
  db: Database,
  network: string,
  address: string,
  holder: string,
): Promise<void> {
  await db.query(
    'update settlers set leased_until = null, alive_at = null where network = $1 and address = $2 and lease_holder = $3',
    [network, address, holder],
  )
}

/**
 * Records our accounts' nonces as the follower saw them. If a reorganisation lowers a nonce, its transactions count as
 * unmined again. A draining settler is retired once everything it sent is mined, and drains again if a reorganisation
 * undoes that. The next nonce is raised only if enough providers agree, because a false one would leave a gap forever.
 *
 * A nonce is committed before it is used. So if the chain has used more nonces than we have, somebody else has the key,
 * and the settler is stopped. The exception is a restore, which forgets nonces that we used ourselves. Returns the
 * settlers that it stopped, each with the first of these nonces.
 */
export async function noteMined(
  tx: Transaction,
  network: string,
  accounts: readonly { address: string; nonce: number; isWitnessed: boolean }[],
): Promise<{ readonly settler: string; readonly nonce: number }[]> {
  const rows = await tx.query<{ settler: string; nonce: string }>(
    `with input as (
       select i.address, case when i."isWitnessed" then i.nonce else least(i.nonce, s.next_nonce) end as nonce,
         s.next_nonce as expected, i."isWitnessed" and i.nonce > s.next_nonce and s.state <> 'retired'
           and s.stopped_at is null and not exists (select 1 from restores r where r.network = $1
             and r.finished_at is null) as is_foreign
       from json_to_recordset($2) as i (address text, nonce bigint, "isWitnessed" boolean)
       join settlers s on s.network = $1 and s.address = i.address
     ), seen as (
       update settlers s set mined_nonce = i.nonce, next_nonce = greatest(s.next_nonce, i.nonce),
         stopped_at = case when i.is_foreign then clock() else s.stopped_at end,
         state = case when s.state = 'active' or s.stopped_at is not null then s.state
           when s.next_nonce <= i.nonce then 'retired' else 'draining' end
       from input i where s.network = $1 and s.address = i.address
         and (s.mined_nonce is distinct from i.nonce or (s.state = 'draining' and s.next_nonce <= i.nonce))
       returning s.address
     ), found as (
       insert into foreign_nonces (network, settler, nonce, found_at)
       select $1, address, expected, clock() from input where is_foreign on conflict do nothing
     ), mined as (
       update transactions t set mined_at = case when t.nonce < i.nonce then coalesce(t.mined_at, clock()) end
       from input i
       where t.network = $1 and t.settler = i.address
         and ((t.mined_at is null and t.nonce < i.nonce) or (t.mined_at is not null and t.nonce >= i.nonce))
     )
     select address as settler, expected as nonce from input where is_foreign`,
    [network, JSON.stringify(accounts)],
  )
  return rows.map(({ settler, nonce }) => ({ settler, nonce: Number.parseInt(nonce, 10) }))
}

export async function noteBalance(
  db: Database,
  network: string,
  address: string,
  { balance, dataFee }: { readonly balance: bigint; readonly dataFee: bigint },
): Promise<void> {
  await db.query(
    `update settlers set balance_wei = $3, data_fee_wei = $4, balance_at = clock()
     where network = $1 and address = $2`,
    [network, address, balance.toString(), dataFee.toString()],
  )
}

/** An authorization to send, as it was when it was simulated. */
export type Sendable = AuthorizationKey & {
  readonly sends: number
  /** The payer's payments in flight. The balance was compared with their sum. */
  readonly unsettled: bigint
}

/**
 * Locks the settler's nonce for this epoch, and those of the wanted authorizations that may still be sent. Null if the
 * lease was lost or the settler sends nothing new any more.
 *
 * Authorizations are left out if another lane has sent them since they were simulated. They are also left out if their
 * payer has sent more since then or is locked by another lane now, because the balance may not cover both.
 */
export async function lockForSending(
  tx: Transaction,
  settler: { network: string; address: string; holder: string; epoch: bigint },
  wanted: readonly Sendable[],
): Promise<{ nonce: number; keys: AuthorizationKey[] } | null> {
  const [row] = await tx.query<{ next_nonce: string; payers: string[] }>(
    `select next_nonce, array(select payer from unnest($5::text[]) as payer
       where pg_try_advisory_xact_lock(hashtextextended('send ' || $1 || ' ' || payer, 0))) as payers
     from settlers
     where network = $1 and address = $2 and lease_holder = $3 and epoch = $4 and state = 'active'
       and stopped_at is null and not elsewhere for no key update`,
    [
      settler.network,
      settler.address,
      settler.holder,
      settler.epoch.toString(),
      [...new Set(wanted.map(({ payer }) => payer))],
    ],
  )
  if (!row) return null
  const isFree = new Set(row.payers)
  const keys = await tx.query<AuthorizationKey>(
    `select a.asset, a.payer, a.nonce
     from (select * from json_to_recordset($2) as i (asset text, payer text, nonce text, sends integer,
       unsettled numeric) order by asset, payer, nonce) i
     cross join lateral (select a.asset, a.payer, a.nonce from authorizations a
       where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce and a.sends = i.sends
         and (a.state = 'claimed' or (a.state = 'sent' and a.sends < ${sendsMax}))
         and i.unsettled >= (select coalesce(sum(u.amount), 0) from authorizations u where u.network = $1
           and u.asset = i.asset and u.payer = i.payer and u.state = 'sent' and ${isUncreditedOf('u')})
       for no key update skip locked) a`,
    [
      settler.network,
      JSON.stringify(
        wanted
          .filter(({ payer }) => isFree.has(payer))
          .map((one) => ({ ...one, unsettled: one.unsettled.toString() })),
      ),
    ],
  )
  return { nonce: Number.parseInt(row.next_nonce, 10), keys }
}

/**
 * Commits a send before it happens: the nonce, the authorizations it carries, which become `sent`, and the signed
 * bytes. Runs in the transaction that locked them.
 */
export async function insertSend(
  tx: Transaction,
  send: {
    network: string
    settler: string
    nonce: number
    hash: string
    bytes: Hex
    keys: readonly AuthorizationKey[]
  },
): Promise<void> {
  await tx.query(
    `with taken as (
       update settlers set next_nonce = next_nonce + 1 where network = $1 and address = $2 and next_nonce = $3
       returning network, address
     ), made as (
       insert into transactions (network, settler, nonce, created_at)
       select network, address, $3, clock() from taken returning network, settler, nonce
     ), calls as (
       insert into transaction_calls (network, settler, settler_nonce, place, asset, payer, nonce)
       select m.network, m.settler, m.nonce, i.place, i.asset, i.payer, i.nonce
       from made m, json_to_recordset($6) as i (place integer, asset text, payer text, nonce text)
       returning asset, payer, nonce
     ), marked as (
       update authorizations a set state = 'sent', sends = a.sends + 1
       from calls c where a.network = $1 and a.asset = c.asset and a.payer = c.payer and a.nonce = c.nonce
     )
     insert into broadcasts (hash, network, settler, nonce, bytes, created_at)
     select $4, network, settler, nonce, decode($5, 'hex'), clock() from made`,
    [
      send.network,
      send.settler,
      send.nonce,
      send.hash,
      send.bytes.slice(2),
      JSON.stringify(send.keys.map((key, place) => ({ ...key, place }))),
    ],
  )
}

export type Unmined = {
  readonly nonce: number
  readonly hash: Hex
  readonly bytes: Hex
  readonly ageSeconds: number
  readonly sentAgoSeconds: number | null
  /** Whether a node is known to have accepted these bytes. */
  readonly isTaken: boolean
  /** Whether it could still settle one of its authorizations. */
  readonly isWanted: boolean
  /** Whether it carries a payment that must not share a transaction. */
  readonly isAlone: boolean
  /** How many authorizations it carries. */
  readonly payments: number
}

/** A settler's unmined transactions, lowest nonce first, each with its most recently signed bytes. */
export async function listUnmined(
  db: Database,
  network: string,
  settler: string,
  limit: number,
): Promise<Unmined[]> {
  const rows = await db.query<Omit<Unmined, 'nonce' | 'bytes'> & { nonce: string; bytes: Buffer }>(
    `select t.nonce, b.hash, b.bytes, extract(epoch from clock() - b.created_at)::float8 as "ageSeconds",
       extract(epoch from clock() - b.last_sent_at)::float8 as "sentAgoSeconds",
       b.taken_at is not null as "isTaken",
       coalesce(carried.is_wanted, false) as "isWanted", coalesce(carried.is_alone, false) as "isAlone", carried.payments
     from transactions t
     cross join lateral (select bool_or(a.state = 'sent') as is_wanted,
         bool_or(a.is_contract or a.sends > 1) as is_alone, count(*)::int as payments
       from transaction_calls c
       cross join ${authorizationOf('c')}
       where c.network = t.network and c.settler = t.settler and c.settler_nonce = t.nonce) carried
     cross join lateral (select * from broadcasts b where b.network = t.network and b.settler = t.settler
       and b.nonce = t.nonce order by b.created_at desc limit 1) b
     where t.network = $1 and t.settler = $2 and t.mined_at is null
     order by t.nonce limit $3`,
    [network, settler, limit],
  )
  return rows.map(({ nonce, bytes, ...row }) => ({
    ...row,
    nonce: Number.parseInt(nonce, 10),
    bytes: `0x${bytes.toString('hex')}`,
  }))
}

export async function insertReplacement(
  db: Database,
  send: { network: string; settler: string; nonce: number; hash: Hex; bytes: Hex },
): Promise<void> {
  await db.query(
    `insert into broadcasts (hash, network, settler, nonce, bytes, created_at)
     values ($1, $2, $3, $4, decode($5, 'hex'), clock()) on conflict do nothing`,
    [send.hash, send.network, send.settler, send.nonce, send.bytes.slice(2)],
  )
}

/** Records a transaction for a nonce that has none. Does nothing if another process was first. */
export async function insertFill(
  db: Database,
  send: { network: string; settler: string; nonce: number; hash: Hex; bytes: Hex },
): Promise<void> {
  await db.query(
    `with made as (
       insert into transactions (network, settler, nonce, created_at) values ($2, $3, $4, clock())
       on conflict do nothing returning network, settler, nonce
     )
     insert into broadcasts (hash, network, settler, nonce, bytes, created_at)
     select $1, network, settler, nonce, decode($5, 'hex'), clock() from made`,
    [send.hash, send.network, send.settler, send.nonce, send.bytes.slice(2)],
  )
}

/** The settlers of a network. With `isBusy`, only those that drain or have something in flight. */
export async function listSettlerAddresses(
  db: Database | Transaction,
  network: string,
  isBusy = false,
): Promise<Hex[]> {
  const rows = await db.query<{ address: Hex }>(
    `select address from settlers where network = $1
       and (not $2 or mined_nonce < next_nonce or state = 'draining') order by address`,
    [network, isBusy],
  )
  return rows.map(({ address }) => address)
}

/** Retires every settler of a chain that was replaced by another with the same id. */
export async function retireSettlers(db: Database, network: string): Promise<void> {
  await db.query("update settlers set state = 'retired' where network = $1", [network])
}

export type Uncosted = {
  readonly nonce: number
  /** About everything that was signed for this nonce. */
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
  const rows = await db.query<Omit<Uncosted, 'nonce'> & { nonce: string }>(
    // Gives up after an hour. A restore may have forgotten transactions that were signed for a nonce.
    `select t.nonce, array_agg(b.hash) as hashes, extract(epoch from clock() - t.mined_at)::float8 as "minedAgoSeconds",
       not exists (select 1 from restores r where r.network = $1
         and (r.finished_at is null or r.finished_at >= t.created_at)) as "isComplete"
     from transactions t
     join broadcasts b on b.network = t.network and b.settler = t.settler and b.nonce = t.nonce
     where t.network = $1 and t.settler = $2 and t.cost_wei is null and t.mined_at > clock() - interval '1 hour'
       and not exists (select 1 from foreign_nonces f where f.network = $1 and f.settler = $2 and f.nonce = t.nonce)
     group by t.network, t.settler, t.nonce order by t.nonce limit $3`,
    [network, settler, limit],
  )
  return rows.map((row) => ({ ...row, nonce: Number.parseInt(row.nonce, 10) }))
}

/**
 * Records what mined transactions cost. The calls of a transaction share its cost equally, and each share is charged to
 * the payment's store, even if the call had no effect. Payments without effect are marked as failed. Returns the
 * transactions that this call recorded, each with the number of its payments.
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

/** Payments of a network that are claimed but not sent, or sent but not found yet. Counted up to a limit. */
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

/** SQL for nonces that were used by a foreign transaction, and for the settlers stopped because of it. */

export type Stopped = {
  readonly address: string
  /** The highest of its nonces that somebody else has used, as far as we know. */
  readonly nonce: string
  readonly stoppedAt: Date
}

/** Stopped settlers that an operator has neither retired nor activated again. */
export async function listStopped(db: Database, network: string): Promise<Stopped[]> {
  return await db.query<Stopped>(
    `select s.address, s.stopped_at as "stoppedAt", (select max(f.nonce) from foreign_nonces f
       where f.network = s.network and f.settler = s.address) as nonce
     from settlers s where s.network = $1 and s.stopped_at is not null and s.state <> 'retired' order by s.address`,
    [network],
  )
}

/** The settlers that are not retired, and retired ones with a transaction that is not mined or not settled. */
export async function listUsedSettlers(
  db: Database,
): Promise<{ readonly network: string; readonly address: string }[]> {
  return await db.query<{ network: string; address: string }>(
    `select s.network, s.address from settlers s
     where s.state <> 'retired' or s.next_nonce > s.mined_nonce
       or exists (select 1 from transactions t
         where t.network = s.network and t.settler = s.address and t.nonce >= s.mined_nonce and t.mined_at is null)
       or exists (select 1 from authorizations a
         where a.network = s.network and a.settler = s.address and a.state in ('claimed', 'sent') and not a.is_credited)
     order by s.network, s.address`,
  )
}

/** A settler as the directory names it. */
type Named = { readonly scope: string; readonly address: string }

/** Records whether another cell owns these settlers. */
export async function writeSettlersElsewhere(
  db: Database,
  settlers: readonly Named[],
  isElsewhere: boolean,
): Promise<void> {
  await db.query(
    `update settlers s set elsewhere = $2 from json_to_recordset($1) as i (scope text, address text)
     where s.network = i.scope and s.address = i.address and s.elsewhere <> $2`,
    [JSON.stringify(settlers), isElsewhere],
  )
}
