import { setTimeout as wait } from 'node:timers/promises'
import type { Database } from '../../../src/database/db.ts'
import { ask, type ChainPlace } from './scan.ts'

/** What the database says about one network, as far as the invariants need it. */
export type Books = {
  readonly firstBlock: number
  readonly safeNumber: number
  readonly checkouts: readonly {
    readonly id: string
    readonly status: string
    readonly version: number
    readonly finality: string
    readonly options: readonly { asset: string; amount: string; payTo: string }[]
    /** What a plain transfer to it must match, in the same form. */
    readonly reserved: readonly { asset: string; amount: string; payTo: string }[]
    /** Event types, oldest first. */
    readonly events: readonly string[]
  }[]
  /** By payer and nonce. */
  readonly authorizations: ReadonlyMap<string, BookedAuthorization>
  /** Only those that are not orphaned. */
  readonly credits: readonly {
    readonly paymentId: string
    readonly blockHash: string
    readonly blockNumber: number
    readonly logIndex: number
    readonly transactionHash: string
    readonly asset: string
    readonly payer: string
    readonly nonce: string | null
    readonly payTo: string
    readonly amount: bigint
    readonly checkoutId: string | null
    readonly disposition: string
    readonly isAccepted: boolean
    readonly includedAt: Date
  }[]
  /** By hash. */
  readonly broadcasts: ReadonlyMap<
    string,
    {
      readonly hash: string
      readonly settler: string
      readonly nonce: number
      readonly bytes: `0x${string}`
      readonly createdAt: Date
      readonly firstSentAt: Date | null
    }
  >
  readonly settlers: readonly { readonly address: string; readonly nextNonce: number }[]
  readonly wallets: ReadonlySet<string>
}

type BookedAuthorization = {
  readonly checkoutId: string | null
  readonly payer: string
  readonly nonce: string
  readonly payTo: string
  readonly amount: bigint
  readonly validBefore: bigint
  readonly state: string
  readonly isCredited: boolean
  readonly isUnresolved: boolean
  readonly firstSignedAt: Date | null
  readonly resolvedAt: Date | null
}

export async function readBooks(db: Database, { url, token }: ChainPlace): Promise<Books> {
  const network = await readNetwork(url)
  const asset = token.toLowerCase()
  const checkouts = await db.query<Books['checkouts'][number]>(
    `select c.id, c.status, c.version, c.finality, c.options,
       coalesce((select json_agg(json_build_object('asset', r.asset, 'amount', r.amount::text, 'payTo', r.pay_to))
         from reserved_amounts r where r.checkout_id = c.id), '[]') as reserved,
       coalesce((select json_agg(e.type order by e.checkout_version, e.position) from events e
         where e.checkout_id = c.id), '[]') as events
     from checkouts c`,
  )
  const authorizations = await db.query<
    Omit<BookedAuthorization, 'amount' | 'validBefore'> & { amount: string; validBefore: string }
  >(
    `select a.checkout_id as "checkoutId", a.payer, a.nonce, a.pay_to as "payTo", a.amount,
       a.valid_before as "validBefore", a.state, k.included_at is not null as "isCredited",
       k.included_at is null and a.state in ('claimed', 'sent') as "isUnresolved",
       (select min(b.created_at) from transaction_calls t join broadcasts b on b.network = t.network
          and b.settler = t.settler and b.nonce = t.settler_nonce
        where t.network = a.network and t.asset = a.asset and t.payer = a.payer and t.nonce = a.nonce
       ) as "firstSignedAt",
       coalesce(k.included_at, a.resolved_at) as "resolvedAt"
     from authorizations a
     left join credits k on k.network = a.network and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce
       and k.orphaned_at is null
     where a.network = $1 and a.asset = $2`,
    [network, asset],
  )
  const credits = await db.query<
    Omit<Books['credits'][number], 'amount' | 'blockNumber'> & { amount: string; blockNumber: string }
  >(
    `select payment_id as "paymentId", block_hash as "blockHash", block_number as "blockNumber",
       log_index as "logIndex", transaction_hash as "transactionHash", asset, payer, nonce, pay_to as "payTo", amount,
       checkout_id as "checkoutId", disposition, accepted_at is not null as "isAccepted", included_at as "includedAt"
     from credits where network = $1 and asset = $2 and orphaned_at is null`,
    [network, asset],
  )
  const broadcasts = await db.query<{
    hash: string
    settler: string
    nonce: string
    bytes: Buffer
    createdAt: Date
    firstSentAt: Date | null
  }>(
    `select hash, settler, nonce, bytes, created_at as "createdAt", first_sent_at as "firstSentAt"
     from broadcasts where network = $1 order by settler, nonce, created_at`,
    [network],
  )
  const settlers = await db.query<{ address: string; next_nonce: string }>(
    'select address, next_nonce from settlers where network = $1',
    [network],
  )
  const wallets = await db.query<{ address: string }>(
    "select distinct lower(address) as address from wallets where family = 'EVM'",
  )
  const [follower] = await db.query<{ first: string | null; safe_number: string }>(
    `select safe_number, (select min(number) from blocks b where b.network = f.network) as first
     from followers f where network = $1`,
    [network],
  )
  return {
    firstBlock: integer(follower?.first ?? '0'),
    safeNumber: integer(follower?.safe_number ?? '0'),
    checkouts,
    authorizations: new Map(
      authorizations.map((row) => [
        `${row.payer} ${row.nonce}`,
        { ...row, amount: BigInt(row.amount), validBefore: BigInt(row.validBefore) },
      ]),
    ),
    credits: credits.map((row) => ({
      ...row,
      amount: BigInt(row.amount),
      blockNumber: integer(row.blockNumber),
    })),
    broadcasts: new Map(
      broadcasts.map((row) => [
        row.hash,
        { ...row, nonce: integer(row.nonce), bytes: `0x${row.bytes.toString('hex')}` },
      ]),
    ),
    settlers: settlers.map(({ address, next_nonce }) => ({ address, nextNonce: integer(next_nonce) })),
    wallets: new Set(wallets.map(({ address }) => address)),
  }
}

/** I14. Waits until no work is left; at the deadline, returns one sentence per kind of work that is. */
export async function untilQuiet(db: Database, url: string, withinMs: number): Promise<string[]> {
  const network = await readNetwork(url)
  const deadline = Date.now() + withinMs
  const [head] = await ask(url, [['eth_blockNumber']])
  for (;;) {
    const left = await findUndone(db, url, network, integer(head as string, 16))
    if (left.length === 0 || Date.now() >= deadline) return left
    await wait(100)
  }
}

async function findUndone(db: Database, url: string, network: string, head: number): Promise<string[]> {
  const left: string[] = []
  const [row] = await db.query<{ unresolved: number; unsequenced: number; processing: number; head: number }>(
    `select (select count(*)::int from authorizations a where a.network = $1 and a.state in ('claimed', 'sent')
         and not exists (select 1 from credits k where k.network = a.network and k.asset = a.asset
           and k.payer = a.payer and k.nonce = a.nonce and k.orphaned_at is null)) as unresolved,
       (select count(*)::int from events where sequence is null) as unsequenced,
       (select count(*)::int from checkouts where status = 'PROCESSING' and finality = 'included') as processing,
       (select head_number::int from followers where network = $1) as head`,
    [network],
  )
  if (!row) return ['I14 the database returned no row']
  if (row.head < head) left.push(`I14 the follower is at block ${row.head}, the chain at ${head}`)
  if (row.unresolved > 0) left.push(`I14 ${row.unresolved} authorizations are unresolved`)
  if (row.processing > 0) left.push(`I14 ${row.processing} checkouts are PROCESSING`)
  if (row.unsequenced > 0) left.push(`I14 ${row.unsequenced} events have no sequence number`)
  const settlers = await db.query<{ address: string; next_nonce: string; mined_nonce: string }>(
    'select address, next_nonce, mined_nonce from settlers where network = $1',
    [network],
  )
  for (const { address, next_nonce, mined_nonce } of settlers) {
    const [count] = await ask(url, [['eth_getTransactionCount', address, 'latest']])
    const onChain = integer(count as string, 16)
    if (integer(next_nonce) !== onChain || integer(mined_nonce) !== onChain)
      left.push(`I14 settler ${address}: next ${next_nonce}, mined ${mined_nonce}, on the chain ${onChain}`)
  }
  return left
}

async function readNetwork(url: string): Promise<string> {
  const [id] = await ask(url, [['eth_chainId']])
  return `eip155:${integer(id as string, 16)}`
}

function integer(text: string, radix = 10): number {
  return Number.parseInt(text, radix)
}
