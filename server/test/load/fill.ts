import type { Transaction } from '../../src/database/db.ts'
import { newId, type StoreId } from '../../src/ids.ts'

/**
 * Fills a migrated database with history: checkouts of the last 30 days, spread over stores at random, each with its
 * numbered events, the stored answer for its idempotency key, and its payment, which is final. Rows are inserted in
 * order of time and through the indexes, so that the indexes look as they would in production.
 */
export async function fill(
  tx: Transaction,
  options: { stores: number; checkouts: number; now: Date },
): Promise<StoreId[]> {
  const storeIds = Array.from({ length: options.stores }, () => newId('st', '00', options.now)).sort()
  await tx.query(
    `with made as (
       insert into stores (id, mode, name, finality_policy, created_at)
       select id, 'live', 'Shop', '[{"minAmount":"0","finality":"included"}]', $2::timestamptz - interval '1 year'
       from unnest($1::text[]) as id returning id
     )
     insert into event_counters (store_id) select id from made`,
    [storeIds, options.now],
  )
  if (options.checkouts === 0) return storeIds
  await tx.script(`set local statement_timeout = 0; ${functions}`)
  await tx.query(
    `insert into checkouts (id, store_id, order_id, price_amount, price_currency, success_redirect_url, options,
                            finality, status, version, created_at, expires_at)
     select load_id('ch', ms, i), ($1::text[])[1 + load_number(i, 1) % $3::int],
       'order-' || load_number(i, 2) % 10000000, '12.50', 'USD', 'https://shop.example/thanks?order=' || i,
       '[{"network":"eip155:8453","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","amount":"12500000","payTo":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}]',
       'included', status, case status when 'OPEN' then 1 else 2 end, created_at, created_at + interval '1 day'
     from generate_series(1, $2::int) as i
     cross join lateral (select $4::bigint - 2592000000 * ($2::int - i) / $2::int as ms) m
     cross join lateral (select to_timestamp(ms / 1000.0::float) as created_at) t
     cross join lateral (
       select case when i > $2::int * 0.97 then 'OPEN' when i % 20 = 0 then 'CANCELED' when i % 3 = 0 then 'EXPIRED'
              else 'COMPLETED' end as status
     ) s
     order by i`,
    [storeIds, options.checkouts, options.stores, options.now.getTime()],
  )
  await tx.query(
    `insert into events (id, store_id, sequence, type, checkout_id, checkout_version, data, created_at)
     select 'evt_' || substr(c.id, 4, 27) || v, store_id, row_number() over (partition by store_id order by c.id, v),
       case v when 1 then 'checkout.created' else 'checkout.' || lower(status) end, c.id, v,
       load_answer(c, case v when 1 then 'OPEN' else status end, true), c.created_at
     from checkouts c cross join lateral generate_series(1, c.version) as v
     order by c.id, v`,
  )
  await tx.query(
    `update event_counters c set last_sequence = e.last_sequence
     from (select store_id, max(sequence) as last_sequence from events group by store_id) e
     where e.store_id = c.store_id`,
  )
  await tx.query(
    `insert into idempotency_keys (store_id, route, key, body_hash, resource_id, answer, created_at)
     select store_id, 'POST /api/v1/checkouts', md5(id)::uuid::text, sha256(id::bytea), id, load_answer(c, 'OPEN', false),
       created_at
     from checkouts c order by id`,
  )
  await tx.query(
    `insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
       valid_after, valid_before, signature, claimed_at, sends)
     select '${paid.network}', '${paid.asset}', load_payer(id), load_hash(id), id, store_id, 'sent', '${paid.payTo}',
       12500000, 0, extract(epoch from created_at)::int + 300, '\\x00', created_at, 1
     from checkouts where status = 'COMPLETED' order by id`,
  )
  await tx.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       "position", asset, payer, nonce, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time,
       included_at, safe_at, finalized_at, announced)
     select '${paid.network}', load_hash('block' || id), 0, 'pay_' || substr(id, 4), row_number() over (order by id),
       created_at, load_hash('transaction' || id), 0, '${paid.asset}', load_payer(id), load_hash(id), '${paid.payTo}',
       12500000, store_id, id, 'exact', created_at, created_at, created_at, created_at, 'finalized'
     from checkouts where status = 'COMPLETED' order by id`,
  )
  return storeIds
}

/** The token and recipient of all payments, and the payer of every third. */
export const paid = {
  network: 'eip155:8453',
  asset: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  payTo: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
  oftenBy: '0x00000000000000000000000000000000000000a9',
} as const

/** Ids, random numbers and answers like the program's, generated in SQL because a million are needed. */
const functions = `
  create function load_id(prefix text, ms bigint, salt bigint) returns text language sql volatile as $$
    select prefix || '_00' || ${Array.from(
      { length: 10 },
      (_, i) => `substr('0123456789abcdefghjkmnpqrstvwxyz', (ms >> ${45 - 5 * i} & 31)::int + 1, 1)`,
    ).join(' || ')} || substr(md5(prefix || salt || ms), 1, 16)
  $$;
  create function load_number(i bigint, salt int) returns int language sql immutable as $$
    select hashint8extended(i, salt)::bit(64)::bit(31)::int
  $$;
  create function load_hash(seed text) returns text language sql immutable as $$
    select '0x' || md5(seed) || md5(seed || 'half')
  $$;
  create function load_payer(id text) returns text language sql immutable as $$
    select case when hashtext(id) % 3 = 0 then '${paid.oftenBy}' else '0x' || md5(id) || substr(md5('payer' || id), 1, 8) end
  $$;
  create function load_answer(c checkouts, status text, told boolean) returns json language sql volatile as $$
    select (case when told then '{"checkout":' else '' end
      || '{"id":"' || c.id || '","orderId":"' || c.order_id || '","priceAmount":"12.50","priceCurrency":"USD","status":"'
      || status || '","expiresAt":"2026-01-01T00:00:00.000Z","checkoutUrl":"https://farthing.example/pay/' || c.id
      || '","createdAt":"2026-01-01T00:00:00.000Z","successRedirectUrl":"' || c.success_redirect_url || '"'
      || case when told then ',"payment":null}}' else '}' end)::json
  $$;`
