import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { remember } from '../../remember.ts'
import { limitsAlone, readAloneLeft } from '../credits/single-provider.ts'
import type { Rail, Rails } from '../rail.ts'

/** A lane that has been silent for longer than this is not running. */
const laneSilenceSecondsMax = 15
/** A lane whose oldest transaction has been unmined for longer than this is stuck. */
const unminedSecondsMax = 60
/** If the head has not moved for longer than this, the chain has halted or we are cut off from it. */
const headAgeSecondsMax = 30
/**
 * If this many wallets have been waiting to be sent for longer than usual, two full batches are held up, and whoever is
 * claimed next waits longer still. Wallets are counted, not payments: one wallet can hold back its own.
 */
const overdueMax = 2 * 160
const rememberedMs = 500

export const whyRestoring = 'The database was restored and is being compared with the chain.'

/**
 * Whether a payment can be settled on a network now: null if so, or a sentence that says why not. Without an amount, the
 * answer is about the network, however many payments wait.
 */
export type Readiness = (network: string, amount?: Amount) => Promise<string | null>

/** In the asset's smallest unit. */
type Amount = { readonly asset: string; readonly units: bigint }

/**
 * Checked before a claim, never after: a claimed payment is settled as soon as that is possible. The answer is cached
 * for half a second.
 */
export function openReadiness(ctx: Context, rails: Rails): Readiness {
  const { get } = remember((network: string) => look(ctx, network, rails.get(network)), {
    forMs: rememberedMs,
    entriesMax: rails.size,
    now: ctx.now,
  })
  return async (network, amount) => {
    const { obstacle, aloneLeft, isBehind } = await get(network)
    if (obstacle !== null || !amount) return obstacle
    if (isBehind) return 'More payments are waiting than can be settled soon.'
    if (aloneLeft === null) return null
    const left = aloneLeft.get(amount.asset.toLowerCase()) ?? 0n
    return amount.units <= left ? null : 'A payment of this amount needs a second node, and only one answers.'
  }
}

type Look = {
  readonly obstacle: string | null
  /** What may still complete while one provider alone reports it, in units per asset; null if enough providers do. */
  readonly aloneLeft: ReadonlyMap<string, bigint> | null
  /** Whether so many payments wait that a further one would not be settled soon. */
  readonly isBehind: boolean
}

async function look(ctx: Context, network: string, rail: Rail | undefined): Promise<Look> {
  if (!rail)
    return {
      obstacle: 'This deployment does not support that network.',
      aloneLeft: null,
      isBehind: false,
    }
  const read = await readReadiness(ctx.db, network)
  const isAlone = read.witnesses !== null && read.witnesses < rail.network.witnessesMin
  const aloneLeft = isAlone ? await readAloneLeft(ctx.db, network, limitsAlone(ctx, rail.network)) : null
  return { obstacle: findObstacle(rail, read), aloneLeft, isBehind: read.overdue >= overdueMax }
}

type Read = Awaited<ReturnType<typeof readReadiness>>

function findObstacle(
  rail: Rail,
  { lanes, headAgeSeconds, baseFee, waiting, isRestoring, dispute }: Read,
): string | null {
  if (isRestoring) return whyRestoring
  if (dispute !== null) return 'The nodes of that network contradict each other.'
  if (headAgeSeconds === null || headAgeSeconds > headAgeSecondsMax)
    return 'No new block has arrived for a while.'
  const running = lanes.filter(
    ({ silenceSeconds, unminedSeconds }) =>
      silenceSeconds !== null &&
      silenceSeconds <= laneSilenceSecondsMax &&
      (!rail.isInOrder || unminedSeconds === null || unminedSeconds <= unminedSecondsMax),
  )
  if (running.length === 0) return 'No settler can send the payment now.'
  if (rail.reserveCost(baseFee, 0n, 0) === null) return 'The network’s fees are above our limit right now.'
  return running.some((lane) => canPay(rail, lane, baseFee, waiting))
    ? null
    : 'No settler has enough money for the network’s fees.'
}

/**
 * Whether a settler can pay for everything that is claimed, and a full batch more: nodes demand the most that a
 * transaction can cost before they take it.
 */
function canPay(rail: Rail, lane: LaneState, baseFee: bigint, waiting: number): boolean {
  const needed = rail.reserveCost(baseFee, lane.dataFeeWei, waiting)
  return needed !== null && !lane.isUnfunded && lane.balanceWei !== null && lane.balanceWei >= needed
}

/** SQL for what settlements cost: what settlers hold, what mined transactions took from them, and for whom. */
export type LaneState = {
  readonly address: string | null
  readonly silenceSeconds: number | null
  /** Age of the oldest unmined transaction. */
  readonly unminedSeconds: number | null
  /** Whether nodes refuse its oldest transaction because it cannot pay for it. */
  readonly isUnfunded: boolean
  readonly balanceWei: bigint | null
  /** What a full batch costs on top of its gas. */
  readonly dataFeeWei: bigint
}

/** A claim is usually sent with the next block. */
const overdueSeconds = 6

/** Bounds what is read; a wallet with many payments in progress may have most of them. */
const overdueRead = 640

/** Everything that decides whether a network can settle now, in one query. */
export async function readReadiness(
  db: Database,
  network: string,
): Promise<{
  lanes: LaneState[]
  headAgeSeconds: number | null
  baseFee: bigint
  /** Payments that are claimed and neither paid nor dead. A contract wallet has one in flight, however many it has signed. */
  waiting: number
  /** Ordinary wallets whose payments have been waiting to be sent for longer than that, counted up to a limit. */
  overdue: number
  isRestoring: boolean
  /** How many providers reported the head; null where that is not counted. */
  witnesses: number | null
  /** What the providers contradict each other about. */
  dispute: string | null
}> {
  const rows = await db.query<{
    address: string | null
    silence: number | null
    unmined: number | null
    is_unfunded: boolean
    balance_wei: string | null
    data_fee_wei: string | null
    head_age: number | null
    base_fee: string | null
    waiting: number
    overdue: number
    is_restoring: boolean
    witnesses: number | null
    dispute: string | null
  }>(
    `select s.address, extract(epoch from clock() - s.alive_at)::float8 as silence, s.balance_wei, s.data_fee_wei,
       extract(epoch from clock() - oldest.created_at)::float8 as unmined,
       coalesce(oldest.is_unfunded, false) as is_unfunded,
       extract(epoch from clock() - f.head_seen_at)::float8 as head_age, f.base_fee, f.witnesses, f.dispute,
       (select (count(*) filter (where not a.is_contract) + count(distinct a.payer) filter (where a.is_contract))::integer
          from authorizations a where a.network = f.network
          and a.state in ('claimed', 'sent') and not a.is_credited and a.refund_id is null) as waiting,
       (select count(distinct payer)::integer from (select a.payer from authorizations a where a.network = f.network
          and a.state = 'claimed' and a.refund_id is null and not a.is_contract and a.spent_block_number is null
          and a.claimed_at < clock() - interval '${overdueSeconds} seconds'
          order by a.claimed_at limit ${overdueRead}) waited) as overdue,
       exists (select 1 from restores r where r.network = f.network and r.finished_at is null) as is_restoring
     from followers f left join settlers s on s.network = f.network and s.state = 'active' and s.stopped_at is null
     left join lateral (
       select t.created_at, (select b.unfunded_at is not null from broadcasts b where b.network = t.network
         and b.settler = t.settler and b.nonce = t.nonce order by b.created_at desc limit 1) as is_unfunded
       from transactions t where t.network = s.network and t.settler = s.address and t.mined_at is null
       order by t.nonce limit 1) oldest on true
     where f.network = $1`,
    [network],
  )
  return {
    headAgeSeconds: rows[0]?.head_age ?? null,
    baseFee: BigInt(rows[0]?.base_fee ?? '0'),
    waiting: rows[0]?.waiting ?? 0,
    overdue: rows[0]?.overdue ?? 0,
    isRestoring: rows[0]?.is_restoring ?? false,
    witnesses: rows[0]?.witnesses ?? null,
    dispute: rows[0]?.dispute ?? null,
    lanes: rows.map((row) => ({
      address: row.address,
      silenceSeconds: row.silence,
      unminedSeconds: row.unmined,
      isUnfunded: row.is_unfunded,
      balanceWei: row.balance_wei === null ? null : BigInt(row.balance_wei),
      dataFeeWei: BigInt(row.data_fee_wei ?? '0'),
    })),
  }
}
