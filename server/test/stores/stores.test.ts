import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page, Store, UpdateStore, Wallet } from '@farthing/sdk'
import { openTestApp } from '../support/app.ts'
import {
  assertInvalid,
  assertProblem,
  openStore,
  registerWallet,
  type StoreClient,
  send,
  solanaWallets,
  wallets,
} from '../support/store.ts'

const farthing = await openTestApp()
const shop = await openStore(farthing)
const change = (by: StoreClient, body: unknown) => by.call('PATCH', `/api/v1/stores/${by.id}`, body)
const read = async (by: StoreClient) => (await by.call('GET', `/api/v1/stores/${by.id}`)).json<Store>()

// Settings

test('a new store has its name, no logo or colour, and counts payments once they are included in a block', async () => {
  const store = await read(shop)
  const { createdAt, gas, ...rest } = store
  assert.deepEqual(rest, {
    id: shop.id,
    mode: 'live',
    name: 'Shop',
    logoUrl: null,
    accentColor: null,
    supportEmail: null,
    supportUrl: null,
    legalName: null,
    legalAddress: null,
    taxId: null,
    finalityPolicy: [{ minAmount: '0', finality: 'included' }],
    timeZone: 'UTC',
    reportCurrency: 'USD',
    walletChanges: 'key',
    managerRefundLimit: '0',
    standing: 'approved',
    suspendedReason: null,
  })
  assert.equal(new Date(createdAt).toISOString(), createdAt)
  const [{ resetsAt, ...quota } = assert.fail()] = gas ?? []
  assert.deepEqual(quota, { network: 'eip155:8453', currency: 'ETH', spent: '0.00', perDay: '0.05' })
  assert.match(resetsAt, /T00:00:00.000Z$/)
})

test('a key can be used to read the store it belongs to', async () => {
  const answer = await shop.call('GET', '/api/v1/store')
  assert.equal(answer.statusCode, 200, answer.body)
  assert.deepEqual(answer.json(), await read(shop))
  assertProblem(await send(farthing.app, 'GET', '/api/v1/store'), 401, 'invalid_api_key')
})

test('a change returns the whole store, is visible at once, and leaves other fields alone', async () => {
  const seller = await openStore(farthing)
  let expected = await read(seller)
  const changes: UpdateStore[] = [
    { name: 'Café ☕' },
    { logoUrl: 'https://shop.example/logo.png' },
    { logoUrl: `data:image/png;base64,${Buffer.from('any bytes').toString('base64')}` },
    { accentColor: '#ABCDEF' },
    { finalityPolicy: [{ minAmount: '0', finality: 'safe' }] },
    { timeZone: 'Asia/Kolkata', reportCurrency: 'EUR' },
    { supportEmail: 'help+pay@shop.example', supportUrl: 'https://shop.example/help' },
    { legalName: 'Juniper & Pine Ltd', legalAddress: '4 Mill Lane\nBristol BS1 4TR', taxId: 'GB123456789' },
    { logoUrl: null, accentColor: null },
    { legalName: null, legalAddress: null, taxId: null },
    { supportEmail: null, supportUrl: null },
    { name: 'Again', accentColor: '#012345' },
  ]
  for (const body of changes) {
    const answer = await change(seller, body)
    assert.equal(answer.statusCode, 200, answer.body)
    expected = { ...expected, ...body }
    if (body.accentColor) expected = { ...expected, accentColor: body.accentColor.toLowerCase() }
    assert.deepEqual(answer.json(), expected)
    assert.deepEqual(await read(seller), expected)
  }
})

test('a request with an invalid setting is rejected and changes nothing', async () => {
  const before = await read(shop)
  const rule = (minAmount: unknown, finality: unknown = 'included') => ({ minAmount, finality })
  for (const [field, values] of Object.entries({
    name: ['', 'x'.repeat(101), 'a\nb', '\u202eevil', 7, null],
    logoUrl: [
      '',
      'x',
      'http://shop.example/logo.png',
      'javascript:alert(1)',
      'https://a@b.example',
      7,
      'data:text/html;base64,AAAA',
      'data:image/png;base64,',
      'data:image/png,x',
      `https://shop.example/${'x'.repeat(2_048)}`,
      `data:image/png;base64,${'A'.repeat(12_288)}`,
    ],
    accentColor: ['', 'red', '#abc', '#abcdefg', '#abcdeg', 'abcdef', '#abcdef00', 7],
    supportEmail: [
      ...['', 'x', 'a@b', 'a b@c.example', 'a@b.example?cc=x@y.example', '<a@b.example>', 'a@b..example', 7],
      `${'x'.repeat(65)}@shop.example`,
    ],
    legalName: ['', 'x'.repeat(201), 'a\nb', '\u202eevil', 7],
    legalAddress: ['', 'a\n\nb', 'a\r\nb', 'x'.repeat(101), 'a\nb\nc\nd\ne\nf\ng', '\u202eevil', 7],
    taxId: ['', 'x'.repeat(51), 'a\nb', 7],
    timeZone: ['', 'Mars/Olympus', '+02:00', 'Europe', 7, null],
    reportCurrency: ['', 'EURO', 'ZZZ', null],
    supportUrl: ['', 'shop.example', 'http://shop.example', 'javascript:alert(1)', 'https://a@b.example', 7],
    finalityPolicy: [
      ...[[], null, {}, [rule('1')], [rule('0'), rule('0')], [rule('0'), rule('5'), rule('4')]],
      [rule('0'), rule('1.50'), rule('1.5')],
      Array.from({ length: 11 }, (_, i) => rule(String(i))),
    ],
  }))
    for (const value of values) {
      const valid = field === 'name' ? { accentColor: '#ffffff' } : { name: 'Half' }
      assertInvalid(await change(shop, { ...valid, [field]: value }), `/${field}`)
    }
  for (const [minAmount, pointer] of [
    ['-1', '/finalityPolicy/0/minAmount'],
    ['0.0000001', '/finalityPolicy/0/minAmount'],
    [0, '/finalityPolicy/0/minAmount'],
  ] as const)
    assertInvalid(await change(shop, { finalityPolicy: [rule(minAmount)] }), pointer)
  assertInvalid(await change(shop, { finalityPolicy: [rule('0', 'soon')] }), '/finalityPolicy/0/finality')
  assertInvalid(await change(shop, { mode: 'test' }), '/mode')
  assertInvalid(await change(shop, { id: shop.id }), '/id')
  assertInvalid(await change(shop, {}), '')
  assert.deepEqual(await read(shop), before)
})

test('a checkout gets the finality for its amount when it is created, and keeps it', async () => {
  const seller = await openStore(farthing)
  const finalityOf = async (id: string) => {
    const [row] = await farthing.ctx.db.query<{ finality: string }>(
      'select finality from checkouts where id = $1',
      [id],
    )
    return row?.finality
  }
  const early = await seller.create({ priceAmount: '999999' })
  const finalityPolicy = [
    { minAmount: '0.0', finality: 'included' },
    { minAmount: '10', finality: 'safe' },
    { minAmount: '1000.000001', finality: 'finalized' },
  ]
  assert.equal((await change(seller, { finalityPolicy })).statusCode, 200)
  for (const [priceAmount, expected] of [
    ['0.000001', 'included'],
    ['9.999999', 'included'],
    ['10', 'safe'],
    ['1000', 'safe'],
    ['1000.000001', 'finalized'],
    ['999999999999999', 'finalized'],
  ] as const)
    assert.equal(await finalityOf((await seller.create({ priceAmount })).id), expected, priceAmount)
  assert.equal(await finalityOf(early.id), 'included')
})

// Wallets

const walletPath = (by: StoreClient, rest = '') => `/api/v1/stores/${by.id}/wallets${rest}`
const listWallets = async (by: StoreClient, query = '') =>
  (await by.call('GET', walletPath(by, query))).json<Page<Wallet>>()
const currentOf = async (by: StoreClient) =>
  (await listWallets(by)).data.filter(({ current }) => current).map(({ walletAddress }) => walletAddress)
/** By id, as in lists: records created in the same millisecond have no other order. */
const newestFirst = (...records: Wallet[]) => records.toSorted((a, b) => (a.id < b.id ? 1 : -1))

test('a wallet’s record has its store, its family, and whether it is payable and current', async () => {
  const seller = await openStore(farthing, { evmWallet: null })
  const evm = await registerWallet(seller, wallets[1], 'evm', 'CUSTODIAL')
  const { id, createdAt, ...rest } = evm
  assert.match(id, /^wal_/)
  assert.equal(new Date(createdAt).toISOString(), createdAt)
  assert.deepEqual(rest, {
    storeId: seller.id,
    family: 'EVM',
    walletAddress: wallets[1],
    custodialType: 'CUSTODIAL',
    payable: true,
    unpayableReason: null,
    current: true,
    confirmationRequired: false,
    proofRequired: false,
    provenAt: null,
    sharedElsewhere: false,
  })
  const solana = await registerWallet(seller, solanaWallets[1], 'solana')
  assert.equal(solana.family, 'SOLANA')
  assert.deepEqual([solana.payable, solana.current], [false, true])
  assert.match(solana.unpayableReason ?? '', /does not accept payments to wallets of this family/)
  assert.deepEqual((await listWallets(seller)).data, newestFirst(solana, evm))
})

test('an EVM address is accepted with its checksum or in a single case, and returned with its checksum', async () => {
  const seller = await openStore(farthing, { evmWallet: null })
  const spellings = [wallets[1], wallets[1].toLowerCase(), `0x${wallets[1].slice(2).toUpperCase()}`]
  const records = []
  for (const spelling of spellings) records.push(await registerWallet(seller, spelling))
  assert.deepEqual(new Set(records.map(({ walletAddress }) => walletAddress)), new Set([wallets[1]]))
  assert.equal(new Set(records.map(({ id }) => id)).size, 1)
})

test('an EVM address that is mistyped, the zero address or a token’s address is rejected', async () => {
  const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
  const mistyped = [...wallets[0]].map((character) =>
    character === 'C' ? 'c' : character === 'c' ? 'C' : character,
  )
  for (const walletAddress of [
    ...['', '0x', wallets[0].slice(2), wallets[0].slice(0, -1), `${wallets[0]}0`, ` ${wallets[0]}`],
    ...[`${wallets[0]}\n`, wallets[0].replace('0x', '0X'), `0x${'g'.repeat(40)}`, mistyped.join('')],
    ...[`0x${'0'.repeat(40)}`, usdc, usdc.toLowerCase(), '0x036CbD53842c5426634e7929541eC2318f3dCF7e'],
    ...['0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', '0xdAC17F958D2ee523a2206206994597C13D831ec7'],
    'vitalik.eth',
  ]) {
    const answer = await shop.call('POST', walletPath(shop, '/evm'), {
      walletAddress,
      custodialType: 'NON_CUSTODIAL',
    })
    assertInvalid(answer, '/walletAddress')
  }
})

test('a Solana address must be exactly 32 bytes in base58, and not the system program or a token', async () => {
  for (const address of solanaWallets)
    assert.equal((await registerWallet(shop, address, 'solana')).walletAddress, address)
  for (const walletAddress of [
    // 31 and 33 bytes of 1, then 32 bytes with a superfluous leading zero byte.
    ...['tVojvhToWjQ8Xvo4UPx2Xz9eRy7auyYMmZBjc2XfN', 'JJEfe6DcPM2ziB2vfUWDV6aHVerXRGkv3TcyvJUNGHZz'],
    ...[`1${solanaWallets[0]}`, '1'.repeat(32), '1'.repeat(31), '', 'z'.repeat(44), 'z'.repeat(99)],
    ...[solanaWallets[0].replace('4', '0'), solanaWallets[0].replace('4', 'l'), `${solanaWallets[0]} `],
    ...['EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', wallets[0]],
  ]) {
    const answer = await shop.call('POST', walletPath(shop, '/solana'), {
      walletAddress,
      custodialType: 'NON_CUSTODIAL',
    })
    assertInvalid(answer, '/walletAddress')
  }
})

test('the last registered wallet is current; registering an old one again makes the same record current', async () => {
  const seller = await openStore(farthing)
  const [first, second] = [await registerWallet(seller, wallets[0]), await registerWallet(seller, wallets[1])]
  assert.deepEqual(await currentOf(seller), [wallets[1]])
  const again = await registerWallet(seller, wallets[0])
  assert.deepEqual(again, { ...first, current: true })
  assert.deepEqual(await currentOf(seller), [wallets[0]])
  assert.deepEqual((await listWallets(seller)).data, newestFirst(again, { ...second, current: false }))
  const { id } = await seller.create()
  const terms = await send(farthing.app, 'POST', `/api/v1/checkouts/${id}`)
  assert.equal(terms.json().accepts[0].payTo, wallets[0])
})

test('each family has its own current wallet', async () => {
  const seller = await openStore(farthing)
  await registerWallet(seller, solanaWallets[0], 'solana')
  await registerWallet(seller, wallets[1])
  assert.deepEqual((await currentOf(seller)).sort(), [solanaWallets[0], wallets[1]].sort())
})

test('an address cannot be registered with another custodialType unless it is retired first', async () => {
  const seller = await openStore(farthing)
  const [{ id } = { id: '' }] = (await listWallets(seller)).data
  const asCustodial = { walletAddress: wallets[0].toLowerCase(), custodialType: 'CUSTODIAL' }
  const conflict = await seller.call('POST', walletPath(seller, '/evm'), asCustodial)
  assert(assertProblem(conflict, 409, 'wallet_conflict').detail.includes(id))
  const retired = await seller.call('POST', walletPath(seller, `/${id}/retire`))
  assert.equal(retired.statusCode, 200)
  assert.deepEqual([retired.json<Wallet>().current, retired.json<Wallet>().payable], [false, false])
  const renewed = await registerWallet(seller, wallets[0], 'evm', 'CUSTODIAL')
  assert.notEqual(renewed.id, id)
  assert.deepEqual((await listWallets(seller)).data, [renewed])
})

test('retiring the current wallet makes the one before it current; retiring again changes nothing', async () => {
  const seller = await openStore(farthing)
  const second = await registerWallet(seller, wallets[1])
  const retire = () => seller.call('POST', walletPath(seller, `/${second.id}/retire`))
  const first = await retire()
  assert.equal(first.statusCode, 200)
  assert.deepEqual(await currentOf(seller), [wallets[0]])
  const eventsBefore = (await seller.events()).length
  assert.equal((await retire()).body, first.body)
  assert.equal((await seller.events()).length, eventsBefore)
})

test('an unknown wallet id gets 404, whatever it contains', async () => {
  for (const id of ['wal_', 'x', '%00', shop.id, `wal_00${'0'.repeat(26)}`])
    assertProblem(await shop.call('POST', walletPath(shop, `/${id}/retire`)), 404, 'not_found')
})

test('concurrent registrations leave one current wallet and one record per address', async () => {
  const seller = await openStore(farthing, { evmWallet: null })
  await Promise.all(Array.from({ length: 12 }, (_, i) => registerWallet(seller, String(wallets[i % 3]))))
  assert.equal((await listWallets(seller)).data.length, 3)
  assert.equal((await currentOf(seller)).length, 1)
})

test('wallets are listed newest first in pages; an invalid cursor is rejected', async () => {
  const seller = await openStore(farthing)
  for (const address of solanaWallets) await registerWallet(seller, address, 'solana')
  const all = await listWallets(seller)
  assert.equal(all.nextCursor, null)
  assert.deepEqual(all.data, newestFirst(...all.data))
  const first = await listWallets(seller, '?limit=3')
  const rest = await listWallets(seller, `?limit=3&cursor=${first.nextCursor}`)
  assert.deepEqual([...first.data, ...rest.data], all.data)
  assert.equal(rest.nextCursor, null)
  for (const [query, pointer] of [
    ['?limit=0', 'limit'],
    ['?cursor=x', 'cursor'],
    [`?cursor=${seller.id}`, 'cursor'],
    ['?page=1', 'page'],
  ] as const)
    assertInvalid(await seller.call('GET', walletPath(seller, query)), pointer)
})
