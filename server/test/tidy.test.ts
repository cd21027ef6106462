import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { schemaFile } from './support/generated.ts'
import { findMess, findUntidyTests } from './tidy.ts'
import { owners, sharedWrites, tablesWritten } from './tidy-tables.ts'

const root = new URL('../src/', import.meta.url).pathname

test('the house is tidy', () => {
  const paths = globSync('**/*.ts', { cwd: root }).filter((path) => !path.endsWith('.test.ts'))
  assert(paths.length > 30)
  assert.deepEqual(findMess(paths.map((path) => ({ path, text: readFileSync(root + path, 'utf8') }))), [])
})

test('no test is longer than a source may be, and each folder of tests has its folder in src', () => {
  const server = new URL('../', import.meta.url).pathname
  const paths = globSync(['test/**/*.ts', 'src/**/*.test.ts'], { cwd: server })
  assert(paths.length > 100)
  const tests = paths.map((path) => ({ path, text: readFileSync(server + path, 'utf8') }))
  assert.deepEqual(findUntidyTests(tests, new Set(globSync('**/*.ts', { cwd: root }).map(dirname))), [])
})

const broken: readonly [rule: string, path: string, text: string, complaint: RegExp][] = [
  ['an import upwards', 'stores/store.ts', "import { x } from '../checkouts/checkout.ts'", /beside or above/],
  [
    'an import of a sibling room',
    'payments/waits.ts',
    "import type { Store } from '../stores/store.ts'",
    /beside or above/,
  ],
  ['an import() upwards', 'chains/evm/address.ts', "await import('../../http/app.ts')", /beside or above/],
  ['a re-export from above', 'database/db.ts', "export { Context } from '../context.ts'", /beside or above/],
  ['a room without a floor', 'helpers/x.ts', '', /no floor/],
  ['a name that says nothing', 'stores/store-service.ts', '', /says nothing/],
  ['reading the environment', 'database/db.ts', 'process.env.HOME', /only config.ts/],
  ['reading a clock', 'checkouts/pay.ts', 'const now = new Date()', /clock/],
  ['reading a clock in milliseconds', 'http/pay.ts', 'Date.now()', /clock/],
  ['a float', 'money.ts', "parseFloat('1.5')", /float/],
  ['a number out of text', 'rates/quote.ts', 'Number(rate)', /float/],
  [
    'SQL outside rows.ts',
    'checkouts/pay.ts',
    "q('select 1 from a'); q(`\n  insert into b values (1)`)",
    /2 SQL statements/,
  ],
  [
    'a checkout that knows a chain',
    'checkouts/pay.ts',
    "import { topics } from '../chains/evm/eip3009.ts'",
    /knows a chain/,
  ],
  [
    'a door that knows a chain’s rail',
    'http/pay.ts',
    "import { lookOnce } from '../payments/svm/watch.ts'",
    /knows a chain/,
  ],
  [
    'a checkout that knows a chain’s package',
    'checkouts/view.ts',
    "import { getAddress } from 'viem/utils'",
    /knows a chain/,
  ],
  [
    'a checkout that asks for the family',
    'checkouts/create.ts',
    "if (family === 'SOLANA') return",
    /family of chains/,
  ],
  [
    'a family outside its rooms',
    'payments/settlers/readiness.ts',
    "if (network.family === 'EVM') return",
    /decides by the family/,
  ],
  [
    'a write to another room’s table',
    'payments/rows.ts',
    'q(`update stores set name = $1`)',
    /writes stores, which belongs to stores/,
  ],
  [
    'a status that no arrow leads to',
    'checkouts/rows.ts',
    "q(`update checkouts c set version = 2, status = 'COMPLETED' where id = $1`)",
    /not from an arrow/,
  ],
  [
    'a status out of a parameter',
    'checkouts/claim-rows.ts',
    'q(`update checkouts set status = $2 where id = $1`)',
    /not from an arrow/,
  ],
  ['a move past moveCheckouts', 'checkouts/expire.ts', 'await writeMoves(tx, moves)', /moveCheckouts/],
  ['a long file', 'ids.ts', '\n'.repeat(400), /lines/],
]

for (const [rule, path, text, complaint] of broken) {
  test(`${rule} is found`, () => {
    assert.match(findMess([{ path, text }]).join('\n'), complaint)
  })
}

test('files that import each other are found, even through a third and only for types', () => {
  const circle = [
    { path: 'rates/a.ts', text: "import { b } from './b.ts'" },
    { path: 'rates/b.ts', text: "import type { C } from './c.ts'" },
    { path: 'rates/c.ts', text: "import type { A } from './a.ts'" },
    { path: 'rates/d.ts', text: "import { a } from './a.ts'" },
  ]
  const found = findMess(circle).filter((sentence) => /imports itself/.test(sentence))
  assert.deepEqual(
    found.map((sentence) => sentence.slice(0, 10)),
    ['rates/a.ts', 'rates/b.ts', 'rates/c.ts'],
  )
})

test('every table has an owner', () => {
  const tables = [...readFileSync(schemaFile, 'utf8').matchAll(/CREATE TABLE public\.(\w+)/g)].map(
    ([, name]) => name,
  )
  assert.deepEqual(Object.keys(owners), tables.sort())
})

test('every write that is named as shared is there', () => {
  for (const { file, table } of sharedWrites)
    assert(
      tablesWritten(readFileSync(root + file, 'utf8')).includes(table),
      `${file} does not write ${table}`,
    )
})

test('what the rules allow is not found', () => {
  const text =
    "import { db } from '../database/db.ts'\n// new Date() in a comment\nconst q = 'select 1 from stores'"
  assert.deepEqual(findMess([{ path: 'stores/read.ts', text }]), [])
})

const rooms = new Set(['payments', 'payments/evm'])
const untidyTests: readonly [rule: string, path: string, text: string, complaint: RegExp][] = [
  ['a folder of tests without a folder in src', 'test/flows/pay.test.ts', '', /no folder flows/],
  ['a folder of tests under another room', 'test/evm/pay.test.ts', '', /no folder evm/],
  ['a long test', 'test/payments/evm/pay.test.ts', '\n'.repeat(400), /401 lines/],
  ['a long test beside its source', 'src/money.test.ts', '\n'.repeat(400), /401 lines/],
  ['a long support file', 'test/support/shop.ts', '\n'.repeat(400), /401 lines/],
]

for (const [rule, path, text, complaint] of untidyTests) {
  test(`${rule} is found`, () => {
    assert.match(findUntidyTests([{ path, text }], rooms).join('\n'), complaint)
  })
}

test('tests that mirror src, and folders that have nothing to mirror, are not found', () => {
  const paths = [
    'test/run.ts',
    'test/payments/evm/pay.test.ts',
    'test/payments/evm/support/x.ts',
    'src/a.test.ts',
  ]
  const apart = [
    'test/load/x.test.ts',
    'test/payments/adversity/attacks/x.test.ts',
    'test/payments/crash/x.ts',
  ]
  const tests = [...paths, ...apart].map((path) => ({ path, text: '' }))
  assert.deepEqual(findUntidyTests(tests, rooms), [])
})
