/** Exports leave the process to others: one of each member at a time, and none reads a whole history. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { test } from 'node:test'
import { exportRows } from '../../../src/http/console/payments/export.ts'
import type { ListQuery } from '../../../src/http/console/payments/query.ts'
import { creditByHand } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { patienceMs } from '../../support/patience.ts'
import { enrolWith, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole({ listens: true })
const { ctx } = console.farthing

async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const { browser } = await enrolWith(console, token)
  const read = (language = 'en', signal = AbortSignal.timeout(patienceMs)) =>
    fetch(`${console.url}/stores/${store.id}/payments/export`, {
      headers: { cookie: browser.cookie, 'accept-language': language },
      signal,
    })
  return { store, read }
}

/** Exports that are asked for meanwhile answer, and wait for their first row. */
async function holdExports<Result>(work: () => Promise<Result>): Promise<Result> {
  return await ctx.db.transaction(async (tx) => {
    await tx.query('lock table checkouts in access exclusive mode')
    return await work()
  })
}

test('a member’s second export at a time is refused in words, and works once the first is read; another member’s works', async () => {
  const [shop, other] = [await openShop(), await openShop()]
  const [first, others] = await holdExports(async () => {
    const first = await shop.read()
    assert.equal(first.status, 200)
    const english = await shop.read()
    assert.equal(english.status, 429)
    assert.match(await english.text(), /exports are running/)
    const spanish = await shop.read('es')
    assert.equal(spanish.status, 429)
    assert.match(await spanish.text(), /exportaciones en marcha/)
    return [first, await other.read()] as const
  })
  assert.equal(others.status, 200)
  assert.match(await first.text(), /^checkout_id,/)
  const again = await shop.read()
  assert.equal(again.status, 200)
  await Promise.all([again.text(), others.text()])
})

test('an export whose reader went away leaves room for another', async () => {
  const { read } = await openShop()
  const leaving = new AbortController()
  const answered = once(console.app.server, 'request') as Promise<[object, ServerResponse]>
  const piped = answered.then(([, response]) => once(response, 'pipe') as Promise<[Readable]>)
  const { over } = await holdExports(async () => {
    assert.equal((await read('en', leaving.signal)).status, 200)
    const [rows] = await piped
    const over = once(rows, 'close')
    leaving.abort()
    return { over }
  })
  await over
  assert.equal((await read()).status, 200)
})

test('an export reads a bounded number of pages, also if nothing matches, and says that there is more', async () => {
  const { store } = await openShop()
  const paymentId = await creditByHand(console.farthing, (await store.create()).id)
  await ctx.db.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, nonce, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time, included_at)
     select network, block_hash, 1000 + i, 'pay_00' || lpad(i::text, 26, '0'), block_number, block_time, transaction_hash,
       1000 + i, asset, payer, nonce, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time, included_at
     from credits, generate_series(1, 500) i where payment_id = $1`,
    [paymentId],
  )
  const nothing = { search: null, status: null, disposition: null, network: null, most: null, cursor: null }
  const query: ListQuery = { ...nothing, others: [], show: 'money', least: '1000000', from: null, to: null }
  const linesOf = async (readsMax: number) => {
    let text = ''
    for await (const rows of exportRows(ctx, store.store.id, 'UTC', query, readsMax)) text += rows
    return text.split('\r\n').slice(1, -1)
  }
  assert.deepEqual(await linesOf(2), ['The list goes on. Choose a shorter time.'])
  assert.deepEqual(await linesOf(100), [])
})

test('no text in an export is a formula, whatever a spreadsheet takes for the end of a cell', async () => {
  const { store, read } = await openShop()
  const formula = '=cmd|calc'
  const hostile = [
    ...['=', '+', '-', '@', '\uff1d', '\uff0b', '\uff0d', '\uff20'].map((sign) => `${sign}cmd`),
    ...[';', ',', '|', '; '].map((end) => `1001${end}${formula}`),
    ...['"', '""', '",'].map((quotes) => `1001${quotes}${formula}`),
  ]
  for (const orderId of hostile) await store.create({ orderId, description: `${orderId} again` })
  const csv = await (await read()).text()
  const cells = csv.split(/[;,|\t\r\n"]/).map((cell) => cell.trim())
  const formulas = cells.filter((cell) => /^[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(cell))
  // A quote inside a quoted cell is doubled, so a formula after one is still inside.
  assert.deepEqual(
    formulas.filter((cell) => !csv.includes(`""${cell}`)),
    [],
  )
  assert.equal(csv.trim().split('\r\n').length, hostile.length + 1)
})
