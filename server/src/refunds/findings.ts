import type { Finality } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import { authorizationOf, liveCreditOf } from '../payments/rows.ts'
import type { Refund, RefundFacts } from './refund.ts'
import { type RefundRow, refundColumns, toRefund } from './rows.ts'

/** The state of a refund's nonce, which lanes, followers and proofs of death write without knowing of refunds. */
export type Findings = {
  readonly authorization: RefundFacts['authorization']
  /** Why its authorization was refused or died. */
  readonly reason: string | null
  /** The refund's own transfer on the chain. It counts once enough nodes report it. */
  readonly transfer: {
    readonly transaction: string
    readonly finality: Finality
    readonly counts: boolean
  } | null
}

/** For a refund for which nothing was handed out to be signed. */
export const nothingFound: Findings = { authorization: null, reason: null, transfer: null }

type FindingsRow = {
  state: Findings['authorization']
  authorization_reason: string | null
  transfer_hash: string | null
  transfer_finality: Finality
  counts: boolean
}

const findingsColumns = `a.state, a.reason as authorization_reason, k.transaction_hash as transfer_hash, k.counts,
  case when k.finalized_at is not null then 'finalized' when k.safe_at is not null then 'safe'
    when k.network is not null then 'included' end as transfer_finality`

/**
 * SQL: the authorization `a` of a refund `r`, and its transfer `k`. A nonce that expired unused may have been handed out
 * again for another refund; then the transfer belongs to that one.
 */
const findingsJoins = `
  left join lateral (select r.network, r.asset, r.wallet as payer, r.nonce) key on r.nonce is not null
  left join ${authorizationOf('key')} on a.refund_id = r.id
  left join ${liveCreditOf('key')} on k.pay_to = r.recipient and k.amount = r.amount
    and not exists (select 1 from authorizations o where o.network = r.network and o.asset = r.asset
      and o.payer = r.wallet and o.nonce = r.nonce and o.refund_id <> r.id)`

function toFindings(row: FindingsRow): Findings {
  const { transfer_hash: transaction, transfer_finality: finality, counts } = row
  return {
    authorization: row.state,
    reason: row.authorization_reason,
    transfer: transaction === null ? null : { transaction, finality, counts },
  }
}

/** Call this under the refund's lock: every transaction that changes its status holds it. */
export async function readFindings(
  tx: Transaction,
  { id, network, asset, wallet, nonce, recipient, amount }: Refund,
): Promise<Findings> {
  const [row] = await tx.query<FindingsRow>(
    `select ${findingsColumns}
     from (select $1::text as id, $2::text as network, $3::text as asset, $4::text as wallet, $5::text as nonce,
       $6::text as recipient, $7::numeric as amount) r ${findingsJoins}`,
    [id, network, asset, wallet, nonce, recipient, amount.toString()],
  )
  return row ? toFindings(row) : nothingFound
}

/** The watched refunds after this id, in order. */
export async function listWatched(
  db: Database,
  after: string,
  limit: number,
): Promise<{ readonly refund: Refund; readonly findings: Findings }[]> {
  const rows = await db.query<RefundRow & FindingsRow>(
    `select ${refundColumns}, ${findingsColumns} from refunds r ${findingsJoins}
     where r.is_watched and r.id > $1 order by r.id limit $2`,
    [after, limit],
  )
  return rows.map(({ state, authorization_reason, transfer_hash, transfer_finality, counts, ...refund }) => ({
    refund: toRefund(refund),
    findings: toFindings({ state, authorization_reason, transfer_hash, transfer_finality, counts }),
  }))
}
