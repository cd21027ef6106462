import type { GasQuota } from '@farthing/sdk'
import { cadence } from '../../chains/evm/cadence.ts'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { unitsToText } from '../../money.ts'
import { remember } from '../../remember.ts'
import { limitsAlone, readAloneLeft } from '../credits/single-provider.ts'
import { isIdleOn } from '../looks.ts'
import type { Rail, Rails } from '../rail.ts'

/** A lane that has been silent for longer than this is not running. */
const laneSilenceSecondsMax = 15
/** A lane whose oldest transaction has not been mined for longer than this is stuck. */
const unminedSecondsMax = 60
/**
 * If the head has not moved for longer than this, the chain has halted or we are cut off from it. If it moves, but is
 * older than this by its own time, blocks from a time without a follower are still being read.
 */
const headAgeSecondsMax = 30
/** How rarely the head is looked at while nobody needs the network. */
const idleSeconds = cadence.idleMs / 1_000
/**
 * If payments of this many wallets wait longer than usual, two full batches are late, and the next payment would wait
 * even longer. Wallets are counted instead of payments, because one wallet can delay its own payments.
 */
const overdueMax = 2 * 160
const rememberedMs = 500

export const whyEmpty = 'No settler has enough money for the network’s fees.'

/** Thrown by a rail that finds this out only as it verifies a payment. */
export class NotReadyError extends Error {
  override readonly name = 'NotReadyError'
}

export const whyRestoring = 'The database was restored and is being compared with the chain.'

/**
 * Whether a payment can be settled on a network now: null, or a sentence that says why not. Without an amount, the
 * answer is about the network in general, no matter how many payments wait.
 */
export type Readiness = (network: string, amount?: Amount) => Promise<string | null>

/** In the asset's smallest unit. */
type Amount = { readonly asset: string; readonly units: bigint }

/**
 * Checked before a claim, never after it: a claimed payment is settled as soon as possible. The answer is cached for
 * half a second.
 */
export function openReadiness(ctx: Context, rails: Rails): Readiness {
  const { get } = remember((network: string) => judge(ctx, network, rails.get(network)), {
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

type Verdict = {
  readonly obstacle: string | null
  /**
   * How much may still complete while only one provider reports it, in units per asset; null if enough providers do.
   */
  readonly aloneLeft: ReadonlyMap<string, bigint> | null
  /** Whether so many payments wait that another one would not be settled soon. */
  readonly isBehind: boolean
}

async function judge(ctx: Context, network: string, rail: Rail | undefined): Promise<Verdict> {
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

function findObstacle(
  rail: Rail,
  { lanes, headAgeSeconds, isIdle, isCatchingUp, baseFee, waiting, isRestoring, dispute }: NetworkState,
): string | null {
  if (isRestoring) return whyRestoring
  if (dispute !== null) return 'The nodes of that network contradict each other.'
  if (headAgeSeconds === null || headAgeSeconds > headAgeSecondsMax + (isIdle ? idleSeconds : 0))
    return 'No new block has arrived for a while.'
  if (isCatchingUp) return 'New blocks are still being read.'
  if (!rail.hasSettlers) return null
  const running = lanes.filter(
    ({ silenceSeconds, unminedSeconds }) =>
      silenceSeconds !== null &&
      silenceSeconds <= laneSilenceSecondsMax &&
      (!rail.isInOrder || unminedSeconds === null || unminedSeconds <= unminedSecondsMax),
  )
  if (running.length === 0) return 'No settler can send the payment now.'
  if (rail.reserveCost(baseFee, 0n, 0) === null) return 'The network’s fees are above our limit right now.'
  return running.some((lane) => canPay(rail, lane, baseFee, waiting)) ? null : whyEmpty
}

/**
 * Whether a settler can pay for everything that is claimed and for one more full batch. Nodes accept a transaction only
 * if the settler can pay its highest cost.
 */
function canPay(rail: Rail, lane: LaneState, baseFee: bigint, waiting: number): boolean {
  const needed = rail.reserveCost(baseFee, lane.dataFeeWei, waiting)
  return needed !== null && !lane.isUnfunded && lane.balanceWei !== null && lane.balanceWei >= needed
}

/**
 * SQL for the costs of settlements: settlers' balances, the costs of mined transactions, and the stores they were for.
 */
type LaneState = {
  readonly address: string | null
  readonly silenceSeconds: number | null
  /** Age of the oldest unmined transaction. */
  readonly unminedSeconds: number | null
  /** Whether nodes refuse its oldest transaction because it cannot pay for it. */
  readonly isUnfunded: boolean
  readonly balanceWei: bigint | null
  /** A full batch's cost beyond its gas. */
  readonly dataFeeWei: bigint
}

/** A claim is usually sent with the next block. */
const overdueSeconds = 6

/** Limits what is read. A wallet with many payments in progress may have most of them. */
const overdueRead = 640

/** The facts that decide whether a network can settle now. */
type NetworkState = {
  readonly lanes: readonly LaneState[]
  readonly headAgeSeconds: number | null
  /** Whether the head may be old because nobody needed it until a moment ago. */
  readonly isIdle: boolean
  /** Whether the chain has blocks above the last one that was read, and that one is old. */
  readonly isCatchingUp: boolean
  readonly baseFee: bigint
  /**
   * Payments that are claimed and neither paid nor dead. A contract wallet counts once, because only one of its
   * payments is sent at a time.
   */
  readonly waiting: number
  /** Ordinary wallets whose payments have been waiting to be sent for too long, counted up to a limit. */
  readonly overdue: number
  readonly isRestoring: boolean
  /** How many providers reported the head; null if that is not counted. */
  readonly witnesses: number | null
  /** What the providers contradict each other about. */
  readonly dispute: string | null
}

/** One row per lane; the network's columns are the same in each. */
type ReadinessRow = Omit<NetworkState, 'lanes' | 'baseFee'> &
  Omit<LaneState, 'balanceWei' | 'dataFeeWei'> &
  Readonly<Record<'baseFee' | 'balanceWei' | 'dataFeeWei', string | null>>

const notFollowed = {
  ...{ headAgeSeconds: null, isIdle: false, isCatchingUp: false, baseFee: '0', waiting: 0, overdue: 0 },
  ...{ isRestoring: false, witnesses: null, dispute: null },
}

export async function readReadiness(db: Database, network: string): Promise<NetworkState> {
  const rows = await db.query<ReadinessRow>(
    `select s.address, extract(epoch from clock() - s.alive_at)::float8 as "silenceSeconds",
       s.balance_wei as "balanceWei", s.data_fee_wei as "dataFeeWei",
       extract(epoch from clock() - oldest.created_at)::float8 as "unminedSeconds",
       coalesce(oldest.is_unfunded, false) as "isUnfunded",
       extract(epoch from clock() - f.head_seen_at)::float8 as "headAgeSeconds", ${isIdleOn('f.network')} as "isIdle",
       f.is_behind and f.head_time < clock() - interval '${headAgeSecondsMax} seconds' as "isCatchingUp",
       f.base_fee as "baseFee", f.witnesses, f.dispute,
       (select (count(*) filter (where not a.is_contract) + count(distinct a.payer) filter (where a.is_contract))::integer
          from authorizations a where a.network = f.network
          and a.state in ('claimed', 'sent') and not a.is_credited and a.refund_id is null) as waiting,
       (select count(distinct payer)::integer from (select a.payer from authorizations a where a.network = f.network
          and a.state = 'claimed' and a.refund_id is null and not a.is_contract and a.spent_block_number is null
          and a.claimed_at < clock() - interval '${overdueSeconds} seconds'
          order by a.claimed_at limit ${overdueRead}) waited) as overdue,
       exists (select 1 from restores r where r.network = f.network and r.finished_at is null) as "isRestoring"
     from followers f left join settlers s on s.network = f.network and s.state = 'active' and s.stopped_at is null
     left join lateral (
       select t.created_at, (select b.unfunded_at is not null from broadcasts b where b.network = t.network
         and b.settler = t.settler and b.nonce = t.nonce order by b.created_at desc limit 1) as is_unfunded
       from transactions t where t.network = s.network and t.settler = s.address and t.mined_at is null
       order by t.nonce limit 1) oldest on true
     where f.network = $1`,
    [network],
  )
  const { headAgeSeconds, isIdle, isCatchingUp, waiting, overdue, isRestoring, witnesses, dispute, baseFee } =
    rows[0] ?? notFollowed
  return {
    ...{ headAgeSeconds, isIdle, isCatchingUp, waiting, overdue, isRestoring, witnesses, dispute },
    baseFee: BigInt(baseFee ?? '0'),
    lanes: rows.map(({ address, silenceSeconds, unminedSeconds, isUnfunded, balanceWei, dataFeeWei }) => ({
      ...{ address, silenceSeconds, unminedSeconds, isUnfunded },
      balanceWei: balanceWei === null ? null : BigInt(balanceWei),
      dataFeeWei: BigInt(dataFeeWei ?? '0'),
    })),
  }
}

/** The costs of a store's settlements today, on each network with a limit. */
export async function readQuotas(
  { db, config }: Context,
  rails: Rails,
  store: { readonly id: string; readonly mode: string; readonly isLimited: boolean },
  now: Date,
): Promise<GasQuota[]> {
  const spent = await readStoreGas(db, store.id)
  return [...rails.values()].flatMap((rail) => {
    const { network } = rail
    const perDay = costPerDay(rail, store.isLimited)
    const isOffered = network.mode === store.mode && config.networks.includes(network.id)
    if (!isOffered || perDay === null) return []
    const { decimals, symbol } = network.nativeCurrency
    return {
      network: network.caip2,
      currency: symbol,
      spent: unitsToText(spent.get(network.caip2) ?? 0n, decimals),
      perDay: unitsToText(perDay, decimals),
      resetsAt: nextDay(now).toISOString(),
    }
  })
}

/** The limit on what settlements for a store may cost per day. */
export function costPerDay(rail: Rail, isLimited: boolean): bigint | null {
  return isLimited ? rail.unprovenCostPerDay : rail.storeCostPerDay
}

/** Midnight UTC, when quotas start again. */
export function nextDay(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1))
}

/** What a store's settlements have cost today (UTC), by network. */
export async function readStoreGas(db: Database, storeId: string): Promise<Map<string, bigint>> {
  const rows = await db.query<{ network: string; spent: string }>(
    "select network, spent from store_gas where store_id = $1 and day = (clock() at time zone 'utc')::date",
    [storeId],
  )
  return new Map(rows.map(({ network, spent }) => [network, BigInt(spent)]))
}
