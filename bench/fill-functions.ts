/**
 * Functions and tables in the schema `fill`, with which fill-rows.ts invents ids, hashes and JSON like the program's.
 */
export type Plan = {
  readonly seed: string
  readonly checkouts: number
  /** The time between the creations of two successive checkouts. */
  readonly spacingMs: number
  readonly startMs: number
  readonly untilMs: number
  readonly perTransaction: number
  readonly pageUrl: string
  readonly answersHours: number
}

/** The token of nearly all payments, and the payer of every third: a wallet that acts for many buyers. */
export const filled = {
  network: 'eip155:8453',
  asset: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  shownAsset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  oftenBy: '0x0000000000000000000000000000000000000099',
} as const
const { shownAsset } = filled
/** Underpaid transfers are on Solana: elsewhere a transfer of another amount cannot be matched. */
const solana = {
  network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
} as const

/** The first block of the chain, in seconds since 1970. Another follows every two seconds. */
export const genesisSeconds = 1_686_789_347

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const dayMs = 86_400_000

/**
 * Functions are short and declared as free of side effects as they are, so that PostgreSQL inlines them: a call costs
 * more than the work.
 */
export function functions({ seed, pageUrl }: Plan): string {
  const define = (signature: string, type: string, body: string, volatility = 'immutable') =>
    `create function fill.${signature} returns ${type} language sql ${volatility} parallel safe as $fill$ select ${body} $fill$;`
  const timeText = Array.from(
    { length: 10 },
    (_, i) => `substr('${alphabet}', (ms >> ${45 - 5 * i} & 31)::integer + 1, 1)`,
  ).join(' || ')
  const payment = `'"transaction":"' || fill.transaction(f) || '","payer":"' || f.payer || '","network":"' || fill.network(f)
    || '","asset":"' || case f.kind when 'underpaid' then '${solana.asset}' else '${shownAsset}' end
    || '","amount":"' || f.units::text || '","finality":"' || finality || '"'`
  return `
    create schema fill;
    create unlogged table fill.stores (id text collate "C" primary key, name text, evm text, solana text, i bigint);
    create unlogged table fill.steps (kind text, place integer, type text, version integer, status text, moment text,
      finality text);
    create unlogged table fill.facts (n bigint, kind text, id text collate "C", store_id text collate "C",
      order_id text, price text, units bigint, due bigint, created_ms bigint, moment_ms bigint, included_ms bigint,
      block_ms bigint, safe_ms bigint, final_ms bigint, dead_ms bigint, ended_ms bigint, block_number bigint, payer text,
      settler_nonce bigint, place integer, "position" integer);
    ${[
      define('at(ms bigint)', 'timestamptz', 'to_timestamp(ms / 1000.0::float8)'),
      define(
        'iso(ms bigint)',
        'text',
        `to_char(fill.at(ms) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
        'stable',
      ),
      define(
        'share(what text, n bigint)',
        'float8',
        `(hashtextextended(${literal(seed)} || what, n) & 2147483647) / 2147483648.0::float8`,
      ),
      define('hash(what text, n bigint)', 'text', `md5(${literal(`${seed} `)} || what || ' ' || n::text)`),
      define('word(what text, n bigint)', 'text', `'0x' || fill.hash(what, n) || fill.hash(what || '2', n)`),
      define(
        'bytes(what text, n bigint, length integer)',
        'bytea',
        `substr(decode(repeat(fill.hash(what, n), length / 16 + 1), 'hex'), 1, length)`,
      ),
      // Without letters an address reads the same with and without its checksum, which SQL cannot compute.
      define(
        'address(n bigint)',
        'text',
        `'0x' || translate(fill.hash('address', n) || substr(fill.hash('address2', n), 1, 8), 'abcdef', '012345')`,
      ),
      define('settler()', 'text', `fill.address(-1)`),
      define(
        'id(prefix text, ms bigint, salt text)',
        'text',
        `prefix || '_00' || ${timeText} || substr(md5(${literal(`${seed} `)} || prefix || salt), 1, 16)`,
      ),
      define(
        'network(f fill.facts)',
        'text',
        `case f.kind when 'underpaid' then '${solana.network}' else '${filled.network}' end`,
      ),
      define(
        'asset(f fill.facts)',
        'text',
        `case f.kind when 'underpaid' then '${solana.asset}' else '${filled.asset}' end`,
      ),
      define(
        'pay_to(f fill.facts, s fill.stores)',
        'text',
        `case f.kind when 'underpaid' then s.solana else lower(s.evm) end`,
      ),
      define(
        'transaction(f fill.facts)',
        'text',
        `case f.kind when 'paid' then fill.word('transaction', f.settler_nonce)
          when 'underpaid' then translate(substr(fill.word('plain', f.n) || fill.word('more', f.n), 3, 88), '0lx', '123')
          else fill.word('plain', f.n) end`,
      ),
      define('payment_id(f fill.facts)', 'text', `fill.id('pay', f.included_ms, f.n::text)`),
      define(
        'disposition(f fill.facts)',
        'text',
        `case f.kind when 'paid' then 'exact' when 'stray' then 'unmatched' else f.kind end`,
      ),
      define('thanks(f fill.facts)', 'text', `'https://shop.example/thanks?order=' || f.order_id`),
      define(
        'options(f fill.facts, s fill.stores)',
        'json',
        `('[{"network":"${filled.network}","asset":"${shownAsset}","amount":"' || f.due::text || '","payTo":"' || s.evm || '"}'
          || case f.kind when 'underpaid' then ',{"network":"${solana.network}","asset":"${solana.asset}","amount":"'
            || f.due::text || '","payTo":"' || s.solana || '"}' else '' end || ']')::json`,
        'stable',
      ),
      // Without the braces, because the store's view has more fields.
      define(
        'checkout(f fill.facts, status text)',
        'text',
        `'"id":"' || f.id || '","orderId":"' || f.order_id || '","priceAmount":"' || f.price
          || '","priceCurrency":"USD","status":"' || status || '","expiresAt":"' || fill.iso(f.created_ms + ${dayMs})
          || '","checkoutUrl":' || ${literal(JSON.stringify(`${pageUrl}/`).slice(0, -1))} || f.id || '","createdAt":"'
          || fill.iso(f.created_ms) || '","successRedirectUrl":"' || fill.thanks(f) || '"'`,
        'stable',
      ),
      define(
        'data(f fill.facts, s fill.stores, type text, status text, finality text)',
        'json',
        `('{"checkout":' || case when status is null then 'null' else '{' || fill.checkout(f, status) || ',"payment":'
            || case f.kind when 'paid' then coalesce('{' || ${payment} || '}', 'null') else 'null' end || '}' end
          || case when type like 'payment.%' then ',"payment":{' || ${payment} || ',"id":"' || fill.payment_id(f)
            || '","checkoutId":' || case f.kind when 'stray' then 'null' else '"' || f.id || '"' end || ',"payTo":"'
            || case f.kind when 'underpaid' then s.solana else s.evm end || '","disposition":"' || fill.disposition(f)
            || '","includedAt":"' || fill.iso(f.included_ms) || '","safeAt":'
            || case finality when 'included' then 'null' else '"' || fill.iso(f.safe_ms) || '"' end || ',"finalizedAt":'
            || case finality when 'finalized' then '"' || fill.iso(f.final_ms) || '"' else 'null' end
            || ',"acceptedAt":null,"dismissedAt":null,"hints":[]}' else '' end || '}')::json`,
        'stable',
      ),
    ].join('\n    ')}`
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
