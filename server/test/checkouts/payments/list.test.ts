/** How a store finds its payments, and what it notes about them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page, Payment } from '@farthing/sdk'
import { openTestApp } from '../../support/app.ts'
import { completeByHand, creditByHand, payer } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { startDeciding } from '../../support/decide.ts'
import { assertInvalid, assertProblem, openStore, type StoreClient } from '../../support/store.ts'

const farthing = await openTestApp()
startDeciding(farthing)
const open = () => openStore(farthing, { evmWallet: newPayer().address })
const other = newPayer().address

async function list(by: StoreClient, query: Record<string, string>): Promise<Page<Payment>> {
  const answer = await by.call('GET', `/api/v1/payments?${new URLSearchParams(query)}`)
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.json()
}

async function change(paymentId: string, columns: string): Promise<void> {
  await farthing.ctx.db.query(`update credits set ${columns} where payment_id = $1`, [paymentId])
}

test('payments are found by payer, transaction, network, amount and time, alone and together, and only the store’s own', async () => {
  const [shop, neighbour] = [await open(), await open()]
  const { id } = await shop.create({ priceAmount: '2' })
  const transaction = await completeByHand(farthing, id)
  const [paid] = (await list(shop, {})).data
  assert(paid)
  const strayId = await creditByHand(farthing, id)
  await change(strayId, `payer = '${other.toLowerCase()}', amount = 7`)
  await completeByHand(farthing, (await neighbour.create()).id)
  const stray = (await shop.call('GET', `/api/v1/payments/${strayId}`)).json<Payment>()
  const { network } = paid
  const found = async (query: Record<string, string>) => (await list(shop, query)).data.map((each) => each.id)
  const both = [paid.id, strayId].sort().reverse()
  const cases: [Record<string, string>, string[]][] = [
    [{ payer }, [paid.id]],
    [{ payer: other.toUpperCase().replace('0X', '0x') }, [strayId]],
    [{ payer: other, disposition: 'exact' }, []],
    [{ payer, disposition: 'exact', network, minAmount: '2000000', maxAmount: '2000000' }, [paid.id]],
    [{ transaction: transaction.toUpperCase().replace('0X', '0x') }, [paid.id]],
    [{ transaction: stray.transaction }, [strayId]],
    [{ transaction: stray.transaction, maxAmount: '6' }, []],
    [{ network }, both],
    [{ network: 'eip155:1' }, []],
    [{ maxAmount: '7' }, [strayId]],
    [{ minAmount: '8' }, [paid.id]],
    [{ disposition: 'unmatched', maxAmount: '7' }, [strayId]],
    [{ checkoutId: id, minAmount: '1' }, [paid.id]],
    [{ createdBefore: '2026-01-01T00:00:00Z' }, []],
  ]
  for (const [query, ids] of cases) assert.deepEqual(await found(query), ids, JSON.stringify(query))
  assert.deepEqual((await list(neighbour, { transaction })).data, [])
  assert.deepEqual((await list(neighbour, { payer: other })).data, [])
  assertProblem(await neighbour.call('GET', `/api/v1/payments/${paid.id}`), 404, 'not_found')
  for (const [query, pointer] of [
    ['minAmount=-1', 'minAmount'],
    ['createdFrom=yesterday', 'createdFrom'],
  ] as const)
    assertInvalid(await shop.call('GET', `/api/v1/payments?${query}`), pointer)
})

test('a page that looks through many payments ends after some, says where, and the next one goes on', async () => {
  const shop = await open()
  const { id } = await shop.create()
  const wanted = await creditByHand(farthing, id)
  await change(wanted, 'amount = 7')
  for (let i = 0; i < 3; i++) await Promise.all(Array.from({ length: 55 }, () => creditByHand(farthing, id)))
  const first = await list(shop, { maxAmount: '7' })
  assert.deepEqual(first.data, [])
  assert(first.nextCursor)
  const second = await list(shop, { maxAmount: '7', cursor: first.nextCursor })
  assert.deepEqual([second.data.map((each) => each.id), second.nextCursor], [[wanted], null])
})

test('a note says who wrote it, travels with a dismissal, and is the store’s alone', async () => {
  const shop = await open()
  const { id } = await shop.create()
  const paymentId = await creditByHand(farthing, id)
  const at = `/api/v1/payments/${paymentId}`
  const noted = (await shop.call('POST', `${at}/note`, { note: 'Ask Ana' })).json<Payment>()
  assert.equal(noted.note?.text, 'Ask Ana')
  assert.equal(noted.note.actor.type, 'key')
  await shop.call('POST', `${at}/note`, { note: 'Ask Ana' })
  const dismissed = (await shop.call('POST', `${at}/dismiss`, { note: 'Sent back' })).json<Payment>()
  assert(dismissed.dismissedAt)
  assert.equal(dismissed.note?.text, 'Sent back')
  // Without a note, a second dismissal leaves it; with another one, it is replaced.
  assert.equal((await shop.call('POST', `${at}/dismiss`)).json<Payment>().note?.text, 'Sent back')
  await shop.call('POST', `${at}/dismiss`, { note: 'Sent back on Friday' })
  const removed = (await shop.call('POST', `${at}/note`, { note: null })).json<Payment>()
  assert(!('note' in removed))
  const told = (await shop.events()).flatMap(({ type, actor, data }) =>
    'payment' in data ? [[type, actor?.type, data.payment.note?.text]] : [],
  )
  assert.deepEqual(told, [
    ['payment.noted', 'key', 'Ask Ana'],
    ['payment.dismissed', 'key', 'Sent back'],
    ['payment.noted', 'key', 'Sent back on Friday'],
    ['payment.noted', 'key', undefined],
  ])
  assertInvalid(await shop.call('POST', `${at}/note`, { note: 'x'.repeat(1_001) }), '/note')
  assertInvalid(await shop.call('POST', `${at}/dismiss`, { note: '\u0007' }), '/note')
  assertProblem(await (await open()).call('POST', `${at}/note`, { note: 'mine' }), 404, 'not_found')
})
