import type { EventType } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import type { Alongside } from '../../events/assign-sequence.ts'
import type { StoreId } from '../../ids.ts'
import { dropMails } from '../../mails/write.ts'
import { knownZone, localTime } from '../../zone.ts'

/** The events after which a checkout may need a receipt, or one of its receipts may be void. */
const types: readonly EventType[] = ['checkout.completed', 'payment.finalized', 'payment.reversed']

export function openReceipts(ctx: Context): Alongside {
  return {
    types,
    run: async (tx, events) => {
      const checkoutIds = [...new Set(events.flatMap(({ checkoutId }) => checkoutId ?? []))]
      if (checkoutIds.length > 0) await issueReceipts(tx, checkoutIds, ctx.now())
    },
  }
}

/**
 * Brings the receipts of these checkouts in line with the facts, in the order of their events. Facts that change later
 * write another event, after which this runs again.
 */
async function issueReceipts(tx: Transaction, checkoutIds: readonly string[], now: Date): Promise<void> {
  const zones = await voidReceipts(tx, checkoutIds)
  const days = zones.map(({ storeId, zone, voided }) => ({
    storeId,
    day: localTime(now, knownZone(zone)).day,
    voided,
  }))
  await dropMails(
    tx,
    days.flatMap(({ voided }) => voided),
  )
  await insertReceipts(tx, checkoutIds, days, now)
}

/**
 * Ends the receipts whose payment the chain has taken back for good, and those of checkouts that another payment
 * completes now: the first may come back, but then it is one too many. Returns the stores of these checkouts, with their
 * time zones and the checkouts whose receipt ended.
 */
async function voidReceipts(
  tx: Transaction,
  checkoutIds: readonly string[],
): Promise<{ readonly storeId: StoreId; readonly zone: string; readonly voided: readonly string[] }[]> {
  return await tx.query(
    `with void as (
       update buyer_receipts r set void_at = clock()
       where r.checkout_id = any($1) and r.void_at is null
         and (exists (select 1 from credits k where k.checkout_id = r.checkout_id and k.payment_id = r.payment_id
             and k.reversed_at is not null)
           and not exists (select 1 from credits k where k.checkout_id = r.checkout_id and k.payment_id = r.payment_id
             and k.orphaned_at is null)
           or exists (select 1 from checkouts c join credits k on k.checkout_id = c.id and k.disposition = 'exact'
             and k.orphaned_at is null and k.payment_id <> r.payment_id
             where c.id = r.checkout_id and c.status = 'COMPLETED'))
       returning r.store_id, r.checkout_id
     )
     select s.id as "storeId", s.time_zone as zone,
       array(select v.checkout_id from void v where v.store_id = s.id) as voided
     from stores s where s.id in (select c.store_id from checkouts c where c.id = any($1))`,
    [checkoutIds],
  )
}

/** One for each of these checkouts that is paid and whose payment has no valid receipt. */
async function insertReceipts(
  tx: Transaction,
  checkoutIds: readonly string[],
  days: readonly { readonly storeId: StoreId; readonly day: string }[],
  now: Date,
): Promise<void> {
  await tx.query(
    `with due as (
       select c.id as checkout_id, c.store_id, c.price_amount, c.price_currency, k.payment_id, k.network, k.asset,
         k.amount, s.name, s.legal_name, s.legal_address, s.tax_id, d.day,
         row_number() over (partition by c.store_id order by i.place) as place
       from unnest($1::text[]) with ordinality as i (id, place)
       join checkouts c on c.id = i.id and c.status = 'COMPLETED'
       join stores s on s.id = c.store_id
       join json_to_recordset($2) as d ("storeId" text, day date) on d."storeId" = c.store_id
       join credits k on k.checkout_id = c.id and k.disposition = 'exact' and k.orphaned_at is null
       where not exists (select 1 from buyer_receipts r where r.checkout_id = c.id and r.payment_id = k.payment_id
         and r.void_at is null)
     ), counted as (
       insert into buyer_receipt_counters as n (store_id, series, year, last_number)
       select d.store_id, l.receipt_series, extract(year from d.day), count(*) from due d cross join event_log l
       group by d.store_id, l.receipt_series, d.day
       on conflict (store_id, series, year) do update set last_number = n.last_number + excluded.last_number
       returning store_id, series, year, last_number
     )
     insert into buyer_receipts (store_id, series, year, number, checkout_id, payment_id, store_name, legal_name,
       legal_address, tax_id, price_amount, price_currency, network, asset, amount, issued_on, issued_at)
     select d.store_id, n.series, n.year, n.last_number - count(*) over (partition by d.store_id) + d.place,
       d.checkout_id, d.payment_id, d.name, d.legal_name, d.legal_address, d.tax_id, d.price_amount, d.price_currency,
       d.network, d.asset, d.amount, d.day, $3
     from due d join counted n on n.store_id = d.store_id`,
    [checkoutIds, JSON.stringify(days), now],
  )
}
