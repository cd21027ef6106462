import { randomBytes } from 'node:crypto'
import { lockFollower } from '../../chains/rows.ts'
import type { SvmChain } from '../../chains/svm/chain.ts'
import { findPayer, type Landed, readLanded } from '../../chains/svm/landed.ts'
import { listNaming } from '../../chains/svm/lists.ts'
import { toBase58 } from '../../chains/svm/message.ts'
import { countWith, findWithout, isMissed, judge, readViews } from '../../chains/svm/status.ts'
import { findTokenAccount } from '../../chains/svm/transfer.ts'
import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { advancePlaces, orphanCredits } from '../credits/rows.ts'
import { writeCredits } from '../credits/write.ts'
import type { UpdateStatus, Wanted } from '../rail.ts'
import { type Doubt, joinDoubts, noDoubt } from './doubts.ts'

/**
 * Finds transfers that buyers make by themselves (Solana Pay). Each names its checkout's reference as an account that
 * it does not otherwise use. Once a reference was requested, we ask the chain for transactions that name it. The amount
 * that the transaction added to the store's token account is credited, whatever else it did.
 *
 * Their finality is tracked here too. We can't send them again, so a transfer that a fork removed comes back by itself
 * or is given up.
 */
export function openReferences(
  ctx: Context,
  chain: SvmChain,
  updateStatus: UpdateStatus,
  noteDoubt: (doubt: Doubt) => void,
): () => Promise<boolean> {
  const network = chain.network.caip2
  /** Transactions that name a reference but paid nothing for it. They are read only once. */
  const idle = new Set<string>()
  const noteUnreadable = openUnreadable(ctx, chain)
  const settle = openSettle(ctx, chain, updateStatus)

  return async () => {
    const awaited = await listAwaited(ctx.db, network, pace, referencesPerRun)
    const named = await findNaming(chain, awaited)
    const unknown = new Set(
      await listUnknown(
        ctx.db,
        network,
        named.map(([hash]) => hash),
      ),
    )
    const toRead = named.filter(
      ([hash, { reference }]) => unknown.has(hash) && !idle.has(`${hash} ${reference}`),
    )
    const hashes = [...new Set(toRead.map(([hash]) => hash))]
    const landed = await readLanded(chain, hashes)
    const found = new Map(hashes.map((hash, i) => [hash, landed[i]?.fact ?? null]))
    const unreadable = new Set(hashes.filter((_, i) => landed[i]?.isUnreadable))
    const credited = new Set<string>()
    for (const [hash, of] of toRead) {
      const one = found.get(hash)
      if (unreadable.has(hash)) noteUnreadable(hash, of)
      if (!one || credited.has(hash)) continue
      if (await credit(ctx, network, { hash, landed: one, of }, updateStatus)) credited.add(hash)
      else if (ctx.now().getTime() - one.time.getTime() > forkableMs) {
        if (idle.size >= idleMax) idle.clear()
        idle.add(`${hash} ${of.reference}`)
      }
    }
    const isCredited = credited.size > 0
    const { isSettled, ...doubt } = await settle()
    noteDoubt(joinDoubts([...landed, doubt]))
    if (isCredited || isSettled) ctx.db.wakeUps.send('outcomes')
    return isCredited || awaited.length === referencesPerRun
  }
}

/** Logs once for each transaction that it can't be read. It may have paid its checkout, which then stays open. */
function openUnreadable(ctx: Context, { network: { id } }: SvmChain): (hash: string, of: Awaited) => void {
  const noted = new Set<string>()
  return (hash, { checkoutId }) => {
    if (noted.has(hash)) return
    if (noted.size >= idleMax) noted.clear()
    noted.add(hash)
    ctx.metrics.unreadable.inc({ network: id })
    ctx.log.error(
      { network: id, txHash: hash, checkoutId },
      'a transaction names a checkout’s reference but cannot be read, so it does not complete the checkout; look it up in an explorer, tell the store if it paid, and update Farthing',
    )
  }
}

/**
 * A reference is looked up every two seconds at first, then each time a tenth of its age has passed, but at least once
 * a minute while the checkout is open. When somebody looks at the checkout, it is due sooner (`transfers/expect.ts`).
 */
const pace = { ageShare: 10, secondsMin: 2, secondsMax: 60 }
/** Each lookup is a separate call to a node. */
const referencesPerRun = 50
/** An older transaction is not read again: no fork can remove it and make it do something else. */
const forkableMs = 60_000
/** Limits memory. Beyond this, transactions that paid nothing are read again. */
const idleMax = 100_000
const settledPerRun = 200
/** If a transfer was not included again within this time, its blockhash has long expired. */
const lostMinutes = 10

/**
 * The newest transactions that any provider lists for a reference, each with all references for which it is listed. One
 * provider's list is only a reason to read the transaction, whose content shows what it names.
 */
async function findNaming(
  chain: SvmChain,
  awaited: readonly Awaited[],
): Promise<(readonly [hash: string, of: Awaited])[]> {
  const lists = await listNaming(
    chain,
    awaited.map(({ reference }) => reference),
  )
  return awaited.flatMap((one, i) => [...new Set(lists[i])].map((hash) => [hash, one] as const))
}

/** A transaction that names a reference, and the checkout's row. */
type Found = { readonly hash: string; readonly landed: Landed; readonly of: Awaited }

async function credit(
  ctx: Context,
  network: string,
  { hash, landed, of: { asset, payTo, checkoutId, storeId, reference } }: Found,
  updateStatus: UpdateStatus,
): Promise<boolean> {
  const account = await findTokenAccount(payTo, asset)
  const value = landed.gainOf(account)
  if (landed.isFailed || value <= 0n || !landed.names(reference)) return false
  const payer = findPayer(landed, account)
  const place = { hash: `${landed.slot}/${hash}`, number: landed.slot, time: landed.time }
  const seen = { asset, payer, to: payTo, value, transactionHash: hash, logIndex: 0, position: 0 }
  await ctx.db.transaction(async (tx) => {
    await lockFollower(tx, network)
    const matches = [{ seen, checkoutId, storeId, sender: null }]
    const changed = await writeCredits(ctx, tx, network, place, { matches })
    await advancePlaces(tx, network, [place.hash], 'safe')
    if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
  })
  return true
}

type Settled = Doubt & { readonly isSettled: boolean }

/** Checks the finality of credited transfers as often as that of payments. In between, the last doubt still holds. */
function openSettle(ctx: Context, chain: SvmChain, updateStatus: UpdateStatus): () => Promise<Settled> {
  let settledAt = 0
  let doubt = noDoubt
  return async () => {
    const now = ctx.now().getTime()
    // If the clock was set back, check at once.
    if (settledAt <= now && now - settledAt < chain.network.lookEveryMs.unsettled)
      return { isSettled: false, ...doubt }
    const { isSettled, ...found } = await settleKnown(ctx, chain, updateStatus)
    settledAt = now
    doubt = found
    return { isSettled, ...found }
  }
}

/** Updates the finality of credited transfers, and gives up those that a fork removed. */
async function settleKnown(ctx: Context, chain: SvmChain, updateStatus: UpdateStatus): Promise<Settled> {
  const { caip2: network, witnessesMin } = chain.network
  const standing = await listUnsettled(ctx.db, network, settledPerRun)
  const lost = await listOrphanedReferenceTransfers(ctx.db, network, lostMinutes, settledPerRun)
  if (standing.length + lost.length === 0) return { isSettled: false, ...noDoubt }
  const { views, ...apart } = await readViews(
    chain,
    [...standing, ...lost].map(({ hash }) => hash),
    // Those that are lost were lost long ago.
    (i, told) => i >= standing.length || isMissed(told, i, standing[i]?.slot ?? null),
  )
  const judged = standing.map((_, i) => judge(views, i, witnessesMin))
  const doubt = joinDoubts([apart, ...judged])
  if (doubt.isDisputed) return { isSettled: false, ...doubt }
  const statusOf = (i: number) => judged[i]?.status ?? null
  const isHere = (i: number) => statusOf(i)?.slot === standing[i]?.slot && !statusOf(i)?.isFailed
  const final = standing.filter((_, i) => isHere(i) && statusOf(i)?.commitment === 'finalized')
  const gone = standing.filter((one, i) => {
    // If it is in another block now, it is read there again.
    if (statusOf(i) !== null) return !isHere(i)
    const without = findWithout(views, i, one.slot).length
    return without >= witnessesMin && without > countWith(views, i)
  })
  const given = lost.filter((_, i) => {
    const place = standing.length + i
    return findWithout(views, place, null).length >= witnessesMin && countWith(views, place) === 0
  })
  if (final.length + gone.length + given.length === 0) return { isSettled: false, ...doubt }
  await ctx.db.transaction(async (tx) => {
    await lockFollower(tx, network)
    const places = (list: readonly { place: string }[]) => list.map(({ place }) => place)
    const changed = [
      ...(await advancePlaces(tx, network, places(final), 'finalized')),
      ...(await orphanCredits(tx, network, places(gone))),
      ...(await reverseReferenceTransfers(tx, network, places(given))),
    ]
    if (changed.length > 0) await updateStatus(tx, [...new Set(changed)], ctx.now())
  })
  return { isSettled: true, ...doubt }
}

/**
 * On Solana a transfer can carry a reference: an address without a key, unique per checkout. So the amount is exactly
 * the price, and the reference identifies the transfer.
 */
export async function reserveReference(
  ctx: Context,
  wanted: Wanted,
  headAgeSecondsMax: number,
): Promise<boolean> {
  return await insertReference(ctx.db, wanted, toBase58(randomBytes(32)), headAgeSecondsMax)
}

/** SQL for transfers that are identified by the reference they carry. */

/** Gives a checkout a reference. Does nothing if it has one or can't be paid, or if the chain is not being followed. */
export async function insertReference(
  db: Database,
  { checkoutId, network, asset, payTo, price }: Wanted,
  reference: string,
  headAgeSecondsMax: number,
): Promise<boolean> {
  const rows = await db.query(
    `with locked as (
       select id from checkouts where id = $1 and status = 'OPEN' and expires_at > clock() for no key update
     ), made as (
       insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at, reference)
       select locked.id, $2, $3, $4, $5, f.head_number, clock(), $6 from locked, followers f
       where f.network = $2 and f.head_seen_at > clock() - make_interval(secs => $7)
       on conflict do nothing
       returning checkout_id
     )
     update checkouts c set page_version = c.page_version + 1 from made where c.id = made.checkout_id returning c.id`,
    [checkoutId, network, asset, payTo, price.toString(), reference, headAgeSecondsMax],
  )
  return rows.length > 0
}

type Awaited = {
  readonly checkoutId: string
  readonly storeId: string
  readonly asset: string
  readonly payTo: string
  readonly reference: string
}

/**
 * References that are due for a lookup, least recently looked up first. Each is looked up often at first, then less and
 * less often, until its amount is freed. While its checkout can be paid, the interval is at most `secondsMax`.
 */
async function listAwaited(
  db: Database,
  network: string,
  pace: { readonly ageShare: number; readonly secondsMin: number; readonly secondsMax: number },
  limit: number,
): Promise<Awaited[]> {
  return await db.query<Awaited>(
    `update reserved_amounts r set looked_at = clock()
     from (select checkout_id, network, asset from reserved_amounts
           where network = $1 and reference is not null and freed_at is null
             and (looked_at is null or looked_at <= clock() - least(greatest((clock() - reserved_at) / $2::integer,
               make_interval(secs => $3)), case when cools_until is null then make_interval(secs => $4) end))
           order by looked_at nulls first limit $5 for update skip locked) due, checkouts c
     where r.checkout_id = due.checkout_id and r.network = due.network and r.asset = due.asset and c.id = r.checkout_id
     returning r.checkout_id as "checkoutId", c.store_id as "storeId", r.asset, r.pay_to as "payTo", r.reference`,
    [network, pace.ageShare, pace.secondsMin, pace.secondsMax, limit],
  )
}

/** Which of these transactions are neither credited nor sent by us. */
export async function listUnknown(
  db: Database,
  network: string,
  hashes: readonly string[],
): Promise<string[]> {
  const rows = await db.query<{ hash: string }>(
    `select h.hash from unnest($2::text[]) as h (hash)
     where not exists (select 1 from credits k where k.network = $1 and k.transaction_hash = h.hash
         and k.orphaned_at is null)
       and not exists (select 1 from broadcasts b where b.network = $1 and b.hash = h.hash)`,
    [network, hashes],
  )
  return rows.map(({ hash }) => hash)
}

/** A transfer by reference, and where it is or was included. */
type Placed = { readonly place: string; readonly hash: string; readonly slot: number }

/** Credited transfers that are not final yet. */
async function listUnsettled(db: Database, network: string, limit: number): Promise<Placed[]> {
  return await db.query<Placed>(
    `select k.block_hash as place, k.transaction_hash as hash, k.block_number::float8 as slot from credits k
     where k.network = $1 and k.nonce is null and k.orphaned_at is null and k.finalized_at is null
     order by k.block_number limit $2`,
    [network, limit],
  )
}

/** Transfers that were orphaned at least this long ago and are not back on the chain. */
async function listOrphanedReferenceTransfers(
  db: Database,
  network: string,
  minutes: number,
  limit: number,
): Promise<Placed[]> {
  return await db.query<Placed>(
    `select k.block_hash as place, k.transaction_hash as hash, k.block_number::float8 as slot from credits k
     where k.network = $1 and k.nonce is null and k.reversed_at is null
       and k.orphaned_at <= clock() - make_interval(mins => $2)
       and not exists (select 1 from credits o where o.payment_id = k.payment_id and o.orphaned_at is null)
     order by k.orphaned_at limit $3`,
    [network, minutes, limit],
  )
}

/** Gives these transfers up. Returns their checkouts. */
async function reverseReferenceTransfers(
  tx: Transaction,
  network: string,
  places: readonly string[],
): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string | null }>(
    `update credits set reversed_at = clock()
     where network = $1 and block_hash = any($2) and orphaned_at is not null and reversed_at is null
     returning checkout_id`,
    [network, places],
  )
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}
