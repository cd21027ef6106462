/** What a spreadsheet makes of the exported files: LibreOffice opens them, and its own file is read back. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { en } from '../../src/http/console/texts/en.ts'
import { es } from '../../src/http/console/texts/es.ts'
import { type Book, openBook, openExport, openWrittenBook } from '../../src/movements/export.ts'
import { openWriter, spreadsheet } from '../../src/movements/formats.ts'
import { monthRange } from '../../src/movements/month.ts'
import { openTestApp } from '../support/app.ts'
import { openStore } from '../support/store.ts'
import { bookAt, lineOf } from './support/lines.ts'

const farthing = await openTestApp()
const folder = await mkdtemp(join(tmpdir(), 'farthing-calc-'))
after(() => rm(folder, { recursive: true, force: true }))
const run = promisify(execFile)

/** 500 order ids that a spreadsheet could take for something else, or lose. */
const orders = [
  ...['=', '+', '-', '@', '\t=', '\r=', '\n=', ' =', '"=', ',=', ';=', '|=', '＝', '＋', '－', '＠'].flatMap(
    (start) =>
      [
        ...[
          '1+1',
          'SUM(A1:A9)',
          'cmd|/c calc!A1',
          'HYPERLINK("http://x.example";"y")',
          'WEBSERVICE("http://x.example")',
        ],
        ...[
          'A1',
          '2',
          '1e9',
          'TRUE()',
          'DDE("soffice";"x";"y")',
          '"a";"b"',
          '1;2',
          '1,2',
          'IMPORTXML("http://x";"//a")',
        ],
      ].map((rest) => `${start}${rest}`),
  ),
  ...[
    'Müller & Söhne',
    'طلب رقم ١٢٧٣',
    '订单 1273',
    'مرحبا,"x"',
    'naïve — “quote”',
    '😀',
    'a\u202eb',
    '00012',
    '1/2/2026',
  ],
]
const corpus = Array.from({ length: 500 }, (_, i) => orders[i] ?? `${orders[i % orders.length]}${i}`)

type Cell = {
  readonly type: string
  readonly text: string
  readonly value: string | null
  readonly formula: string | null
}

/** Converts a file as a person would open it, and reads the cells that came of it. */
async function openInCalc(name: string, text: string, filter: string): Promise<Cell[][]> {
  await writeFile(join(folder, `${name}.csv`), text)
  await run(
    'soffice',
    [
      ...['--headless', '--norestore', `-env:UserInstallation=file://${folder}/profile`],
      ...[
        `--infilter=CSV:${filter}`,
        '--convert-to',
        'fods',
        '--outdir',
        folder,
        join(folder, `${name}.csv`),
      ],
    ],
    { timeout: 120_000, env: { ...process.env, HOME: folder } },
  )
  const xml = await readFile(join(folder, `${name}.fods`), 'utf8')
  return [...xml.matchAll(/<table:table-row[^>]*>([\s\S]*?)<\/table:table-row>/g)].map(([, row = '']) =>
    [...row.matchAll(/<table:table-cell([^>]*?)(?:\/>|>([\s\S]*?)<\/table:table-cell>)/g)].flatMap(
      ([, attributes = '', content = '']) => {
        const of = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(attributes)?.[1] ?? null
        const cell: Cell = {
          type: of('office:value-type') ?? '',
          value: of('office:value'),
          formula: of('table:formula'),
          text: decode(
            [...content.matchAll(/<text:p[^>]*>([\s\S]*?)<\/text:p>/g)].map(([, p = '']) => p).join('\n'),
          ),
        }
        const times = Number.parseInt(of('table:number-columns-repeated') ?? '1', 10)
        return Array.from({ length: Math.min(times, 100) }, () => cell)
      },
    ),
  )
}

function decode(xml: string): string {
  return xml
    .replace(/<text:s(?: text:c="(\d+)")?\/>/g, (_, count) => ' '.repeat(Number.parseInt(count ?? '1', 10)))
    .replace(/<text:tab\/>/g, '\t')
    .replace(/<[^>]+>/g, '')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&apos;/g, "'")
    .replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number.parseInt(code, 10)))
    .replace(/&amp;/g, '&')
}

test('a spreadsheet adds the amounts up to the unit, runs no formula of 500 hostile orders, and keeps every script', async () => {
  const shop = await openStore(farthing)
  const lines = corpus.map((orderId, i) =>
    lineOf(shop.id, {
      orderId,
      amount: BigInt(i % 7 === 0 ? -1 : 1) * BigInt(1_000_001 * (i + 1)),
      value: `${i}.07`,
    }),
  )
  await bookAt(farthing, '2026-10-15T12:00:00Z', lines)
  const sum = lines.reduce((all, { amount }) => all + amount, 0n)
  const formats: readonly (readonly [
    name: string,
    book: Book,
    filter: string,
    order: string,
    amount: string,
  ])[] = [
    [
      'standard',
      openBook('csv', 'UTC'),
      '44,34,76,1,,1033,false,true,false,false,false,0,true',
      'order_id',
      'amount',
    ],
    [
      'english',
      openWrittenBook(openWriter(spreadsheet(en.reports, 'en-GB'), 'UTC')),
      '44,34,76,1,,2057,false,true,false,false,false,0,true',
      'Order',
      'Amount',
    ],
    [
      'spanish',
      openWrittenBook(openWriter(spreadsheet(es.reports, 'es-ES'), 'UTC')),
      '59,34,76,1,,3082,false,true,false,false,false,0,true',
      'Pedido',
      'Importe',
    ],
  ]
  for (const [name, book, filter, order, amount] of formats) {
    const file = await openExport(farthing.ctx, shop.store.id, monthRange('2026-10', 'UTC'), book)
    let text = ''
    for await (const part of file.text) text += part
    const [head = [], ...rows] = await openInCalc(name, text, filter)
    const names = head.map((cell) => cell.text)
    const [orderAt, amountAt] = [names.indexOf(order), names.indexOf(amount)]
    assert(orderAt > 0 && amountAt > 0, `${name}: ${names}`)
    const shown = rows.filter((row) => row.length > amountAt)
    assert.equal(shown.length, corpus.length, name)
    for (const row of shown) for (const cell of row) assert.equal(cell.formula, null, `${name}: ${cell.text}`)
    const units = shown.map((row) => {
      assert.equal(row[amountAt]?.type, 'float', `${name}: ${row[amountAt]?.text}`)
      return BigInt(Math.round(Number(row[amountAt]?.value) * 1_000_000))
    })
    assert.equal(
      units.reduce((all, each) => all + each, 0n),
      sum,
      name,
    )
    for (const word of ['Müller & Söhne', 'طلب رقم ١٢٧٣', '订单 1273', '😀'])
      assert(
        shown.some((row) => row[orderAt]?.text === word),
        `${name}: ${word}`,
      )
  }
})
