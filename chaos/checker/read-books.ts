import type { Client } from 'pg'
import { type Hex, parseTransaction } from 'viem'
import type { Secret } from '../../server/src/events/webhooks/endpoint.ts'
import { openSecret } from '../../server/src/events/webhooks/seal-secrets.ts'
import type { EndpointId } from '../../server/src/ids.ts'
import type { SecretsKey } from '../../server/src/secrets/key-file.ts'
import type {
  Authorization,
  Books,
  Broadcast,
  Checkout,
  Credit,
  Event,
  Movement,
  Refund,
  RefundTotal,
} from './history.ts'

/**
 * Reads the database's contents for one network, in one consistent snapshot. `keys` open the endpoints' secrets; without
 * any, these stay empty.
 */
export async function readBooks(
  db: Client,
  network: string,
  keys: readonly SecretsKey[] = [],
): Promise<Books> {
  await db.query('begin isolation level repeatable read read only')
  try {
    return await readAll(db, network, keys)
  } finally {
    await db.query('rollback')
  }
}

async function readAll(db: Client, network: string, keys: readonly SecretsKey[]): Promise<Books> {
  const read = async <Row>(text: string, values: unknown[] = []): Promise<Row[]> =>
    (await db.query(text, values)).rows as Row[]
  const [first] = await read<{ number: string | null }>(
    'select min(number) as number from blocks where network = $1',
    [network],
  )
  const checkouts = await read<Checkout>(
    `select c.id, c.store_id as "storeId", c.order_id as "orderId", c.status, c.version, c.finality, c.options,
       coalesce((select json_agg(json_build_object('asset', r.asset, 'amount', r.amount::text, 'payTo', r.pay_to))
         from reserved_amounts r where r.checkout_id = c.id), '[]') as reserved
     from checkouts c`,
  )
  const authorizations = await read<
    Omit<Authorization, 'amount' | 'validBefore'> & { amount: string; validBefore: string }
  >(
    `select a.checkout_id as "checkoutId", a.payer, a.nonce, a.pay_to as "payTo", a.amount, a.state,
       a.valid_before as "validBefore", a.claimed_at as "claimedAt", a.resolved_at as "resolvedAt",
       (select min(b.created_at) from transaction_calls t join broadcasts b on b.network = t.network
          and b.settler = t.settler and b.nonce = t.settler_nonce
        where t.network = a.network and t.asset = a.asset and t.payer = a.payer and t.nonce = a.nonce
       ) as "firstSignedAt"
     from authorizations a where a.network = $1`,
    [network],
  )
  const credits = await read<
    Omit<Credit, 'amount' | 'blockNumber'> & { amount: string; blockNumber: string }
  >(
    `select payment_id as "paymentId", checkout_id as "checkoutId", block_hash as "blockHash",
       block_number as "blockNumber", log_index as "logIndex", position, transaction_hash as "transactionHash", asset, payer,
       nonce, pay_to as "payTo", amount, disposition, orphaned_at is not null as "isOrphaned",
       included_at as "includedAt", orphaned_at as "orphanedAt", reversed_at as "reversedAt",
       safe_at as "safeAt", finalized_at as "finalizedAt", accepted_at as "acceptedAt"
     from credits where network = $1`,
    [network],
  )
  const broadcasts = await read<{ hash: string; settler: string; nonce: string; bytes: Buffer }>(
    'select hash, settler, nonce, bytes from broadcasts where network = $1 order by created_at',
    [network],
  )
  const settlers = await read<{ address: string; nextNonce: string }>(
    'select address, next_nonce as "nextNonce" from settlers where network = $1',
    [network],
  )
  const wallets = await read<{ address: string }>(
    isEvm(network)
      ? "select distinct lower(address) as address from wallets where family = 'EVM'"
      : "select distinct address from wallets where family = 'SOLANA'",
  )
  const owners = await read<Books['owners'][number]>(
    'select store_id as "storeId", pay_to as wallet from wallets',
  )
  const costs = await read<{ settler: string; nonce: string; wei: string }>(
    'select settler, nonce, cost_wei as wei from transactions where network = $1 and cost_wei is not null',
    [network],
  )
  const events = await read<Omit<Event, 'sequence'> & { sequence: string | null }>(
    `select id, store_id as "storeId", sequence, type, checkout_id as "checkoutId",
       checkout_version as "checkoutVersion", data from events order by position`,
  )
  const deliveries = await read<Books['deliveries'][number]>(
    'select event_id as "eventId", endpoint_id as "endpointId", state from deliveries',
  )
  const endpoints = await read<{ id: EndpointId; storeId: string; isOrdered: boolean; secrets: Secret[] }>(
    'select id, store_id as "storeId", is_ordered as "isOrdered", secrets from webhook_endpoints',
  )
  const refunds = await read<Omit<Refund, 'amount'> & { amount: string }>(
    `select id, store_id as "storeId", payment_id as "paymentId", asset, identity, wallet, amount, recipient, way, status,
       actor ->> 'type' as "actorType", nonce, transaction_hash as "transactionHash", position, finality,
       created_at as "createdAt", signed_at as "signedAt"
     from refunds where network = $1`,
    [network],
  )
  const refundTotals = await read<
    Omit<RefundTotal, 'amount' | 'reserved'> & { amount: string; reserved: string }
  >(
    'select payment_id as "paymentId", asset, identity, amount, reserved from refund_totals where network = $1',
    [network],
  )
  const movements = await read<
    Omit<Movement, 'number' | 'amount' | 'reverses'> & {
      number: string
      amount: string
      reverses: string | null
    }
  >(
    `select store_id as "storeId", number, network, type, booked_at as "bookedAt", asset, amount, wallet,
       transaction_hash as "transactionHash", payment_id as "paymentId", refund_id as "refundId", reverses
     from movements order by store_id, number`,
  )
  const due = await read<{ item: string }>('select item from movements_due')
  return {
    network,
    firstBlock: integer(first?.number ?? '0'),
    checkouts,
    authorizations: authorizations.map((row) => ({
      ...row,
      amount: BigInt(row.amount),
      validBefore: BigInt(row.validBefore),
    })),
    credits: credits.map((row) => ({
      ...row,
      amount: BigInt(row.amount),
      blockNumber: integer(row.blockNumber),
    })),
    broadcasts: broadcasts.map(isEvm(network) ? toBroadcast : toSvmBroadcast),
    settlers: settlers.map(({ address, nextNonce }) => ({ address, nextNonce: integer(nextNonce) })),
    wallets: wallets.map(({ address }) => address),
    owners,
    costs: costs.map(({ settler, nonce, wei }) => ({ settler, nonce: integer(nonce), wei: BigInt(wei) })),
    events: events.map((row) => ({ ...row, sequence: row.sequence === null ? null : integer(row.sequence) })),
    deliveries,
    endpoints: endpoints.map(({ id, storeId, isOrdered, secrets: [first] }) => ({
      id,
      storeId,
      isOrdered,
      secret: first && keys.length > 0 ? openSecret(keys, id, first) : '',
    })),
    refunds: refunds.map((row) => ({ ...row, amount: BigInt(row.amount) })),
    refundTotals: refundTotals.map((row) => ({
      ...row,
      amount: BigInt(row.amount),
      reserved: BigInt(row.reserved),
    })),
    movements: movements.map((row) => ({
      ...row,
      number: integer(row.number),
      amount: BigInt(row.amount),
      reverses: row.reverses === null ? null : integer(row.reverses),
    })),
    due: due.map(({ item }) => item),
  }
}

function toBroadcast(row: { hash: string; settler: string; nonce: string; bytes: Buffer }): Broadcast {
  const { to, data = '0x' } = parseTransaction(`0x${row.bytes.toString('hex')}` as Hex)
  return {
    hash: row.hash,
    settler: row.settler,
    nonce: integer(row.nonce),
    call: `${to} ${data}`,
    isNoOp: data === '0x' && to?.toLowerCase() === row.settler,
  }
}

/** The call is the message, which follows a count and two signatures. */
function toSvmBroadcast({ hash, settler, nonce, bytes }: Parameters<typeof toBroadcast>[0]): Broadcast {
  const call = bytes.subarray(129).toString('base64')
  return { hash, settler, nonce: integer(nonce), call, isNoOp: false }
}

function isEvm(network: string): boolean {
  return network.startsWith('eip155:')
}

function integer(text: string): number {
  return Number.parseInt(text, 10)
}
