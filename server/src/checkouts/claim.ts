import type { StoreCheckout } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { openBatcher } from '../database/batch.ts'
import { type Database, isLockTimeout, type Transaction } from '../database/db.ts'
import { newId } from '../ids.ts'
import { idOfNetwork } from '../networks.ts'
import type { Transfer } from '../payments/rail.ts'
import { Problem } from '../problems.ts'
import { arrow } from './checkout.ts'

export type ClaimPayment = (claim: Omit<NewClaim, 'eventId'>) => Promise<boolean>

const batchRowsMax = 128
const batchesInFlightMax = 2

/**
 * Claims an authorization for a checkout. From then on it belongs to this checkout forever, and no other can be claimed
 * for the checkout until its outcome is known. True if this call made the claim. If it is false, the caller must read
 * the checkout again to learn why.
 */
export function openClaim(ctx: Context): ClaimPayment {
  const joined = openBatcher<NewClaim, boolean>({
    run: async (batch) => {
      const claimed = await claimAuthorizations(ctx.db, batch, 'skip locked')
      return batch.map(({ eventId }) => claimed.has(eventId))
    },
    runAlone: (claim) => claimAlone(ctx, claim),
    itemsMax: batchRowsMax,
    inFlightMax: batchesInFlightMax,
    observe: (rows) => ctx.metrics.batchRows.observe({ statement: 'claim' }, rows),
  })
  const claimOnce = async (input: Omit<NewClaim, 'eventId'>) => {
    const claim = { ...input, eventId: newId('evt', ctx.config.cell, input.now) }
    // A batch skips locked checkouts, and the lock may have been brief, so try again alone.
    const isClaimed = (await joined(claim)) || (await claimAlone(ctx, claim))
    if (isClaimed) noteClaimed(ctx, claim)
    return isClaimed
  }
  // If this process is already claiming the payment, a duplicate waits for that claim, and its caller reads again.
  // Otherwise each duplicate would hold a connection while it waits for the same checkout, and a few thousand would use
  // up all connections.
  const underWay = new Map<string, Promise<boolean>>()
  return async (input) => {
    const { from, nonce } = input.transfer.authorization
    const key = [input.checkoutId, input.network, input.transfer.asset, from, nonce].join(' ')
    const other = underWay.get(key)
    if (other) return await other.then(() => false)
    const claiming = claimOnce(input).finally(() => underWay.delete(key))
    underWay.set(key, claiming)
    return await claiming
  }
}

/** Wakes the process that sends payments. Called once a claim is committed. */
export function noteClaimed(ctx: Context, claim: NewClaim): void {
  ctx.db.wakeUps.send('claims')
  const network = idOfNetwork(claim.network)
  ctx.metrics.payments.inc({ network, outcome: 'claimed' })
  ctx.log.info(
    { checkoutId: claim.checkoutId, network, amount: `${claim.transfer.authorization.value}` },
    'payment claimed: it is sent next',
  )
}

async function claimAlone(ctx: Context, claim: NewClaim): Promise<boolean> {
  return await ctx.db.transaction((tx) => claimIn(tx, claim)).catch(refuseBusy)
}

/** Claims one authorization in a transaction of the caller's. */
export async function claimIn(tx: Transaction, claim: NewClaim): Promise<boolean> {
  const claimed = await claimAuthorizations(tx, [claim], '')
  return claimed.has(claim.eventId) || (await reclaimAuthorization(tx, claim))
}

/** Somebody else has held the checkout for longer than a lock is waited for. */
export function refuseBusy(error: unknown): never {
  if (!isLockTimeout(error)) throw error
  throw new Problem('unavailable', 'The checkout is busy. Repeat the same request with the same payment.', {
    retryAfterSeconds: 1,
  })
}

/** SQL for claims: one statement writes the authorization, the checkout's new status and the event. */

/** The change of status that a claim makes. */
const claiming = arrow('OPEN', 'PROCESSING')

/** A verified payment, about to be claimed for a checkout. */
export type NewClaim = {
  readonly checkoutId: string
  /** CAIP-2. */
  readonly network: string
  readonly transfer: Transfer
  /** Whether the signed data names this checkout. */
  readonly isBound: boolean
  readonly identifier: string | null
  readonly eventId: string
  /** The checkout as the event shows it: PROCESSING. */
  readonly data: { readonly checkout: StoreCheckout }
  readonly now: Date
}

/**
 * Claims a batch in one statement: keeps one copy of each payment, locks the payable checkouts, inserts the
 * authorizations, and moves only the checkouts whose insert succeeded. Nothing is inserted for a nonce that is taken,
 * for a checkout that already has an authorization, or for an unbound nonce that the chain shows as used, because it
 * may have paid for something else. (Moving the checkout first could leave it PROCESSING without an authorization.)
 * Returns the event ids of the claims it made.
 */
export async function claimAuthorizations(
  db: Database | Transaction,
  batch: readonly NewClaim[],
  locking: 'skip locked' | '',
): Promise<Set<string>> {
  const rows = await db.query<{ event_id: string }>(
    `with input as (
       select distinct on (network, asset, payer, nonce, checkout_id) * from json_to_recordset($1) as i (
         checkout_id text, network text, asset text, payer text, nonce text, pay_to text, amount numeric,
         valid_after numeric, valid_before numeric, signature text, is_contract boolean, settler text,
         identifier text, is_bound boolean, event_id text, data json, now timestamptz)
     ), locked as (
       select i.*, c.store_id from (select * from input order by checkout_id) i
       cross join lateral (select c.store_id from checkouts c
         where c.id = i.checkout_id and c.status = '${claiming.from}' and c.expires_at > clock()
         for no key update ${locking}) c
       where i.is_bound or not exists (select 1 from credits k where k.network = i.network and k.asset = i.asset
         and k.payer = i.payer and k.nonce = i.nonce and k.orphaned_at is null offset 0)
     ), claimed as (
       insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, is_contract, settler, payment_identifier, claimed_at)
       select network, asset, payer, nonce, checkout_id, store_id, 'claimed', pay_to, amount,
         valid_after, valid_before, decode(signature, 'hex'), is_contract, settler, identifier, clock()
       from locked order by network, asset, payer, nonce
       on conflict do nothing
       returning network, asset, payer, nonce, checkout_id
     ), moved as (
       update checkouts c set status = '${claiming.to}', version = c.version + 1
       from claimed a where c.id = a.checkout_id
       returning c.store_id, c.version, a.network, a.asset, a.payer, a.nonce, a.checkout_id
     ), told as (
       insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
       select i.event_id, m.store_id, '${claiming.event}', m.checkout_id, m.version, i.data, i.now
       from moved m join input i on i.network = m.network and i.asset = m.asset and i.payer = m.payer
         and i.nonce = m.nonce and i.checkout_id = m.checkout_id
       returning id
     )
     select id as event_id from told`,
    [JSON.stringify(batch.map(toInput))],
  )
  return new Set(rows.map(({ event_id }) => event_id))
}

function toInput({ checkoutId, network, transfer, isBound, identifier, eventId, data, now }: NewClaim) {
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
    is_bound: isBound,
    event_id: eventId,
    data,
    now,
  }
}

/**
 * Claims an authorization that this checkout rejected before, or one that a restore found on the chain and that is
 * bound to this checkout. Runs under the checkout's lock, never in a batch.
 */
async function reclaimAuthorization(tx: Transaction, claim: NewClaim): Promise<boolean> {
  const { from, nonce } = claim.transfer.authorization
  const rows = await tx.query(
    `with locked as (
       select id, store_id from checkouts
       where id = $1 and status = '${claiming.from}' and expires_at > clock() for no key update
     ), claimed as (
       update authorizations a set state = 'claimed', reason = null, resolved_at = null, claimed_at = clock(),
         checkout_id = locked.id, store_id = locked.store_id, is_credited = false
       from locked where ((a.checkout_id = locked.id and a.state = 'rejected') or (a.checkout_id is null and $9))
         and a.network = $2 and a.asset = $3 and a.payer = $4 and a.nonce = $5
       returning a.checkout_id
     ), moved as (
       update checkouts c set status = '${claiming.to}', version = c.version + 1
       from claimed where c.id = claimed.checkout_id returning c.id, c.store_id, c.version
     )
     insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
     select $6, store_id, '${claiming.event}', id, version, $7, $8 from moved returning id`,
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
