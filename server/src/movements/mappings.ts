import type { Delimiter } from '../csv.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { type DateForm, detailFields, type FieldId } from './fields.ts'
import type { Column, Format } from './formats.ts'

/** How a store's own program, or its accountant's, wants the books. */
export type Mapping = {
  /** From 1 to 10: the table allows no more, and nobody has more programs. */
  readonly place: number
  readonly name: string
  readonly delimiter: Delimiter
  readonly decimal: '.' | ','
  readonly dates: DateForm
  readonly hasMark: boolean
  readonly columns: readonly Column[]
}

/** Accounting programs take about a dozen. */
export const columnsMax = 20

/** The file has its lines in the API's words, unless `words` has others. */
export function formatOf(
  { columns, delimiter, decimal, dates, hasMark }: Mapping,
  words: NonNullable<Format['words']>,
): Format {
  return { columns, delimiter, decimal, dates, hasMark, words, hasHeader: true }
}

/** Whether it shows what the payment's records say today. */
export function hasDetails({ columns }: Mapping): boolean {
  return columns.some(({ field }) => (detailFields as readonly FieldId[]).includes(field))
}

const mappingColumns = 'place, name, delimiter, decimal, dates, has_mark as "hasMark", columns'

export async function listMappings(db: Database, storeId: StoreId): Promise<Mapping[]> {
  return await db.query<Mapping>(
    `select ${mappingColumns} from report_mappings where store_id = $1 order by name, place`,
    [storeId],
  )
}

export async function findMapping(db: Database, storeId: StoreId, place: number): Promise<Mapping | null> {
  const [row] = await db.query<Mapping>(
    `select ${mappingColumns} from report_mappings where store_id = $1 and place = $2`,
    [storeId, place],
  )
  return row ?? null
}

/** Takes the first free place. False if there is none, or another member has just taken it. */
export async function addMapping(
  db: Database | Transaction,
  storeId: StoreId,
  mapping: Omit<Mapping, 'place'>,
): Promise<boolean> {
  const rows = await db.query(
    `insert into report_mappings (store_id, place, name, delimiter, decimal, dates, has_mark, columns)
     select $1, min(p), $2, $3, $4, $5, $6, $7 from generate_series(1, 10) p
     where not exists (select 1 from report_mappings m where m.store_id = $1 and m.place = p)
     having min(p) is not null
     on conflict do nothing returning place`,
    [storeId, ...valuesOf(mapping)],
  )
  return rows.length > 0
}

/** False if it is no longer there. */
export async function changeMapping(
  db: Database | Transaction,
  storeId: StoreId,
  { place, ...mapping }: Mapping,
): Promise<boolean> {
  const rows = await db.query(
    `update report_mappings set name = $2, delimiter = $3, decimal = $4, dates = $5, has_mark = $6, columns = $7
     where store_id = $1 and place = $8 returning place`,
    [storeId, ...valuesOf(mapping), place],
  )
  return rows.length > 0
}

export async function deleteMapping(
  db: Database | Transaction,
  storeId: StoreId,
  place: number,
): Promise<void> {
  await db.query('delete from report_mappings where store_id = $1 and place = $2', [storeId, place])
}

function valuesOf({ name, delimiter, decimal, dates, hasMark, columns }: Omit<Mapping, 'place'>): unknown[] {
  return [name, delimiter, decimal, dates, hasMark, JSON.stringify(columns)]
}
