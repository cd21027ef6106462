import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import type { Writer } from './formats.ts'
import { type Bounds, type Line, readBounds, readLines } from './lines.ts'
import { type BookedRange, closeRange } from './rows.ts'
import { toWire } from './wire.ts'

/**
 * A store's lines as a file. Lines are numbered and never change, so reading the next few thousand by their numbers
 * needs no cursor and no open transaction, and the file of a closed range is the same whenever it is made.
 */

/** As one text about 250 KB, and two of them are in memory at once. */
const linesPerRead = 500n

export type Export = {
  readonly lines: bigint
  /** Whether the range can get no further line. */
  readonly isClosed: boolean
  readonly text: AsyncIterable<string>
}

export async function openExport(
  ctx: Context,
  storeId: StoreId,
  range: BookedRange,
  writer: Writer,
  hasDetails = false,
): Promise<Export> {
  const isClosed = await closeRange(ctx.db, storeId, range)
  const bounds = await readBounds(ctx.db, storeId, range)
  return {
    lines: bounds.last - bounds.after,
    isClosed,
    text: write(ctx, storeId, bounds, writer, hasDetails),
  }
}

/** Reads ahead: the database works while the lines before are written. */
async function* write(
  ctx: Context,
  storeId: StoreId,
  { after, last }: Bounds,
  writer: Writer,
  hasDetails: boolean,
): AsyncGenerator<string> {
  const read = async (from: bigint): Promise<Line[]> =>
    from >= last ? [] : await readLines(ctx.db, storeId, { after: from, last }, linesPerRead, hasDetails)
  yield writer.head
  let next = read(after)
  for (;;) {
    const lines = await next
    const end = lines.at(-1)
    if (!end) break
    next = read(BigInt(end.number))
    // If the reader leaves meanwhile, nobody waits for it.
    next.catch(() => {})
    yield writer.write(lines)
  }
  yield writer.end()
}

/** One JSON object per line. */
export const ndjson: Writer = {
  head: '',
  write: (lines) => lines.map((line) => `${JSON.stringify(toWire(line))}\n`).join(''),
  end: () => '',
}
