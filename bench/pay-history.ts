/** Fills the database of `pay.ts` with older payments, so that PostgreSQL plans as for a service in use. */
import type { Database } from '../server/src/database/db.ts'

/** The settler recorded as the sender of the whole history. Its nonce on the chain must be above `copies`. */
export const historySettler = '0x00000000000000000000000000000000000000aa'

/**
 * Copies each settled payment many times, dated yesterday, with other ids and nonces and one retired settler. On nearly
 * empty tables all query plans cost the same to the planner, and prepared statements keep whichever it picks.
 */
export async function makeHistory(db: Database, copies: number): Promise<void> {
  const nonce = `'0x' || md5(nonce || g) || md5(g || nonce)`
  const hash = (column: string) => `'0x' || md5(${column} || g) || md5(g || ${column})`
  const series = `generate_series(1, ${copies}) g`
  const day = `interval '1 day'`
  await db.transaction(async (tx) => {
    await tx.script(`
      set local session_replication_role = replica;
      set local statement_timeout = 0;
      insert into settlers (network, address, state, next_nonce, mined_nonce)
      select network, '${historySettler}', 'retired', ${copies + 1}, ${copies + 1} from settlers limit 1;
      insert into checkouts (id, store_id, order_id, price_amount, price_currency, success_redirect_url, options, rate,
        finality, status, version, created_at, expires_at)
      select id || '_' || g, store_id, order_id, price_amount, price_currency, success_redirect_url, options, rate,
        finality, status, version, created_at - ${day}, expires_at - ${day}
      from checkouts, ${series} where status = 'COMPLETED';
      insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
        valid_after, valid_before, signature, claimed_at, sends, is_credited)
      select network, asset, payer, ${nonce}, checkout_id || '_' || g, store_id, state, pay_to, amount,
        valid_after, valid_before - 86400, signature, claimed_at - ${day}, sends, is_credited
      from authorizations, ${series} where state = 'sent';
      insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
        "position", asset, payer, nonce, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time,
        included_at, safe_at, finalized_at, announced)
      select network, ${hash('block_hash')}, log_index, payment_id || '_' || g, -g, block_time - ${day},
        ${hash('transaction_hash')}, "position", asset, payer, ${nonce}, pay_to, amount, store_id,
        checkout_id || '_' || g, disposition, first_seen_block_time - ${day}, included_at - ${day},
        included_at - ${day}, included_at - ${day}, 'finalized'
      from credits, ${series} where disposition = 'exact';
      insert into transactions (network, settler, nonce, created_at, mined_at)
      select network, '${historySettler}', g, clock() - ${day}, clock() - ${day} from followers, ${series};
      insert into broadcasts (hash, network, settler, nonce, bytes, created_at, first_sent_at, last_sent_at)
      select ${hash(`'broadcast'`)}, network, settler, nonce, '\\x00', created_at, created_at, created_at
      from transactions t, lateral (select t.nonce::text as g) g where settler = '${historySettler}';
      insert into transaction_calls (network, settler, settler_nonce, place, asset, payer, nonce)
      select network, '${historySettler}', g, row_number() over (partition by g) - 1, asset, payer, ${nonce}
      from authorizations, ${series} where state = 'sent' and claimed_at > clock() - interval '1 hour';
      insert into events (id, store_id, sequence, type, checkout_id, checkout_version, data, created_at)
      select id || '_' || g, store_id, -row_number() over (), type, checkout_id || '_' || g, checkout_version, data,
        created_at - ${day}
      from events, ${series} where checkout_id in (select checkout_id from credits);
    `)
    // Versions from before several nodes had to agree have no such column.
    const [column] = await tx.query(
      `select 1 from information_schema.columns where table_name = 'credits' and column_name = 'witnessed_at'`,
    )
    if (column) await tx.query('update credits set witnessed_at = included_at where witnessed_at is null')
    await tx.script('analyze')
  })
}
