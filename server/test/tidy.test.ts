import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { schemaFile } from './support/generated.ts'
import { findTestViolations, findViolations } from './tidy.ts'
import { findHomonyms } from './tidy-glossary.ts'
import { owners, sharedWrites, tablesWritten } from './tidy-tables.ts'

const root = new URL('../src/', import.meta.url).pathname

const sources = globSync('**/*.ts', { cwd: root })
  .filter((path) => !path.endsWith('.test.ts'))
  .map((path) => ({ path, text: readFileSync(root + path, 'utf8') }))

test('the sources follow the rules', () => {
  assert(sources.length > 30)
  assert.deepEqual(findViolations(sources), [])
})

test('each noun is exported as a type once, apart from the listed homonyms', () => {
  assert.deepEqual(findHomonyms(sources), [])
})

test('the tests follow the rules: no file is too long, and every folder mirrors one in src', () => {
  const server = new URL('../', import.meta.url).pathname
  const paths = globSync(['test/**/*.ts', 'src/**/*.test.ts'], { cwd: server })
  assert(paths.length > 100)
  const tests = paths.map((path) => ({ path, text: readFileSync(server + path, 'utf8') }))
  assert.deepEqual(findTestViolations(tests, new Set(globSync('**/*.ts', { cwd: root }).map(dirname))), [])
})

const broken: readonly [rule: string, path: string, text: string, complaint: RegExp][] = [
  [
    'an import from a higher floor',
    'stores/store.ts',
    "import { x } from '../checkouts/checkout.ts'",
    /same floor or above/,
  ],
  [
    'an import from another room on the same floor',
    'payments/looks.ts',
    "import type { Store } from '../stores/store.ts'",
    /same floor or above/,
  ],
  [
    'a dynamic import from a higher floor',
    'chains/evm/address.ts',
    "await import('../../http/app.ts')",
    /same floor or above/,
  ],
  [
    're-exporting from a higher floor',
    'database/db.ts',
    "export { Context } from '../context.ts'",
    /same floor or above/,
  ],
  [
    'a question to one provider in payments/',
    'payments/evm/look-up.ts',
    "await chain.rpc.batch([{ method: 'eth_getTransactionByHash', params: [hash] }])",
    /asks nodes by itself/,
  ],
  [
    'a question to all providers in payments/, whose answers nobody counts',
    'payments/evm/look-up.ts',
    'const told = await rpc\n  .askAll(calls)',
    /asks nodes by itself/,
  ],
  [
    'a question to nodes in payments/ under another name',
    'payments/svm/watch.ts',
    'const { callAll } = chain.rpc',
    /asks nodes by itself/,
  ],
  [
    'a question to one provider in chains/, without a reason',
    'chains/evm/transactions.ts',
    "await rpc.call<Hex>('eth_getCode', [address])",
    /asks one provider/,
  ],
  ['a room without a floor', 'helpers/x.ts', '', /no floor/],
  ['a generic name', 'stores/store-service.ts', '', /generic name/],
  ['reading the environment', 'database/db.ts', 'process.env.HOME', /only config\/read.ts/],
  ['reading a clock', 'checkouts/pay.ts', 'const now = new Date()', /clock/],
  ['reading a clock in milliseconds', 'http/api/pay.ts', 'Date.now()', /clock/],
  ['parsing a float', 'money.ts', "parseFloat('1.5')", /float/],
  ['converting text to a number', 'rates/quote.ts', 'Number(rate)', /float/],
  [
    'SQL in a room that owns no tables',
    'http/api/pay.ts',
    "q('select 1 from a'); q(`\n  insert into b values (1)`)",
    /2 SQL statements/,
  ],
  [
    'chain code in checkouts/',
    'checkouts/pay.ts',
    "import { topics } from '../chains/evm/eip3009.ts'",
    /depends on a chain/,
  ],
  [
    'a chain’s rail in http/',
    'http/api/pay.ts',
    "import { lookOnce } from '../payments/svm/watch.ts'",
    /depends on a chain/,
  ],
  [
    'a chain’s package in checkouts/',
    'checkouts/view.ts',
    "import { getAddress } from 'viem/utils'",
    /depends on a chain/,
  ],
  [
    'naming a chain family in checkouts/',
    'checkouts/create.ts',
    "if (family === 'SOLANA') return",
    /mentions a chain family/,
  ],
  [
    'deciding by chain family outside the family’s folders',
    'payments/settlers/readiness.ts',
    "if (network.family === 'EVM') return",
    /decides by chain family/,
  ],
  [
    'writing another room’s table',
    'payments/rows.ts',
    'q(`update stores set name = $1`)',
    /writes stores, which belongs to stores/,
  ],
  [
    'setting a status without an arrow',
    'checkouts/rows.ts',
    "q(`update checkouts c set version = 2, status = 'COMPLETED' where id = $1`)",
    /not come from an arrow/,
  ],
  [
    'setting a status from a parameter',
    'checkouts/claim.ts',
    'q(`update checkouts set status = $2 where id = $1`)',
    /not come from an arrow/,
  ],
  [
    'setting a refund’s status outside change.ts',
    'refunds/cancel.ts',
    "q(`update refunds set looked_at = clock(), status = 'CANCELED' where id = $1`)",
    /sets a refund's status/,
  ],
  [
    'setting a refund’s status from a parameter',
    'refunds/rows.ts',
    'q(`update refunds r set status = $2 from ended e where r.id = e.id`)',
    /sets a refund's status/,
  ],
  [
    'setting a fact of a refund outside change.ts',
    'refunds/sign.ts',
    "q('update refunds as r set signed_at = clock() where id = $1')",
    /sets a refund's signed_at/,
  ],
  [
    'setting several columns of a refund at once',
    'refunds/sign.ts',
    'q(`update refunds set (status, version) = ($2, 2) where id = $1`)',
    /sets a refund's status/,
  ],
  [
    'setting columns of a refund that a program chooses',
    'refunds/sign.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the source that is checked has a placeholder
    'q(`update refunds set ${sets} where id = $1`)',
    /sets a refund's/,
  ],
  [
    'creating a refund outside change.ts',
    'refunds/create.ts',
    "q(`insert into refunds (id, status) values ($1, 'REQUESTED')`)",
    /adds or deletes rows of refunds/,
  ],
  [
    'lowering a refund’s total outside change.ts',
    'refunds/cancel.ts',
    'q(`update refund_totals t set reserved = t.reserved - $1`)',
    /writes refund_totals: call addRefund or changeRefund/,
  ],
  [
    'writing a refund’s event in its room, outside change.ts',
    'refunds/address-requests/name.ts',
    "import { appendEvent } from '../../events/append.ts'",
    /writes a refund's event/,
  ],
  [
    'writing a refund’s event in another room',
    'dev/history.ts',
    "newEvent(ctx, storeId, actor, { type: 'refund.requested', data }, now)",
    /writes a refund's event/,
  ],
  [
    'markup that does not fit on the screen',
    'http/console/team/view.ts',
    `return html\`<p class="soft">${'word '.repeat(30)}</p>\``,
    /1 lines of markup over 120/,
  ],
  ['a bigint made a number unchecked', 'ids.ts', 'Number.parseInt((a % 32n).toString(), 10)', /toSafeNumber/],
  ['a file that is too long', 'ids.ts', '\n'.repeat(800), /lines/],
]

for (const [rule, path, text, complaint] of broken) {
  test(`${rule} is reported`, () => {
    assert.match(findViolations([{ path, text }]).join('\n'), complaint)
  })
}

test('an import cycle is reported, even through a third file and with type imports only', () => {
  const cycle = [
    { path: 'rates/a.ts', text: "import { b } from './b.ts'" },
    { path: 'rates/b.ts', text: "import type { C } from './c.ts'" },
    { path: 'rates/c.ts', text: "import type { A } from './a.ts'" },
    { path: 'rates/d.ts', text: "import { a } from './a.ts'" },
  ]
  const found = findViolations(cycle).filter((sentence) => /import cycle/.test(sentence))
  assert.deepEqual(
    found.map((sentence) => sentence.slice(0, 10)),
    ['rates/a.ts', 'rates/b.ts', 'rates/c.ts'],
  )
})

const refund = { path: 'refunds/refund.ts', text: 'export type Refund = { id: string }' }
const otherRefund = { path: 'http/api/refunds.ts', text: 'export class Refund extends Error {}' }

test('a noun that two files export as a type is reported, whatever kind of type it is', () => {
  assert.match(
    findHomonyms([refund, otherRefund], {}).join(),
    /^Refund is a type of http\/api\/refunds.ts, refunds\/refund.ts/,
  )
  assert.deepEqual(findHomonyms([refund, otherRefund], { Refund: 2 }), [])
})

test('a listed homonym that a third file exports is reported', () => {
  const third = { path: 'dev/history.ts', text: 'const a = 1\nexport interface Refund {}' }
  assert.match(
    findHomonyms([refund, otherRefund, third], { Refund: 2 }).join(),
    /^Refund is a type of dev\/history/,
  )
})

test('a listed homonym that is none any more is reported', () => {
  const local = { ...otherRefund, text: 'type Refund = string\n// export type Refund' }
  assert.match(findHomonyms([refund, local], { Refund: 2 }).join(), /^Refund is a type of 1 files: lower/)
  assert.match(findHomonyms([], { Refund: 2 }).join(), /^Refund is a type of 0 files: lower/)
})

test('every table has an owner', () => {
  const tables = [...readFileSync(schemaFile, 'utf8').matchAll(/CREATE TABLE public\.(\w+)/g)].map(
    ([, name]) => name,
  )
  assert.deepEqual(Object.keys(owners), tables.sort())
})

test('every entry in sharedWrites still matches a write in the code', () => {
  for (const { file, table } of sharedWrites)
    assert(
      tablesWritten(readFileSync(root + file, 'utf8')).includes(table),
      `${file} does not write ${table}`,
    )
})

test('code that follows the rules is not reported', () => {
  const text =
    "import { db } from '../database/db.ts'\n// new Date() in a comment\nconst q = 'select 1 from stores'"
  assert.deepEqual(findViolations([{ path: 'stores/read.ts', text }]), [])
})

test('what says nothing about a refund’s status may be set next to the verb that needs it', () => {
  const text =
    'q(`update refunds r set looked_at = clock() from (select id from refunds) due where r.id = due.id`)'
  assert.deepEqual(findViolations([{ path: 'refunds/prove-sent.ts', text }]), [])
})

const rooms = new Set(['payments', 'payments/evm'])
const brokenTests: readonly [rule: string, path: string, text: string, complaint: RegExp][] = [
  ['a test folder without a counterpart in src', 'test/flows/pay.test.ts', '', /no folder flows/],
  ['a test folder at another path than its counterpart', 'test/evm/pay.test.ts', '', /no folder evm/],
  ['a test file that is too long', 'test/payments/evm/pay.test.ts', '\n'.repeat(800), /801 lines/],
  ['a test file next to its source that is too long', 'src/money.test.ts', '\n'.repeat(800), /801 lines/],
  ['a support file that is too long', 'test/support/shop.ts', '\n'.repeat(800), /801 lines/],
  [
    'something opened after the first test',
    'test/payments/pay.test.ts',
    "test('a', () => {})\n\nconst shop = await openShop()",
    /opens something after/,
  ],
  [
    'something opened after the tests of a loop',
    'test/payments/pay.test.ts',
    "for (const way of ways)\n  test('a', () => {})\n\nawait openShop()",
    /opens something after/,
  ],
  [
    'something opened between tests, in each turn of a loop',
    'test/payments/pay.test.ts',
    "for (const way of ways) {\n  const shop = await openShop(way)\n  test('a', () => {})\n}",
    /opens something after/,
  ],
]

for (const [rule, path, text, complaint] of brokenTests) {
  test(`${rule} is reported`, () => {
    assert.match(findTestViolations([{ path, text }], rooms).join('\n'), complaint)
  })
}

test('test folders that mirror src, and those without a counterpart by design, are not reported', () => {
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
  assert.deepEqual(findTestViolations(tests, rooms), [])
})

test('what is opened before the first test, or inside tests, is not reported', () => {
  const text =
    "const shop = await openShop()\n\ntest('a', async () => {\n  await pay()\n})\n\nasync function pay() {\n  await 1\n}"
  assert.deepEqual(findTestViolations([{ path: 'test/payments/pay.test.ts', text }], rooms), [])
})
