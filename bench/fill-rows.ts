/**
 * The statements of fill.ts. A table of facts has one row per checkout, which decides its outcome. Every product table
 * is then written from it, a chunk of checkouts at a time. Both the facts and the functions are in a schema of their
 * own, which is dropped at the end.
 */
import type { Database } from '../server/src/database/db.ts'
import type { StoreId } from '../server/src/ids.ts'
import { filled, functions, genesisSeconds, type Plan } from './fill-functions.ts'

/** Of 10,000 checkouts, how many end this way; the others expire. */
const shares = { paid: 6_400, canceled: 400, failed: 130, late: 30, underpaid: 20, stray: 20 } as const

/** Nothing happens to a checkout later than this after its creation: see `facts`. */
const longestMs = 31 * 3_600_000
const hourMs = 3_600_000

/**
 * The events of a checkout of each kind, in order. A payment has its finality at that moment. `failed` is a payment
 * that had no effect and died, `late` one after the expiry, `stray` one that matches no checkout.
 */
const steps = `
  ('open', 1, 'checkout.created', 1, 'OPEN', 'created', null),
  ('paid', 1, 'checkout.created', 1, 'OPEN', 'created', null),
  ('paid', 2, 'checkout.processing', 2, 'PROCESSING', 'claimed', null),
  ('paid', 3, 'checkout.completed', 3, 'COMPLETED', 'included', 'included'),
  ('paid', 4, 'payment.finalized', 3, 'COMPLETED', 'final', 'finalized'),
  ('canceled', 1, 'checkout.created', 1, 'OPEN', 'created', null),
  ('canceled', 2, 'checkout.canceled', 2, 'CANCELED', 'ended', null),
  ('expired', 1, 'checkout.created', 1, 'OPEN', 'created', null),
  ('expired', 2, 'checkout.expired', 2, 'EXPIRED', 'ended', null),
  ('failed', 1, 'checkout.created', 1, 'OPEN', 'created', null),
  ('failed', 2, 'checkout.processing', 2, 'PROCESSING', 'claimed', null),
  ('failed', 3, 'checkout.reopened', 3, 'OPEN', 'dead', null),
  ('failed', 4, 'checkout.expired', 4, 'EXPIRED', 'ended', null),
  ('late', 1, 'checkout.created', 1, 'OPEN', 'created', null),
  ('late', 2, 'checkout.expired', 2, 'EXPIRED', 'ended', null),
  ('late', 3, 'payment.late', 2, 'EXPIRED', 'included', 'included'),
  ('underpaid', 1, 'checkout.created', 1, 'OPEN', 'created', null),
  ('underpaid', 2, 'payment.underpaid', 1, 'OPEN', 'included', 'safe'),
  ('underpaid', 3, 'checkout.expired', 2, 'EXPIRED', 'ended', null),
  ('stray', 1, 'checkout.created', 1, 'OPEN', 'created', null),
  ('stray', 2, 'payment.unmatched', null, null, 'safe', 'safe'),
  ('stray', 3, 'checkout.expired', 2, 'EXPIRED', 'ended', null)`

/** Creates the schema, and stores that are a year old, each with a key and a wallet of each family. */
export async function makeStores(
  db: Database,
  plan: Plan,
  stores: readonly { readonly name: string; readonly evmAddress: string; readonly solanaAddress: string }[],
): Promise<StoreId[]> {
  return await db.transaction(async (tx) => {
    await tx.script(functions(plan))
    await tx.query(
      `insert into fill.stores
       select fill.id('st', $2::bigint - 31536000000 + i, 'store' || i), store->>'name', store->>'evmAddress', store->>'solanaAddress', i
       from json_array_elements($1) with ordinality as s (store, i)`,
      [JSON.stringify(stores), plan.untilMs],
    )
    await tx.script(`insert into fill.steps values ${steps}`)
    const rows = await tx.query<{ id: StoreId }>(
      `with stores as (
         insert into stores (id, mode, name, finality_policy, created_at)
         select id, 'live', name, '[{"minAmount":"0","finality":"included"}]', fill.at($1::bigint - 31536000000) from fill.stores
       ), wallets as (
         insert into wallets (id, store_id, family, address, custodial_type, created_at)
         select fill.id('wal', $1::bigint - 31536000000 + i, w.family), id, w.family, w.address, 'NON_CUSTODIAL',
           fill.at($1::bigint - 31536000000)
         from fill.stores cross join lateral (values ('EVM', evm), ('SOLANA', solana)) as w (family, address)
       ), keys as (
         insert into api_keys (id, store_id, secret_hash, created_at)
         select '00' || right(id, 16), id, sha256(convert_to(id, 'utf8')), fill.at($1::bigint - 31536000000) from fill.stores
       ), counters as (
         insert into event_counters (store_id) select id from fill.stores
       ), settlers as (
         insert into settlers (network, address, state, next_nonce, created_at)
         values ('${filled.network}', fill.settler(), 'retired', 0, fill.at($1::bigint - 31536000000))
       )
       select id from fill.stores order by i`,
      [plan.untilMs],
    )
    return rows.map(({ id }) => id)
  })
}

/** Decides everything. Times are in milliseconds since 1970. */
export async function makeFacts(db: Database, plan: Plan, storeIds: readonly StoreId[]): Promise<void> {
  let sum = 0
  const kinds = Object.entries(shares)
    .map(([kind, share]) => {
      sum += share
      return `when drawn < ${sum} then '${kind}'`
    })
    .join(' ')
  await db.transaction(async (tx) => {
    await tx.script("set local statement_timeout = 0; set local work_mem = '256MB'")
    await tx.query(
      `insert into fill.facts
       with made as (
         select n, $2::bigint + $3::bigint * n as created_ms, $4::bigint - ($2::bigint + $3::bigint * n) as age_ms,
           floor(10000 * fill.share('kind', n)) as drawn,
           199 + floor(30000 * power(fill.share('price', n), 3))::bigint as cents,
           1 + floor(fill.share('store', n) * cardinality($1::text[]))::integer as store
         from generate_series(1, $5::bigint) as n
       ), sorted as (
         select *, case when age_ms < ${3 * hourMs} then 'open' when drawn < ${shares.paid} then 'paid'
           when drawn < ${shares.paid + shares.canceled} then 'canceled' when age_ms < ${24 * hourMs + 60_000} then 'open'
           when age_ms < ${longestMs} then 'expired' ${kinds} else 'expired' end as kind
         from made
       ), ranked as (
         select *, case when kind in ('paid', 'failed')
           then row_number() over (partition by kind in ('paid', 'failed') order by n) - 1 end as rank
         from sorted
       ), carried as (
         select *, rank / $6::integer as settler_nonce, (rank % $6::integer)::integer as place,
           max(created_ms) over (partition by rank / $6::integer) as last_created_ms
         from ranked
       ), moved as (
         select *, case kind
             when 'late' then created_ms + ${24 * hourMs} + 600000 + floor(fill.share('moment', n) * ${4 * hourMs})::bigint
             when 'underpaid' then created_ms + 300000 + floor(fill.share('moment', n) * ${2 * hourMs})::bigint
             when 'stray' then created_ms + floor(fill.share('moment', n) * ${20 * hourMs})::bigint
             when 'paid' then last_created_ms + 20000 + floor(power(fill.share('moment', settler_nonce), 4) * 7000000)::bigint
             when 'failed' then last_created_ms + 20000 + floor(power(fill.share('moment', settler_nonce), 4) * 7000000)::bigint
           end as moment_ms
         from carried
       ), placed as (
         select *, case kind when 'underpaid' then moment_ms / 400
           else (moment_ms / 1000 + 4 - ${genesisSeconds}) / 2 end as block_number
         from moved
       ), timed as (
         select *, case kind when 'underpaid' then moment_ms / 1000 * 1000
           else (${genesisSeconds} + 2 * block_number) * 1000 end as block_ms,
           case when fill.share('payer', n) < 0.3333 then '${filled.oftenBy}' else fill.address(n) end as payer
         from placed
       ), ended as (
         select *, moment_ms + 330000 as dead_ms, block_ms + case kind when 'underpaid' then 13400
           else 960400 + floor(fill.share('final', coalesce(settler_nonce, n)) * 240000)::bigint end as final_ms
         from timed
       )
       select n, kind, fill.id('ch', created_ms, n::text), ($1::text[])[store],
         'order-' || floor(fill.share('order', n) * 10000000)::bigint, to_char(cents / 100.0, 'FM999990.00'),
         cents * 10000 + case kind when 'late' then 1 + n % 9999 when 'underpaid' then -(cents * 1000)
           when 'stray' then 500000 else 0 end, cents * 10000,
         created_ms, moment_ms, block_ms + 400, block_ms,
         block_ms + case kind when 'underpaid' then 400 else 90400 end,
         final_ms, dead_ms,
         case kind when 'canceled' then created_ms + 60000 + floor(fill.share('moment', n) * ${2 * hourMs})::bigint
           else created_ms + ${24 * hourMs} + 900 end,
         block_number, case when kind = 'underpaid' then translate(payer, '0x', '12') || '1111' else payer end,
         settler_nonce, place,
         row_number() over (partition by settler_nonce, payer, store, cents, case when settler_nonce is null then n end
           order by n) - 1
       from ended order by n`,
      [storeIds, plan.startMs, plan.spacingMs, plan.untilMs, plan.checkouts, plan.perTransaction],
    )
    await tx.script('alter table fill.facts add primary key (n); analyze fill.facts')
  })
}

const isCarried = `f.kind in ('paid', 'failed')`
const isPlain = `f.kind in ('late', 'underpaid', 'stray')`

/**
 * Triggers and references are off, because they would find nothing wrong. `is_credited` is set along with the credit.
 */
const settings = `
  set local statement_timeout = 0;
  set local work_mem = '256MB';
  set local session_replication_role = replica;`

/** Writes checkouts `first` to `last` with their payments. */
export async function fillCheckouts(db: Database, plan: Plan, first: number, last: number): Promise<void> {
  const range = `from fill.facts f join fill.stores s on s.id = f.store_id where f.n between ${first} and ${last}`
  await db.transaction(async (tx) => {
    await tx.script(`${settings}
      insert into checkouts (id, store_id, order_id, price_amount, price_currency, success_redirect_url, options,
        finality, status, version, created_at, expires_at, page_version)
      select f.id, f.store_id, f.order_id, f.price, 'USD', fill.thanks(f), fill.options(f, s), 'included',
        case f.kind when 'open' then 'OPEN' when 'paid' then 'COMPLETED' when 'canceled' then 'CANCELED' else 'EXPIRED' end,
        case f.kind when 'open' then 1 when 'paid' then 3 when 'failed' then 4 else 2 end, fill.at(f.created_ms),
        fill.at(f.created_ms + ${24 * hourMs}), case when f.kind in ('late', 'underpaid') then 2 else 0 end
      ${range} order by f.n;

      insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
        valid_after, valid_before, signature, claimed_at, sends, is_credited, reason, failed_at, resolved_at)
      select '${filled.network}', '${filled.asset}', f.payer, fill.word('nonce', f.n), f.id, f.store_id,
        case f.kind when 'paid' then 'sent' else 'dead' end, lower(s.evm), f.units, f.moment_ms / 1000 - 600,
        f.moment_ms / 1000 + 300, fill.bytes('signature', f.n, 65), fill.at(f.moment_ms), 1, f.kind = 'paid',
        case f.kind when 'failed' then 'authorization_expired' end,
        case f.kind when 'failed' then fill.at(f.included_ms) end, case f.kind when 'failed' then fill.at(f.dead_ms) end
      ${range} and ${isCarried} order by f.n;

      insert into transactions (network, settler, nonce, created_at, mined_at, cost_wei)
      select '${filled.network}', fill.settler(), f.settler_nonce, fill.at(f.moment_ms + 150), fill.at(f.included_ms),
        ${60_000 * plan.perTransaction + 30_000} * 5000000::numeric
      ${range} and f.place = 0 order by f.n;

      insert into broadcasts (hash, network, settler, nonce, bytes, created_at, first_sent_at, last_sent_at, taken_at)
      select fill.word('transaction', f.settler_nonce), '${filled.network}', fill.settler(), f.settler_nonce,
        fill.bytes('broadcast', f.settler_nonce, ${120 + 256 * plan.perTransaction}), fill.at(f.moment_ms + 150),
        fill.at(f.moment_ms + 200), fill.at(f.moment_ms + 200), fill.at(f.moment_ms + 250)
      ${range} and f.place = 0 order by f.n;

      insert into transaction_calls (network, settler, settler_nonce, place, asset, payer, nonce)
      select '${filled.network}', fill.settler(), f.settler_nonce, f.place, '${filled.asset}', f.payer,
        fill.word('nonce', f.n)
      ${range} and ${isCarried} order by f.n;

      insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at, cools_until,
        freed_at, reference)
      select f.id, fill.network(f), fill.asset(f), fill.pay_to(f, s), f.due + case f.kind when 'late' then f.units - f.due else 0 end,
        f.block_number - 100, fill.at(f.created_ms + 30000), fill.at(f.ended_ms + ${48 * hourMs}),
        case when f.ended_ms + ${48 * hourMs} <= ${plan.untilMs} then fill.at(f.ended_ms + ${48 * hourMs}) end,
        case f.kind when 'underpaid' then translate(fill.address(-f.n), '0x', '12') || '1111' end
      ${range} and f.kind in ('late', 'underpaid') order by f.n;

      insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
        "position", asset, payer, nonce, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time,
        included_at, safe_at, finalized_at, announced, sender, sender_nonce, witnessed_at, counts)
      select fill.network(f),
        case f.kind when 'underpaid' then f.block_number || '/' || fill.transaction(f) else fill.word('block', f.block_number) end,
        case f.kind when 'underpaid' then 0 else f.n end, fill.payment_id(f), f.block_number, fill.at(f.block_ms),
        fill.transaction(f), f."position", fill.asset(f), f.payer,
        case f.kind when 'paid' then fill.word('nonce', f.n) end, fill.pay_to(f, s), f.units,
        case when f.kind <> 'stray' then f.store_id end, case when f.kind <> 'stray' then f.id end, fill.disposition(f),
        fill.at(f.block_ms), fill.at(f.included_ms), fill.at(f.safe_ms), fill.at(f.final_ms),
        case f.kind when 'paid' then 'finalized' else fill.disposition(f) end,
        case when f.kind in ('late', 'stray') then f.payer end, case when f.kind in ('late', 'stray') then f.n end,
        fill.at(f.included_ms), true
      ${range} and (f.kind = 'paid' or ${isPlain}) order by f.n;

      insert into idempotency_keys (store_id, route, key, body_hash, resource_id, answer, created_at)
      select f.store_id, 'POST /api/v1/checkouts', fill.hash('key', f.n)::uuid::text, sha256(f.id::bytea), f.id,
        '{' || fill.checkout(f, 'OPEN') || '}', fill.at(f.created_ms)
      ${range} and f.created_ms >= ${plan.untilMs - plan.answersHours * hourMs} order by f.n;

      update settlers s set next_nonce = t.next, mined_nonce = t.next
      from (select max(f.settler_nonce) + 1 as next from fill.facts f where f.n between ${first} and ${last}) t
      where s.address = fill.settler() and t.next is not null;
    `)
  })
}

/**
 * Writes the events of these thirds of the stores, from the creation of checkout `first` until that of the one after
 * `last`.
 */
export async function fillEvents(
  db: Database,
  plan: Plan,
  first: number,
  last: number,
  thirds: readonly number[],
): Promise<void> {
  const at = (n: number) => plan.startMs + plan.spacingMs * n
  const fromMs = first === 1 ? 0 : at(first)
  const beforeMs = last === plan.checkouts ? Number.MAX_SAFE_INTEGER : at(last + 1)
  // Events in these milliseconds belong to checkouts that were created up to `longestMs` earlier.
  const firstTold = Math.max(1, first - Math.ceil(longestMs / plan.spacingMs))
  await db.transaction(async (tx) => {
    await tx.script(`${settings}
      with told as (
        select f.n, f.store_id, e.place, e.type, e.version, moment.ms, fill.id('evt', moment.ms, f.n::text || ' ' || e.place::text) as id,
          case when e.version is not null then f.id end as checkout_id,
          fill.data(f, s, e.type, e.status, e.finality) as data
        from fill.facts f join fill.steps e on e.kind = f.kind join fill.stores s on s.id = f.store_id
        cross join lateral (select case e.moment when 'created' then f.created_ms when 'claimed' then f.moment_ms
          when 'included' then f.included_ms when 'safe' then f.safe_ms when 'final' then f.final_ms
          when 'dead' then f.dead_ms else f.ended_ms end as ms) moment
        where f.n between ${firstTold} and ${last} and s.i % 3 in (${thirds.join(', ')}) and moment.ms >= ${fromMs} and moment.ms < ${beforeMs}
      ), numbered as (
        select t.*, c.last_sequence + row_number() over (partition by t.store_id order by ms, n, place) as sequence
        from told t join event_counters c on c.store_id = t.store_id
      ), added as (
        insert into events (id, store_id, sequence, type, checkout_id, checkout_version, data, created_at)
        select id, store_id, sequence, type, checkout_id, version, data, fill.at(ms)
        from numbered order by ms, n, place
      )
      update event_counters c set last_sequence = t.last
      from (select store_id, max(sequence) as last from numbered group by store_id) t where c.store_id = t.store_id;
    `)
  })
}

/** Without the limit on the time of a statement. */
export async function analyze(db: Database): Promise<void> {
  await db.transaction((tx) => tx.script('set local statement_timeout = 0; analyze'))
}

export async function tidyUp(db: Database): Promise<void> {
  await db.query('drop schema fill cascade')
}
