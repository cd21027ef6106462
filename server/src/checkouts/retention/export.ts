import type { Context } from '../../context.ts'
import { firstIdAt } from '../../ids.ts'

/** A few megabytes per read. */
const checkoutsPerRead = 200

/** SQL: all rows of a table that belong to the checkout `c`, as JSON. */
const rowsOf = (table: string) =>
  `'${table}', (select coalesce(jsonb_agg(to_jsonb(t)), '[]') from ${table} t where t.checkout_id = c.id)`

/**
 * Lines of JSON, one per checkout that ended before a time and that `deleteOver` would delete: the checkout with all
 * that belongs to it, and the settlers' transactions that carried its payments. Those of a link have the link, and the
 * events about it.
 */
export async function* exportOver({ db, config }: Context, before: Date): AsyncGenerator<string> {
  for (let after: string | null = ''; after !== null; ) {
    const rows: { id: string; line: string | null }[] = await db.query(
      `with looked as (
         select id from checkouts where id > $1 and id < $2 and status in ('COMPLETED', 'EXPIRED', 'CANCELED')
         order by id limit $4
       ), over as (
         select list_over(array(select id from looked), $3) as id
       )
       select l.id, (select jsonb_build_object('checkout', to_jsonb(c), 'link', (select to_jsonb(k) - 'quote_key' || jsonb_build_object(
           'events', (select coalesce(jsonb_agg(to_jsonb(e)), '[]') from events e where e.id = any(k.event_ids)))
           from links k where k.id = c.link_id), ${[
             ...['events', 'credits', 'reserved_amounts', 'pasted_transactions', 'payment_hints', 'refunds'],
           ]
             .map(rowsOf)
             .join(
               ', ',
             )}, 'authorizations', (select coalesce(jsonb_agg(to_jsonb(a) || jsonb_build_object('transactions', (
             select coalesce(jsonb_agg(to_jsonb(t) || jsonb_build_object('broadcasts', (
               select coalesce(jsonb_agg(to_jsonb(b)), '[]') from broadcasts b where b.network = t.network
                 and b.settler = t.settler and b.nonce = t.nonce))), '[]')
             from transaction_calls s join transactions t on t.network = s.network and t.settler = s.settler
               and t.nonce = s.settler_nonce
             where s.nonce = a.nonce and s.payer = a.payer and s.asset = a.asset and s.network = a.network))), '[]')
           from (select * from authorizations where checkout_id = c.id and state in ('claimed', 'sent')
             union all select * from authorizations where checkout_id = c.id and state in ('rejected', 'dead')) a))::text
         from checkouts c where c.id = o.id) as line
       from looked l left join over o on o.id = l.id order by l.id`,
      [after, firstIdAt('ch', config.cell, before), before, checkoutsPerRead],
    )
    for (const { line } of rows) if (line !== null) yield `${line}\n`
    after = rows.length < checkoutsPerRead ? null : (rows.at(-1)?.id ?? null)
  }
}
