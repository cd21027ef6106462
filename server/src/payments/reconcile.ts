import { toShown } from '../chains/families.ts'
import type { Hex } from '../chains/hex.ts'
import { deleteLastHour, lockFollower } from '../chains/rows.ts'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Database, Transaction } from '../database/db.ts'
import { raiseEpoch } from '../events/rows.ts'
import type { Seen } from './credits/rows.ts'
import { maxTimeoutSeconds, type Rail } from './rail.ts'
import { listSettlerAddresses } from './settlers/rows.ts'

/**
 * After the database is restored to an earlier point, payments that were claimed and settled since then are missing
 * from it, but not from the chain. `reconcile` runs once, before serving:
 *
 *   nonces    continue from the chain's, so that none is used twice
 *   blocks    of the last hour before the restored tip are read again, and everything after it for the first time
 *   transfers by authorization to one of our wallets are recorded, so that none can be presented again. Those that
 *             carry a checkout's marker, in a transaction from one of our settlers, are credited to that checkout,
 *             unless their nonce is bound to another; the rest are unmatched. Enough providers must tell who sent the
 *             transaction and what is in it
 *   payments  are refused (503) until a deep block is later than any authorization that could have been
 *             claimed before the restore. Only then can no payment from before the restore still be on its way
 *   the log   gets a new epoch, so that stores resume from where the restored log ends
 *
 * At any other time a marker says nothing: every payment that we send has its claim.
 */
export async function startReconciling(ctx: Context, rails: readonly Rail[]): Promise<void> {
  const found = await Promise.all(
    rails
      .filter(({ hasSettlers }) => hasSettlers)
      .map(async ({ network: { caip2: network }, readNonce, refunds }) => {
        const settlers = await listSettlerAddresses(ctx.db, network)
        const nonces = await Promise.all(
          settlers.map(async (address) => ({ address, nonce: await readNonce(address) })),
        )
        return { network, nonces, areRefundsWatched: refunds?.isPaidOnce !== true }
      }),
  )
  // In one transaction: half of it would stop payments without the part that starts them again.
  await ctx.db.transaction(async (tx) => {
    for (const { network, nonces, areRefundsWatched } of found)
      await beginRestore(tx, network, nonces, areRefundsWatched)
    crashPoint(ctx, 'reconcile-before-epoch')
    await raiseEpoch(tx, ctx.now())
  })
}

/** No authorization that was claimed before a restore stays valid for longer than this after it. */
const lastClaimSeconds = maxTimeoutSeconds + 60

/** Accepts payments again once a deep block is late enough. */
export async function finishReconciling({ db }: Context, network: string, deepTime: Date): Promise<void> {
  await db.query(
    `update restores set finished_at = clock()
     where network = $1 and finished_at is null and $2 > started_at + make_interval(secs => $3)`,
    [network, deepTime, lastClaimSeconds],
  )
}

/**
 * Continues nonces from the chain's, deletes the last hour of blocks so that they are read again, and stops payments.
 * Claims that are unsent in the restored database may have been sent since, or refused and paid with another signature.
 * So they are not sent: their logs or their expiry decide. A refund is still sent if everything signed for it since has
 * the same nonce, amount and recipient, because then only one can land. Otherwise it is only watched, like a payment.
 */
async function beginRestore(
  tx: Transaction,
  network: string,
  nonces: readonly { address: string; nonce: number }[],
  areRefundsWatched: boolean,
): Promise<void> {
  // A follower that is about to store a block finds its tip gone, and so leaves no gap below it.
  await lockFollower(tx, network)
  await tx.query(
    `update settlers s set next_nonce = greatest(s.next_nonce, i.nonce)
     from json_to_recordset($2) as i (address text, nonce bigint) where s.network = $1 and s.address = i.address`,
    [network, JSON.stringify(nonces)],
  )
  await tx.query(
    `update authorizations set state = 'sent', sends = 2
     where network = $1 and state = 'claimed' and (refund_id is null or $2)`,
    [network, areRefundsWatched],
  )
  await deleteLastHour(tx, network)
  await tx.query(
    `insert into restores (network, started_at, since)
     values ($1, clock(), (select head_time - interval '1 hour' from followers where network = $1))
     on conflict (network) do update set started_at = clock(), finished_at = null, since = excluded.since`,
    [network],
  )
}

export async function readIsRestoring(tx: Database | Transaction, network: string): Promise<boolean> {
  return (
    (await tx.query('select 1 as one from restores where network = $1 and finished_at is null', [network]))
      .length > 0
  )
}

/** When the database was last restored; null if it never was. */
export async function readRestoredAt(db: Database, network: string): Promise<Date | null> {
  const [row] = await db.query<{ started_at: Date }>('select started_at from restores where network = $1', [
    network,
  ])
  return row?.started_at ?? null
}

/**
 * Records an authorization that was found on the chain: for the checkout that its marker names, if that checkout made
 * exactly this offer; or, while a restore is being reconciled, without a checkout, so that it cannot be presented
 * again. If the checkout already has an unresolved authorization, this one is stored as rejected, so that there are
 * never two; its credit counts in any state. An authorization that counted long ago, and was deleted since, is not
 * recorded.
 */
export async function insertRecovered(
  tx: Transaction,
  network: string,
  found: { readonly seen: Seen; readonly signature: Hex; readonly checkoutId: string | null },
  isRestoring: boolean,
): Promise<{ checkoutId: string | null; storeId: string | null } | null> {
  const { seen, signature, checkoutId } = found
  const [row] = await tx.query<{ checkout_id: string | null; store_id: string | null }>(
    `with named as (
       select c.id, c.store_id from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount text, "payTo" text)
       where c.id = $8 and o.network = $1 and o.amount = $6
         and o.asset = $10 and o."payTo" = $11
     )
     insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount, valid_after,
       valid_before, signature, claimed_at, sends)
     select $1, $2, $3, $4, n.id, n.store_id,
       case when exists (select 1 from authorizations o where o.checkout_id = n.id and o.state in ('claimed', 'sent'))
         then 'rejected' else 'sent' end,
       $5, $6::numeric, 0, 0, decode($7, 'hex'), clock(), 1
     from (select 1) one left join named n on true
     where (n.id is not null or $9)
       and not exists (select 1 from kept_credits x where x.key = nonce_key($1, $2, $3, $4))
     on conflict do nothing
     returning checkout_id, store_id`,
    [
      network,
      seen.asset,
      seen.payer,
      seen.nonce,
      seen.to,
      seen.value.toString(),
      signature.slice(2),
      checkoutId,
      isRestoring,
      toShown(network, seen.asset),
      toShown(network, seen.to),
    ],
  )
  return row ? { checkoutId: row.checkout_id, storeId: row.store_id } : null
}
