import { randomInt } from 'node:crypto'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import type { Network } from '../../networks.ts'
import { mayMatchAt, modeOf } from '../credits/rows.ts'
import type { Rail, Wanted } from '../rail.ts'

/**
 * A plain transfer does not say which order it pays for. So a buyer who pays from another wallet or an exchange is
 * given something unique to this checkout: an amount slightly above the price or, where the chain allows it, a
 * reference to attach. It stays reserved for some time after the checkout has ended, so that a late transfer is not
 * mistaken for a payment to another checkout.
 */
export type Reserved = 'reserved' | 'crowded' | 'in_progress' | 'closed' | 'unavailable'

/** The most that a buyer pays above the price, in millionths of a token: less than a cent. */
export const suffixMax = 9_999
/**
 * How many amounts near a price a store may have reserved. Strangers can open orders and abandon them, and that must
 * not keep others from paying. So amounts of ended checkouts, and amounts reserved long ago, don't count towards
 * `recent`.
 */
export const heldMax = {
  /** In the last hour. With a twentieth of the suffixes in use, a typo rarely hits another waiting buyer's amount. */
  recent: 500,
  recentMinutes: 60,
  /**
   * In total. About half of the suffixes, so that a random one is probably free. Amounts of ended checkouts are given
   * up first.
   */
  all: 5_000,
}
/** Enough for the buyers of the next minutes. */
const givenUpAtOnce = 100
/** A wallet app keeps showing an old amount for a day or two at most. */
const coolingHours = 48
/**
 * If the head has not moved for longer than this, the chain is not being followed. The same holds for signed payments.
 */
const headAgeSecondsMax = 30
/** Another process may take the amount that we picked, so we try again. */
const roundsMax = 3

/** A suffix of 1 in token units: a millionth of a token, whatever its decimals, because people have to type it. */
function suffixUnits({ network }: Pick<Rail, 'network'>, asset: string): bigint {
  const decimals = network.assets.find(
    ({ address }) => address.toLowerCase() === asset.toLowerCase(),
  )?.decimals
  return 10n ** BigInt((decimals ?? 6) - 6)
}

export async function reserveTransfer(
  ctx: Context,
  rail: Rail | undefined,
  wanted: Wanted,
): Promise<Reserved> {
  if (!rail) return 'unavailable'
  const range = suffixUnits(rail, wanted.asset) * BigInt(suffixMax)
  for (let round = 0; round < roundsMax; round++) {
    if (await rail.reserve(wanted, headAgeSecondsMax)) {
      ctx.db.wakeUps.send('outcomes')
      return 'reserved'
    }
    const why = await readReservable(ctx.db, wanted, { range, heldMax, headAgeSecondsMax })
    if (why.isProcessing) return 'in_progress'
    if (!why.isPayable) return 'closed'
    if (why.isReserved) return 'reserved'
    if (!why.isFollowed || !why.mayMatch) return 'unavailable'
    if (why.recent >= heldMax.recent) return 'crowded'
    if (why.held >= heldMax.all && (await freeCooling(ctx.db, wanted, range, givenUpAtOnce)) === 0)
      return 'crowded'
  }
  return 'crowded'
}

/** Enough to find a free one: each is taken with a probability of at most one half, usually far less. */
const suffixesTried = 16

/**
 * A token transfer carries nothing but its amount, so we reserve the price plus a random suffix that no other checkout
 * holds at that address.
 */
export async function reserveAmount(
  ctx: Context,
  network: Network,
  wanted: Wanted,
  headAgeSecondsMax: number,
): Promise<boolean> {
  const unit = suffixUnits({ network }, wanted.asset)
  const suffixes = Array.from({ length: suffixesTried }, () => BigInt(randomInt(1, suffixMax + 1)) * unit)
  return await insertReserved(ctx.db, wanted, suffixes, {
    range: BigInt(suffixMax) * unit,
    cent: 10_000n * unit,
    heldMax,
    headAgeSecondsMax,
  })
}

type HeldMax = { readonly recent: number; readonly recentMinutes: number; readonly all: number }

/** How many of a store's open checkouts are compared by price, newest first. */
const pricesMax = 5_000

/**
 * How many amounts near a price a store holds: in total, and recently reserved for checkouts that can still be paid.
 * Other stores with the same wallet don't count, so that they can't block a price. Strangers open links, and may take half of
 * the amounts: towards a link's checkout, those of links count double. $2 to $5 are network, asset, address and price, $6 is
 * the range, $7 how many minutes are recent; `store` is the store's id, `isByLink` whether the checkout is a link's.
 */
const heldSql = (store: string, isByLink: string) => `select ${countFor('true', isByLink)} as held,
    ${countFor(
      `o.status in ('OPEN', 'PROCESSING') and o.expires_at > clock()
      and r.reserved_at > clock() - make_interval(mins => $7)`,
      isByLink,
    )} as recent
  from reserved_amounts r
  cross join lateral (select * from checkouts c where c.id = r.checkout_id offset 0) o
  where o.store_id = ${store} and r.network = $2 and r.asset = $3 and r.pay_to = $4 and r.freed_at is null
    and r.amount > $5::numeric and r.amount <= $5::numeric + $6::numeric`

const countFor = (which: string, isByLink: string) => `greatest(count(*) filter (where ${which}),
      case when ${isByLink} then 2 * count(*) filter (where ${which} and o.link_id is not null) else 0 end)::integer`

/** Open prices near a price that are not whole cents. $2 and $5 are network and price, $6 is the range. */
const openPricesSql = (store: string) => `select p.amount::numeric as amount
  from (select c.options, c.price_currency, c.price_amount from checkouts c where c.store_id = ${store} and c.status = 'OPEN' order by c.id desc limit ${pricesMax}) c
  cross join lateral json_to_recordset(c.options) as p (network text, amount text)
  where (c.price_currency <> 'USD' or c.price_amount ~ '[.][0-9]{3}') and p.network = $2
    and p.amount::numeric > $5::numeric and p.amount::numeric <= $5::numeric + $6::numeric`

export type ReserveLimits = {
  readonly range: bigint
  /** A hundredth of a token. A careless sender rounds to a multiple of it. */
  readonly cent: bigint
  readonly heldMax: HeldMax
  readonly headAgeSecondsMax: number
}

/**
 * Reserves the first of these amounts that is free, unless the checkout already has one or cannot be paid, too many
 * amounts are held nearby, another store has proven the wallet, or the chain is not being followed. Skips amounts that
 * a buyer may send for another order: whole cents, and prices of the store's open checkouts. The unique index decides
 * races. True if this call reserved one.
 */
export async function insertReserved(
  db: Database,
  { checkoutId, network, asset, payTo, price }: Wanted,
  suffixes: readonly bigint[],
  limits: ReserveLimits,
): Promise<boolean> {
  const rows = await db.query(
    `with locked as (
       select id, store_id, link_id from checkouts
       where id = $1 and status = 'OPEN' and expires_at > clock() for no key update
     ), prices as materialized (
       select array(${openPricesSql('(select store_id from locked)')}) as amounts
     ), near as materialized (
       ${heldSql('(select store_id from locked)', '(select link_id is not null from locked)')}
     ), chosen as (
       select locked.id, $5::numeric + s.suffix as amount, f.head_number
       from locked, near, followers f,
         unnest($8::numeric[]) with ordinality as s (suffix, place)
       where f.network = $2 and f.head_seen_at > clock() - make_interval(secs => $9)
         and near.recent < $10 and near.held < $11 and mod($5::numeric + s.suffix, $12::numeric) <> 0
         and $5::numeric + s.suffix <> all ((select amounts from prices)::numeric[])
         and (select ${mayMatchAt('(select store_id from locked)', '$4', '$13')})
         and not exists (select 1 from reserved_amounts r where r.network = $2 and r.asset = $3 and r.pay_to = $4
           and r.freed_at is null and r.amount = $5::numeric + s.suffix)
       order by s.place limit 1
     ), made as (
       insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at)
       select id, $2, $3, $4, amount, head_number, clock() from chosen
       on conflict do nothing
       returning checkout_id
     )
     update checkouts c set page_version = c.page_version + 1 from made where c.id = made.checkout_id returning c.id`,
    [
      checkoutId,
      network,
      asset,
      payTo,
      price.toString(),
      limits.range.toString(),
      limits.heldMax.recentMinutes,
      suffixes.map(String),
      limits.headAgeSecondsMax,
      limits.heldMax.recent,
      limits.heldMax.all,
      limits.cent.toString(),
      modeOf(network),
    ],
  )
  return rows.length > 0
}

/** Why nothing could be reserved, or that something already is. */
type Reservable = {
  readonly isReserved: boolean
  readonly mayMatch: boolean
  readonly isPayable: boolean
  readonly isProcessing: boolean
  readonly isFollowed: boolean
  readonly held: number
  readonly recent: number
}

const unknownCheckout: Reservable = {
  ...{ isReserved: false, mayMatch: false, isPayable: false, isProcessing: false, isFollowed: false },
  ...{ held: 0, recent: 0 },
}

async function readReservable(
  db: Database,
  { checkoutId, network, asset, payTo, price }: Wanted,
  limits: Omit<ReserveLimits, 'cent'>,
): Promise<Reservable> {
  const [row] = await db.query<Reservable>(
    `select exists (select 1 from reserved_amounts r
         where r.checkout_id = c.id and r.network = $2 and r.asset = $3) as "isReserved",
       c.status = 'OPEN' and c.expires_at > clock() as "isPayable", c.status = 'PROCESSING' as "isProcessing",
       exists (select 1 from followers f where f.network = $2
         and f.head_seen_at > clock() - make_interval(secs => $8)) as "isFollowed", near.held, near.recent,
       ${mayMatchAt('c.store_id', '$4', '$9')} as "mayMatch"
     from checkouts c, lateral (${heldSql('c.store_id', 'c.link_id is not null')}) as near where c.id = $1`,
    [
      checkoutId,
      network,
      asset,
      payTo,
      price.toString(),
      limits.range.toString(),
      limits.heldMax.recentMinutes,
      limits.headAgeSecondsMax,
      modeOf(network),
    ],
  )
  return row ?? unknownCheckout
}

/** Frees a store's amounts near a price before they have cooled down, beginning with the checkouts that ended first. */
async function freeCooling(
  db: Database,
  { checkoutId, network, asset, payTo, price }: Wanted,
  range: bigint,
  limit: number,
): Promise<number> {
  const rows = await db.query(
    `update reserved_amounts r set freed_at = clock()
     from (select e.checkout_id from reserved_amounts e
           cross join lateral (select * from checkouts c where c.id = e.checkout_id offset 0) c
           where c.status not in ('OPEN', 'PROCESSING')
             and c.store_id = (select a.store_id from checkouts a where a.id = $7)
             and (c.link_id is not null or (select a.link_id is null from checkouts a where a.id = $7)) and e.network = $1 and e.asset = $2 and e.pay_to = $3 and e.freed_at is null and e.cools_until is not null
             and e.amount > $4::numeric and e.amount <= $4::numeric + $5::numeric
           order by e.cools_until limit $6) ended
     where r.checkout_id = ended.checkout_id and r.network = $1 and r.asset = $2
     returning 1 as one`,
    [network, asset, payTo, price.toString(), range.toString(), limit, checkoutId],
  )
  return rows.length
}

/**
 * Amounts of checkouts that have ended cool down and are then freed. If a checkout reopens because the chain removed
 * its payment, its amount cools down again when it ends.
 */
export async function freeAmounts({ db }: Context): Promise<void> {
  await db.query(
    `update reserved_amounts r set
       cools_until = case when c.status in ('OPEN', 'PROCESSING') then null
         else coalesce(r.cools_until, clock() + make_interval(hours => $1)) end,
       freed_at = case when c.status not in ('OPEN', 'PROCESSING') and r.cools_until <= clock() then clock() end
     from checkouts c
     where c.id = r.checkout_id and r.freed_at is null
       and case when c.status in ('OPEN', 'PROCESSING') then r.cools_until is not null
         else r.cools_until is null or r.cools_until <= clock() end`,
    [coolingHours],
  )
}

/** Lets reserved amounts match from the first block on, after their chain was replaced by another with the same id. */
export async function resetReserved(db: Database, network: string): Promise<void> {
  await db.query('update reserved_amounts set after_block = 0 where network = $1', [network])
}
