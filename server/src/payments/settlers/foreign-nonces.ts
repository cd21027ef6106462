import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { idOfNetwork } from '../../networks.ts'
import { type AuthorizationRow, type Authorized, isUncredited, sendableUntil, toAuthorized } from '../rows.ts'

/** Logs that a settler was stopped because somebody else uses its key. */
export function reportForeign(
  ctx: Context,
  {
    network,
    ...found
  }: {
    readonly network: string
    readonly settler: string
    readonly nonce: number
    /** The transaction that used it, if we have seen it. */
    readonly txHash?: string
  },
): void {
  ctx.log.error(
    { network: idOfNetwork(network), ...found },
    'a transaction that is not ours used a settler’s nonce, so somebody else has its key; the settler sends nothing more, and other settlers send its payments; run doctor',
  )
}

/** An ordinary payment is sent at most twice. Sends by a settler that was stopped since may never be mined. */
export const sendsMax = 4

/** Records a nonce that somebody else used, and stops its settler. True if it was not stopped before. */
export async function noteForeign(
  db: Database,
  network: string,
  settler: string,
  nonce: number,
): Promise<boolean> {
  const rows = await db.query(
    `with found as (
       insert into foreign_nonces (network, settler, nonce, found_at)
       values ($1, $2, $3, clock()) on conflict do nothing
     )
     update settlers set stopped_at = clock() where network = $1 and address = $2 and stopped_at is null
     returning address`,
    [network, settler, nonce],
  )
  return rows.length > 0
}

/**
 * Authorizations that a stopped settler sent and no other settler has sent since. Their transaction is not mined, or a
 * foreign one used its nonce. It may still be mined: the authorization's own nonce then lets only one of the two move
 * money.
 */
export async function listStranded(
  db: Database,
  network: string,
  headTime: Date,
  limit: number,
  isContract: boolean,
): Promise<Authorized[]> {
  const rows = await db.query<AuthorizationRow>(
    `select a.* from (
       select t.settler, t.nonce from settlers s join transactions t on t.network = s.network and t.settler = s.address
       where s.network = $1 and s.stopped_at is not null and t.mined_at is null
       union
       select f.settler, f.nonce from settlers s join foreign_nonces f on f.network = s.network and f.settler = s.address
       where s.network = $1 and s.stopped_at is not null
     ) t
     join transaction_calls c on c.network = $1 and c.settler = t.settler and c.settler_nonce = t.nonce
     cross join lateral (select * from authorizations a where a.network = $1 and a.asset = c.asset
       and a.payer = c.payer and a.nonce = c.nonce offset 0) a
     where a.state = 'sent' and a.sends < ${sendsMax} and a.is_contract = $4 and a.spent_block_number is null
       and a.valid_before > $2 and ${isUncredited}
       and not exists (select 1 from transaction_calls o
         join settlers h on h.network = o.network and h.address = o.settler and h.stopped_at is null
         where o.network = $1 and o.asset = a.asset and o.payer = a.payer and o.nonce = a.nonce offset 0)
     order by a.claimed_at limit $3`,
    [network, sendableUntil(headTime), limit, isContract],
  )
  return rows.map(toAuthorized)
}
