/** AddressRequest links as buyers, strangers with the link, and other sites use them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { confirmAddress, judgeNamed } from '../../../src/refunds/address-requests/confirm.ts'
import { createAddressRequest } from '../../../src/refunds/address-requests/create.ts'
import { cancelRefund } from '../../../src/refunds/cancel.ts'
import { readRefund } from '../../../src/refunds/read.ts'
import {
  assertRefuses,
  key,
  member,
  proveWallets,
  receiveByHand,
  refund,
} from '../../refunds/support/refunds.ts'
import { openTestApp } from '../../support/app.ts'
import { openStore, wallets } from '../../support/store.ts'
import { codeIn, openVisitor, stateIn } from './support/visitor.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const shop = await openStore(farthing)
const storeId = shop.store.id
await proveWallets(farthing, storeId)
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const address = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const other = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'

/** Each at an address of its own: naming is limited per address. */
let visitors = 0

/** A refund whose recipient nobody knows, and its link. */
async function ask() {
  const paymentId = await receiveByHand(farthing, { asset: usdc, payTo: wallets[0] })
  const { id } = await refund(farthing, storeId, paymentId, {}, key)
  const { url } = await createAddressRequest(ctx, storeId, key, id)
  return {
    id,
    url,
    token: url.split('/').at(-1) ?? '',
    visitor: openVisitor(farthing, `192.0.2.${++visitors}`),
  }
}

const addressRequestOf = async (id: string) => (await readRefund(ctx, storeId, id)).addressRequest
const confirm = async (id: string, code: string) =>
  await confirmAddress(
    ctx,
    storeId,
    id,
    { judged: await judgeNamed(ctx, storeId, id), code, actor: member },
    ctx.now(),
  )

test('a buyer opens the link, names an address once, and the store confirms it with the code', async () => {
  const { id, url, visitor } = await ask()
  assert.match(url, /^https:\/\/pay\.farthing\.example\/c\/refund\/00_[\w-]{43}$/)
  const page = await visitor.open(url)
  assert.equal(stateIn(page), 'open')
  assert.match(page.body, /12\.50/)
  const named = await visitor.name(`  ${address}\n`)
  assert.equal(stateIn(named), 'named')
  const code = codeIn(named) ?? assert.fail('the page shows no code')
  assert.deepEqual(await addressRequestOf(id), {
    status: 'NAMED',
    expiresAt: (await addressRequestOf(id))?.expiresAt,
    address,
    code,
  })
  const before = await readRefund(ctx, storeId, id)
  assert.equal(before.recipient, null, 'naming moves nothing')

  await assertRefuses(confirm(id, 'AAAA-AAAA'), 'invalid_request', /not the code/)
  await assertRefuses(
    confirmAddress(
      ctx,
      storeId,
      id,
      { judged: await judgeNamed(ctx, storeId, id), code, actor: key },
      ctx.now(),
    ),
    'recipient_needs_member',
  )
  const confirmed = await confirm(id, ` ${code.replace('-', ' ').toLowerCase()}`)
  assert.equal(confirmed.recipient, address)
  assert.equal(confirmed.addressRequest?.status, 'CONFIRMED')
  assert.equal((await confirm(id, code)).recipient, address, 'confirming twice is confirming once')
  assert.equal(stateIn(await visitor.open(url)), 'confirmed')
  const told = (await shop.events()).filter(({ type }) => type === 'refund.address_updated')
  assert.deepEqual(
    told.map(({ actor, data }) => [
      actor?.type ?? null,
      'refund' in data && data.refund.addressRequest?.status,
    ]),
    [
      [null, 'NAMED'],
      ['member', 'CONFIRMED'],
    ],
  )
})

test('the token leaves the URL at once, no page sends a referrer, and the database keeps only its hash', async () => {
  const { id, token, visitor } = await ask()
  const answer = await visitor.request('GET', `/c/refund/${token}`)
  assert.equal(answer.statusCode, 303)
  assert.equal(answer.headers.location, `/c/refund/${id}`)
  assert.equal(answer.headers['referrer-policy'], 'no-referrer')
  assert.equal(answer.headers['cache-control'], 'no-store')
  const [cookie = ''] = [answer.headers['set-cookie'] ?? []].flat()
  assert.match(
    cookie,
    /^__Host-address-request-rf_\w+=[\w-]{43}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure; /,
  )
  const page = await visitor.follow(answer)
  assert.equal(page.headers['referrer-policy'], 'no-referrer')
  const secret = token.slice('00_'.length)
  assert(!page.body.includes(secret) && !page.body.includes('<script'))
  const rows = await ctx.db.query<{ row: string }>('select m::text as row from address_requests m')
  assert(rows.length > 0 && !rows.some(({ row }) => row.includes(secret)))
})

test('whoever opens a used link in another browser is told so and sees neither address nor code', async () => {
  const { id, url, visitor: thief } = await ask()
  const buyer = openVisitor(farthing, '198.51.100.200')
  assert.equal(stateIn(await buyer.open(url)), 'open')
  await thief.open(url)
  const taken = await thief.name(other)
  const code = codeIn(taken) ?? assert.fail()
  for (const page of [await buyer.name(address), await buyer.open(url)]) {
    assert.equal(stateIn(page), 'used')
    assert(!page.body.includes(code) && !page.body.toLowerCase().includes(other.slice(2, 8).toLowerCase()))
    assert.match(page.body, /If that wasn’t you, tell/)
  }
  // The buyer has no code to give, and tells the store, which makes another link.
  const { url: second } = await createAddressRequest(ctx, storeId, member, id)
  assert.equal((await thief.open(url)).statusCode, 404, 'the link before does not work any more')
  assert.equal(stateIn(await buyer.open(second)), 'open')
  const right = await buyer.name(address)
  await assertRefuses(confirm(id, code), 'invalid_request', /not the code/)
  assert.equal((await confirm(id, codeIn(right) ?? '')).recipient, address)
  await assertRefuses(
    createAddressRequest(ctx, storeId, member, id),
    'address_request_closed',
    /recipient already/,
  )
})

test('of twenty browsers that name an address at the same moment one is taken', async () => {
  const { id, url } = await ask()
  const rivals = Array.from({ length: 20 }, (_, i) => openVisitor(farthing, `198.51.100.${i}`))
  await Promise.all(rivals.map((rival) => rival.open(url)))
  const pages = await Promise.all(rivals.map((rival) => rival.name(address)))
  assert.deepEqual(pages.map(stateIn).sort(), ['named', ...Array(19).fill('used')])
  const events = (await shop.events()).filter(
    ({ type, data }) => type === 'refund.address_updated' && 'refund' in data && data.refund.id === id,
  )
  assert.equal(events.length, 1)
})

test('a form that is sent again, or with another address, changes nothing', async () => {
  const { id, url, visitor } = await ask()
  await visitor.open(url)
  const { action, payload } = visitor.fill(address)
  const first = await visitor.follow(await visitor.request('POST', action, payload))
  const changed = payload.replace(address, other)
  for (const again of [payload, changed]) {
    const page = await visitor.follow(await visitor.request('POST', action, again))
    assert.equal(codeIn(page), codeIn(first))
  }
  assert.equal((await addressRequestOf(id))?.address, address)
})

test('a wrong, shortened or foreign token opens nothing, and the page’s URL alone opens nothing either', async () => {
  const { id, token, visitor } = await ask()
  const elsewhere = await ask()
  const flipped = token.replace(/.$/, (c) => (c === 'A' ? 'E' : 'A'))
  for (const wrong of [flipped, token.slice(1), `${token}A`, 'x', id.replace(/.$/, '_')])
    assert.equal((await visitor.request('GET', `/c/refund/${wrong}`)).statusCode, 404, wrong)
  assert.equal((await visitor.request('GET', `/c/refund/${token.replace('00_', '01_')}`)).statusCode, 421)
  const none = await visitor.request('GET', `/c/refund/${id}`)
  assert.equal(none.statusCode, 403)
  assert.match(none.body, /Please open your link again/)
  // The token of another refund in this one's cookie.
  await visitor.open(elsewhere.url)
  const [stolen = ''] = visitor.cookies.values()
  visitor.cookies.set(`__Host-address-request-${id}`, stolen)
  assert.equal((await visitor.request('GET', `/c/refund/${id}`)).statusCode, 404)
})

test('another site cannot name an address for a buyer who has the link open', async () => {
  const { id, url, visitor } = await ask()
  await visitor.open(url)
  const { action, payload } = visitor.fill(other)
  for (const site of ['cross-site', 'same-site']) {
    const answer = await visitor.request('POST', action, payload, { 'sec-fetch-site': site })
    assert.equal(answer.statusCode, 403)
  }
  const forged = await visitor.request(
    'POST',
    action,
    payload.replace(/formToken=.{16}/, 'formToken=AAAAAAAAAAAAAAAA'),
  )
  assert.equal(forged.statusCode, 403)
  assert.equal((await addressRequestOf(id))?.status, 'OPEN')
})

test('addresses that cannot receive are refused in words, and the buyer can correct them', async () => {
  const { url, visitor } = await ask()
  await visitor.open(url)
  for (const [text, words] of [
    ['', /Enter the address/],
    ['0x12', /isn’t the address of a wallet on/],
    [`${address.slice(0, -1)}7`, /isn’t the address of a wallet on/],
    [`0x${'0'.repeat(40)}`, /isn’t the address of a wallet on/],
    [usdc, /isn’t the address of a wallet on/],
    ['"><script>', /isn’t the address of a wallet on/],
    [wallets[0], /can’t receive your refund/],
  ] as const) {
    farthing.clock.now = new Date(ctx.now().getTime() + 1_000)
    const page = await visitor.name(text)
    assert.equal(page.statusCode, 422, text)
    assert.match(page.body, words, text)
    assert(!page.body.includes('<script'))
  }
  farthing.clock.now = null
  assert.equal(stateIn(await visitor.name(address)), 'named')
})

test('an expired link takes no address, a remade one lives on, and a canceled refund says so', async () => {
  const { id, url, visitor } = await ask()
  await visitor.open(url)
  const form = visitor.fill(address)
  await ctx.db.query(
    "update address_requests set expires_at = clock() - interval '1 second' where refund_id = $1",
    [id],
  )
  const page = await visitor.follow(await visitor.request('POST', form.action, form.payload))
  assert.equal(stateIn(page), 'expired')
  assert.equal((await addressRequestOf(id))?.status, 'EXPIRED')
  const { url: second, expiresAt } = await createAddressRequest(ctx, storeId, member, id)
  assert(Math.abs(Date.parse(expiresAt) - Date.now() - 14 * 86_400_000) < 60_000)
  assert.equal(stateIn(await visitor.open(second)), 'open')
  const open = visitor.fill(address)
  await cancelRefund(ctx, storeId, member, id, ctx.now())
  const canceled = await visitor.follow(await visitor.request('POST', open.action, open.payload))
  assert.equal(stateIn(canceled), 'canceled')
  assert.equal((await addressRequestOf(id))?.address, undefined)
  await assertRefuses(createAddressRequest(ctx, storeId, member, id), 'address_request_closed', /CANCELED/)
})

test('a link cannot be made or confirmed for another store’s refund', async () => {
  const { id, url, visitor } = await ask()
  await visitor.open(url)
  const code = codeIn(await visitor.name(address)) ?? ''
  const neighbour = await openStore(farthing)
  await assertRefuses(createAddressRequest(ctx, neighbour.store.id, member, id), 'not_found')
  await assertRefuses(judgeNamed(ctx, neighbour.store.id, id), 'not_found')
  await assertRefuses(
    confirmAddress(
      ctx,
      neighbour.store.id,
      id,
      { judged: address.toLowerCase(), code, actor: member },
      ctx.now(),
    ),
    'not_found',
  )
})

test('what was fine when it was named is judged again when it is confirmed', async () => {
  const { id, url, visitor } = await ask()
  await visitor.open(url)
  const code = codeIn(await visitor.name(wallets[1])) ?? ''
  await shop.call('POST', `/api/v1/stores/${storeId}/wallets/evm`, {
    walletAddress: wallets[1],
    custodialType: 'NON_CUSTODIAL',
  })
  await assertRefuses(confirm(id, code), 'invalid_request', /wallet of the store itself/)
})

test('one refund’s form is tried at most twenty times an hour, and a browser keeps at most ten cookies', async () => {
  const { url, visitor } = await ask()
  await visitor.open(url)
  const answers: number[] = []
  for (let i = 0; i < 25; i++) {
    const guest = openVisitor(farthing, `203.0.113.${i}`)
    for (const [name, value] of visitor.cookies) guest.cookies.set(name, value)
    await guest.open(url)
    answers.push((await guest.name('0x12')).statusCode)
  }
  assert.deepEqual([...new Set(answers)], [422, 503])
  assert(answers.filter((status) => status === 422).length <= 21)
  for (let i = 0; i < 12; i++) await visitor.open((await ask()).url)
  assert.equal(visitor.cookies.size, 10)
})
