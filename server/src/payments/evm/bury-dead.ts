import { readStates } from '../../chains/evm/accounts.ts'
import type { BlockPlace, Chain } from '../../chains/evm/chain.ts'
import { readBlocksAgain } from '../../chains/evm/take.ts'
import { readUses } from '../../chains/evm/transactions.ts'
import {
  isWitnessedUpTo,
  readDeepBlock,
  readFollower,
  readStoredBlocks,
  readStoredRange,
} from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { toSafeNumber } from '../../safe-number.ts'
import { bury } from '../end.ts'
import { maxTimeoutSeconds, type UpdateStatus } from '../rail.ts'
import { finishReconciling } from '../reconcile.ts'
import { type AuthorizationRow, type Authorized, isUncreditedHere, toAuthorized } from '../rows.ts'
import { keyText } from './choose.ts'
import { openListener } from './credit-blocks.ts'
import { lookAtEach } from './look-up.ts'
import { readForgottenWindows } from './refund.ts'

const buriedPerRun = 200
/**
 * A search reads the logs of all blocks in which an authorization could have paid, which may take hundreds of requests.
 */
const searchesPerRun = 5
/** How many of the waiting authorizations may be searched next. */
const turnMax = 50

/**
 * The authorizations that need a search, per chain, in this process, longest waiting first. They are left out of the
 * lists until it is their turn, so that nobody can fill the lists with nonces spent in advance.
 */
const searches = new WeakMap<Chain, Set<string>>()

/**
 * Proves authorizations dead. At a deep block, as many nodes as the network requires must confirm one of two facts: the
 * block is as late as validBefore and the nonce is unused, or the nonce was spent on something else or canceled. After
 * something was sent, we may ask the payer to sign again only with this proof.
 */
export async function buryDead(ctx: Context, chain: Chain, updateStatus: UpdateStatus): Promise<number> {
  const network = chain.network.caip2
  const deep = await readDeepBlock(ctx.db, chain.network)
  if (!deep) return 0
  const { safeNumber = 0 } = (await readFollower(ctx.db, network)) ?? {}
  // Blocks that too few providers reported prove nothing about the payments in them.
  const read = { above: safeNumber, upTo: deep.number, witnessesMin: chain.network.witnessesMin }
  if (!(await isWitnessedUpTo(ctx.db, network, read))) return 0
  await finishReconciling(ctx, network, deep.time)
  const waiting = searches.get(chain) ?? new Set()
  searches.set(chain, waiting)
  const turn = new Set([...waiting].slice(0, turnMax))
  for (const key of turn) waiting.delete(key)
  const limit = buriedPerRun + waiting.size
  const listed = [
    ...(await listPerhapsDead(ctx.db, network, deep, limit)),
    ...(await listPerhapsDead(ctx.db, network, deep, limit, 'resolved')),
    ...(await listPerhapsDead(ctx.db, network, deep, limit, 'refunds')),
  ]
  const candidates = listed.filter(({ transfer }) => !waiting.has(keyText(transfer)))
  if (candidates.length === 0) return 0
  const states = await readStates(
    chain,
    deep.hash,
    candidates.map(({ transfer }) => transfer),
  )
  const seconds = BigInt(Math.floor(deep.time.getTime() / 1_000))
  const safeSeconds = await readSafeSeconds(ctx, network)
  const forgotten = candidates.some(({ refundId }) => refundId !== null)
    ? await readForgottenWindows(ctx, network)
    : null
  /** After a restore, the refund may have been handed out with a later window than the recorded one. */
  const isWindowOver = ({ refundId, transfer: { authorization, isContract } }: Authorized) =>
    authorization.validBefore <= seconds &&
    (refundId === null || !forgotten || deep.time > forgotten(isContract))
  const dead: Dead[] = []
  const spent: PerhapsDead[] = []
  for (const [i, candidate] of candidates.entries()) {
    const { spentReason } = candidate
    const isUsed = states[i]
    if (isUsed === true && spentReason !== null) dead.push(toDead(candidate, spentReason))
    else if (isUsed === false && isWindowOver(candidate))
      dead.push(toDead(candidate, 'authorization_expired'))
    else if (isUsed === true) spent.push(candidate)
  }
  let buried = dead.length === 0 ? 0 : await bury(ctx, network, dead, updateStatus)
  const isInTurn = ({ transfer }: PerhapsDead) => turn.has(keyText(transfer))
  const searched = [...spent.filter(isInTurn), ...spent.filter((one) => !isInTurn(one))]
    .filter(({ transfer }) => transfer.authorization.validBefore <= safeSeconds)
    .slice(0, searchesPerRun)
  // If the search decides nothing, those searched now come last next time.
  for (const one of spent) if (!searched.includes(one)) waiting.add(keyText(one.transfer))
  for (const { transfer } of searched) waiting.add(keyText(transfer))
  await lookAtEach(ctx, chain.network, searched, async (candidate) => {
    const uses = await findUses(ctx, chain, candidate)
    // The nonce is used, but no recorded block spent it: it was used before it was claimed. Once a block as late as
    // validBefore is safe, every block in which it could have paid has been read twice. Until then the follower may
    // still find a payment. In addition, enough nodes must confirm that it paid in none of them.
    if (uses?.length === 0)
      buried += await bury(ctx, network, [toDead(candidate, 'nonce_spent_elsewhere')], updateStatus)
    else if (uses) await readBlocksAgain(ctx, chain, uses, openListener(ctx, chain, updateStatus))
  })
  return buried
}

type Dead = Parameters<typeof bury>[2][number]

function toDead({ transfer: { asset, authorization } }: PerhapsDead, reason: string): Dead {
  const { from: payer, nonce, validBefore } = authorization
  return { asset, payer, nonce, validBefore: validBefore.toString(), reason }
}

/** Longer than any authorization is valid when it is claimed. */
const searchedSeconds = maxTimeoutSeconds + 120
/**
 * A refund's nonce is unused when it is handed out. The search begins this much earlier, in case our clock is ahead of
 * the blocks' times.
 */
const earlierSeconds = 120

/**
 * The blocks in which a nonce was used while it could have paid, according to any node: if one node hides a payment,
 * two reads through it miss it twice. Null if too few nodes answered to rule out such a block, or if some of those
 * blocks are no longer stored, because a refund may be valid for days.
 */
async function findUses(
  ctx: Context,
  chain: Chain,
  { transfer, refundId, claimedAt }: PerhapsDead,
): Promise<BlockPlace[] | null> {
  const { asset, authorization } = transfer
  const { from, nonce, validBefore } = authorization
  const network = chain.network.caip2
  const end = toSafeNumber(validBefore)
  const start = refundId === null ? end - searchedSeconds : claimedAt.getTime() / 1_000 - earlierSeconds
  const range = await readStoredRange(ctx.db, network, new Date(start * 1_000), new Date(end * 1_000))
  // Not a proof that the nonce was unused: we don't know which blocks to search.
  if (!range) return null
  const isComplete = refundId === null || range.isComplete
  const uses = await readUses(chain, { asset, from, nonce }, range)
  return uses?.length === 0 && !isComplete ? null : uses
}

/** Time of the newest block that was read a second time. */
async function readSafeSeconds(ctx: Context, network: string): Promise<bigint> {
  const follower = await readFollower(ctx.db, network)
  const [safe] = await readStoredBlocks(ctx.db, network, follower?.safeNumber ?? 0, 1)
  return BigInt(Math.floor((safe?.time.getTime() ?? 0) / 1_000))
}

type PerhapsDead = Authorized & {
  readonly spentReason: string | null
  /** When it was claimed, or first handed out to be signed. Its nonce was not used before that. */
  readonly claimedAt: Date
}

const isOver = '(a.valid_before <= $2 or a.spent_block_number <= $3)'

/** SQL: each list has a limit of its own, so that none waits behind another. $1 is the network, $4 the limit. */
const lists = {
  /**
   * Unresolved authorizations that can't land any more by the time of this block, or whose nonce was spent by then. A
   * nonce that moved money which does not match the claim (another amount, say) does not settle the claim.
   */
  payments: `select a.* from authorizations a
     where a.network = $1 and a.state in ('claimed', 'sent') and a.refund_id is null and ${isUncreditedHere}
       and ${isOver}
     order by a.valid_before limit $4`,
  /**
   * The same for refunds, signed or only handed out to be signed: we can't know whether a signature exists. They have
   * their own limit, so that no payment waits behind them.
   */
  refunds: `select * from (
       select a.* from authorizations a where a.network = $1 and a.state = 'prepared'
         and ${isOver} and ${isUncreditedHere}
       union all
       select a.* from authorizations a where a.network = $1 and a.state in ('claimed', 'sent') and not a.is_credited
         and a.refund_id is not null and ${isOver} and ${isUncreditedHere}
     ) a order by a.valid_before limit $4`,
  /**
   * The same for authorizations that we had given up, that landed anyway, and whose credit a reorganisation then removed.
   * Anybody who landed one may do so again, and until that is impossible its checkout waits. They are searched by
   * checkout, because few checkouts are PROCESSING.
   */
  resolved: `select a.* from checkouts c
     join authorizations a on a.checkout_id = c.id and a.network = $1 and a.state in ('rejected', 'dead')
     where c.status = 'PROCESSING' and ${isUncreditedHere}
       and exists (select 1 from credits k where k.network = a.network and k.asset = a.asset and k.payer = a.payer
         and k.nonce = a.nonce and k.checkout_id = c.id and k.disposition = 'exact' and k.orphaned_at is not null
         and k.reversed_at is null offset 0)
       and ${isOver}
     order by a.valid_before limit $4`,
} as const

export async function listPerhapsDead(
  db: Database,
  network: string,
  at: { time: Date; number: number },
  limit: number,
  of: keyof typeof lists = 'payments',
): Promise<PerhapsDead[]> {
  const seconds = Math.floor(at.time.getTime() / 1_000)
  const rows = await db.query<AuthorizationRow & { spent_reason: string | null; claimed_at: Date }>(
    lists[of],
    [network, seconds, at.number, limit],
  )
  return rows.map((row) => ({
    ...toAuthorized(row),
    spentReason: row.spent_reason,
    claimedAt: row.claimed_at,
  }))
}
