/** Wallets of stores in two cells: what two deployments on one chain must not both be paid to. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Wallet } from '@farthing/sdk'
import { directoryCommand } from '../../src/commands/directory.ts'
import { examine } from '../../src/commands/doctor.ts'
import { settlerCommand, storeCommand } from '../../src/commands/operator.ts'
import { openEvm } from '../support/chain/evm.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { operator } from '../support/operator.ts'
import { assertProblem, openStore, order, send } from '../support/store.ts'
import { killDirectory, openCell, openDirectory, prove, register, report } from './support/cells.ts'

const chain = await openEvm()
const directory = await openDirectory()
const settings = { NETWORKS: 'LOCAL', LOCAL_RPC_URLS: chain.url, LOG_LEVEL: 'info' }
const [a, b] = [await openCell(directory.url, '0a', settings), await openCell(directory.url, '0b', settings)]
const open = (cell: typeof a) => openStore(cell, { mode: 'test', evmWallet: null })
const [here, there] = [await open(a), await open(b)]
const wallet = (answer: { json<Body>(): Body }) => answer.json<Wallet>()

test('a wallet that is new to a cell is used once it is proven, and the other cell cannot have it', async () => {
  const holder = newPayer()
  const asked = await register(here, holder.address)
  assert.equal(asked.statusCode, 201, asked.body)
  const { payable, current, proofRequired, unpayableReason } = wallet(asked)
  assert.deepEqual(
    { payable, current, proofRequired },
    { payable: false, current: false, proofRequired: true },
  )
  assert.match(String(unpayableReason), /not proven/)
  assertProblem(await here.call('POST', '/api/v1/checkouts', order), 409, 'wallet_required')
  assert.deepEqual(
    wallet(await register(here, holder.address)),
    wallet(asked),
    'asking again changes nothing',
  )
  const listed = (await here.call('GET', `/api/v1/stores/${here.id}/wallets`)).json<{ data: Wallet[] }>()
  assert.deepEqual(listed.data, [wallet(asked)])

  const early = wallet(await register(there, holder.address))
  const proven = wallet(await prove(here, wallet(asked), holder))
  assert.equal(proven.payable && proven.current && !proven.proofRequired, true)
  assert.equal((await here.events()).at(-1)?.type, 'wallet.updated')
  await here.create()

  const refused = assertProblem(await prove(there, early, holder), 409, 'wallet_elsewhere')
  assert.doesNotMatch(refused.detail, /cell 0a/)
  assertProblem(await register(there, holder.address.toLowerCase()), 409, 'wallet_elsewhere')
  assertProblem(await there.call('POST', '/api/v1/checkouts', order), 409, 'wallet_required')
  const neighbour = await open(a)
  assert.equal(wallet(await register(neighbour, holder.address)).current, true, 'its own cell has it')
})

test('the same wallet may be live in one cell and a test wallet in another', async () => {
  const live = await openStore(a, { evmWallet: newPayer().address })
  const holder = newPayer()
  const asked = wallet(await register(there, holder.address))
  assert.equal(wallet(await prove(there, asked, holder)).current, true)
  const twin = wallet(await register(live, holder.address))
  assert.equal(twin.proofRequired, true)
  assert.notEqual((await prove(live, twin, holder)).json().code, 'wallet_elsewhere')
})

test('a custodial wallet is used after an operator has made its cell the owner', async () => {
  const address = newPayer().address
  const asked = wallet(await register(here, address, 'CUSTODIAL'))
  assert.deepEqual([asked.payable, asked.proofRequired], [false, false])
  assert.match(String(asked.unpayableReason), /operator/)
  assert.match(await directoryCommand(a.ctx, ['own', 'evm', address], { mode: 'test' }), /cell 0a/)
  assert.equal(wallet(await register(here, address, 'CUSTODIAL')).current, true)
  await assert.rejects(directoryCommand(b.ctx, ['own', 'EVM', address], { mode: 'test' }), /cell 0a.*there/)
})

test('a wallet that waits for its proof makes way for another custodial type, and for nothing without end', async () => {
  const shop = await open(a)
  const address = newPayer().address
  const first = wallet(await register(shop, address))
  assert.notEqual(wallet(await register(shop, address, 'CUSTODIAL')).id, first.id)
  await a.ctx.db.query(
    `insert into wallets (id, store_id, family, address, custodial_type, created_at, unowned, registration)
     overriding system value select 'wal_' || n, $1, 'EVM', 'x' || n, 'NON_CUSTODIAL', now(), true, 0
     from generate_series(1, 98) n`,
    [shop.id],
  )
  assertProblem(await register(shop, newPayer().address), 429, 'rate_limited')
})

test('an operator’s store has its wallet at once; one with another cell’s wallet is refused before it exists', async () => {
  const address = newPayer().address
  const args = { name: 'Café', test: true, 'evm-wallet': address }
  assert.match(await storeCommand(a.ctx, operator, ['create'], args), new RegExp(`Wallet ${address}$`, 'm'))
  const before = await storeCommand(b.ctx, operator, ['list'], {})
  await assert.rejects(
    storeCommand(b.ctx, operator, ['create'], args),
    /belongs to cell 0a. Run store create in that cell/,
  )
  assert.equal(await storeCommand(b.ctx, operator, ['list'], {}), before)
  assert.match(await directoryCommand(b.ctx, ['place'], { 'evm-wallet': address, test: true }), /^Cell 0a/)
  assert.match(await directoryCommand(b.ctx, ['drain', '0b'], {}), /no new stores/)
  await assert.rejects(storeCommand(b.ctx, operator, ['create'], { name: 'X', test: true }), /takes no new/)
  await assert.rejects(directoryCommand(b.ctx, ['place'], {}), /has not reported for 10 minutes/)
  await report(a)
  assert.match(await directoryCommand(b.ctx, ['place'], {}), /^Cell 0a/)
  await directoryCommand(b.ctx, ['resume', '0b'], {})
})

test('one account settles in one cell only', async () => {
  const account = newPayer().address
  const add = ({ ctx }: typeof a) => settlerCommand(ctx, ['add', 'LOCAL', account], {}, async () => [])
  assert.match(await add(a), /now settles/)
  assert.match(await add(a), /already/)
  await assert.rejects(add(b), /belongs to cell 0a.*settler create/)
  await a.ctx.db.query("update settlers set state = 'retired'")
  assert.match(await directoryCommand(a.ctx, ['list'], {}), /^0a .*1 settler /m)
})

test('doctor says what another cell owns, what nobody owns, and who keeps the directory waiting', async () => {
  const says = async ({ ctx }: typeof a) =>
    (await examine(ctx, async () => [])).filter(({ what }) => what === 'directory')
  const [fine] = await says(a)
  assert(fine?.fix === null && /2 cells; cell 0a owns the \d+ wallets/.test(fine.says), fine?.says)
  const address = newPayer().address.toLowerCase()
  await openStore(a, { mode: 'test', evmWallet: address })
  await directory.db.query("update owners set cell = '0b' where address = $1", [address])
  assert.match((await says(a))[0]?.says ?? '', new RegExp(`another cell owns.*${address}`))
  await directory.db.query('delete from owners where address = $1', [address])
  assert.match((await says(a))[0]?.says ?? '', new RegExp(`nobody owns.*${address}`))
  assert.match(await directoryCommand(a.ctx, ['adopt'], {}), /Cell 0a is in the directory/)
  assert.equal((await says(a))[0]?.fix, null)
  await assert.rejects(directoryCommand(a.ctx, ['restored'], { cells: '0a' }), /leaves out 0b/)
  await directoryCommand(a.ctx, ['restored'], { cells: '0a,0b' })
  assert.match((await says(a))[0]?.says ?? '', /until these cells.*0a, 0b/)
  for (const { ctx } of [a, b])
    assert.match(await directoryCommand(ctx, ['adopt'], {}), /is in the directory/)
  for (const cell of [a, b]) await report(cell)
  assert.equal((await says(a))[0]?.fix, null)
  assert.match(await directoryCommand(a.ctx, ['list'], {}), /^0b {2}takes stores {2}2 stores {2}3 payments/m)
})

test('with the directory dead only adding wallets and settlers fails', async () => {
  const holder = newPayer()
  const asked = wallet(await register(here, holder.address))
  const revive = await killDirectory(a.ctx)
  for (const answer of [await register(here, holder.address), await prove(here, asked, holder)]) {
    const problem = assertProblem(answer, 503, 'unavailable')
    assert.match(problem.detail, /directory.*Nothing was changed/)
    assert(Number(answer.headers['retry-after']) > 0)
  }
  const { id } = await here.create()
  assert.match(JSON.stringify((await here.events()).at(-1)), new RegExp(id))
  assert.equal((await send(a.app, 'POST', `/api/v1/checkouts/${id}`)).statusCode, 402)
  const page = { url: new URL((await here.create()).checkoutUrl).pathname, headers: { accept: 'text/html' } }
  assert.equal((await a.request(page)).statusCode, 200)
  const logged = a.logged.length
  await report(a)
  assert.match(String(a.logged[logged]?.msg), /directory does not answer/)
  await assert.rejects(directoryCommand(a.ctx, ['release', holder.address], {}))
  const [finding] = (await examine(a.ctx, async () => [])).filter(({ what }) => what === 'directory')
  assert.match(finding?.says ?? '', /does not answer/)
  await revive()
  assert.equal(wallet(await prove(here, asked, holder)).current, true)
})
