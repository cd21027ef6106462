import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { readSigners } from '../../src/commands/signer.ts'
import { insertSettler, listSettlers } from '../../src/payments/settlers/rows.ts'
import { openTestApp, wallet } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { type Answer, assertProblem, openStore, order, send } from '../support/store.ts'

const farthing = await openTestApp()

const create = (app: FastifyInstance, key: string) =>
  send(app, 'POST', '/api/v1/checkouts', order, { 'x-api-key': key })
const statusOf = async (answer: Promise<Answer>) => (await answer).statusCode
const idOf = (key: string) => key.split('_')[2] ?? ''

const main = new URL('../../src/main.ts', import.meta.url).pathname

type Outcome = { readonly code: number; readonly out: string; readonly err: string }

/** Runs a command of the server with the settings of this test. */
async function run(...args: string[]): Promise<Outcome> {
  return await runWith({}, ...args)
}

async function runWith(settings: Readonly<Record<string, string>>, ...args: string[]): Promise<Outcome> {
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: farthing.databaseUrl,
    BASE_URL: 'https://farthing.example',
    ...settings,
  }
  return await new Promise((resolve) => {
    const child = execFile(process.execPath, [main, ...args], { env }, (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    )
  })
}

function found(pattern: RegExp, { code, out, err }: Outcome): string {
  assert.equal(code, 0, err)
  const text = pattern.exec(out)?.[1]
  assert(text, out)
  return text
}

const keyLine = /\b(sk_(?:live|test)_\w+)$/m

test('`store create` prints the store, its wallets and a key that works at once, and `store list` lists it', async () => {
  const args = ['store', 'create', '--name', 'Café', '--test', '--evm-wallet', wallet.toLowerCase()]
  const contact = ['--support-email', 'help@shop.example', '--support-url', 'https://shop.example/help']
  const made = await run(
    ...args,
    ...contact,
    '--solana-wallet',
    '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi',
  )
  const storeId = found(/^Store +(st_\w+) \(test\)$/m, made)
  const key = found(keyLine, made)
  assert.match(key, /^sk_test_/)
  assert.match(made.out, new RegExp(`^Wallet ${wallet}$`, 'm'))
  assert.match(made.out, /^Wallet 4vJ9\w+ \(cannot be paid on this deployment yet\)$/m)
  assert.equal(await statusOf(create(farthing.app, key)), 201)
  const store = await farthing.request({ url: '/api/v1/store', headers: { 'x-api-key': key } })
  assert.equal(store.json().supportEmail, 'help@shop.example')
  assert.equal(store.json().supportUrl, 'https://shop.example/help')
  const [list, keys] = await Promise.all([run('store', 'list'), run('key', 'list', storeId)])
  assert.match(list.out, new RegExp(`^${storeId}  test  Café$`, 'm'))
  assert.match(
    keys.out,
    new RegExp(`^${idOf(key)}  created \\S+Z  \\(no label\\)  full  (never|last) used`, 'm'),
  )
})

test('`key create`, `key rotate` and `key revoke` take effect on a running server', async () => {
  const shop = await openStore(farthing)
  const made = found(keyLine, await run('key', 'create', shop.id))
  assert.equal(await statusOf(create(farthing.app, made)), 201)
  // A key can be given by its id or in full.
  const [byId, byKey] = await Promise.all([
    run('key', 'rotate', idOf(shop.key), '--overlap-hours', '2'),
    run('key', 'rotate', made, '--overlap-hours', '0'),
  ])
  assert.match(byId.out, /The old key expires in 2 hours\./)
  assert.equal(
    await statusOf(create(farthing.app, shop.key)),
    201,
    'the old key still works during the overlap',
  )
  assertProblem(await create(farthing.app, made), 401, 'invalid_api_key')
  for (const outcome of [byId, byKey])
    assert.equal(await statusOf(create(farthing.app, found(keyLine, outcome))), 201)
  assert.equal((await run('key', 'revoke', shop.key)).out, 'Revoked.\n')
  assertProblem(await create(farthing.app, shop.key), 401, 'invalid_api_key')
  const list = await run('key', 'list', shop.id)
  assert.match(list.out, new RegExp(`^${idOf(shop.key)}  revoked \\S+Z  `, 'm'))
  assert.match(list.out, new RegExp(`^${idOf(made)}  expires \\S+Z  `, 'm'))
})

test('`store suspend` and `store resume` take effect on a running server, and the list says so', async () => {
  const shop = await openStore(farthing)
  const suspended = await run('store', 'suspend', shop.id, '--reason', 'Ask us.', '--as', 'ana')
  assert.match(suspended.out, new RegExp(`store resume ${shop.id}`))
  assert.match(assertProblem(await create(farthing.app, shop.key), 403, 'store_inactive').detail, /Ask us\./)
  const [list, approve, bare] = await Promise.all([
    run('store', 'list'),
    run('store', 'approve', shop.id),
    run('store', 'suspend', shop.id),
  ])
  assert.match(list.out, new RegExp(`^${shop.id}  live  Shop  suspended$`, 'm'))
  assert.match(approve.err, /is suspended/)
  assert.match(bare.err, /--reason/)
  await run('store', 'resume', shop.id)
  assert.equal(await statusOf(create(farthing.app, shop.key)), 201)
  const told = (await shop.events()).find(({ type }) => type === 'store.suspended')
  assert.equal(told?.actor?.name, 'ana')
})

test('an invalid command fails with one sentence that says why, and prints no key', async () => {
  const shop = await openStore(farthing)
  const outcomes = await Promise.all(
    [
      ['store', 'create'],
      ['store', 'remove'],
      ['key', 'create'],
      ['key', 'create', 'x'],
      ['key', 'create', `st_00${'0'.repeat(26)}`],
      ['key', 'revoke', 'x'],
      ['key', 'sell', shop.key],
      ['key', 'rotate', shop.key, '--overlap-hours', 'soon'],
    ].map(async (args) => ({ args: args.join(' '), ...(await run(...args)) })),
  )
  for (const { args, code, out, err } of outcomes) {
    assert.equal(code, 1, args)
    assert.equal(out, '', args)
    assert.match(err, /^\S.*\n$/, args)
    assert.doesNotMatch(err, /^ +at /m)
  }
})

test('`settler drain` drains on one network only, and asks which if the account settles on several', async () => {
  const { db } = farthing.ctx
  const address = wallet.toLowerCase()
  for (const network of ['eip155:8453', 'eip155:84532']) await insertSettler(db, network, address, 0)
  const states = async () =>
    Object.fromEntries((await listSettlers(db, null)).map(({ network, state }) => [network, state]))
  const unsaid = await run('settler', 'drain', wallet)
  assert.equal(unsaid.code, 1)
  assert.match(unsaid.err, /active on BASE_MAINNET, BASE_SEPOLIA\. .*--network/)
  assert.deepEqual(await states(), { 'eip155:8453': 'active', 'eip155:84532': 'active' })
  assert.match((await run('settler', 'drain', wallet, '--network', 'BASE')).err, /--network must be one of/)
  const drained = await run('settler', 'drain', wallet, '--network', 'BASE_SEPOLIA')
  assert.match(drained.out, /no new payments on BASE_SEPOLIA/)
  assert.deepEqual(await states(), { 'eip155:8453': 'active', 'eip155:84532': 'draining' })
  assert.match((await run('settler', 'drain', wallet)).out, /no new payments on BASE_MAINNET/)
})

test('`settler create` keeps the new key in a file that only its owner can read, and prints its address and what to do next', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-keys-'))
  atEnd(() => rm(folder, { recursive: true }))
  const file = join(folder, 'settler.keys')
  const evm = await run('settler', 'create', 'BASE_MAINNET', '--out', file)
  const address = found(/^Settler (0x[0-9a-fA-F]{40})$/m, evm)
  assert.match(evm.out, new RegExp(`settler deploy BASE_MAINNET\\n +settler add BASE_MAINNET ${address}\\n`))
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  // Added to the file that the settings name, next to the first.
  const svm = await runWith({ SETTLER_KEYS_FILE: file }, 'settler', 'create', 'SOLANA_MAINNET')
  const solana = found(/^Settler (\w{32,44})$/m, svm)
  const signers = await readSigners(file)
  assert.deepEqual(
    signers.map((signer) => signer.address),
    [address.toLowerCase(), solana],
  )
  const kept = await readFile(file, 'utf8')
  for (const key of kept.split('\n').filter((line) => /^[0[]/.test(line)))
    assert(!`${evm.out}${svm.out}`.includes(key), 'the key was printed')

  await chmod(file, 0o640)
  const open = await run('settler', 'create', 'BASE_MAINNET', '--out', file)
  assert.deepEqual([open.code, open.out], [1, ''])
  assert.match(open.err, /Others can read .*Run: chmod 600/)
  assert.equal(await readFile(file, 'utf8'), kept)
  await writeFile(join(folder, 'plain'), '')
  const inside = await run('settler', 'create', 'BASE_MAINNET', '--out', join(folder, 'plain', 'x'))
  assert.match(inside.err, /cannot be written/)
  assert.match((await run('settler', 'create', 'BASE_MAINNET')).err, /--out FILE, or set SETTLER_KEYS_FILE/)
  assert.match((await run('settler', 'create', 'BASE')).err, /NETWORK must be one of BASE_MAINNET,/)
})

test('`store create` refuses a store that no network of this deployment could pay, and says what to do', async () => {
  const before = (await run('store', 'list')).out
  const live = await runWith({ NETWORKS: 'LOCAL' }, 'store', 'create', '--name', 'Shop')
  assert.deepEqual([live.code, live.out], [1, ''])
  assert.match(live.err, /A live store cannot be paid here: NETWORKS is LOCAL\. Add --test .*BASE_MAINNET/)
  const test = await runWith({ NETWORKS: 'BASE_MAINNET' }, 'store', 'create', '--test', '--name', 'Shop')
  assert.match(test.err, /A test store cannot be paid here: NETWORKS is BASE_MAINNET\. Leave out --test/)
  assert.equal((await run('store', 'list')).out, before)
})
