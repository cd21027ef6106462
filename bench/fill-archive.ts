/** Lets fill-rows.ts write straight to the archive, whose tables have neither partitions yet nor defaults. */
import { archivedTables, sentTables } from '../server/src/archive/archive.ts'
import type { Database } from '../server/src/database/db.ts'

const tables = [...archivedTables, ...sentTables].map((table) => `'${table}'`).join(', ')
const columnsWithDefault = `
  select table_name, column_name,
    coalesce(column_default, format('nextval(%L)', pg_get_serial_sequence(table_name, column_name))) as value
  from information_schema.columns where table_schema = 'public' and table_name in (${tables})
    and (column_default is not null or is_identity = 'YES')`

/** Makes the partitions of all months, as the mover would have, and gives the columns their originals' defaults. */
export async function openArchive(db: Database): Promise<void> {
  await db.transaction((tx) =>
    tx.script(`
      set local timezone = 'UTC';
      set local statement_timeout = 0;
      do $$
        declare
          each record;
        begin
          for each in
            select t.name, m.month, m.id
            from (select date_trunc('month', fill.at(f.created_ms)) as month, min(f.id) as id
              from fill.facts f where f.is_archived group by 1) m
            cross join unnest(array[${archivedTables.map((table) => `'archived_${table}'`).join(', ')}]) as t (name)
          loop
            execute format('create table %I partition of %I for values from (%L) to (%L)',
              each.name || to_char(each.month, '_YYYY_MM'), each.name, first_checkout_at(each.id, each.month),
              first_checkout_at(each.id, each.month + interval '1 month'));
            if each.name = 'archived_checkouts' then perform note_arrival(each.month); end if;
          end loop;
          perform open_transactions_month(month) from (
            select distinct date_trunc('month', fill.at(f.moment_ms + 150)) as month from fill.facts f where f.is_sent_archived) m;
          for each in ${columnsWithDefault} loop
            execute format('alter table %I alter %I set default %s', 'archived_' || each.table_name, each.column_name, each.value);
          end loop;
        end
      $$`),
  )
}

export async function closeArchive(db: Database): Promise<void> {
  await db.transaction((tx) =>
    tx.script(`
      do $$
        declare
          each record;
        begin
          for each in ${columnsWithDefault} loop
            execute format('alter table %I alter %I drop default', 'archived_' || each.table_name, each.column_name);
          end loop;
        end
      $$`),
  )
}
