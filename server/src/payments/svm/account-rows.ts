import type { Database, Transaction } from '../../database/db.ts'
import type { Mode } from '../../networks.ts'

/** SQL for the token accounts that wallets are paid to. */

/**
 * Wallets whose account is due for a check: every ten seconds while it is missing, every hour once it exists. Those that
 * no owner has confirmed yet have the registration 0: no account is paid for until then.
 */
export async function listUnchecked(
  db: Database,
  network: string,
  asset: string,
  mode: Mode,
  limit: number,
): Promise<string[]> {
  const rows = await db.query<{ address: string }>(
    `select distinct w.address from wallets w join stores s on s.id = w.store_id and s.mode = $3
     left join token_accounts t on t.network = $1 and t.asset = $2 and t.owner = w.address
     where w.family = 'SOLANA' and w.retired_at is null and w.registration > 0 and (t.owner is null or t.checked_at < clock() -
       case when t.ready_at is null then interval '10 seconds' else interval '1 hour' end)
     order by w.address limit $4`,
    [network, asset, mode, limit],
  )
  return rows.map(({ address }) => address)
}

/**
 * Records what was found. If a wallet's account appeared or disappeared, its store gets a new revision, so that new
 * checkouts take that into account.
 */
export async function noteChecked(
  tx: Transaction,
  network: string,
  asset: string,
  found: readonly { readonly owner: string; readonly isReady: boolean }[],
): Promise<void> {
  await tx.query(
    `with input as (
       select * from json_to_recordset($3) as i (owner text, "isReady" boolean)
     ), before as (
       select owner, ready_at is not null as is_ready from token_accounts
       where network = $1 and asset = $2 and owner in (select owner from input) for update
     ), noted as (
       insert into token_accounts as t (network, asset, owner, ready_at, checked_at)
       select $1, $2, i.owner, case when i."isReady" then clock() end, clock() from input i order by i.owner
       on conflict (network, asset, owner) do update set checked_at = clock(),
         ready_at = case when excluded.ready_at is not null then coalesce(t.ready_at, clock()) end
     )
     update stores s set revision = revision + 1
     where s.id in (select w.store_id from wallets w join input i on i.owner = w.address
       left join before b on b.owner = i.owner
       where w.family = 'SOLANA' and w.retired_at is null and i."isReady" <> coalesce(b.is_ready, false))`,
    [network, asset, JSON.stringify(found)],
  )
}

/**
 * Commits that a settler pays for an account, if fewer than this many were paid for within a day. Every creation
 * counts: an owner may close the account, keep its rent, and have it created again.
 */
export async function undertakeCreation(
  db: Database,
  network: string,
  asset: string,
  owner: string,
  perDayMax: number,
): Promise<boolean> {
  if (perDayMax === 0) return false
  const rows = await db.query(
    `with locked as (
       select network from followers where network = $1 for no key update
     )
     update token_accounts t set created_at = clock(),
       creations = 1 + case when t.created_at > clock() - interval '1 day' then t.creations else 0 end
     from locked
     where t.network = locked.network and t.asset = $2 and t.owner = $3 and t.ready_at is null
       and (t.created_at is null or t.created_at < clock() - interval '2 minutes')
       and (select coalesce(sum(o.creations), 0) from token_accounts o
         where o.created_at > clock() - interval '1 day') < $4
     returning t.owner`,
    [network, asset, owner, perDayMax],
  )
  return rows.length > 0
}
