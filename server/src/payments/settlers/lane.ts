import { type Follower, readFollower } from '../../chains/rows.ts'
import { isNodeError, type RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import { SignerAwayError, SignRefusedError } from '../../chains/signers/signing.ts'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { idOfNetwork } from '../../networks.ts'
import { type Leased, leaseSettler, noteBalance } from './rows.ts'

/** Longer than any step takes. After this time another process takes over from one that died. */
const leaseSeconds = 10

/** How old a settler's balance may be: while somebody may be paying, while it is too low for that, and otherwise. */
const balanceKeptSeconds = { awake: 10, low: 30, idle: 600 }

/** How a lane reads its settler's balance and the balance that it needs. */
type Funds = {
  readonly readBalance: (settler: Leased) => Promise<bigint>
  readonly readDataFee?: () => Promise<bigint>
  /** Below this balance, payers are refused. */
  readonly least: (baseFee: bigint, dataFee: bigint) => bigint
}

type Entered = { readonly settler: Leased; readonly follower: Follower & { readonly headTime: Date } }

/**
 * How every lane's step begins: lease the settler's row, read how far the chain was followed, and refresh the balance
 * and data fee that readiness depends on. Returns 'held' if another process has the settler, and 'blind' if the chain
 * is not followed: nobody would see a transaction's outcome, so nothing is sent.
 */
export async function enterLane(
  ctx: Context,
  {
    network,
    address,
    holder,
  }: { readonly network: string; readonly address: string; readonly holder: string },
  { readBalance, readDataFee = async () => 0n, least }: Funds,
): Promise<Entered | 'held' | 'blind'> {
  const settler = await leaseSettler(ctx.db, network, address, holder, leaseSeconds)
  if (!settler) return 'held'
  const follower = await readFollower(ctx.db, network)
  if (!follower?.headTime) return 'blind'
  const entered = { ...follower, headTime: follower.headTime }
  const { balanceWei, balanceAgeSeconds, isAwake } = settler
  const isLow = balanceWei === null || balanceWei < least(follower.baseFee, settler.dataFeeWei)
  const keptSeconds = balanceKeptSeconds[isAwake ? 'awake' : isLow ? 'low' : 'idle']
  if (balanceAgeSeconds !== null && balanceAgeSeconds < keptSeconds) return { settler, follower: entered }
  const [balance, dataFee] = await Promise.all([readBalance(settler), readDataFee()])
  await noteBalance(ctx.db, network, address, { balance, dataFee })
  return { settler: { ...settler, balanceWei: balance, dataFeeWei: dataFee }, follower: entered }
}

/**
 * How long a lane pauses after a refusal. After a shorter silence, payments already get 503, so no payer signs a payment
 * that this settler will not send.
 */
const refusedRestMs = 30_000

/**
 * Runs a lane's steps while its signer can be reached, and reports when that changes. Without a signer the lane is
 * silent. It gives up its lease, so that another process may take it; if none does, payments get 503 before they are
 * claimed. Committed transactions are unaffected, and everything continues where it stopped.
 */
export function openSteps(
  ctx: Context,
  network: string,
  signer: { readonly address: string; readonly isAway: () => boolean },
): (step: () => Promise<boolean | null>) => Promise<boolean> {
  const fields = { network, settler: signer.address }
  let isGone = false
  let restsUntil = 0

  function noteGone(says?: SignerAwayError): false {
    if (!isGone)
      ctx.log.warn(
        { ...fields, err: says },
        'the signer cannot be reached, so nothing is sent from this settler; check that signer runs, with the same SIGNER_SOCKET',
      )
    isGone = true
    return false
  }

  return async (step) => {
    if (signer.isAway()) return noteGone()
    if (ctx.now().getTime() < restsUntil) return false
    try {
      const isMore = await step()
      if (isGone) ctx.log.info(fields, 'the signer can be reached again')
      isGone = false
      return isMore === true
    } catch (error) {
      if (error instanceof SignerAwayError) return noteGone(error)
      if (!(error instanceof SignRefusedError)) throw error
      restsUntil = ctx.now().getTime() + refusedRestMs
      ctx.metrics.taskFailures.inc({ task: `sign ${network} ${signer.address}` })
      ctx.log.error(
        { ...fields, reason: error.message },
        'the signing policy refused a lane’s transaction; trying again in 30 s. If a limit is used up, raise it or wait until midnight (UTC)',
      )
      return false
    }
  }
}

/** Logs which payments a transaction carries, once its bytes are committed. */
export function reportSent(
  ctx: Context,
  tx: Transaction,
  { network, settler, nonce }: { readonly network: string; readonly settler: string; readonly nonce: number },
  txHash: string,
  carried: readonly { readonly checkoutId: string | null; readonly refundId?: string | null }[],
): void {
  const checkoutIds = carried.flatMap(({ checkoutId }) => checkoutId ?? [])
  const refundIds = carried.flatMap(({ refundId }) => refundId ?? [])
  tx.afterCommit(() =>
    ctx.log.info(
      {
        network: idOfNetwork(network),
        settler,
        nonce,
        txHash,
        payments: carried.length - refundIds.length,
        checkoutIds,
        ...(refundIds.length > 0 && { refundIds }),
      },
      'payments signed in one transaction: it is broadcast next',
    ),
  )
}

/**
 * The meaning of a node's refusal: it has the transaction or another one at its nonce (`taken`), the settler can't pay
 * for it (`unfunded`), or the node does not accept it (`refused`).
 */
export type Meaning = 'taken' | 'unfunded' | 'refused'

/**
 * Sends committed bytes to every node, and records whether one accepted them. The nodes' answers say nothing about the
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
      if (!isNodeError(error)) throw error
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
      'a settler cannot pay for its transaction, so everything behind it waits; send it money (see settler list)',
    )
  else
    ctx.log.warn(
      fields,
      'the nodes refuse a transaction; its lane sends it again every few seconds; check the nodes’ message',
    )
}

/** The nodes' answers when bytes were sent. */
type Reception = {
  /** Whether a node accepted them, now or before. */
  readonly isTaken: boolean
  /** Whether nodes refused them because the settler cannot pay. */
  readonly isUnfunded: boolean
  /** The node's message, if it refused them. */
  readonly refusal: string | null
}

/** Records that bytes were sent. Returns whether nodes refused them for a reason that was not recorded before. */
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
