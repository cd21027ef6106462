import { RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import { SignerAwayError, SignRefusedError } from '../../chains/signers/signing.ts'
import { findReady, type SvmChain } from '../../chains/svm/chain.ts'
import { createTokenAccount } from '../../chains/svm/create-account.ts'
import type { SvmSigner } from '../../chains/svm/signer.ts'
import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { Mode } from '../../networks.ts'

/** Wallets per request. */
const walletsPerLook = 100

/**
 * Checks which stores' wallets have the token account that their money goes to, and creates missing ones within the
 * operator's limit. A creation is committed before it is sent. Sending it twice is harmless, and the next check finds
 * whether it worked.
 */
export async function tendAccounts(
  ctx: Context,
  { chain, signer }: { readonly chain: SvmChain; readonly signer: SvmSigner | undefined },
): Promise<boolean> {
  const { caip2, mode, assets } = chain.network
  let isMore = false
  for (const { address: asset } of assets) {
    const owners = await listUnchecked(ctx.db, caip2, asset, mode, walletsPerLook)
    if (owners.length === 0) continue
    const isReady = await findReady(chain, owners, asset)
    const found = owners.map((owner, i) => ({ owner, isReady: isReady[i] ?? false }))
    await ctx.db.transaction((tx) => noteChecked(tx, caip2, asset, found))
    isMore ||= owners.length === walletsPerLook
    if (!signer) continue
    for (const { owner } of found.filter((one) => !one.isReady)) {
      if (await undertakeCreation(ctx.db, caip2, asset, owner, ctx.config.solanaTokenAccountsPerDay))
        await create(ctx, chain, signer, owner, asset)
    }
  }
  return isMore
}

async function create(
  ctx: Context,
  chain: SvmChain,
  signer: SvmSigner,
  owner: string,
  asset: string,
): Promise<void> {
  try {
    const hash = await createTokenAccount(chain, signer, owner, asset)
    ctx.log.info(
      { txHash: hash, owner },
      'sent a transaction that creates a token account; the next check confirms it',
    )
  } catch (error) {
    const kinds = [RpcAnswerError, RpcUnavailableError, SignRefusedError, SignerAwayError]
    if (!kinds.some((kind) => error instanceof kind)) throw error
    ctx.log.warn(
      { owner, err: error },
      'could not send a transaction that creates a token account; trying again in 2 minutes',
    )
  }
}

/** SQL for the token accounts of stores' wallets. */

/**
 * Wallets whose account is due for a check. A missing account is checked after ten seconds at first, then each time a
 * tenth has passed of the time since the wallet was registered or the account was paid for. An existing one is checked
 * every hour. Wallets that no owner has confirmed yet have the registration 0, and no account is paid for them.
 */
async function listUnchecked(
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
       case when t.ready_at is null then least(greatest((clock() - greatest(w.created_at, t.created_at)) / 10,
         interval '10 seconds'), interval '10 minutes') else interval '1 hour' end)
     order by w.address limit $4`,
    [network, asset, mode, limit],
  )
  return rows.map(({ address }) => address)
}

/**
 * Records the result. If a wallet's account appeared or disappeared, its store gets a new revision, so that new
 * checkouts notice it.
 */
async function noteChecked(
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
 * Commits that a settler pays for an account, if fewer than the limit were paid for within a day. Every creation
 * counts, because an owner may close the account, keep its rent, and have it created again.
 */
async function undertakeCreation(
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
