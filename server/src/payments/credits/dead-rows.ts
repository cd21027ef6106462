import type { Hex } from '../../chains/chain.ts'
import type { Database, Transaction } from '../../db.ts'
import {
  type AuthorizationRow,
  type Authorized,
  isUncreditedHere,
  lockCheckoutsOf,
  toAuthorized,
} from '../rows.ts'

type PerhapsDead = Authorized & { readonly spentBlockHash: Hex | null; readonly spentReason: string | null }
type PerhapsDeadRow = AuthorizationRow & { spent_block_hash: Hex | null; spent_reason: string | null }

/**
 * Unresolved authorizations that cannot land any more by the time of a block, or whose nonce was spent by then. Money
 * that the nonce moved and that is not this claim's (another amount, say) does not settle the claim.
 */
export async function listPerhapsDead(
  db: Database,
  network: string,
  at: { time: Date; number: number },
  limit: number,
): Promise<PerhapsDead[]> {
  const rows = await db.query<PerhapsDeadRow>(
    `select a.* from authorizations a
     where a.network = $1 and a.state in ('claimed', 'sent') and ${isUncreditedHere}
       and (a.valid_before <= $2 or a.spent_block_number <= $3)
     order by a.valid_before limit $4`,
    [network, Math.floor(at.time.getTime() / 1_000), at.number, limit],
  )
  return rows.map(toPerhapsDead)
}

/**
 * The same of what we had given up, which was found on the chain all the same and then taken back: whoever landed it
 * may do so again, and until that is impossible its checkout waits. They are looked for by their checkouts, for only
 * few of these are PROCESSING.
 */
export async function listTakenBack(
  db: Database,
  network: string,
  at: { time: Date; number: number },
  limit: number,
): Promise<PerhapsDead[]> {
  const rows = await db.query<PerhapsDeadRow>(
    `select a.* from checkouts c
     join authorizations a on a.checkout_id = c.id and a.network = $1 and a.state in ('rejected', 'dead')
     where c.status = 'PROCESSING' and ${isUncreditedHere}
       and exists (select 1 from credits k where k.network = a.network and k.asset = a.asset and k.payer = a.payer
         and k.nonce = a.nonce and k.checkout_id = c.id and k.disposition = 'exact' and k.orphaned_at is not null
         and k.reversed_at is null)
       and (a.valid_before <= $2 or a.spent_block_number <= $3)
     order by a.valid_before limit $4`,
    [network, Math.floor(at.time.getTime() / 1_000), at.number, limit],
  )
  return rows.map(toPerhapsDead)
}

function toPerhapsDead(row: PerhapsDeadRow): PerhapsDead {
  return { ...toAuthorized(row), spentBlockHash: row.spent_block_hash, spentReason: row.spent_reason }
}

export async function buryAuthorizations(
  tx: Transaction,
  network: string,
  dead: readonly { asset: string; payer: string; nonce: string; reason: string }[],
): Promise<string[]> {
  await lockCheckoutsOf(tx, network, dead)
  const rows = await tx.query<{ checkout_id: string | null }>(
    `update authorizations a set state = 'dead', reason = i.reason, resolved_at = clock()
     from json_to_recordset($2) as i (asset text, payer text, nonce text, reason text)
     where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce
       and a.state in ('claimed', 'sent', 'rejected') and ${isUncreditedHere}
     returning a.checkout_id`,
    [network, JSON.stringify(dead)],
  )
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}

/** Notes the block that spent a nonce on something else, or canceled it. */
export async function noteSpent(
  tx: Transaction,
  network: string,
  block: { number: number; hash: Hex },
  spent: readonly { asset: string; payer: string; nonce: string; reason: string }[],
): Promise<void> {
  await tx.query(
    `update authorizations a set spent_block_number = $3, spent_block_hash = $4, spent_reason = i.reason
     from json_to_recordset($2) as i (asset text, payer text, nonce text, reason text)
     where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce`,
    [network, JSON.stringify(spent), block.number, block.hash],
  )
}

export async function forgetSpentAbove(tx: Transaction, network: string, number: number): Promise<void> {
  await tx.query(
    `update authorizations set spent_block_number = null, spent_block_hash = null, spent_reason = null
     where network = $1 and spent_block_number > $2`,
    [network, number],
  )
}
