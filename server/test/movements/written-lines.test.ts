/** The lines that PostgreSQL writes are, byte for byte, those that our own rules for CSV and JSON write. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { StoreId } from '../../src/ids.ts'
import { type Book, ndjson, openBook, openExport, openWrittenBook } from '../../src/movements/export.ts'
import { openWriter, standard } from '../../src/movements/formats.ts'
import type { NewMovement } from '../../src/movements/rows.ts'
import { networks } from '../../src/networks.ts'
import { openTestApp } from '../support/app.ts'
import { openStore } from '../support/store.ts'
import { bookAt, lineOf, onSolana } from './support/lines.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const always = { from: new Date(0), before: new Date(2 ** 47) }

async function textOf(storeId: StoreId, book: Book): Promise<string> {
  const { text } = await openExport(ctx, storeId, always, book)
  let file = ''
  for await (const part of text) file += part
  return file
}

async function compare(storeId: StoreId, zone: string): Promise<void> {
  for (const [form, writer] of [
    ['csv', openWriter(standard, zone)],
    ['ndjson', ndjson],
  ] as const) {
    const [written, expected] = [
      await textOf(storeId, openBook(form, zone)),
      await textOf(storeId, openWrittenBook(writer)),
    ]
    // Line by line, so that a failure is readable.
    const lines = written.split('\n')
    for (const [place, line] of expected.split('\n').entries()) assert.equal(lines[place], line, form)
    assert.equal(written, expected)
  }
}

/** What a spreadsheet, a parser of CSV or one of JSON could trip over. */
const pieces = [
  ...[
    '=',
    '+',
    '-',
    '@',
    '\uff1d',
    '\uff0b',
    '\uff0d',
    '\uff20',
    ',',
    ';',
    '|',
    '\t',
    '\r',
    '\n',
    '"',
    "'",
    '\\',
  ],
  ...[
    '\v',
    '\f',
    '\b',
    '\u0001',
    '\u001f',
    '\u007f',
    '\u0085',
    '\u00a0',
    '\u1680',
    '\u180e',
    '\u2000',
    '\u200a',
  ],
  ...[
    '\u200b',
    '\u2028',
    '\u2029',
    '\u202e',
    '\u202f',
    '\u205f',
    '\u3000',
    '\ufeff',
    ' ',
    '  ',
    '\\&',
    '\\1',
    '$1',
  ],
  ...[
    'A-1',
    '1.5',
    '00012',
    'cmd',
    'Müller',
    'طلب',
    '订单',
    '😀',
    'e\u0301',
    '%s',
    '{}',
    '<',
    '/',
    '_',
    ':',
    '#',
  ],
]
const text = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((parts) => parts.join('')),
  fc.string({ unit: 'grapheme', maxLength: 12 }).map((each) => each.replaceAll('\0', '')),
)

const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null })
const time = fc.date({ min: new Date('2009-01-03'), max: new Date('2040-01-01'), noInvalidDate: true })
const removed = { asset: `0x${'aB'.repeat(20)}`.toLowerCase() }
const elsewhere = networks.flatMap(({ caip2, assets }) =>
  assets.map(({ address }) =>
    caip2.startsWith('eip155:')
      ? { network: caip2, asset: address.toLowerCase() }
      : { ...onSolana, network: caip2, asset: address },
  ),
)
const wallets = ['0x70997970c51812dc3a010c7d01b50e0d17dc79c8', '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc']
const decimal = fc
  .tuple(fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n }), fc.integer({ min: 0, max: 6 }))
  .map(([units, digits]) => {
    const all = (units < 0n ? -units : units).toString().padStart(digits + 1, '0')
    const point = all.length - digits
    return `${units < 0n ? '-' : ''}${all.slice(0, point)}${digits > 0 ? `.${all.slice(point)}` : ''}`
  })

const change: fc.Arbitrary<Partial<NewMovement>> = fc
  .record({
    happenedAt: time,
    amount: fc.oneof(
      fc.bigInt({ min: -(10n ** 8n), max: 10n ** 8n }),
      fc.bigInt({ min: -(10n ** 77n), max: 10n ** 77n }),
    ),
    orderId: optional(text),
    rate: optional(decimal),
    rateTime: optional(time),
    refundId: optional(fc.constant('rf_1')),
    checkoutId: optional(fc.constant('ch_1')),
    priceAmount: optional(decimal),
    place: optional(fc.nat()),
    value: decimal,
    valueRate: optional(decimal),
    valueRateTime: optional(time),
    wallet: fc.constantFrom(...wallets),
    actor: optional(fc.record({ type: fc.constantFrom('member', 'key'), id: text })),
    at: fc.oneof(fc.constantFrom({}, removed, onSolana), fc.constantFrom(...elsewhere)),
  })
  .map(({ at, ...rest }) => ({ ...rest, ...at }) as Partial<NewMovement>)

test('any text, number and time is written as our own rules write it, in any zone', async () => {
  const zones = [
    'UTC',
    'Europe/Madrid',
    'America/St_Johns',
    'Australia/Lord_Howe',
    'Pacific/Chatham',
    'Africa/Casablanca',
  ]
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { minLength: 1, maxLength: 60 }),
      fc.constantFrom(...zones),
      async (changes, zone) => {
        const id = (await openStore(farthing)).store.id as StoreId
        await bookAt(
          farthing,
          '2026-10-15T12:00:00.1239Z',
          changes.map((each) => lineOf(id, each)),
        )
        await compare(id, zone)
      },
    ),
    { numRuns: 25 },
  )
})

test('every short text of formula signs, separators, quotes and white space is written as our own rules write it', async () => {
  const id = (await openStore(farthing)).store.id as StoreId
  const signs = ['=', '-', ',', ';', '|', '\t', '\r', '\n', '"', ' ', '\u00a0', 'a', '\uff1d']
  const texts = signs.flatMap((a) => ['', ...signs].flatMap((b) => ['', ...signs].map((c) => `${a}${b}${c}`)))
  const decision = {
    type: 'acceptance',
    amount: 0n,
    wallet: null,
    value: null,
    valueRateSource: null,
  } as const
  await bookAt(farthing, '2026-10-15T12:00:00Z', [
    ...texts.map((orderId) => lineOf(id, { orderId })),
    ...signs.map((sign) => lineOf(id, { ...decision, actor: { type: 'member', id: sign } })),
    lineOf(id, { type: 'refund', amount: -1n, value: '-0.000001', reverses: null }),
    lineOf(id, { type: 'payment_reversed', amount: -12_500_000n, value: '-12.50', reverses: 1 }),
  ])
  await compare(id, 'Europe/Madrid')
})

test('a period of no lines is a heading alone, and one of more lines than a page goes on', async () => {
  const id = (await openStore(farthing)).store.id as StoreId
  assert.match(await textOf(id, openBook('csv', 'UTC')), /^number,[^\n]*decided_by\r\n$/)
  assert.equal(await textOf(id, openBook('ndjson', 'UTC')), '')
  const lines = Array.from({ length: 1_001 }, (_, i) =>
    lineOf(id, { wallet: wallets[i % 600 === 0 ? 1 : 0] ?? null }),
  )
  await bookAt(farthing, '2026-10-15T12:00:00Z', lines)
  await compare(id, 'UTC')
})
