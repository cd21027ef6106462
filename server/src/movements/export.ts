import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { openWriter, standard, type Writer } from './formats.ts'
import { type Bounds, readBounds, readLines } from './lines.ts'
import { type BookedRange, closeRange } from './rows.ts'
import { toWire } from './wire.ts'
import { openWrittenLines, type WrittenForm } from './written-lines.ts'

/**
 * A store's lines as a file. Lines are numbered and never change, so reading the next few hundred by their numbers needs
 * no cursor and no open transaction, and the file of a closed range is the same whenever it is made. Whoever reads it
 * asks for the next page, so a slow reader holds no connection.
 */

/**
 * As one text about 200 KB, and up to four of them are in memory at once: two are being read, one waits, and one is sent.
 * PostgreSQL takes a few milliseconds for one, which
 * is how long others on the same connection wait.
 */
const linesPerPage = 500n
const pagesAhead = 2

type Export = {
  readonly lines: bigint
  /** Whether the range can get no further line. */
  readonly isClosed: boolean
  readonly text: AsyncIterable<string>
}

/** A file: its head, then pages of lines, then what follows them. */
export type Book = {
  readonly head: string
  /** Reads a page. Several may be read at once, but what that returns is called in their order, and makes the text. */
  read(db: Database, storeId: StoreId, bounds: Bounds): Promise<() => string>
  end(): string
}

/** One of the API's own formats, which PostgreSQL writes. */
export function openBook(form: WrittenForm, zone: string): Book {
  const head = form === 'csv' ? openWriter(standard, zone).head : ''
  return { head, read: openWrittenLines(form, zone), end: () => '' }
}

/** Any other format. Lines with today's details are written here too: each may have a payer of its own. */
export function openWrittenBook(writer: Writer, hasDetails = false): Book {
  return {
    head: writer.head,
    read: async (db, storeId, bounds) => {
      const lines = await readLines(db, storeId, bounds, linesPerPage, hasDetails)
      return () => writer.write(lines)
    },
    end: () => writer.end(),
  }
}

export async function openExport(
  ctx: Context,
  storeId: StoreId,
  range: BookedRange,
  book: Book,
): Promise<Export> {
  const isClosed = await closeRange(ctx.db, storeId, range)
  const bounds = await readBounds(ctx.db, storeId, range)
  return { lines: bounds.last - bounds.after, isClosed, text: write(ctx, storeId, bounds, book) }
}

async function* write(
  { db }: Context,
  storeId: StoreId,
  { after, last }: Bounds,
  book: Book,
): AsyncGenerator<string> {
  yield book.head
  const coming: Promise<() => string>[] = []
  let next = after
  const readOn = () => {
    for (; coming.length < pagesAhead && next < last; next += linesPerPage) {
      const end = next + linesPerPage
      const page = book.read(db, storeId, { after: next, last: end < last ? end : last })
      // If the reader leaves meanwhile, nobody waits for it.
      page.catch(() => {})
      coming.push(page)
    }
    return coming.shift()
  }
  for (let page = readOn(); page; page = readOn()) {
    const write = await page
    yield write()
  }
  yield book.end()
}

/** One JSON object per line. */
export const ndjson: Writer = {
  head: '',
  write: (lines) => lines.map((line) => `${JSON.stringify(toWire(line))}\n`).join(''),
  end: () => '',
}
