import type * as Wire from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import Type, { type Static } from 'typebox'
import { ndjson, openBook, openExport, openWrittenBook } from '../../movements/export.ts'
import { addDetails, openWriter, standard } from '../../movements/formats.ts'
import { readBounds, readLines } from '../../movements/lines.ts'
import { isMonth, monthRange } from '../../movements/month.ts'
import { movementTypes } from '../../movements/movement.ts'
import { type BookedRange, closeRange } from '../../movements/rows.ts'
import { toWire } from '../../movements/wire.ts'
import { invalid, Problem } from '../../problems.ts'
import { readStore } from '../../stores/rows.ts'
import { knownZone } from '../../zone.ts'
import type { Exports } from '../exports.ts'
import { type ApiCall, answer, invalidCursor, limitDefault, parseTime, type Route } from '../route.ts'
import { letPause } from '../server.ts'
import { cursor, limit, nullable, object, of, pageOf, shape, timestamp } from './shapes.ts'

const Details = shape<Wire.MovementDetails>()(
  {
    payer: nullable(Type.String()),
    recipient: nullable(Type.String()),
    description: nullable(Type.String()),
    note: nullable(Type.String()),
  },
  { description: 'What the payment’s records say today. Unlike the line, it changes. Only with details.' },
)

const decimal = (description: string) => nullable(Type.String({ description }))

const Movement = shape<Wire.Movement>()({
  id: Type.String({ description: 'Begins with mov_.' }),
  number: Type.Integer({ description: '1, 2, 3 … without gaps in each store.' }),
  type: Type.Enum([...movementTypes]),
  happenedAt: timestamp(),
  bookedAt: Type.String({
    format: 'date-time',
    description: 'When it was final and written. Decides which month it belongs to.',
  }),
  network: Type.String({ description: 'CAIP-2 identifier.' }),
  asset: Type.String(),
  amount: Type.String({
    description: 'In the asset’s smallest unit; negative if it went away, 0 for decisions.',
  }),
  wallet: nullable(
    Type.String({
      description: 'The wallet whose balance it changed; null if it changed none that is seen.',
    }),
  ),
  transaction: nullable(Type.String()),
  logIndex: nullable(Type.Integer()),
  paymentId: Type.String(),
  refundId: nullable(Type.String()),
  checkoutId: nullable(Type.String()),
  orderId: nullable(Type.String()),
  disposition: nullable(Type.Enum(['exact', 'late', 'underpaid', 'overpaid', 'unmatched'])),
  priceAmount: nullable(Type.String()),
  priceCurrency: nullable(Type.String()),
  rate: decimal('What one unit of the price’s currency was worth in dollars; null for dollars.'),
  rateSource: nullable(Type.String()),
  rateTime: nullable(timestamp()),
  value: decimal('In the currency that the store reported in then; null if there was no reliable rate.'),
  valueCurrency: Type.String({ description: 'ISO 4217.' }),
  valueRate: decimal('What one token was worth; null if the value is the price.'),
  valueRateSource: decimal('price, par (a token counts as a dollar), or the source of the rate.'),
  valueRateTime: nullable(timestamp()),
  reverses: nullable(Type.Integer({ description: 'The number of the line that this one takes back.' })),
  decidedBy: nullable(object({ type: Type.String(), id: Type.String() })),
  details: Type.Optional(Details),
})

const MovementPage = of<Wire.MovementPage>()(
  object({
    ...pageOf(Movement).properties,
    isClosed: Type.Boolean({ description: 'Whether the period is over, so that no further line can come.' }),
  }),
)

const time = (description: string) => Type.Optional(Type.String({ maxLength: 40, description }))

const MovementQuery = object({
  limit,
  cursor,
  month: Type.Optional(
    Type.String({ maxLength: 7, description: 'A month in the store’s time zone.', examples: ['2026-10'] }),
  ),
  bookedFrom: time('Booked at or after this time.'),
  bookedBefore: time('Booked before this time.'),
  details: Type.Optional(
    Type.Boolean({ default: false, description: 'Adds payer, recipient, description and note of today.' }),
  ),
})

type Query = Static<typeof MovementQuery>

/** The store's books: one line for each thing that happened to its money. */
export function movementRoutes(exports: Exports): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/movements',
      operationId: 'listMovements',
      summary: 'Read the store’s books, oldest first',
      description:
        'A line is written when what it says is final, and never changes. A month is closed once it is over: reading it again gives the same lines. With Accept: text/csv or application/x-ndjson, the answer is one file with all lines of the period, without limit and cursor; its header Farthing-Lines says how many, and Farthing-Closed whether the period is closed. A file that breaks off ends with a broken connection.',
      scope: 'payments:read',
      query: MovementQuery,
      answers: {
        200: {
          description: 'One page.',
          schema: MovementPage,
          stream: { contentType: 'text/csv', description: 'A line per movement, with a heading.' },
        },
      },
      problems: [],
      handle: answer<Query>(200, async (call) => {
        const { ctx, request, storeId, input } = call
        // Read now: the caller's store may be a second old, and its time zone decides what a month is.
        const store = await readStore(ctx.db, storeId)
        const zone = knownZone(store?.timeZone ?? 'UTC')
        const range = rangeOf(input, zone)
        const accept = request.headers.accept ?? ''
        if (/\btext\/csv\b/.test(accept)) return await sendFile(call, { range, zone, kind: 'csv' }, exports)
        if (/\bapplication\/x-ndjson\b/.test(accept))
          return await sendFile(call, { range, zone, kind: 'ndjson' }, exports)
        const isClosed = await closeRange(ctx.db, storeId, range)
        const bounds = await readBounds(ctx.db, storeId, range)
        const { limit: wanted = limitDefault, details = false } = input
        const after = input.cursor === undefined ? bounds.after : readCursor(input.cursor)
        const from = after < bounds.after ? bounds.after : after
        const lines = await readLines(ctx.db, storeId, { ...bounds, after: from }, BigInt(wanted), details)
        const last = lines.at(-1)
        const hasMore = last !== undefined && BigInt(last.number) < bounds.last
        return { data: lines.map(toWire), nextCursor: hasMore ? last.number : null, isClosed }
      }),
    },
  ]
}

function readCursor(text: string): bigint {
  if (!/^\d{1,18}$/.test(text)) throw invalidCursor()
  return BigInt(text)
}

/** Before the first line and after the last. */
const always: BookedRange = { from: new Date(0), before: new Date(2 ** 47) }

function rangeOf({ month, bookedFrom, bookedBefore }: Query, zone: string): BookedRange {
  if (month === undefined)
    return {
      from: bookedFrom === undefined ? always.from : parseTime('bookedFrom', bookedFrom),
      before: bookedBefore === undefined ? always.before : parseTime('bookedBefore', bookedBefore),
    }
  if (bookedFrom !== undefined || bookedBefore !== undefined)
    throw invalid({ pointer: 'month', code: 'both', detail: 'Name a month, or times, but not both.' })
  if (!isMonth(month))
    throw invalid({ pointer: 'month', code: 'month', detail: 'Must be a month such as 2026-10.' })
  return monthRange(month, zone)
}

type Wanted = {
  readonly range: BookedRange
  readonly zone: string
  readonly kind: 'csv' | 'ndjson'
}

async function sendFile(
  { ctx, reply, storeId, caller, input }: ApiCall<Query>,
  { range, zone, kind }: Wanted,
  exports: Exports,
): Promise<FastifyReply> {
  const { details = false } = input
  const detailed = kind === 'csv' ? openWriter(addDetails(standard), zone) : ndjson
  const book = details ? openWrittenBook(detailed, true) : openBook(kind, zone)
  const { lines, isClosed, text } = await openExport(exports.inTurn(ctx), storeId, range, book)
  const file = exports.start({ id: caller.keyId, storeId }, text)
  if (!file)
    throw new Problem('rate_limited', 'Too many files are being sent. Wait until one has arrived.', {
      retryAfterSeconds: 5,
    })
  letPause(reply.raw)
  return reply
    .headers({
      'content-type': kind === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson; charset=utf-8',
      'farthing-lines': lines.toString(),
      'farthing-closed': String(isClosed),
    })
    .send(file)
}
