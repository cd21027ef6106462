import { en } from '../../../src/http/console/texts/en.ts'
import { es } from '../../../src/http/console/texts/es.ts'
import { openBankWriter } from '../../../src/movements/bank.ts'
import { openWriter, spreadsheet, standard, type Writer } from '../../../src/movements/formats.ts'
import type { Line } from '../../../src/movements/lines.ts'

/** The samples of exported files in docs/books: the same few lines in each format. */

const zone = 'Europe/Madrid'

function sampleLine(number: number, time: string, change: Partial<Line>): Line {
  const id = String(number).padStart(28, '0')
  return {
    number: String(number),
    id: `mov_${id}`,
    type: 'payment',
    happenedAt: Date.parse(time),
    bookedAt: Date.parse(time) + 1_200_000,
    network: 'eip155:8453',
    asset: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
    amount: '21563800',
    wallet: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
    transaction: `0x${String(number).repeat(64)}`,
    place: 12,
    paymentId: `pay_${id}`,
    refundId: null,
    checkoutId: `ch_${id}`,
    orderId: '1273',
    disposition: 'exact',
    priceAmount: '19.90',
    priceCurrency: 'EUR',
    rate: '1.0836',
    rateSource: 'ecb',
    rateTime: Date.parse('2026-10-30T14:15:00Z'),
    value: '19.90',
    valueCurrency: 'EUR',
    valueRate: null,
    valueRateSource: 'price',
    valueRateTime: null,
    reverses: null,
    actorType: null,
    actorId: null,
    details: null,
    ...change,
  }
}

const rated = {
  ...{
    valueRate: '0.922850000000',
    valueRateSource: 'ecb',
    valueRateTime: Date.parse('2026-10-30T14:15:00Z'),
  },
}

const lines: readonly Line[] = [
  sampleLine(1, '2026-10-30T16:02:11Z', {}),
  sampleLine(2, '2026-10-31T22:58:03Z', {
    ...{ orderId: null, checkoutId: null, disposition: 'unmatched', amount: '7441861' },
    ...{ priceAmount: null, priceCurrency: null, rate: null, rateSource: null, rateTime: null },
    ...{ value: '6.867721', ...rated },
  }),
  sampleLine(3, '2026-11-02T09:30:00Z', {
    ...{
      type: 'acceptance',
      amount: '0',
      wallet: null,
      orderId: '=1274',
      disposition: 'underpaid',
      value: '0.00',
    },
    ...{
      actorType: 'member',
      actorId: 'mem_0001',
      valueRateSource: 'par',
      paymentId: `pay_${'2'.padStart(28, '0')}`,
    },
  }),
  sampleLine(4, '2026-11-03T11:12:13Z', {
    ...{ type: 'refund', amount: '-10781900', value: '-9.95', refundId: `rf_${'4'.padStart(28, '0')}` },
    ...{ paymentId: `pay_${'1'.padStart(28, '0')}` },
  }),
]

const bank = openBankWriter({
  ...{ zone, currency: 'EUR', lastDay: '2026-11-30', words: en.reports.types, rounding: 'Rounding' },
  headings: ['Date', 'Amount', 'Description', 'Reference'],
})

const samples: Readonly<Record<string, Writer>> = {
  'movements.csv': openWriter(standard, zone),
  'spreadsheet-en.csv': openWriter(spreadsheet(en.reports, 'en-GB'), zone),
  'spreadsheet-es.csv': openWriter(spreadsheet(es.reports, 'es-ES'), zone),
  'bank.csv': bank,
}

export function generateSamples(): { readonly file: string; readonly text: string }[] {
  return Object.entries(samples).map(([name, writer]) => ({
    file: `docs/books/${name}`,
    text: `${writer.head}${writer.write(lines)}${writer.end()}`,
  }))
}
