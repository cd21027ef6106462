import { csvCell, csvLine, type Delimiter, withoutFormula } from '../csv.ts'
import {
  type CellKind,
  type DetailField,
  detailFields,
  type FieldId,
  fieldOf,
  type Writing,
} from './fields.ts'
import type { Line } from './lines.ts'
import type { MovementType } from './movement.ts'

/** A file of movements: its columns, and how they are written. */
export type Format = Pick<Writing, 'decimal' | 'dates' | 'words'> & {
  readonly columns: readonly Column[]
  readonly delimiter: Delimiter
  /** Excel takes a file for its own old encoding unless it begins with this mark. */
  readonly hasMark: boolean
  readonly hasHeader: boolean
  /** Which lines the file has; absent: all. */
  readonly types?: readonly MovementType[]
}

export type Column = { readonly name: string; readonly field: FieldId }

/** Columns are only ever appended: programs read them by place, too. */
export const standardFields = [
  ...(['number', 'id', 'type', 'happened_at', 'happened_on', 'booked_at', 'booked_on', 'order_id'] as const),
  ...(['checkout_id', 'payment_id', 'refund_id', 'disposition', 'price_amount', 'price_currency'] as const),
  ...(['rate', 'rate_source', 'rate_time', 'token', 'network', 'amount', 'value', 'value_currency'] as const),
  ...(['value_rate', 'value_rate_source', 'value_rate_time', 'wallet', 'transaction', 'log_index'] as const),
  ...(['reverses', 'decided_by'] as const),
] as const satisfies readonly FieldId[]
export type StandardField = (typeof standardFields)[number]

/** For programs: every field, in UTC and with the store's day beside it. */
export const standard: Format = {
  columns: standardFields.map((field) => ({ name: field, field })),
  ...{ delimiter: ',', decimal: '.', dates: 'YYYY-MM-DD', hasMark: false, hasHeader: true },
}

const spreadsheetFields = [
  ...(['booked_on', 'happened_on', 'type', 'order_id', 'price_amount', 'price_currency', 'amount'] as const),
  ...(['token', 'network_name', 'value', 'value_currency', 'value_rate', 'disposition'] as const),
  ...(['wallet', 'transaction', 'decided_by', 'payment_id', 'number'] as const),
] as const

export type SpreadsheetTexts = {
  readonly headings: Readonly<Record<(typeof spreadsheetFields)[number] | DetailField, string>>
  readonly types: Readonly<Record<MovementType, string>>
}

/** For people: as the spreadsheet of their language opens it, with its decimal sign and the store's local time. */
export function spreadsheet({ headings, types }: SpreadsheetTexts, locale: string): Format {
  const decimal = new Intl.NumberFormat(locale).format(0.5).includes(',') ? ',' : '.'
  return {
    columns: spreadsheetFields.map((field) => ({ name: headings[field], field })),
    ...{ decimal, delimiter: decimal === ',' ? ';' : ',', dates: 'YYYY-MM-DD hh:mm' },
    ...{ hasMark: true, hasHeader: true, words: types },
  }
}

/** Writes a file: its head, then its lines in their order, then what follows them. */
export type Writer = {
  readonly head: string
  write(lines: readonly Line[]): string
  end(): string
}

export function openWriter(format: Format, zone: string): Writer {
  const { columns, delimiter, decimal, dates, words, types, hasMark, hasHeader } = format
  const writing: Writing = { zone, decimal, dates, ...(words && { words }) }
  const cells = columns.map(({ field }) => fieldOf(field))
  const names = columns.map(({ name }) => withoutFormula(name))
  const showAs = (kind: CellKind, value: string): string => {
    if (kind === 'text') return csvCell(withoutFormula(value), delimiter)
    if (kind === 'phrase') return csvCell(value, delimiter)
    return kind === 'number' && decimal === ',' ? csvCell(value.replace('.', ','), delimiter) : value
  }
  const write = (line: Line): string => {
    let text = ''
    let before = ''
    for (const { kind, show } of cells) {
      const value = show(line, writing)
      text += value === null ? before : before + showAs(kind, value)
      before = delimiter
    }
    return `${text}\r\n`
  }
  return {
    head: `${hasMark ? '\ufeff' : ''}${hasHeader ? csvLine(names, delimiter) : ''}`,
    write: (lines) => (types ? lines.filter(({ type }) => types.includes(type)) : lines).map(write).join(''),
    end: () => '',
  }
}

/** The details of today, in columns of their own at the end. */
export function addDetails(format: Format, headings?: Readonly<Record<DetailField, string>>): Format {
  const added = detailFields.map((field) => ({ name: headings?.[field] ?? field, field }))
  return { ...format, columns: [...format.columns, ...added] }
}
