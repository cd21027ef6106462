import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openLog } from './log.ts'

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
  const checkoutUrl = 'https://pay.example/ch_0001m7efap6069x0p9y7gc0ne5e7'
  log.info({ txHash: hex(64), checkoutUrl, storeId: 'st_0001m7efak1kgh4wpwtpq3y5e84j' })
  assert(
    written.includes(hex(64)) &&
      written.includes(checkoutUrl) &&
      written.includes('st_0001m7efak1kgh4wpwtpq3y5e84j'),
  )
})
