import type { Hex } from '../chains/hex.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { Transfer } from './rail.ts'

export type AuthorizationKey = { readonly asset: string; readonly payer: string; readonly nonce: string }

/** A claimed authorization, as lanes and proofs of death read it. */
export type Authorized<Address extends string = Hex> = {
  readonly network: string
  readonly transfer: Transfer<Address>
  readonly checkoutId: string | null
  /** Its refund, in which the store's wallet pays. Null for a payment. */
  readonly refundId: string | null
  readonly state: 'prepared' | 'claimed' | 'sent' | 'rejected' | 'dead'
  /** Why it was refused or died, or why a refund waits. */
  readonly reason: string | null
  readonly sends: number
}

export type AuthorizationRow<Address extends string = Hex> = {
  network: string
  asset: string
  payer: Address
  nonce: Hex
  pay_to: Address
  amount: string
  valid_after: string
  valid_before: string
  signature: Buffer
  is_contract: boolean
  settler: string | null
  checkout_id: string | null
  refund_id: string | null
  state: Authorized['state']
  reason: string | null
  sends: number
}

export function toAuthorized<Address extends string>(row: AuthorizationRow<Address>): Authorized<Address> {
  return {
    network: row.network,
    checkoutId: row.checkout_id,
    refundId: row.refund_id,
    state: row.state,
    reason: row.reason,
    sends: row.sends,
    transfer: {
      asset: row.asset,
      isContract: row.is_contract,
      settler: row.settler,
      signature: `0x${row.signature.toString('hex')}`,
      authorization: {
        from: row.payer,
        to: row.pay_to,
        value: BigInt(row.amount),
        validAfter: BigInt(row.valid_after),
        validBefore: BigInt(row.valid_before),
        nonce: row.nonce,
      },
    },
  }
}

/**
 * SQL: the authorization, or the live credit, that has the same key as the row `of`. `offset 0` makes PostgreSQL use
 * the index for each row. Reading all of them for each row looks cheap to the planner while tables are small or
 * statistics old, but takes minutes under load (database/db.ts).
 */
export const authorizationOf = (of: string, network = `${of}.network`) =>
  `lateral (select * from authorizations a where ${hasKeyOf('a', of, network)} offset 0) a`

export const liveCreditOf = (of: string, network = `${of}.network`) =>
  `lateral (select * from credits k where ${hasKeyOf('k', of, network)} and k.orphaned_at is null offset 0) k`

function hasKeyOf(row: string, of: string, network = `${of}.network`): string {
  return `${row}.network = ${network} and ${row}.asset = ${of}.asset and ${row}.payer = ${of}.payer and ${row}.nonce = ${of}.nonce`
}

/** Checks the column because the indexes use it, and the credits because they are authoritative. */
const isUnsettled = (a: string, ofWhom: string) => `not ${a}.is_credited
  and not exists (select 1 from credits k where ${hasKeyOf('k', a)} and k.orphaned_at is null ${ofWhom} offset 0)`

/** The nonce has moved no money. */
export const isUncreditedOf = (a: string) => isUnsettled(a, '')

export const isUncredited = isUncreditedOf('a')

/** The nonce has moved no money for its own checkout, or not its refund's amount to its recipient. */
export const isUncreditedHere = isUnsettled(
  'a',
  `and k.checkout_id is not distinct from a.checkout_id
   and (a.refund_id is null or (k.pay_to = a.pay_to and k.amount = a.amount))`,
)

/** A payer's authorizations that are neither paid nor dead, up to one more than `inFlightMax`. */
export type InFlight = {
  /** The sum that the balance must cover in addition to the next payment. */
  readonly units: bigint
  readonly payments: number
}

/**
 * A wallet may have this many payments in progress in one asset. About a third of them can be on the way to the chain
 * at once, so more would only wait. Adding them up for each of its payments would also hold up everybody else's.
 */
export const inFlightMax = 500

/** SQL: `units` and `payments` of what the payer of `i` has in flight. */
export const inFlightOf = (
  i: string,
) => `lateral (select coalesce(sum(amount), 0) as units, count(*)::integer as payments
  from (select f.amount from authorizations f where f.network = ${i}.network and f.asset = ${i}.asset
      and f.payer = ${i}.payer and f.state in ('claimed', 'sent') and ${isUncreditedOf('f')}
    limit ${inFlightMax + 1}) f) in_flight`

export async function readInFlight(
  db: Database,
  network: string,
  asset: string,
  payer: string,
): Promise<InFlight> {
  const [row] = await db.query<{ units: string; payments: number }>(
    `select in_flight.* from (select $1::text as network, $2::text as asset, $3::text as payer) i
     cross join ${inFlightOf('i')}`,
    [network, asset, payer],
  )
  return { units: BigInt(row?.units ?? '0'), payments: row?.payments ?? 0 }
}

/** A transfer reverts in a block later than validBefore, and the next block comes in about two seconds. */
export function sendableUntil(headTime: Date): number {
  return Math.floor(headTime.getTime() / 1_000) + 4
}

/** Payments and refunds have separate queues, so that refunds only get the room that payments leave. */
export type Direction = 'payment' | 'refund'

/** SQL: stated in this form because each direction has an index of its own. */
const isOf = (direction: Direction) => `a.refund_id is ${direction === 'payment' ? 'null' : 'not null'}`

/**
 * Authorizations of ordinary wallets that wait to be sent, oldest first: those that name this settler or, for null,
 * those that name none.
 */
export async function listClaimed<Address extends string = Hex>(
  db: Database,
  network: string,
  headTime: Date | null,
  limit: number,
  { settler = null, direction = 'payment' }: { settler?: string | null; direction?: Direction } = {},
): Promise<Authorized<Address>[]> {
  const rows = await db.query<AuthorizationRow<Address>>(
    `select a.* from authorizations a
     where a.network = $1 and a.state = 'claimed' and ${isOf(direction)} and a.spent_block_number is null
       and a.valid_before > $2 and a.settler is not distinct from $4 and not a.is_contract and ${isUncredited}
     order by a.claimed_at limit $3`,
    [network, headTime ? sendableUntil(headTime) : 0, limit, settler],
  )
  return rows.map(toAuthorized)
}

/**
 * How long a contract wallet cannot pay by signature after one of its payments was mined without effect. Its code may
 * have done that on purpose, and could do it again at no cost. The wallet can still send money itself.
 */
export const contractRest = "interval '30 days'"

/**
 * The next authorization of each contract wallet that has none in flight, oldest first. Its code may make a send fail,
 * so it gets one at a time, and none for a while after one failed.
 */
export async function listContractClaims(
  db: Database,
  network: string,
  headTime: Date,
  limit: number,
  direction: Direction = 'payment',
): Promise<(Authorized & { readonly hasFailed: boolean })[]> {
  const rows = await db.query<AuthorizationRow & { has_failed: boolean }>(
    `select * from (
       select distinct on (a.asset, a.payer) a.*,
         exists (select 1 from authorizations f where f.network = a.network and f.payer = a.payer
           and f.is_contract and f.failed_at > clock() - ${contractRest}) as has_failed
       from authorizations a
       where a.network = $1 and a.state = 'claimed' and ${isOf(direction)} and a.is_contract
         and a.spent_block_number is null
         and a.valid_before > $2 and ${isUncredited}
         and not exists (select 1 from authorizations o where o.network = a.network and o.asset = a.asset
           and o.payer = a.payer and o.state = 'sent' and not o.is_credited and o.failed_at is null)
       order by a.asset, a.payer, a.claimed_at
     ) first order by claimed_at limit $3`,
    [network, sendableUntil(headTime), limit],
  )
  return rows.map((row) => ({ ...toAuthorized(row), hasFailed: row.has_failed }))
}

/** Moves claims whose payers turned out to have code into the contract wallets' queue. */
export async function noteContracts(
  db: Database,
  network: string,
  keys: readonly AuthorizationKey[],
): Promise<void> {
  await db.query(
    `update authorizations a set is_contract = true
     from json_to_recordset($2) as i (asset text, payer text, nonce text)
     where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce
       and a.state in ('claimed', 'sent')`,
    [network, JSON.stringify(keys.map(({ asset, payer, nonce }) => ({ asset, payer, nonce })))],
  )
}

/**
 * Authorizations that a settler sent without effect, and only once, in mined transactions within this nonce range.
 * After two sends without effect, or one from a contract wallet, we stop sending and wait until the authorization is
 * dead.
 */
export async function listWithoutEffect(
  db: Database,
  sent: { network: string; settler: string; fromNonce: number; belowNonce: number },
  headTime: Date,
  limit: number,
): Promise<Authorized[]> {
  const rows = await db.query<AuthorizationRow>(
    `select a.* from transaction_calls c
     cross join ${authorizationOf('c')}
     where c.network = $1 and c.settler = $2 and c.settler_nonce >= $3 and c.settler_nonce < $4
       and a.state = 'sent' and a.sends < 2 and not a.is_contract and a.spent_block_number is null
       and a.valid_before > $5
       and ${isUncredited}
     order by a.claimed_at limit $6`,
    [sent.network, sent.settler, sent.fromNonce, sent.belowNonce, sendableUntil(headTime), limit],
  )
  return rows.map(toAuthorized)
}

/** The payers' payments in flight, by asset and payer: a balance must cover them in addition to anything sent next. */
export async function readSentUnits(
  db: Database,
  network: string,
  assets: readonly string[],
  payers: readonly string[],
): Promise<Map<string, bigint>> {
  const rows = await db.query<{ asset: string; payer: string; units: string }>(
    `select a.asset, a.payer, sum(a.amount) as units from authorizations a
     where a.network = $1 and a.asset = any($2) and a.payer = any($3) and a.state = 'sent' and ${isUncredited}
     group by a.asset, a.payer`,
    [network, assets, payers],
  )
  return new Map(rows.map(({ asset, payer, units }) => [`${asset} ${payer}`, BigInt(units)]))
}

/** Rejects the unsent claims of checkouts that were paid in another way. */
export async function rejectUnsent(tx: Transaction, checkoutIds: readonly string[]): Promise<void> {
  if (checkoutIds.length === 0) return
  await tx.query(
    `update authorizations a set state = 'rejected', reason = 'paid_otherwise', resolved_at = clock()
     where a.checkout_id = any($1) and a.state = 'claimed'
       and not exists (select 1 from credits k where ${hasKeyOf('k', 'a')} and k.orphaned_at is null offset 0)`,
    [checkoutIds],
  )
}
