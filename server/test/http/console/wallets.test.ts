/** Changes of the wallet that is paid, through the API with a key and through the console with a passkey. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Wallet } from '@farthing/sdk'
import { storeCommand } from '../../../src/commands/operator.ts'
import { removeAsOperator } from '../../../src/members/remove.ts'
import { listStoreMembers } from '../../../src/members/rows.ts'
import { registerWallet as registerByVerb } from '../../../src/stores/wallets.ts'
import { operator } from '../../support/operator.ts'
import { openStore, registerWallet, type StoreClient, solanaWallets } from '../../support/store.ts'
import { enrolWith, inviteBy, openConsole, signInWith } from './support/console.ts'
import {
  a,
  b,
  c,
  type Guarded,
  isStatus,
  openGuardedStore,
  passTime,
  read,
  withoutTags,
} from './support/wallets.ts'

const console = await openConsole()
const { farthing } = console
const { ctx } = farthing

const flags = ({ current, confirmationRequired, payable }: Wallet) => [current, confirmationRequired, payable]
const setting = async (store: StoreClient) =>
  (await store.call('GET', `/api/v1/stores/${store.id}`)).json().walletChanges
const retire = (store: StoreClient, walletId: string) =>
  store.call('POST', `/api/v1/stores/${store.id}/wallets/${walletId}/retire`)
const told = async ({ store }: Guarded) =>
  (await store.events())
    .filter(({ type }) => type.startsWith('wallet.'))
    .map(({ type, actor, data }) => [type, actor?.type, 'wallet' in data ? data.wallet.walletAddress : ''])

test('an owner confirms by default in live stores that have one; what was chosen wins, and no key can choose', async () => {
  const bare = await openStore(farthing)
  assert.equal(await setting(bare), 'key')
  const trial = await openGuardedStore(console, { mode: 'test', evmWallet: a })
  assert.equal(await setting(trial.store), 'key')
  await isStatus(trial.set('member'), 303)
  assert.equal(await setting(trial.store), 'member')

  const live = await openGuardedStore(console)
  assert.equal(await setting(live.store), 'member')
  const patch = await live.store.call('PATCH', `/api/v1/stores/${live.store.id}`, { walletChanges: 'key' })
  assert.equal(patch.statusCode, 422, patch.body)
  await isStatus(
    live.owner.browser.post(`/stores/${live.store.id}/wallets/setting`, { walletChanges: 'key' }),
    403,
  )
  await isStatus(live.set('nobody'), 422)
  assert.equal(await setting(live.store), 'member')
  await isStatus(live.set('key'), 303)
  assert.equal(await setting(live.store), 'key')
  const options = { 'wallet-changes': 'member' }
  assert.match(await storeCommand(ctx, operator, ['set', live.store.id], options), /an owner confirms/)
  await assert.rejects(storeCommand(ctx, operator, ['set', live.store.id], {}), /--wallet-changes/)
  const changed = (await live.store.events()).filter(({ type }) => type === 'store.updated')
  assert.deepEqual(
    changed.map(({ actor, data }) => [actor?.type, 'store' in data && data.store.walletChanges]),
    [
      ['member', 'key'],
      ['operator', 'member'],
    ],
  )
  // The choice holds even while nobody is there to confirm.
  const [owner = assert.fail()] = await listStoreMembers(ctx.db, live.store.id)
  await removeAsOperator(ctx, live.store.store.id, operator, owner.id, new Date())
  assert.equal(await setting(live.store), 'member')
})

test('a stolen full key cannot redirect a single new checkout of a live store with an owner', async () => {
  const guarded = await openGuardedStore(console)
  const { store } = guarded
  const input = { family: 'EVM', walletAddress: c, custodialType: 'NON_CUSTODIAL' } as const
  // An older wallet of the store, whose key somebody may have found.
  await registerByVerb(ctx, store.store.id, operator, input, new Date())
  await registerByVerb(ctx, store.store.id, operator, { ...input, walletAddress: a }, new Date())
  const attempts = [
    () => registerWallet(store, b),
    () => registerWallet(store, b, 'evm', 'CUSTODIAL'),
    () => registerWallet(store, c),
    () => registerWallet(store, solanaWallets[0], 'solana'),
    async () => {
      const current = (await guarded.list()).find(({ current }) => current) ?? assert.fail()
      const answer = await retire(store, current.id)
      assert.equal(answer.statusCode, 200, answer.body)
      assert.deepEqual(flags(answer.json()), [true, true, true], 'it stays in use and waits')
      return answer.json<Wallet>()
    },
  ]
  for (const attempt of attempts) {
    assert.equal((await attempt()).confirmationRequired, true)
    assert.equal(await guarded.paidTo(), a)
  }
  const [first] = await guarded.changes()
  await isStatus(store.call('POST', `/stores/${store.id}/wallets/confirm`, { changeId: first?.id }), 404)
  assert.equal(await guarded.paidTo(), a)

  const empty = await openGuardedStore(console, { evmWallet: null })
  const wallet = await registerWallet(empty.store, b)
  assert.deepEqual(flags(wallet), [false, true, false])
  assert.match(wallet.unpayableReason ?? '', /owner/)
  assert.equal(await empty.paidTo(), null, 'a store without a confirmed wallet is a store without a wallet')
})

test('an owner’s touch puts the wallet to use, once, and each step is told with who did it', async () => {
  const guarded = await openGuardedStore(console)
  const { store } = guarded
  const wallet = await registerWallet(store, b)
  assert.deepEqual(flags(wallet), [false, true, false])
  assert.deepEqual(await registerWallet(store, b), wallet, 'asking again changes nothing')
  const change = await guarded.newest()
  await isStatus(guarded.confirm(change), 303)
  assert.equal(await guarded.paidTo(), b)
  await isStatus(guarded.confirm(change), 409)
  const after = await guarded.list()
  assert.deepEqual(
    after.map((each) => [each.walletAddress, ...flags(each)]),
    [
      [b, true, false, true],
      [a, false, false, true],
    ],
  )
  await registerWallet(store, c)
  await isStatus(guarded.refuse(await guarded.newest()), 303)
  assert.deepEqual(await told(guarded), [
    ['wallet.registered', 'operator', a],
    ['wallet.registered', 'key', b],
    ['wallet.confirmed', 'member', b],
    ['wallet.registered', 'key', c],
    ['wallet.refused', 'member', c],
  ])
  assert.equal((await guarded.list()).length, 2)
})

test('a touch for another wallet, change, store, action or session, or one that was used, confirms nothing', async () => {
  const [guarded, other] = await Promise.all([openGuardedStore(console), openGuardedStore(console)])
  const { store, owner } = guarded
  await registerWallet(store, c)
  const replaced = await guarded.newest()
  await registerWallet(store, b)
  const change = await guarded.newest()
  await registerWallet(other.store, b)
  const theirs = await other.newest()
  const storeId = store.id
  const right = { storeId, changeId: change.id, kind: 'use', address: b }
  const path = `/stores/${storeId}/wallets/confirm`
  const wrong: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ['wallet.confirm', { ...right, address: c }],
    ['wallet.confirm', { ...right, address: b.toLowerCase() }],
    ['wallet.confirm', { ...right, changeId: replaced.id }],
    ['wallet.confirm', { ...right, changeId: theirs.id }],
    ['wallet.confirm', { ...right, storeId: other.store.id }],
    ['wallet.confirm', { ...right, kind: 'retire' }],
    ['wallet.confirm', { ...right, more: '' }],
    ['wallet.undo', right],
    ['wallet.setting', { storeId, walletChanges: 'key' }],
    ['member.remove', right],
  ]
  for (const [action, values] of wrong) {
    const touch = await owner.browser.confirm(owner.authenticator, action, values)
    await isStatus(owner.browser.post(path, { ...right, touch }), 409)
  }
  const elsewhere = await signInWith(console, owner.authenticator)
  const lent = await elsewhere.confirm(owner.authenticator, 'wallet.confirm', right)
  await isStatus(owner.browser.post(path, { ...right, touch: lent }), 409)
  const foreign = await other.owner.browser.confirm(other.owner.authenticator, 'wallet.confirm', right)
  await isStatus(owner.browser.post(path, { ...right, touch: foreign }), 401)
  await isStatus(owner.browser.post(path, right), 403)
  assert.equal(await guarded.paidTo(), a)

  const good = await owner.browser.confirm(owner.authenticator, 'wallet.confirm', right)
  await isStatus(owner.browser.post(path, { ...right, touch: good }), 303)
  const undone = await guarded.newest()
  await isStatus(guarded.undo(undone, false), 303)
  await registerWallet(store, b)
  const again = { ...right, changeId: (await guarded.newest()).id }
  await isStatus(owner.browser.post(path, { ...again, touch: good }), 409)
  assert.equal(await guarded.paidTo(), a)
})

test('managers, developers, viewers and owners of other stores confirm, refuse, undo and choose nothing', async () => {
  const [guarded, other] = await Promise.all([openGuardedStore(console), openGuardedStore(console)])
  const { store, owner } = guarded
  await registerWallet(store, b)
  await isStatus(guarded.confirm(await guarded.newest()), 303)
  await registerWallet(store, c)
  const [waiting = assert.fail(), made = assert.fail()] = await guarded.changes()
  const roles = ['manager', 'developer', 'viewer']
  const others = await Promise.all(
    roles.map(async (role) => enrolWith(console, await inviteBy(owner, store.id, { name: role, role }))),
  )
  for (const [by, status] of [...others.map((each) => [each, 403] as const), [other.owner, 404] as const]) {
    await isStatus(guarded.confirm(waiting, by), status)
    await isStatus(guarded.refuse(waiting, by), status)
    await isStatus(guarded.undo(made, true, by), status)
    await isStatus(guarded.set('key', by), status)
  }
  const page = await read((others[0] ?? assert.fail()).browser, `/stores/${store.id}/wallets`)
  assert(withoutTags(page).includes(c) && !page.includes('data-confirm'), 'they see it, without buttons')
  // A change of one store does not exist in another, not even for its owner.
  const values = { storeId: other.store.id, changeId: waiting.id, kind: 'use', address: c }
  const touch = await other.owner.browser.confirm(other.owner.authenticator, 'wallet.confirm', values)
  await isStatus(
    other.owner.browser.post(`/stores/${other.store.id}/wallets/confirm`, { ...values, touch }),
    404,
  )
  assert.equal(await guarded.paidTo(), b)
})

test('what was asked for last waits: for seven days, until it is withdrawn or the current wallet is asked for', async () => {
  const guarded = await openGuardedStore(console)
  const { store } = guarded
  const first = await registerWallet(store, b)
  const replaced = await guarded.newest()
  await registerWallet(store, c)
  await isStatus(guarded.confirm(replaced), 409)
  assert.deepEqual(
    (await guarded.changes()).filter(({ isWaiting }) => isWaiting).map(({ wallet }) => wallet.address),
    [c],
  )
  await isStatus(store.call('POST', `/api/v1/stores/${store.id}/wallets/${first.id}/challenge`), 201)

  assert.equal((await registerWallet(store, a)).current, true)
  assert.equal((await guarded.list()).length, 1, 'asking for the current wallet withdraws the other')
  const waiting = await registerWallet(store, b)
  assert.equal((await retire(store, waiting.id)).statusCode, 200)
  assert.equal((await guarded.list()).length, 1, 'and so does retiring it')

  await registerWallet(store, b, 'evm', 'CUSTODIAL')
  const late = await guarded.newest()
  await passTime(console, store.id, '7 days')
  assert.equal((await guarded.list()).length, 1)
  await isStatus(guarded.confirm(late), 409)
  assert.equal((await registerWallet(store, b)).confirmationRequired, true)
  await isStatus(guarded.confirm(await guarded.newest()), 303)
  assert.equal(await guarded.paidTo(), b)
})

test('each family has a change of its own, and confirming one leaves the other waiting', async () => {
  const guarded = await openGuardedStore(console)
  await registerWallet(guarded.store, b)
  await registerWallet(guarded.store, solanaWallets[0], 'solana')
  const changes = await guarded.changes()
  const solana = changes.find(({ family, isWaiting }) => isWaiting && family === 'SOLANA') ?? assert.fail()
  await isStatus(guarded.confirm(solana), 303)
  assert.deepEqual(
    (await guarded.list()).map(({ walletAddress, current }) => [walletAddress, current]),
    [
      [solanaWallets[0], true],
      [b, false],
      [a, true],
    ],
  )
})

test('keys change the wallet at most 100 times a day', async () => {
  const guarded = await openGuardedStore(console)
  await ctx.db.query(
    `insert into wallet_changes (id, store_id, family, kind, wallet_id, actor, asked_at, ended_at)
     select c.id || i, c.store_id, c.family, 'use', c.wallet_id, c.actor, clock(), clock()
     from wallet_changes c, generate_series(1, 98) i where c.store_id = $1`,
    [guarded.store.id],
  )
  await registerWallet(guarded.store, b)
  const body = { walletAddress: c, custodialType: 'NON_CUSTODIAL' }
  await isStatus(guarded.store.call('POST', `/api/v1/stores/${guarded.store.id}/wallets/evm`, body), 429)
  await isStatus(guarded.confirm(await guarded.newest()), 303)
})

test('every owner sees what happened to the wallets until they say so, or a day has passed', async () => {
  const guarded = await openGuardedStore(console)
  const { store, owner } = guarded
  const second = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Second', role: 'owner' }))
  const manager = await enrolWith(console, await inviteBy(owner, store.id, { name: 'M', role: 'manager' }))
  await passTime(console, store.id, '25 hours')
  const sees = async ({ browser }: typeof owner, text: string) => {
    const [account, team] = [
      await read(browser, '/account'),
      await read(browser, `/stores/${store.id}/members`),
    ]
    assert.equal(account.includes(text), team.includes(text))
    return account.includes(text)
  }
  assert.equal(await sees(owner, a), false)
  await registerWallet(store, b)
  assert.deepEqual([await sees(owner, b), await sees(second, b), await sees(manager, b)], [true, true, false])
  const [, until] = /name="until" value="([^"]+)"/.exec(await read(owner.browser, '/account')) ?? []
  const known = async (touched: { storeId: string; until: string | undefined }, sent: object) => {
    const touch = await owner.browser.confirm(owner.authenticator, 'wallet.known', touched)
    return await owner.browser.post(`/stores/${store.id}/wallets/seen`, { ...sent, touch })
  }
  const storeId = store.id
  const [early, late] = ['2020-01-01T00:00:00.000Z', '2100-01-01T00:00:00.000Z']
  await isStatus(known({ storeId, until: 'soon' }, { until: 'soon' }), 422)
  await isStatus(known({ storeId, until: early }, { until: late }), 409)
  await isStatus(known({ storeId: 'st_other', until: late }, { until: late }), 409)
  await isStatus(owner.browser.post(`/stores/${store.id}/wallets/seen`, { until }), 403)
  assert.equal(await sees(owner, b), true, 'nothing but a touch for exactly that puts it away')
  await isStatus(known({ storeId, until }, { until }), 303)
  assert.deepEqual([await sees(owner, b), await sees(second, b)], [false, true])
  await isStatus(guarded.confirm(await guarded.newest()), 303)
  assert.deepEqual(
    [await sees(owner, b), await sees(second, b)],
    [true, true],
    'also what they did themselves',
  )
  await isStatus(guarded.undo(await guarded.newest(), true), 303)
  assert.deepEqual([await sees(owner, 'Undone by'), await sees(second, 'Undone by')], [true, true])
  await passTime(console, store.id, '25 hours')
  assert.deepEqual([await sees(owner, a), await sees(second, a)], [false, false])
})

test('times on the screens of wallets and members are in the store’s zone, and in UTC on the member’s own page', async () => {
  const { store, owner } = await openGuardedStore(console)
  await ctx.db.query("update stores set time_zone = 'Asia/Tokyo' where id = $1", [store.id])
  await registerWallet(store, b)
  const shown = async (path: string) => {
    const { body } = await owner.browser.get(path)
    const times = [...body.matchAll(/<time datetime="([^"]+)" title="[^"]+ UTC">([^<]+)</g)]
    assert(times.length > 0, path)
    return times.map(([, at = '', text]) => ({ at: new Date(at), text }))
  }
  const format = (timeZone: string) =>
    new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone })
  for (const path of [`/stores/${store.id}/wallets`, `/stores/${store.id}/members`])
    for (const { at, text } of await shown(path)) assert.equal(text, format('Asia/Tokyo').format(at), path)
  for (const { at, text } of await shown('/account')) assert.equal(text, `${format('UTC').format(at)} UTC`)
})
