import type { Transaction } from '../../database/db.ts'

/**
 * SQL that keeps each transfer in one place: live in one block only, and numbered among its equals.
 *
 * Equal transfers are those of one transaction with the same token, payer, recipient and amount. `position` numbers
 * them, so that they are found again when the transaction is included in another block. A node may tell a block in part,
 * so a reading numbers only what it has, and another reading of the same block numbers them differently. The last reading's
 * numbers hold. What it left out is numbered after them until a witnessed reading decides whether it is there. Which of
 * several equal transfers has which number does not matter.
 */

/**
 * SQL: whether the transfer `i` was counted before and its credit was deleted since, or the address of its payer erased. A
 * reading that left out the authorization of a transfer is recognised by its place. $1 is the network.
 */
export const isKept = (i: string) => `exists (select 1 from kept_credits x where x.key in (
  credit_key($1, ${i}.transaction_hash, ${i}.asset, ${i}.payer, ${i}.pay_to, ${i}.amount, ${i}.position),
  nonce_key($1, ${i}.asset, ${i}.payer, ${i}.nonce)))`

/** Above every position that a transfer has: from here on they are those of payers whose data was erased. */
export const erasedPosition = 1_000_000

/** Above every position: numbers are moved through here, because the unique index looks at each row by itself. */
const parkedFrom = 1_000_000_000

/**
 * Before a reading of a block is written: orphans the credits of the same transfers in other blocks, or of the same
 * nonces elsewhere in this one, and takes their numbers from equal transfers of this block that have others now.
 * Returns whether there are some that this reading left out. `input` is the reading, as JSON.
 */
export async function makeRoom(
  tx: Transaction,
  network: string,
  blockHash: string,
  input: string,
): Promise<boolean> {
  const rows = await tx.query<{ is_left_out: boolean }>(
    `with input as (
       select * from json_to_recordset($2) as i (log_index integer, transaction_hash text, position integer, asset text,
         payer text, nonce text, pay_to text, amount numeric)
       where not ${isKept('i')}
     ), found as (
       select k.block_hash, k.log_index, k.block_hash <> $3 as is_replaced
       from (select distinct transaction_hash, asset, payer, pay_to, amount from input) i
       cross join lateral (select * from credits k where k.network = $1 and k.orphaned_at is null
         and k.transaction_hash = i.transaction_hash and k.asset = i.asset and k.payer = i.payer
         and k.pay_to = i.pay_to and k.amount = i.amount offset 0) k
       left join input s on s.log_index = k.log_index and k.block_hash = $3
       where s.position is distinct from k.position
       union all
       select k.block_hash, k.log_index, true from input i
       cross join lateral (select * from credits k where k.network = $1 and k.orphaned_at is null
         and k.asset = i.asset and k.payer = i.payer and k.nonce = i.nonce offset 0) k
       where k.block_hash <> $3 or k.log_index <> i.log_index
     ), moved as (
       select block_hash, log_index, bool_or(is_replaced) as is_replaced from found group by block_hash, log_index
     )
     update credits k set orphaned_at = case when m.is_replaced then clock() end,
       position = case when m.is_replaced then k.position else $4 + k.log_index end
     from moved m
     where k.network = $1 and k.block_hash = m.block_hash and k.log_index = m.log_index
     returning not m.is_replaced and not exists (select 1 from input i where i.log_index = k.log_index) as is_left_out`,
    [network, input, blockHash, parkedFrom],
  )
  return rows.some(({ is_left_out }) => is_left_out)
}

/** After a reading was written: numbers what it left out after what it has. */
export async function numberLeftOut(tx: Transaction, network: string, blockHash: string): Promise<void> {
  await tx.query(
    `with left_out as (
       select k.log_index, row_number() over (partition by k.transaction_hash, k.asset, k.payer, k.pay_to, k.amount
         order by k.log_index) - 1 + (select coalesce(max(o.position) + 1, 0) from credits o
           where o.network = $1 and o.block_hash = $2 and o.orphaned_at is null and o.position < $3
             and o.transaction_hash = k.transaction_hash and o.asset = k.asset and o.payer = k.payer
             and o.pay_to = k.pay_to and o.amount = k.amount) as position
       from credits k
       where k.network = $1 and k.block_hash = $2 and k.orphaned_at is null and k.position >= $3
     )
     update credits k set position = l.position from left_out l
     where k.network = $1 and k.block_hash = $2 and k.log_index = l.log_index`,
    [network, blockHash, parkedFrom],
  )
}

/**
 * SQL: a new log index for the credit `k` outside of what a block can have, so that its place is free for what is really
 * there. Takes part in a window over all credits that the statement moves.
 */
export function placeOutside(k: string): string {
  return `(select least(0, min(o.log_index)) from credits o where o.network = ${k}.network and o.block_hash = ${k}.block_hash)
    - row_number() over (partition by ${k}.block_hash order by ${k}.log_index)`
}
