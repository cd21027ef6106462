import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findChangedPages, readView } from '../../../src/checkouts/view.ts'
import { languages } from '../../../src/http/page/languages/choose.ts'
import { openTestApp } from '../../support/app.ts'
import { completeByHand, payer, refundByHand, setStatus } from '../../support/by-hand.ts'
import { openStore } from '../../support/store.ts'

const farthing = await openTestApp()
const shop = await openStore(farthing)
const short = `${payer.slice(0, 6)}…${payer.slice(-4)}`

/** What a buyer reads: the page without its markup. */
async function read(id: string, lang = 'en'): Promise<string> {
  const { body } = await farthing.request({
    url: `/c/${id}?lang=${lang}`,
    headers: { accept: 'text/html' },
  })
  return body
    .replace(/<(style|script)\b.*?<\/\1>/gs, '')
    .replace(/<[^>]*>/g, '')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
}

async function pay(): Promise<string> {
  const { id } = await shop.create({ priceAmount: '48.00', priceCurrency: 'USD' })
  await completeByHand(farthing, id)
  return id
}

test('a receipt says in every language how much went back, where to and in which transaction', async () => {
  const id = await pay()
  const hash = (await refundByHand(farthing, id, 'COMPLETED', 25)) ?? ''
  const reason = '<b>One mug</b> was broken'
  await farthing.ctx.db.query('update refunds set reason = $2 where checkout_id = $1', [id, reason])
  for (const { tag, texts } of languages) {
    const page = await read(id, tag)
    assert(page.includes(texts.refund) && page.includes(reason), tag)
    assert(page.includes('12.00 USDC') && page.includes(short) && page.includes(hash), tag)
    assert(page.includes(texts.refunds.part.replace('{store}', 'Shop')), tag)
  }
})

test('a payment is called returned once all of it is in a block, and not while it is on its way or only declared', async () => {
  const id = await pay()
  await refundByHand(farthing, id, 'REQUESTED', 25)
  assert.doesNotMatch(await read(id), /Refund/)
  await refundByHand(farthing, id, 'SENT', 25)
  await refundByHand(farthing, id, 'DECLARED', 50)
  const before = await read(id)
  assert.match(before, /Payment received/)
  assert.match(before, /Shop has been paid/)
  assert(before.includes(`12.00 USDC is on its way to ${short}.`))
  assert.match(before, /The store says it has returned 24\.00 USDC\./)
  await farthing.ctx.db.query("update refunds set way = 'self-sent' where checkout_id = $1", [id])
  assert((await read(id)).includes(`The store says it has sent 12.00 USDC to ${short}.`))
  await farthing.ctx.db.query("update refunds set status = 'COMPLETED' where checkout_id = $1", [id])
  const after = await read(id)
  assert.match(after, /Payment returned/)
  assert.doesNotMatch(after, /Payment received|on its way|The store says/)
})

test('a transfer that went back no longer waits for the store, and the checkout can be paid again', async () => {
  const id = await pay()
  await setStatus(farthing, id, 'OPEN')
  await farthing.ctx.db.query("update credits set disposition = 'underpaid' where checkout_id = $1", [id])
  assert.match(await read(id), /They will decide/)
  await refundByHand(farthing, id, 'SENT', 100)
  const underway = await read(id)
  assert(underway.includes(`48.00 USDC is on its way to ${short}.`))
  assert.doesNotMatch(underway, /They will decide|How would you like to pay/)
  await farthing.ctx.db.query("update refunds set status = 'COMPLETED' where checkout_id = $1", [id])
  const back = await read(id)
  assert(back.includes(`48.00 USDC was returned to ${short}.`))
  assert.match(back, /How would you like to pay/)
})

test('a dismissed payment is mentioned again only if it went back, and by the store that it belongs to', async () => {
  const id = await pay()
  await setStatus(farthing, id, 'EXPIRED')
  await farthing.ctx.db.query(
    "update credits set disposition = 'late', dismissed_at = clock() where checkout_id = $1",
    [id],
  )
  assert.deepEqual((await readView(farthing.ctx, id))?.notes, [])
  await refundByHand(farthing, id, 'COMPLETED', 100)
  assert((await read(id)).includes(`48.00 USDC was returned to ${short}.`))
  const other = await openStore(farthing)
  await farthing.ctx.db.query('update refunds set store_id = $2 where checkout_id = $1', [id, other.id])
  assert.deepEqual((await readView(farthing.ctx, id))?.notes, [])
})

test('an open page hears of each step of a refund', async () => {
  const id = await pay()
  const { db } = farthing.ctx
  const look = async () => {
    const answer = await farthing.request({ url: `/c/${id}/status` })
    const [changed] = await findChangedPages(db, [{ checkoutId: id, stamp: '' }])
    return { digest: answer.json<{ digest: string }>().digest, stamp: changed?.stamp }
  }
  const seen = [await look()]
  await refundByHand(farthing, id, 'SENT', 100)
  seen.push(await look())
  await db.query("update refunds set status = 'COMPLETED', version = version + 1 where checkout_id = $1", [
    id,
  ])
  seen.push(await look())
  for (const what of ['digest', 'stamp'] as const)
    assert.equal(new Set(seen.map((one) => one[what])).size, 3, what)
})
