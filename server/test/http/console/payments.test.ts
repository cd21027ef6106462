/** The list of payments: what it shows, what it finds, what it exports, and that it is one store's alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startOfDay } from '../../../src/http/console/payments/query.ts'
import { completeByHand, creditByHand, setStatus } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole()
const { farthing } = console

async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  const base = `/stores/${store.id}`
  const read = async (path: string) => {
    const answer = await owner.browser.get(`${base}${path}`)
    assert.equal(answer.statusCode, 200, `${path}: ${answer.statusCode}`)
    return answer.body
  }
  return { store, owner, base, read }
}

test('the list shows what is owed and what came, filtered by status, kind, network, amount and day', async () => {
  const { store, read } = await openShop()
  const paid = await store.create({ orderId: 'paid-1', priceAmount: '48' })
  await completeByHand(farthing, paid.id)
  const open = await store.create({ orderId: 'open-1' })
  const strayId = await creditByHand(farthing, open.id)
  const everything = await read('/payments')
  for (const each of ['paid-1', 'open-1', 'Paid', 'Open', '$48.00', '48.00 USDC', 'data-live'])
    assert(everything.includes(each), each)
  const has = async (query: string, yes: readonly string[], no: readonly string[]) => {
    const body = await read(`/payments?${query}`)
    for (const each of yes) assert(body.includes(each), `${query} lacks ${each}`)
    for (const each of no) assert(!body.includes(each), `${query} shows ${each}`)
  }
  await has('status=COMPLETED', ['paid-1'], ['open-1'])
  await has('show=money', ['paid-1', strayId], [])
  await has('show=money&kind=unmatched', [strayId, 'Unmatched'], ['paid-1'])
  await has('show=money&kind=exact&least=48&most=48', ['paid-1'], [strayId])
  await has('show=money&least=48.01', ['Nothing matches'], ['paid-1', strayId])
  await has('show=money&network=eip155:8453', ['paid-1', strayId], [])
  await has('to=2026-01-01', ['Nothing matches'], ['paid-1'])
  await has('from=nonsense&status=x&cursor=y&show[]=z', ['paid-1', 'open-1'], [])
})

test('a page is followed by the next, until all are shown once', async () => {
  const { store, read } = await openShop()
  const made = await Promise.all(Array.from({ length: 30 }, () => store.create()))
  const met: string[] = []
  let query: string | undefined = ''
  while (query !== undefined) {
    const body: string = await read(`/payments?${query}`)
    met.push(...[...body.matchAll(/href="[^"]*\/checkouts\/(ch_\w+)"/g)].map(([, id = '']) => id))
    query = /href="[^"]*\?(cursor=ch_\w+)"/.exec(body)?.[1]
    assert(met.length <= made.length, 'it does not end')
  }
  assert.deepEqual(
    met,
    made
      .map(({ id }) => id)
      .sort()
      .reverse(),
  )
})

test('the export has exactly the rows that are shown, and no cell that a spreadsheet would run', async () => {
  const { store, owner, base } = await openShop()
  const order = '=HYPERLINK("http://evil.example","x")'
  const { id } = await store.create({
    orderId: order,
    description: '@sum, "quoted"',
    metadata: { a: '=1' },
  })
  await setStatus(farthing, (await store.create({ orderId: 'other' })).id, 'EXPIRED')
  const strayId = await creditByHand(farthing, id)
  const exported = async (query: string) => {
    const answer = await owner.browser.get(`${base}/payments/export?${query}`)
    assert.match(String(answer.headers['content-disposition']), /^attachment; filename="\w+-[\d-]+\.csv"$/)
    return answer.body.split('\r\n').slice(0, -1)
  }
  const [head, row, ...rest] = await exported('status=OPEN')
  assert.deepEqual(rest, [])
  assert.match(head ?? '', /^checkout_id,order_id,description,created_at_utc,status,/)
  assert(row?.startsWith(`${id},"'=HYPERLINK(""http://evil.example"",""x"")","'@sum, ""quoted""",`), row)
  const [, money, ...others] = await exported('show=money&kind=unmatched')
  assert.deepEqual(others, [])
  assert(money?.includes(`,${strayId},unmatched,`), money)
})

test('the line for the API has the same filters', async () => {
  const { read } = await openShop()
  const body = await read('/payments?show=money&kind=late&least=1.5&from=2026-11-01&details=shown')
  assert(
    body.includes(
      '/api/v1/payments?disposition=late&#38;minAmount=1500000&#38;createdFrom=2026-11-01T00%3A00%3A00.000Z&#38;limit=25',
    ),
    /curl[^<]*/.exec(body)?.[0],
  )
})

test('a day begins when it does in the store’s zone, also when the clocks change', () => {
  assert.equal(startOfDay('2026-11-16', 'UTC').toISOString(), '2026-11-16T00:00:00.000Z')
  assert.equal(startOfDay('2026-07-01', 'Europe/Madrid').toISOString(), '2026-06-30T22:00:00.000Z')
  assert.equal(startOfDay('2026-03-29', 'Europe/Madrid').toISOString(), '2026-03-28T23:00:00.000Z')
  assert.equal(startOfDay('2026-03-30', 'Europe/Madrid').toISOString(), '2026-03-29T22:00:00.000Z')
  assert.equal(startOfDay('2026-11-16', 'Asia/Kolkata').toISOString(), '2026-11-15T18:30:00.000Z')
})

test('a viewer sees payments; money that another store has proven is not shown', async () => {
  const { store, owner, base } = await openShop()
  const viewer = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Vera', role: 'viewer' }))
  const { id } = await store.create({ orderId: 'seen' })
  const strayId = await creditByHand(farthing, id)
  const look = async () => (await viewer.browser.get(`${base}/payments?show=money`)).body
  assert((await look()).includes(strayId))
  // Another store proves the same wallet.
  const other = await openShop()
  await farthing.ctx.db.query(
    `insert into wallets (id, store_id, family, address, custodial_type, created_at, proven_at)
     select 'wal_' || $2, $2, family, address, custodial_type, created_at, clock()
     from wallets where store_id = $1`,
    [store.id, other.store.id],
  )
  assert(!(await look()).includes(strayId))
  assert((await other.read('/payments?show=money')).includes(strayId))
})
