import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { openBlocks, openLog } from './log.ts'

const hex = (digits: number) => `0x${'ab12'.repeat(digits / 4)}`
const payment = Buffer.from(JSON.stringify({ x402Version: 2, payload: { signature: hex(132) } })).toString(
  'base64',
)

const canaries: readonly [what: string, text: string, secret: string][] = [
  [
    'an API key',
    'key sk_live_001xjvb8yezj4n00d3_6en9kx45d1cc3spd5c1pq3dj25xvpt35akv60568fajdefenzf72',
    '6en9kx45d1cc3',
  ],
  ['a link that confirms an address', 'POST /account/email/c5mBq2', 'c5mBq2'],
  ['the same on the way to it', 'GET /sign-in?to=%2Faccount%2Femail%2Fc5mBq2', 'c5mBq2'],
  ['a link that stops mails', 'POST /stop-mails/516f850a-18d2-48ab-b8be-e50c44e328b5', '516f850a'],
  ['the URL of a Slack channel', 'POST hooks.slack.com/services/T0/B0/secret4channel', 'secret4channel'],
  ['the URL of a Discord channel', 'POST /api/webhooks/112233/secret4channel', 'secret4channel'],
  ['a webhook secret', 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD', 'C2FVsBQIhrsc'],
  ['a private key', `signer ${hex(64)}`, hex(64).slice(2)],
  ['a signature', `{"signature":"${hex(132)}"}`, hex(132).slice(2)],
  ['a payment header', `PAYMENT-SIGNATURE: ${payment}`, payment.slice(10)],
  ['a database password', 'postgres://farthing:hunter2secret@db.internal:5432/farthing', 'hunter2secret'],
  [
    'an RPC key in a path',
    'https://base-mainnet.rpc.example/v2/AbCdEf0123456789AbCdEf0123456789',
    'AbCdEf0123456789',
  ],
  ['a recipient', '550 5.1.1 <jane.roe@private.example>: Recipient address rejected', 'jane.roe'],
  ['a recipient in a list', '{"rejected":["jane.roe+tag@private.example"]}', 'jane.roe'],
  ['a recipient with a quoted name', 'RCPT TO:<"jane roe"@private.example>', 'jane roe'],
  ['a recipient in another alphabet', 'иван@почта.рф: unknown user', 'иван'],
  [
    'the token of an address request link',
    'GET https://pay.example/c/refund/00_q7Jc2VwX_mS4-token4buyer9f3kZtB1nRdLhYp5a?lang=es',
    'token4buyer',
  ],
  [
    'the token of an address request link in a path',
    '{"url":"/c/refund/00_q7Jc2VwX_mS4-token4buyer9f3kZtB1nRdLhYp5a"}',
    'token4buyer',
  ],
  [
    'the token of an address request link in a coded path',
    '/c/refund/00%5Fq7Jc2VwX%5FmS4%2Dtoken4buyer9f3kZtB1nRdLhYp5a',
    'token4buyer',
  ],
  [
    'the key of an address request link alone',
    'no link 00_q7Jc2VwX_mS4-token4buyer9f3kZtB1nRdLhYp5aQ8',
    'token4buyer',
  ],
  [
    'the token of an address request link, cut short',
    'no page at /c/refund/00_q7Jc2VwX_mS4-token4buye',
    'token4buye',
  ],
  ['an RPC key in a query', 'https://rpc.example/?apikey=zyx987secret', 'zyx987secret'],
]

for (const [what, text, secret] of canaries) {
  test(`${what} never reaches the log, wherever it is in a line`, () => {
    let written = ''
    const log = openLog('debug', {
      write(line) {
        written += line
      },
    })
    log.info(text)
    log.info({ field: text, nested: { list: [text] } }, 'message')
    log.error({ err: new Error(text, { cause: new Error(text) }) }, text)
    assert.equal(written.trim().split('\n').length, 3)
    assert(!written.includes(secret), written)
    for (const line of written.trim().split('\n')) JSON.parse(line)
  })
}

test('ids, transaction hashes and page URLs stay readable', () => {
  let written = ''
  const log = openLog('info', {
    write(line) {
      written += line
    },
  })
  const shown = [
    hex(64),
    'https://pay.example/ch_0001m7efap6069x0p9y7gc0ne5e7',
    '/c/refund/rf_0001m7efap6069x0p9y7gc0ne5e7?lang=es',
    '/c/refund/:key',
    'st_0001m7efak1kgh4wpwtpq3y5e84j',
  ]
  const [txHash, checkoutUrl, page, route, storeId] = shown
  log.info({ txHash, checkoutUrl, page, route, storeId })
  for (const each of shown) assert(written.includes(each), written)
})

test('a line after a pause leaves at once, and those that follow leave together within 200 ms', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { log, written } = openBlockedLog()
  log.info('first')
  assert.equal(written.length, 1)
  for (let i = 0; i < 10; i++) log.info({ i }, 'further')
  t.mock.timers.tick(199)
  assert.equal(written.length, 1)
  t.mock.timers.tick(1)
  assert.equal(written.length, 2)
  assert.equal(written[1]?.trim().split('\n').length, 10)
  log.info('right after a block')
  assert.equal(written.length, 2)
  t.mock.timers.tick(200)
  assert.equal(written.length, 3)
  t.mock.timers.tick(200)
  log.info('after a pause')
  assert.equal(written.length, 4)
})

test('lines leave as soon as they are 8 KiB', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { log, written } = openBlockedLog()
  log.info('first')
  for (let i = 0; i < 100; i++) log.info({ pad: 'x'.repeat(400) }, 'further')
  assert(written.length > 4 && written.length < 10)
  for (const block of written.slice(1)) assert(block.length >= 8_192 && block.length < 8_192 + 600)
})

test('an error leaves at once, with the lines before it', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { log, written } = openBlockedLog()
  log.info('first')
  for (const level of ['error', 'fatal'] as const) {
    log.info('before')
    log.warn('before')
    log[level]({ err: new Error('broken') }, 'it broke')
    const lines = (written.at(-1) ?? '').trim().split('\n')
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).level),
      ['info', 'warn', level],
    )
  }
})

function openBlockedLog() {
  const written: string[] = []
  const log = openLog('info', openBlocks({ write: (lines) => void written.push(lines) }))
  return { log, written }
}

// With Node's only other thread busy, whatever is left to that thread comes last.
const logger = `
  import { pbkdf2 } from 'node:crypto'
  import { openLog } from ${JSON.stringify(new URL('log.ts', import.meta.url).href)}
  const log = openLog('info')
  pbkdf2('', '', 200_000, 32, 'sha256', () => {})
  for (let i = 0; i < 100; i++) log.info({ i }, 'line')
`
const endings: readonly [how: string, code: string, exitCode: number][] = [
  ['has nothing left to do', '', 0],
  ['exits', 'process.exit(3)', 3],
  ['exits while lines are being written', 'setImmediate(() => { log.info("last"); process.exit(3) })', 3],
  ['throws', 'throw new Error("broken")', 1],
]

for (const [how, code, exitCode] of endings) {
  test(`no line is lost or out of order when a process ${how}`, () => {
    const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', logger + code], {
      encoding: 'utf8',
      env: { ...process.env, UV_THREADPOOL_SIZE: '1' },
    })
    assert.equal(status, exitCode)
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual(
      lines.filter(({ i }) => i !== undefined).map(({ i }) => i),
      Array.from({ length: 100 }, (_, i) => i),
    )
    assert.equal(lines.length, code.includes('last') ? 101 : 100)
  })
}
