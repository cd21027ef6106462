/** The screen of a link, and the list of links. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Link } from '@farthing/sdk'
import { completeByHand, creditByHand, setStatus } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { makeLink, openBuyer } from '../links/support/buyer.ts'
import { newInvoice, newLink } from '../support/new-link.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole()
const { farthing } = console
const { ctx } = farthing

async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  const base = `/stores/${store.id}/links`
  const shown = async ({ id }: Pick<Link, 'id'>) => {
    const { body } = await owner.browser.get(`${base}/${id}`)
    return [/<p class="state \w*">([^<]+)/.exec(body)?.[1], body.includes('<svg class="qr"')]
  }
  return { store, owner, browser: owner.browser, base, shown }
}

test('the screen has the address, its code, and ready texts to copy, share, mail and print it', async () => {
  const { store, browser, base } = await openShop()
  const link = await makeLink(store, newLink({ title: 'Two seats & a <table>' }))
  const { body } = await browser.get(`${base}/${link.id}`)
  for (const each of [
    ...[
      '$25.00',
      'Two seats &#38; a &#60;table&#62;',
      `data-copy="${link.url}"`,
      '<svg class="qr"',
      'data-live=',
    ],
    ...[`data-share="${link.url}"`, 'data-print', 'Nobody has gone on to pay yet'],
  ])
    assert(body.includes(each), each)
  const [, mail = ''] = /href="(mailto:[^"]+)"/.exec(body) ?? []
  const { searchParams } = new URL(mail.replaceAll('&#38;', '&'))
  assert.match(searchParams.get('subject') ?? '', /: Two seats & a <table>$/)
  assert((searchParams.get('body') ?? '').includes(`\n${link.url}\n`))
  assert.match(searchParams.get('body') ?? '', /please pay US\$25\.00 for/)
})

test('the screen says what became of the link, and lists the checkouts of its buyers', async () => {
  const { store, browser, base, shown } = await openShop()
  const buyer = openBuyer(farthing.app)
  const link = await makeLink(store)
  assert.deepEqual(await shown(link), ['Open', true])
  const id = await buyer.goOn(link)
  assert((await browser.get(`${base}/${link.id}`)).body.includes(`/checkouts/${id}"`))
  await setStatus(farthing, id, 'PROCESSING')
  assert.deepEqual(await shown(link), ['Settling', true])
  await ctx.db.query('update links set paid_at = clock() where id = $1', [link.id])
  assert.deepEqual(await shown(link), ['Paid', false])
  const ended = await makeLink(store)
  await ctx.db.query("update links set until = clock() - interval '1 second' where id = $1", [ended.id])
  assert.deepEqual(await shown(ended), ['Ended', false])
  const other = await makeLink((await openShop()).store)
  for (const each of ['x', other.id, `lnk_00${'0'.repeat(26)}`])
    assert.equal((await browser.get(`${base}/${each}`)).statusCode, 404)
})

test('people know a checkout of a link by what it is for, not by the link’s id with a number; an invoice keeps its number', async () => {
  const { store, browser } = await openShop()
  const at = async (path: string) => (await browser.get(`/stores/${store.id}${path}`)).body
  const buyer = openBuyer(farthing.app)
  const link = await makeLink(store, newLink({ title: 'Roses <b> for Anna' }))
  const id = await buyer.goOn(link)
  const { body: page } = await farthing.app.inject({ url: `/pay/${id}`, headers: { accept: 'text/html' } })
  assert(page.includes('Roses &#60;b&#62; for Anna') && !page.includes(`${link.id}-1`))
  // Money without a checkout: the one that may be meant is offered, and found, by its words.
  const paymentId = await creditByHand(farthing, id)
  const found = await at(`/inbox?payment=${paymentId}&find=anna`)
  const named = /Roses &#60;b&#62; for Anna/
  for (const body of [await at('/inbox'), found]) {
    assert.match(/<label class="choice">.*?<\/label>/.exec(body)?.[0] ?? '', named)
    assert(!body.includes(`${link.id}-1`))
  }
  await browser.post(`/stores/${store.id}/inbox/accept`, { paymentId, checkoutId: id })
  const held = await at('/inbox')
  assert.match(held, /Accepted for[^.]*Roses/)
  assert(!held.includes(`${link.id}-1`))
  const [paid, refunded] = [
    await buyer.goOn(await makeLink(store)),
    await makeLink(store, newInvoice('2026-9')),
  ]
  await completeByHand(farthing, paid)
  await buyer.goOn(refunded)
  for (const path of ['', '/payments', '/payments?show=money', `/checkouts/${paid}`]) {
    const main = /<main.*<\/main>/s.exec(await at(path))?.[0] ?? ''
    assert(main.includes('Two tickets'), path)
    assert(!/>lnk_\w+-1</.test(main.replaceAll(/<dd>.*?<\/dd>/gs, '')), path)
  }
  assert.match(await at('/payments'), />2026-9</)
})

test('closing a link cancels what nobody has begun to pay, under the member’s name; others’ links stay open', async () => {
  const { store, browser, base, shown } = await openShop()
  const link = await makeLink(store)
  const id = await openBuyer(farthing.app).goOn(link)
  const closed = await browser.post(`${base}/${link.id}/close`, {})
  assert.equal(closed.headers.location, `${base}/${link.id}`)
  assert.deepEqual(await shown(link), ['Closed', false])
  assert.equal((await store.call('GET', `/api/v1/checkouts/${id}`)).json().status, 'CANCELED')
  const told = (await store.events()).find(({ type }) => type === 'link.closed')
  assert.deepEqual([told?.actor?.type, told?.actor?.name], ['member', 'Olga'])
  const other = await makeLink((await openShop()).store)
  assert.equal((await browser.post(`${base}/${other.id}/close`, {})).statusCode, 404)
})

test('the list has every kind of link, newest first, page by page; a viewer sees it and changes nothing', async () => {
  const { store, owner, browser, base } = await openShop()
  const first = await makeLink(store, newInvoice('2026-1'))
  const range = { kind: 'many', priceAmount: undefined, minAmount: '1', maxAmount: '50', title: 'Tip' }
  await makeLink(store, newLink(range))
  const { body } = await browser.get(base)
  for (const each of ['$64.74', 'US$1.00 to US$50.00', 'Many buyers', 'One buyer', 'Open'])
    assert(body.includes(each), each)
  for (let i = 0; i < 50; i++) await makeLink(store)
  const [, older = ''] = /href="([^"]+\?before=lnk_\w+)"/.exec((await browser.get(base)).body) ?? []
  assert((await browser.get(older)).body.includes(first.id))
  const viewer = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Vera', role: 'viewer' }))
  const seen = await viewer.browser.get(`${base}/${first.id}`)
  assert(seen.body.includes(first.url) && !seen.body.includes('/close"') && !seen.body.includes('/new"'))
  assert.equal((await viewer.browser.post(`${base}/${first.id}/close`, {})).statusCode, 403)
})
