import { RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Database } from '../../database/db.ts'
import { idOfNetwork } from '../../networks.ts'

/**
 * What a node's refusal means: it has the transaction, or another one in its place (`taken`); the settler cannot pay for
 * it (`unfunded`); or it will not take it (`refused`).
 */
export type Meaning = 'taken' | 'unfunded' | 'refused'

/**
 * Sends committed bytes to every node, and records whether one took them. The nodes' answers decide nothing about the
 * payment: its outcome is read from the chain.
 */
export async function broadcast(
  ctx: Context,
  hash: string,
  send: () => Promise<void>,
  meaningOf: (error: RpcAnswerError) => Meaning = () => 'taken',
): Promise<void> {
  const { meaning, refusal } = await send().then(
    () => ({ meaning: 'taken', refusal: null }) as const,
    (error: unknown) => {
      if (!(error instanceof RpcAnswerError) && !(error instanceof RpcUnavailableError)) throw error
      ctx.log.debug(
        { txHash: hash, err: error },
        'no node accepted the transaction; its lane sends it again within seconds',
      )
      if (error instanceof RpcUnavailableError) return { meaning: 'unknown', refusal: null } as const
      const meaning = meaningOf(error)
      return { meaning, refusal: meaning === 'taken' ? null : error.message } as const
    },
  )
  crashPoint(ctx, 'broadcast-before-note')
  const reception: Reception = {
    isTaken: meaning === 'taken',
    isUnfunded: meaning === 'unfunded',
    refusal,
  }
  const { isNews, network, settler } = await noteSent(ctx.db, hash, reception)
  crashPoint(ctx, 'broadcast-after-note')
  if (!isNews) return
  const fields = { network: idOfNetwork(network), settler, txHash: hash, refusal }
  if (meaning === 'unfunded')
    ctx.log.warn(
      fields,
      'a settler cannot pay for its transaction; everything behind it waits: send it money, see settler list',
    )
  else
    ctx.log.warn(
      fields,
      'the nodes refuse a transaction; its lane sends it again every few seconds: check what they say',
    )
}

/** What nodes answered when bytes were sent. */
type Reception = {
  /** Whether a node took them, now or before. */
  readonly isTaken: boolean
  /** Whether nodes refused them because the settler cannot pay. */
  readonly isUnfunded: boolean
  /** The node's words, if it refused them. */
  readonly refusal: string | null
}

/** Records that bytes were sent. It is news if nodes refused them for a reason that was not recorded before. */
async function noteSent(
  db: Database,
  hash: string,
  { isTaken, isUnfunded, refusal }: Reception,
): Promise<{ readonly isNews: boolean; readonly network: string; readonly settler: string }> {
  const [row] = await db.query<{ is_news: boolean; network: string; settler: string }>(
    `update broadcasts b set first_sent_at = coalesce(b.first_sent_at, clock()), last_sent_at = clock(),
       taken_at = case when $2::boolean then coalesce(b.taken_at, clock()) else b.taken_at end,
       unfunded_at = case when $3::boolean then coalesce(b.unfunded_at, clock()) when not $2::boolean then b.unfunded_at end,
       refusal = coalesce($4::text, b.refusal)
     from broadcasts old where b.hash = $1 and old.hash = b.hash
     returning b.network, b.settler, $4::text is not null and case when $3::boolean then old.unfunded_at is null
       else old.refusal is distinct from $4::text end as is_news`,
    [hash, isTaken, isUnfunded, refusal],
  )
  return { isNews: row?.is_news ?? false, network: row?.network ?? '', settler: row?.settler ?? '' }
}
