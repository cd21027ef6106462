import type { Hex } from '../../chains/hex.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { AuthorizationKey } from '../rows.ts'
import type { Match } from '../transfers/match.ts'
import type { Step } from './cases.ts'

/** SQL for the simulated chain. A row of `simulated_transfers` is a transfer to which something will still happen. */
export type SimulatedTransfer = {
  readonly hash: Hex
  readonly storeId: string
  /** The checkout whose buyer names this transfer. */
  readonly checkoutId: string | null
  readonly asset: string
  readonly payer: string
  readonly payTo: string
  readonly amount: bigint
  readonly nonce: string | null
  readonly steps: readonly [Step, ...Step[]]
  readonly blockHash: string | null
}

export type NewTransfer = Omit<SimulatedTransfer, 'blockHash' | 'steps'> & { readonly steps: readonly Step[] }

export async function insertTransfers(
  db: Database | Transaction,
  transfers: readonly NewTransfer[],
  afterMs: number,
): Promise<void> {
  await db.query(
    `insert into simulated_transfers (transaction_hash, store_id, checkout_id, asset, payer, pay_to, amount, nonce, steps,
       due_at)
     select i.hash, i."storeId", i."checkoutId", i.asset, i.payer, i."payTo", i.amount, i.nonce, i.steps,
       clock() + make_interval(secs => $2 * (i.place - 1) / 1000.0)
     from rows from (json_to_recordset($1) as (hash text, "storeId" text, "checkoutId" text, asset text, payer text,
       "payTo" text, amount numeric, nonce text, steps text[])) with ordinality
       as i (hash, "storeId", "checkoutId", asset, payer, "payTo", amount, nonce, steps, place)`,
    [JSON.stringify(transfers.map(({ amount, ...row }) => ({ ...row, amount: `${amount}` }))), afterMs],
  )
}

/** Takes the next transfer to which something is to happen now, until the transaction ends. */
export async function takeDue(tx: Transaction): Promise<SimulatedTransfer | null> {
  const [row] = await tx.query<Omit<SimulatedTransfer, 'amount'> & { amount: string }>(
    `select t.transaction_hash as hash, t.store_id as "storeId", t.checkout_id as "checkoutId", t.asset, t.payer,
       t.pay_to as "payTo", t.amount, t.nonce, t.steps, t.block_hash as "blockHash"
     from simulated_transfers t where t.due_at <= clock() order by t.due_at limit 1 for update skip locked`,
  )
  return row ? { ...row, amount: BigInt(row.amount) } : null
}

/** Records that the transfer's first step was taken. One without another step is over. */
export async function passStep(
  tx: Transaction,
  hash: string,
  next: { readonly blockHash: string | null; readonly afterMs: number },
): Promise<void> {
  await tx.query(
    `with over as (
       delete from simulated_transfers where transaction_hash = $1 and cardinality(steps) = 1
     )
     update simulated_transfers set steps = steps[2:], block_hash = $2, due_at = clock() + make_interval(secs => $3 / 1000.0)
     where transaction_hash = $1 and cardinality(steps) > 1`,
    [hash, next.blockHash, next.afterMs],
  )
}

/** Marks a claim as sent. False if it is no longer a claim. Locks its checkout first, as every change of state does. */
export async function markSent(
  tx: Transaction,
  network: string,
  { asset, payer, nonce }: AuthorizationKey,
): Promise<string | null> {
  await tx.query(
    `select 1 as one from checkouts where id = (select checkout_id from authorizations where network = $1 and asset = $2
       and payer = $3 and nonce = $4) for no key update`,
    [network, asset, payer, nonce],
  )
  const [row] = await tx.query<{ storeId: string }>(
    `update authorizations a set state = 'sent', sends = a.sends + 1
     where a.network = $1 and a.asset = $2 and a.payer = $3 and a.nonce = $4 and a.state = 'claimed'
     returning a.store_id as "storeId"`,
    [network, asset, payer, nonce],
  )
  return row?.storeId ?? null
}

/** The checkout for which a plain transfer's amount is reserved, if any. */
export async function matchAmount(
  tx: Transaction,
  network: string,
  blockNumber: number,
  seen: Match['seen'],
): Promise<Match> {
  const [row] = await tx.query<{ checkoutId: string; storeId: string }>(
    `select c.id as "checkoutId", c.store_id as "storeId" from reserved_amounts r join checkouts c on c.id = r.checkout_id
     where r.network = $1 and r.asset = $2 and r.pay_to = $3 and r.amount = $4 and r.freed_at is null and r.after_block < $5`,
    [network, seen.asset, seen.to, seen.value.toString(), blockNumber],
  )
  return { seen, checkoutId: row?.checkoutId ?? null, storeId: row?.storeId ?? null }
}

/** The amount that is reserved for a checkout; null if none is. */
export async function readReserved(
  db: Database,
  network: string,
  checkoutId: string,
): Promise<bigint | null> {
  const [row] = await db.query<{ amount: string }>(
    'select amount from reserved_amounts where network = $1 and checkout_id = $2',
    [network, checkoutId],
  )
  return row ? BigInt(row.amount) : null
}

/** Whether something will still happen to a transaction. */
export async function isComing(tx: Transaction, hash: string): Promise<boolean> {
  const found = await tx.query('select 1 as one from simulated_transfers where transaction_hash = $1', [hash])
  return found.length > 0
}
