import type { Hex } from '../chains/chain.ts'
import type { Database, Transaction } from '../db.ts'
import type { NewClaim } from './claim.ts'
import type { Transfer } from './rail.ts'

type Reader = Database | Transaction

/** What a claim says of an authorization, as the settling side reads it. */
export type Authorized<Address extends string = Hex> = {
  readonly network: string
  readonly transfer: Transfer<Address>
  readonly checkoutId: string | null
  readonly state: 'claimed' | 'sent' | 'rejected' | 'dead'
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
  state: Authorized['state']
  sends: number
}

export function toAuthorized<Address extends string>(row: AuthorizationRow<Address>): Authorized<Address> {
  return {
    network: row.network,
    checkoutId: row.checkout_id,
    state: row.state,
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
 * Claims a batch in one statement. Take a payment that is in it several times once; lock the checkouts that can be
 * paid; insert the authorizations, where a taken nonce or a checkout that has one already simply inserts nothing; move
 * only the checkouts whose insert came back. (Moving first would leave a checkout PROCESSING without an authorization.)
 * Returns the event ids of those that were claimed.
 */
export async function claimAuthorizations(
  db: Reader,
  batch: readonly NewClaim[],
  locking: 'skip locked' | '',
): Promise<Set<string>> {
  const rows = await db.query<{ event_id: string }>(
    `with input as (
       select distinct on (network, asset, payer, nonce, checkout_id) * from json_to_recordset($1) as i (
         checkout_id text, network text, asset text, payer text, nonce text, pay_to text, amount numeric,
         valid_after numeric, valid_before numeric, signature text, is_contract boolean, settler text,
         identifier text, event_id text, data json, now timestamptz)
     ), locked as (
       select c.id, c.store_id from checkouts c
       where c.id = any($2) and c.status = 'OPEN' and c.expires_at > clock()
       order by c.id for no key update ${locking}
     ), claimed as (
       insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, is_contract, settler, payment_identifier, claimed_at)
       select i.network, i.asset, i.payer, i.nonce, l.id, l.store_id, 'claimed', i.pay_to, i.amount,
         i.valid_after, i.valid_before, decode(i.signature, 'hex'), i.is_contract, i.settler, i.identifier, clock()
       from input i join locked l on l.id = i.checkout_id
       order by i.network, i.asset, i.payer, i.nonce
       on conflict do nothing
       returning network, asset, payer, nonce, checkout_id
     ), moved as (
       update checkouts c set status = 'PROCESSING', version = c.version + 1
       from claimed where c.id = claimed.checkout_id
       returning c.id, c.store_id, c.version
     ), told as (
       insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
       select i.event_id, m.store_id, 'checkout.processing', m.id, m.version, i.data, i.now
       from claimed a
       join moved m on m.id = a.checkout_id
       join input i on i.network = a.network and i.asset = a.asset and i.payer = a.payer and i.nonce = a.nonce
         and i.checkout_id = a.checkout_id
       returning id
     )
     select id as event_id from told`,
    [JSON.stringify(batch.map(toInput)), batch.map(({ checkoutId }) => checkoutId)],
  )
  return new Set(rows.map(({ event_id }) => event_id))
}

function toInput({ checkoutId, network, transfer, identifier, eventId, data, now }: NewClaim) {
  const { from, to, value, validAfter, validBefore, nonce } = transfer.authorization
  return {
    checkout_id: checkoutId,
    network,
    asset: transfer.asset,
    payer: from,
    nonce,
    pay_to: to,
    amount: value.toString(),
    valid_after: validAfter.toString(),
    valid_before: validBefore.toString(),
    signature: transfer.signature.slice(2),
    is_contract: transfer.isContract,
    settler: transfer.settler ?? null,
    identifier,
    event_id: eventId,
    data,
    now,
  }
}

/**
 * Claims a rejected authorization of this checkout again, or one that was found on the chain after a restore and is
 * bound to this checkout. Under the checkout's lock, never part of a batch.
 */
export async function reclaimAuthorization(tx: Transaction, claim: NewClaim): Promise<boolean> {
  const { from, nonce } = claim.transfer.authorization
  const rows = await tx.query(
    `with locked as (
       select id, store_id from checkouts
       where id = $1 and status = 'OPEN' and expires_at > clock() for no key update
     ), claimed as (
       update authorizations a set state = 'claimed', reason = null, resolved_at = null, claimed_at = clock(),
         checkout_id = locked.id, store_id = locked.store_id, is_credited = false
       from locked where ((a.checkout_id = locked.id and a.state = 'rejected') or (a.checkout_id is null and $9))
         and a.network = $2 and a.asset = $3 and a.payer = $4 and a.nonce = $5
       returning a.checkout_id
     ), moved as (
       update checkouts c set status = 'PROCESSING', version = c.version + 1
       from claimed where c.id = claimed.checkout_id returning c.id, c.store_id, c.version
     )
     insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
     select $6, store_id, 'checkout.processing', id, version, $7, $8 from moved returning id`,
    [
      claim.checkoutId,
      claim.network,
      claim.transfer.asset,
      from,
      nonce,
      claim.eventId,
      JSON.stringify(claim.data),
      claim.now,
      claim.isBound,
    ],
  )
  return rows.length > 0
}

/** By the column, because the indexes know it, and by the credits, because they are the truth. */
const isUnsettled = (ofWhom: string) => `not a.is_credited and not exists (select 1 from credits k
  where k.network = a.network and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce
    and k.orphaned_at is null ${ofWhom})`
/** The nonce has moved no money. */
const isUncredited = isUnsettled('')
/** It has moved none for its own checkout. */
export const isUncreditedHere = isUnsettled('and k.checkout_id is not distinct from a.checkout_id')

/** What a payer has promised and not yet paid or failed to pay: it will need that much more than the next payment. */
export async function readInFlightUnits(
  db: Database,
  network: string,
  asset: string,
  payer: string,
): Promise<bigint> {
  const [row] = await db.query<{ units: string }>(
    `select coalesce(sum(a.amount), 0) as units from authorizations a
     where a.network = $1 and a.asset = $2 and a.payer = $3 and a.state in ('claimed', 'sent') and ${isUncredited}`,
    [network, asset, payer],
  )
  return BigInt(row?.units ?? '0')
}

/** A block later than validBefore reverts the transfer, and the next one is about two seconds away. */
function sendableUntil(headTime: Date): number {
  return Math.floor(headTime.getTime() / 1_000) + 4
}

/** Authorizations that wait for a lane, oldest first; for the lane of one settler, where they name it. */
export async function listClaimed<Address extends string = Hex>(
  db: Database,
  network: string,
  headTime: Date | null,
  limit: number,
  settler: string | null = null,
): Promise<Authorized<Address>[]> {
  const rows = await db.query<AuthorizationRow<Address>>(
    `select a.* from authorizations a
     where a.network = $1 and a.state = 'claimed' and a.spent_block_number is null and a.valid_before > $2
       and a.settler is not distinct from $4 and ${isUncredited}
     order by a.claimed_at limit $3`,
    [network, headTime ? sendableUntil(headTime) : 0, limit, settler],
  )
  return rows.map(toAuthorized)
}

/**
 * Authorizations that a settler sent once, in mined transactions with nonces from here to there, without effect. Twice
 * without effect is enough: the rest is waiting until the authorization is dead.
 */
export async function listWithoutEffect(
  db: Database,
  sent: { network: string; settler: string; fromNonce: number; belowNonce: number },
  headTime: Date,
  limit: number,
): Promise<Authorized[]> {
  const rows = await db.query<AuthorizationRow>(
    `select a.* from transaction_calls c
     join authorizations a on a.network = c.network and a.asset = c.asset and a.payer = c.payer and a.nonce = c.nonce
     where c.network = $1 and c.settler = $2 and c.settler_nonce >= $3 and c.settler_nonce < $4
       and a.state = 'sent' and a.sends < 2 and a.spent_block_number is null and a.valid_before > $5
       and ${isUncredited}
     order by a.claimed_at limit $6`,
    [sent.network, sent.settler, sent.fromNonce, sent.belowNonce, sendableUntil(headTime), limit],
  )
  return rows.map(toAuthorized)
}

/** Of these payers, what is sent and not settled: a balance must cover it beside anything sent next. */
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

/** Ends claims that were never sent. `state = 'claimed'` is the whole safety of it: a sent one cannot match. */
export async function rejectAuthorizations(
  tx: Transaction,
  network: string,
  refused: readonly { asset: string; payer: string; nonce: string; reason: string }[],
): Promise<string[]> {
  await lockCheckoutsOf(tx, network, refused)
  const rows = await tx.query<{ checkout_id: string }>(
    `update authorizations a set state = 'rejected', reason = i.reason, resolved_at = clock()
     from json_to_recordset($2) as i (asset text, payer text, nonce text, reason text)
     where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce and a.state = 'claimed'
     returning a.checkout_id`,
    [network, JSON.stringify(refused)],
  )
  return rows.map(({ checkout_id }) => checkout_id)
}

/** Whoever changes an authorization's state locks its checkout first, in order of id: so nobody waits in a circle. */
export async function lockCheckoutsOf(
  tx: Transaction,
  network: string,
  keys: readonly { asset: string; payer: string; nonce: string }[],
): Promise<void> {
  await tx.query(
    `select id from checkouts where id in (
       select a.checkout_id from authorizations a
       join json_to_recordset($2) as i (asset text, payer text, nonce text)
         on a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce
       where a.network = $1
     ) order by id for no key update`,
    [network, JSON.stringify(keys.map(({ asset, payer, nonce }) => ({ asset, payer, nonce })))],
  )
}

/** Which of these checkouts have another version now, by their places. A checkout is known here only as an id. */
export async function findChanged(
  db: Database,
  waiting: readonly { readonly checkoutId: string; readonly version: number }[],
): Promise<Set<number>> {
  const rows = await db.query<{ place: number }>(
    `select i.place::integer - 1 as place
     from unnest($1::text[], $2::integer[]) with ordinality as i (id, version, place)
     join checkouts c on c.id = i.id and c.version <> i.version`,
    [waiting.map(({ checkoutId }) => checkoutId), waiting.map(({ version }) => version)],
  )
  return new Set(rows.map(({ place }) => place))
}
