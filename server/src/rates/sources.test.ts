import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseDecimal } from '../money.ts'
import { currencies } from './iso4217.ts'
import { sources } from './sources.ts'

const fetchedAt = new Date('2026-11-13T17:00:00Z')
const megabytes = 2_000_000

type Entries = readonly (readonly [string, string])[]

const usual: Entries = [
  ['USD', '1.1623'],
  ['JPY', '179.36'],
  ['GBP', '0.88210'],
  ['CHF', '0.9214'],
  ['PLN', '4.2270'],
  ['IDR', '19421.66'],
]

function parserOf(name: string) {
  const source = sources.find((candidate) => candidate.name === name)
  assert(source)
  return (text: string) => source.parse(text, fetchedAt)
}
const parseExchange = parserOf('exchange')
const parseEcb = parserOf('ecb')

function exchangeFile(rates: Entries, currency = 'USD'): string {
  const members = rates.map(([code, rate]) => `${JSON.stringify(code)}:${JSON.stringify(rate)}`)
  return `{"data":{"currency":"${currency}","rates":{${members.join(',')}}}}`
}

function ecbFile(rates: Entries, date = '2026-11-13'): string {
  const cubes = rates.map(([code, rate]) => `\t\t\t<Cube currency='${code}' rate='${rate}'/>\n`)
  return `<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
\t<gesmes:subject>Reference rates</gesmes:subject>
\t<gesmes:Sender>
\t\t<gesmes:name>European Central Bank</gesmes:name>
\t</gesmes:Sender>
\t<Cube>
\t\t<Cube time='${date}'>
${cubes.join('')}\t\t</Cube>
\t</Cube>
</gesmes:Envelope>
`
}

const exchangeUsual: Entries = [
  ['AED', '3.6725'],
  ['BTC', '0.0000104731876'],
  ['EUR', '0.860363'],
  ['JPY', '154.31'],
  ['PEPE', '185873.6059479554'],
  ['MXN', '18.3'],
  ['USD', '1.0'],
  ['XAU', '0.00024437'],
]

const anyRate = fc
  .tuple(fc.bigInt(0n, 10n ** 30n - 1n), fc.option(fc.stringMatching(/^\d{1,30}$/), { nil: undefined }))
  .map(([whole, fraction]) => (fraction === undefined ? `${whole}` : `${whole}.${fraction}`))
  .filter((text) => /[1-9]/.test(text))

const notRates = [
  '',
  '0',
  '0.000',
  '-1.5',
  '+1.5',
  '1e5',
  '1E-7',
  'NaN',
  'Infinity',
  '0x10',
  '1,5',
  '.5',
  '5.',
  ' 1',
  '1\n',
  '１',
  '1'.repeat(31),
  `0.${'1'.repeat(31)}`,
]

function anyRates(base: string) {
  const codes = [...currencies.keys()].filter((code) => code !== base && code !== 'USD')
  return fc
    .uniqueArray(fc.tuple(fc.constantFrom(...codes), anyRate), { selector: ([code]) => code, minLength: 4 })
    .map((rates): Entries => rates)
}

test('the exchange’s rates are kept exactly as written, dated at the fetch, without coins', () => {
  const { asOf, perBase } = parseExchange(exchangeFile(exchangeUsual))
  assert.equal(asOf, fetchedAt)
  assert.deepEqual(Object.fromEntries(perBase), {
    USD: '1',
    AED: '3.6725',
    EUR: '0.860363',
    JPY: '154.31',
    MXN: '18.3',
    XAU: '0.00024437',
  })
})

test('the ECB’s rates are kept exactly as written, dated at the start of their day', () => {
  const { asOf, perBase } = parseEcb(ecbFile(usual))
  assert.deepEqual(asOf, new Date('2026-11-13T00:00:00Z'))
  assert.deepEqual(Object.fromEntries(perBase), { EUR: '1', ...Object.fromEntries(usual) })
})

test('the ECB’s file means the same with double quotes, on one line or with Windows line endings', () => {
  const { perBase } = parseEcb(ecbFile(usual))
  for (const text of [
    ecbFile(usual).replaceAll("'", '"'),
    ecbFile(usual).replaceAll(/[\t\n]/g, ''),
    ecbFile(usual).replaceAll('\n', '\r\n'),
    ecbFile(usual).replaceAll('/>', ' />'),
  ]) {
    assert.deepEqual(parseEcb(text).perBase, perBase)
  }
})

test('every plain decimal in a file comes out unchanged', () => {
  fc.assert(
    fc.property(anyRates('USD'), (rates) => {
      assert.deepEqual(parseExchange(exchangeFile(rates)).perBase, new Map([['USD', '1'], ...rates]))
    }),
  )
  fc.assert(
    fc.property(anyRates('EUR'), anyRate, (rates, usd) => {
      const listed: Entries = [['USD', usd], ...rates]
      assert.deepEqual(parseEcb(ecbFile(listed)).perBase, new Map([['EUR', '1'], ...listed]))
    }),
  )
})

test('only a rate that is not a plain positive decimal is dropped', () => {
  for (const rate of notRates) {
    assert.deepEqual(
      parseExchange(exchangeFile([...exchangeUsual, ['SEK', rate]])).perBase,
      parseExchange(exchangeFile(exchangeUsual)).perBase,
      rate,
    )
    assert.deepEqual(
      parseEcb(ecbFile([...usual, ['SEK', rate]])).perBase,
      parseEcb(ecbFile(usual)).perBase,
      rate,
    )
  }
  const withNumber = exchangeFile(exchangeUsual).replace('"154.31"', '154.31')
  assert.equal(parseExchange(withNumber).perBase.has('JPY'), false)
})

test('every rate from any file is a positive decimal that parseDecimal accepts, under an ISO code', () => {
  const entry = fc.tuple(
    fc.oneof(fc.constantFrom(...currencies.keys()), fc.string({ maxLength: 4 })),
    fc.oneof(anyRate, fc.constantFrom(...notRates), fc.string()),
  )
  const parsers = [() => parseExchange, () => parseEcb]
  fc.assert(
    fc.property(fc.array(entry), fc.constantFrom(...parsers), (rates, parser) => {
      const parse = parser()
      const text =
        parse === parseEcb ? ecbFile([...usual, ...rates]) : exchangeFile([...exchangeUsual, ...rates])
      let parsed: ReturnType<typeof parse>
      try {
        parsed = parse(text)
      } catch (error) {
        assert(error instanceof Error && error.message !== '')
        return
      }
      for (const [code, rate] of parsed.perBase) {
        assert(currencies.has(code))
        assert(parseDecimal(rate).coefficient > 0n)
      }
    }),
  )
})

test('a file that is cut off at any point is refused', () => {
  const exchange = exchangeFile(exchangeUsual)
  for (let length = 0; length < exchange.length; length++) {
    assert.throws(() => parseExchange(exchange.slice(0, length)), /is not JSON/)
  }
  const ecb = ecbFile(usual).trimEnd()
  for (let length = 0; length < ecb.length; length++) {
    assert.throws(() => parseEcb(ecb.slice(0, length)), /is not a complete gesmes:Envelope/)
  }
})

test('an error page or the other source’s file is refused', () => {
  const page = '<!DOCTYPE html><html><body><h1>503 Service Unavailable</h1></body></html>'
  for (const text of ['', page, 'null', '[]', '"USD"', '{"errors":[{"id":"rate_limit"}]}', ecbFile(usual)]) {
    assert.throws(() => parseExchange(text), Error)
  }
  for (const text of ['', page, exchangeFile(exchangeUsual), '</gesmes:Envelope>']) {
    assert.throws(() => parseEcb(text), Error)
  }
})

test('rates with another base are refused', () => {
  assert.throws(
    () => parseExchange(exchangeFile(exchangeUsual, 'EUR')),
    /has rates based on "EUR" instead of "USD"/,
  )
  assert.throws(
    () => parseExchange('{"data":{"rates":{"EUR":"0.86"}}}'),
    /has rates based on undefined instead/,
  )
  assert.throws(
    () =>
      parseExchange(exchangeFile([...exchangeUsual.filter(([code]) => code !== 'USD'), ['USD', '1.1623']])),
    /one USD is 1.1623 USD/,
  )
  assert.throws(() => parseEcb(ecbFile([...usual, ['EUR', '0.86']])), /one EUR is 0.86 EUR/)
})

test('a file with two different rates for a currency is refused, however they are written; the same rate twice is accepted', () => {
  const file = exchangeFile(exchangeUsual)
  for (const twice of [
    exchangeFile([...exchangeUsual, ['EUR', '0.9']]),
    exchangeFile([['EUR', '0.9'], ...exchangeUsual]),
    file.replace('"AED"', '"\\u0045UR" : "0.9","AED"'),
    file.replace('"AED"', '"EUR":"\\u0030.9","AED"'),
    file.replace('"rates"', '"rates":{"EUR":"0.9"},"rates"'),
    file.replace(/\}\}\}$/, ',"EUR":0.9}}}'),
  ]) {
    assert.throws(() => parseExchange(twice), /has two rates for EUR/, twice)
  }
  assert.throws(() => parseEcb(ecbFile([...usual, ['JPY', '17.936']])), /has two rates for JPY/)
  assert.throws(() => parseEcb(ecbFile([['JPY', 'N/A'], ...usual])), /has two rates for JPY/)

  assert.deepEqual(parseExchange(exchangeFile([...exchangeUsual, ['EUR', '0.860363']])), parseExchange(file))
  assert.deepEqual(parseEcb(ecbFile([...usual, ['JPY', '179.36']])), parseEcb(ecbFile(usual)))
})

test('a file with fewer than five currencies, or an ECB file without USD, is refused', () => {
  assert.throws(
    () => parseExchange(exchangeFile(exchangeUsual.slice(0, 5))),
    /too few usable currencies \(4 of/,
  )
  assert.throws(
    () => parseExchange('{"data":{"currency":"USD","rates":{}}}'),
    /too few usable currencies \(1 of/,
  )
  assert.throws(() => parseExchange('{"data":{"currency":"USD"}}'), /has no data.rates/)
  assert.throws(() => parseEcb(ecbFile(usual.slice(0, 3))), /too few usable currencies \(4 of/)
  assert.throws(() => parseEcb(ecbFile(usual.slice(1))), /has no usable rate for USD/)
  assert.throws(() => parseEcb(ecbFile([['USD', '1e1'], ...usual.slice(1)])), /has no usable rate for USD/)
})

test('an ECB file must have exactly one valid date that is not in the future', () => {
  const dated = (date: string) => () => parseEcb(ecbFile(usual, date))
  assert.throws(dated('2026-02-30'), /which is not a date/)
  assert.throws(dated('2026-13-01'), /which is not a date/)
  assert.throws(dated('2026-11-14'), /which is in the future/)
  assert.throws(dated('13.11.2026'), /has an unexpected Cube/)
  assert.throws(() => parseEcb(ecbFile(usual).replace(/<Cube time='.*'>/, '<Cube>')), /has 0 dates/)
  const history = ecbFile(usual).replace('\t</Cube>\n</', "<Cube time='2026-11-12'></Cube></Cube></")
  assert.throws(() => parseEcb(history), /has 2 dates/)
})

test('an ECB file with any unknown content is refused', () => {
  const file = ecbFile(usual)
  for (const strange of [
    file.replace("rate='1.1623'", "rate='1.1623' multiplier='100'"),
    file.replace("currency='USD' rate='1.1623'", "rate='1.1623' currency='USD'"),
    file.replace("rate='1.1623'", "rate='1.16\"23'"),
    file.replace("rate='1.1623'/>", "rate='1.1623'>"),
    file.replace('<Cube currency', '<Cubecurrency'),
    file
      .replace("<Cube currency='JPY'", "<!-- <Cube currency='JPY'")
      .replace("rate='179.36'/>", "rate='179.36'/> -->"),
  ]) {
    assert.notEqual(strange, file)
    assert.throws(() => parseEcb(strange), Error)
  }
})

test('two megabytes of any input are parsed in linear time', () => {
  const end = '</gesmes:Envelope>'
  const fill = (text: string) => text.repeat(megabytes / text.length)
  const hostile: readonly [(text: string) => unknown, string][] = [
    [parseEcb, fill('<Cube')],
    [parseEcb, fill('<Cube') + end],
    [parseEcb, fill('<Cube>') + end],
    [parseEcb, `<Cube${fill(' ')}${end}`],
    [parseEcb, `<Cube${fill(' ')}>${end}`],
    [parseEcb, `<Cube currency='${fill('A')}>${end}`],
    [parseEcb, `<Cube currency='USD' rate='${fill('1')}'/>${end}`],
    [parseEcb, `<Cube currency='USD'${fill(' ')}rate='1'${fill(' ')}>${end}`],
    [parseEcb, fill("<Cube currency='USD' rate='1.5'/>") + end],
    [parseEcb, end + fill(' ')],
    [parseExchange, fill('{"a":')],
    [parseExchange, fill('"')],
    [parseExchange, fill('[')],
    [parseExchange, exchangeFile([['EUR', fill('1')]])],
    [parseExchange, exchangeFile([[fill('E'), fill('\\')]])],
    [parseExchange, exchangeFile(Array.from({ length: 500_000 }, (_, i) => [`C${i}`, '1']))],
    [parseExchange, `{"data":{"currency":"USD","rates":{}},"more":["a"${fill(',"a"')}]}`],
    [parseExchange, `{"data":{"currency":"${fill('U')}"}}`],
  ]
  for (const [parse, text] of hostile) {
    const start = performance.now()
    assert.throws(
      () => parse(text),
      (error) => error instanceof Error && error.message.length < 200,
    )
    const elapsedMs = performance.now() - start
    // A quadratic parser would take hours; a busy machine makes a linear one slow, but not that slow.
    assert(elapsedMs < 60_000, `${text.slice(0, 30)}: ${Math.round(elapsedMs)} ms`)
  }
})
