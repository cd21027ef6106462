/** Amounts that are reserved for a single checkout. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { openDatabase } from '../../../src/database/db.ts'
import { openRails } from '../../../src/payments/rails.ts'
import {
  freeAmounts,
  heldMax,
  insertReserved,
  reserveTransfer,
  suffixMax,
} from '../../../src/payments/transfers/reserve.ts'
import { openNeighbour, openTestApp } from '../../support/app.ts'
import { atEnd } from '../../support/at-end.ts'
import { openStore, wallets } from '../../support/store.ts'
import { until } from '../../support/until.ts'
import { ledTo, post } from './support/hand-transfers.ts'

const farthing = await openTestApp({ NETWORKS: 'BASE_SEPOLIA' })
const { db } = farthing.ctx
const neighbour = await openNeighbour(farthing)
/** Connections of another process: a statement that is blocked there holds up none of ours. */
const elsewhere = openDatabase({ url: farthing.databaseUrl, connections: 4, name: 'elsewhere' })
atEnd(() => elsewhere.close())
const network = 'eip155:84532'
await db.query(`insert into followers (network, head_number, head_time) values ($1, 100, clock())`, [network])
// No follower runs: the head stays fresh for as long as the tests take.
await setHeadAge(-600)
const shops = await Promise.all(wallets.map((evmWallet) => openStore(farthing, { mode: 'test', evmWallet })))
const [shop, other] = shops
assert(shop && other)

async function setHeadAge(seconds: number): Promise<void> {
  await db.query('update followers set head_seen_at = clock() - make_interval(secs => $1)', [seconds])
}

async function held(checkoutId: string): Promise<{ amount: bigint; after_block: string } | undefined> {
  const [row] = await db.query<{ amount: string; after_block: string }>(
    'select amount, after_block from reserved_amounts where checkout_id = $1',
    [checkoutId],
  )
  return row && { ...row, amount: BigInt(row.amount) }
}

async function isAnyBlocked(): Promise<boolean> {
  const blocked = await db.query(
    "select 1 as one from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  )
  return blocked.length > 0
}

async function forget(): Promise<void> {
  await db.query('delete from reserved_amounts')
}

async function reserve(checkoutId: string, fields: Record<string, string> = {}): Promise<string> {
  return ledTo(await post(farthing, `${checkoutId}/transfer`, fields))
}

test('two checkouts never hold the same amount at the same address, however many requests arrive at several processes', async () => {
  const prices = ['1.00', '1.00', '1.000001', '1.005', '1.0099']
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ price: fc.nat(prices.length - 1), shop: fc.nat(1), twice: fc.boolean() }), {
        minLength: 2,
        maxLength: 40,
      }),
      async (asked) => {
        await forget()
        const ids = await Promise.all(
          asked.map(async ({ price, shop: of }) => {
            const { id } = await (of === 0 ? shop : other).create({ priceAmount: prices[price] ?? '1' })
            return id
          }),
        )
        const forms = asked.flatMap(({ twice }, i) => (twice ? [ids[i], ids[i]] : [ids[i]]))
        const led = await Promise.all(
          forms.map(async (id, i) => {
            const request = i % 2 === 0 ? farthing : { request: neighbour.inject.bind(neighbour) }
            return ledTo(await post(request as typeof farthing, `${id}/transfer`))
          }),
        )
        assert.deepEqual([...new Set(led)], ['?way=send'])
        const rows = await db.query<{ pay_to: string; amount: string; checkout_id: string }>(
          'select pay_to, amount, checkout_id from reserved_amounts',
        )
        assert.equal(rows.length, ids.length)
        assert.equal(new Set(rows.map(({ pay_to, amount }) => `${pay_to} ${amount}`)).size, rows.length)
        for (const [i, { price }] of asked.entries()) {
          const units = BigInt(Math.round(Number(prices[price]) * 1_000_000))
          const { amount } = rows.find(({ checkout_id }) => checkout_id === ids[i]) ?? { amount: '0' }
          assert(BigInt(amount) > units && BigInt(amount) <= units + BigInt(suffixMax), amount)
        }
      },
    ),
    { numRuns: 12 },
  )
})

test('when many checkouts want the same few amounts at once, each amount goes to exactly one', async () => {
  await forget()
  const made = await Promise.all(Array.from({ length: 30 }, () => shop.create({ priceAmount: '5.00' })))
  const limits = { range: BigInt(suffixMax), cent: 10_000n, heldMax, headAgeSecondsMax: 30 }
  const wanted = { network, asset: '0x0a', payTo: '0x0b', price: 5_000_000n }
  // One asks while another's reservation is not committed yet: it does not see it, so only the index can refuse it.
  const [first, second] = [await shop.create(), await shop.create()]
  let isRefused: Promise<boolean> | null = null
  await db.transaction(async (tx) => {
    const inside = { ...db, query: tx.query }
    assert(await insertReserved(inside, { ...wanted, checkoutId: first.id }, [9n], limits))
    const asking = insertReserved(elsewhere, { ...wanted, checkoutId: second.id }, [9n], limits)
    isRefused = asking.then((isReserved) => !isReserved)
    await Promise.race([asking, until('it waits for the first', isAnyBlocked)])
  })
  assert.equal(await isRefused, true, 'the same amount was reserved twice')
  await forget()
  const got = await Promise.all(
    made.map(({ id }) => insertReserved(db, { ...wanted, checkoutId: id }, [1n, 2n, 3n], limits)),
  )
  // A checkout that loses a race for an amount gets no, and asks again.
  for (let round = 0; round < 3; round++)
    for (const [i, { id }] of made.entries())
      got[i] ||= await insertReserved(db, { ...wanted, checkoutId: id }, [1n, 2n, 3n], limits)
  assert.equal(got.filter(Boolean).length, 3)
  const rows = await db.query<{ amount: string }>('select amount from reserved_amounts order by amount')
  assert.deepEqual(
    rows.map(({ amount }) => amount),
    ['5000001', '5000002', '5000003'],
  )
})

test('a second request keeps the amount', async () => {
  const { id } = await shop.create()
  assert.equal(await reserve(id), '?way=send')
  const first = await held(id)
  assert.equal(await reserve(id), '?way=send')
  assert.deepEqual(await held(id), first)
  assert.equal(first?.after_block, '100')
})

test('a new reservation is refused near a price where too many amounts were just reserved, and only there', async () => {
  await forget()
  const wanted = {
    network,
    asset: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
    payTo: wallets[2].toLowerCase(),
    price: 7_000_000n,
  }
  const rails = openRails(farthing.ctx)
  const third = shops[2]
  assert(third)
  const outcomes: string[] = []
  for (let at = 0; at < heldMax.recent + 20; at += 26) {
    const made = await Promise.all(Array.from({ length: 26 }, () => third.create({ priceAmount: '7.00' })))
    outcomes.push(
      ...(await Promise.all(
        made.map(({ id }) =>
          reserveTransfer(farthing.ctx, rails.get(network), { ...wanted, checkoutId: id }),
        ),
      )),
    )
  }
  const reserved = outcomes.filter((outcome) => outcome === 'reserved').length
  // Concurrent requests see the same count.
  assert(reserved >= heldMax.recent && reserved < heldMax.recent + 26, String(reserved))
  assert(outcomes.every((outcome) => outcome === 'reserved' || outcome === 'crowded'))
  const late = await third.create({ priceAmount: '7.00' })
  assert.equal(await reserve(late.id), '?notice=crowded')
  assert.equal(await held(late.id), undefined)
  const elsewhere = await third.create({ priceAmount: '7.02' })
  assert.equal(await reserve(elsewhere.id), '?way=send')
  const otherWallet = await shop.create({ priceAmount: '7.00' })
  assert.equal(await reserve(otherWallet.id), '?way=send')
  // Another store that has the same wallet is not affected.
  const sharing = await openStore(farthing, { mode: 'test', evmWallet: wallets[2] })
  const theirs = await sharing.create({ priceAmount: '7.00' })
  assert.equal(await reserve(theirs.id), '?way=send')
  // Those who reserved an hour ago keep their amounts, but no longer keep others from paying.
  await db.query("update reserved_amounts set reserved_at = reserved_at - interval '1 hour'")
  assert.equal(await reserve(late.id), '?way=send')
})

test('ended checkouts keep nobody from paying, and give up their amounts only when half of all are held', async () => {
  await forget()
  const model = await shop.create({ priceAmount: '8.00' })
  assert.equal(await reserve(model.id), '?way=send')
  // As if a stranger had opened this many orders, reserved an amount for each, and left.
  const leave = async (count: number, first: number) =>
    await db.query(
      `with made as (
         insert into checkouts select (json_populate_record(c, json_build_object('id', 'ch_left' || i,
           'status', 'CANCELED'))).* from checkouts c, generate_series($2::integer, $2 + $3 - 1) i where c.id = $1
         returning id
       )
       insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at, cools_until)
       select made.id, r.network, r.asset, r.pay_to, 8000000 + substr(made.id, 8)::integer, r.after_block, clock(),
         clock() + make_interval(secs => substr(made.id, 8)::integer)
       from made, reserved_amounts r where r.checkout_id = $1 on conflict do nothing`,
      [model.id, first, count],
    )
  const left = async () => {
    const rows = await db.query<{ id: string }>(
      `select checkout_id as id from reserved_amounts where freed_at is not null order by cools_until`,
    )
    return rows.map(({ id }) => id)
  }
  await leave(heldMax.recent + 10, 1)
  const next = await shop.create({ priceAmount: '8.00' })
  assert.equal(await reserve(next.id), '?way=send')
  assert.deepEqual(await left(), [])
  await leave(heldMax.all - heldMax.recent - 10, heldMax.recent + 11)
  const last = await shop.create({ priceAmount: '8.00' })
  assert.equal(await reserve(last.id), '?way=send')
  const freed = await left()
  assert.equal(freed.length, 100)
  assert.deepEqual(
    [freed[0], freed.at(-1)].map((id) => Number.parseInt(id?.slice(7) ?? '', 10) <= 101),
    [true, true],
  )
  assert.equal(await reserve(model.id), '?way=send')
})

test('checkouts of links take half of the amounts near a price, and the store’s own are not kept from the rest', async () => {
  await forget()
  const until = new Date(Date.now() + 86_400_000).toISOString()
  const asked = { title: 'Seats', kind: 'many', priceAmount: '11.00', priceCurrency: 'USD', until }
  const link = (await shop.call('POST', '/api/v1/links', asked)).json<{ id: string }>().id
  const byLink = async () => {
    const { id } = await shop.create({ priceAmount: '11.00' })
    await db.query('update checkouts set link_id = $2 where id = $1', [id, link])
    return id
  }
  const model = await byLink()
  assert.equal(await reserve(model), '?way=send')
  // As if strangers had opened the link, and each had reserved an amount.
  await db.query(
    `with made as (
       insert into checkouts select (json_populate_record(c, json_build_object('id', 'ch_link' || i))).*
       from checkouts c, generate_series(1, $2::integer) i where c.id = $1
       returning id
     )
     insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at)
     select made.id, r.network, r.asset, r.pay_to, 11000000 + substr(made.id, 8)::integer, r.after_block, clock()
     from made, reserved_amounts r where r.checkout_id = $1 on conflict do nothing`,
    [model, heldMax.recent / 2],
  )
  const late = await byLink()
  assert.equal(await reserve(late), '?notice=crowded')
  for (let i = 0; i < 3; i++)
    assert.equal(await reserve((await shop.create({ priceAmount: '11.00' })).id), '?way=send')
  await db.query("update reserved_amounts set reserved_at = reserved_at - interval '1 hour'")
  assert.equal(await reserve(late), '?way=send')
})

test('one client address reserves twenty amounts an hour, IPv6 by /64, and is then asked to sign', async () => {
  const made = await Promise.all(Array.from({ length: 23 }, () => other.create({ priceAmount: '9.00' })))
  const from = async (id: string | undefined, address: string) =>
    ledTo(await post(farthing, `${id}/transfer`, {}, {}, address))
  farthing.clock.now = new Date()
  for (const [i, { id }] of made.slice(0, 20).entries())
    assert.equal(await from(id, `2001:db8:9::${i}`), '?way=send')
  const [, second] = made
  assert.equal(await from(made[20]?.id, '2001:db8:9::ffff'), '?notice=crowded')
  assert.equal(await from(second?.id, '2001:db8:9::1'), '?way=send', 'showing an amount again counts')
  assert.equal(await from(made[21]?.id, '2001:db8:a::1'), '?way=send')
  farthing.clock.now = new Date(farthing.clock.now.getTime() + 180_000)
  assert.equal(await from(made[20]?.id, '2001:db8:9::ffff'), '?way=send')
  assert.equal(await from(made[22]?.id, '2001:db8:9::ffff'), '?notice=crowded')
  farthing.clock.now = null
})

test('an amount is held while its checkout lives and for two days afterwards, then freed', async () => {
  await forget()
  const { id } = await shop.create()
  await reserve(id)
  const isHeld = async () =>
    (await db.query('select 1 as one from reserved_amounts where freed_at is null')).length === 1
  const pass = async (hours: number) =>
    await db.query(
      'update reserved_amounts set cools_until = cools_until - make_interval(hours => $1), reserved_at = reserved_at - make_interval(hours => $1)',
      [hours],
    )
  await pass(1_000)
  await freeAmounts(farthing.ctx)
  assert(await isHeld(), 'freed while OPEN')
  await shop.call('POST', `/api/v1/checkouts/${id}/cancel`)
  await freeAmounts(farthing.ctx)
  await pass(47)
  await freeAmounts(farthing.ctx)
  assert(await isHeld(), 'freed while cooling')
  // Alive again: a payment that the chain took back may be repeated with the same amount.
  await db.query("update checkouts set status = 'PROCESSING' where id = $1", [id])
  await freeAmounts(farthing.ctx)
  await db.query("update checkouts set status = 'CANCELED' where id = $1", [id])
  await freeAmounts(farthing.ctx)
  await pass(47)
  await freeAmounts(farthing.ctx)
  assert(await isHeld(), 'freed while cooling again')
  await pass(2)
  await freeAmounts(farthing.ctx)
  assert(!(await isHeld()), 'still held after two days')
})

test('a payment in progress, a closed checkout or a network that is not followed is refused with the reason', async () => {
  const made = await Promise.all(Array.from({ length: 5 }, () => shop.create()))
  const [processing, canceled, expired, open, none] = made.map(({ id }) => id)
  assert(processing && canceled && expired && open && none)
  await db.query("update checkouts set status = 'PROCESSING' where id = $1", [processing])
  await db.query("update checkouts set status = 'CANCELED' where id = $1", [canceled])
  await db.query(
    `update checkouts set created_at = clock() - interval '1 day', expires_at = clock() where id = $1`,
    [expired],
  )
  assert.equal(await reserve(processing), '?notice=in_progress')
  assert.equal(await reserve(canceled), '?notice=closed')
  assert.equal(await reserve(expired), '?notice=closed')
  assert.equal(await reserve(open, { network: 'eip155:1' }), '?notice=unavailable')
  assert.equal(await reserve(open, { network }), '?way=send')
  await setHeadAge(31)
  assert.equal(await reserve(none), '?notice=unavailable')
  await setHeadAge(-600)
  assert.equal(await reserve(none), '?way=send')
  for (const id of [processing, canceled, expired]) assert.equal(await held(id), undefined)
})

test('no other site can submit the forms; a browser that hides its origin can', async () => {
  const { id } = await shop.create()
  const send = async (headers: Record<string, string>) =>
    (await post(farthing, `${id}/transfer`, {}, headers)).statusCode
  assert.equal(await send({ 'sec-fetch-site': 'cross-site' }), 403)
  assert.equal(await send({ 'sec-fetch-site': 'same-site' }), 403)
  assert.equal(await send({ origin: 'https://evil.example' }), 403)
  assert.equal(await held(id), undefined)
  assert.equal(await send({ 'sec-fetch-site': 'same-origin', origin: 'null' }), 303)
  assert.equal(await send({ origin: 'https://pay.farthing.example' }), 303)
  assert.equal(await send({ origin: 'null' }), 303)
  assert(await held(id))
})

test('forms that are too large, of another content type or for an unknown checkout are refused', async () => {
  const { id } = await shop.create()
  const none = `ch_00${'0'.repeat(26)}`
  assert.equal((await post(farthing, `${none}/transfer`)).statusCode, 404)
  assert.equal((await post(farthing, `${none}/transaction`, { hash: 'x' })).statusCode, 404)
  assert.equal((await post(farthing, `x/transfer`)).statusCode, 404)
  const json = { 'content-type': 'application/json' }
  assert.equal((await post(farthing, `${id}/transfer`, {}, json)).statusCode, 415)
  assert.equal((await post(farthing, `${id}/transfer`, { network: 'x'.repeat(2_000) })).statusCode, 413)
})
