/** What an owner does with the store's wallets without a program: adds one, proves it, stops using it, uses it again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoreStanding, Wallet } from '@farthing/sdk'
import { privateKeyToAccount } from 'viem/accounts'
import { removeAsOperator } from '../../../src/members/remove.ts'
import { listStoreMembers } from '../../../src/members/rows.ts'
import { challengeWallet } from '../../../src/stores/prove.ts'
import { decideStanding } from '../../../src/stores/standing.ts'
import { newPayer, type Payer } from '../../support/chain/evm-payment.ts'
import { operator } from '../../support/operator.ts'
import { order, registerWallet, solanaWallets } from '../../support/store.ts'
import { type Enrolled, enrolWith, inviteBy, openConsole, TestBrowser } from './support/console.ts'
import { a, b, c, type Guarded, isStatus, openGuardedStore, read, withoutTags } from './support/wallets.ts'

const console = await openConsole({ settings: { NETWORKS: 'BASE_MAINNET,BASE_SEPOLIA,SOLANA_MAINNET' } })
const { ctx } = console.farthing
const { db } = ctx

const fours = (address: string) =>
  [address.slice(0, 4), ...(address.slice(4).match(/.{1,4}/g) ?? [])]
    .map((group) => `<span>${group}</span>`)
    .join('')

/** What the screen for the touch has in its form. */
function fieldsOf(page: string, action: string): Record<string, string> {
  const [form = ''] = new RegExp(`<form[^>]*data-confirm="${action}"[\\s\\S]*?</form>`).exec(page) ?? []
  const fields = [...form.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)]
  return Object.fromEntries(
    fields.flatMap(([, name = '', value = '']) => (name === 'formToken' ? [] : [[name, value]])),
  )
}

async function enter(
  { store }: Pick<Guarded, 'store'>,
  { browser }: Enrolled,
  address: string,
  custodialType = 'NON_CUSTODIAL',
) {
  return await browser.post(`/stores/${store.id}/wallets/new`, { address, custodialType })
}

async function touched(
  { store }: Pick<Guarded, 'store'>,
  by: Enrolled,
  verb: 'use' | 'stop' | 'custody' | 'undo',
  values: Readonly<Record<string, string>>,
) {
  const touch = await by.browser.confirm(by.authenticator, `wallet.${verb}`, values)
  return await by.browser.post(`/stores/${store.id}/wallets/${verb}`, { ...values, touch })
}

/** Both screens, as a person goes through them. */
async function add(guarded: Guarded, address: string, custodialType?: string, by = guarded.owner) {
  const screen = await enter(guarded, by, address, custodialType)
  assert.equal(screen.statusCode, 200, screen.body)
  return await touched(guarded, by, 'use', fieldsOf(screen.body, 'wallet.use'))
}

async function findOwn({ list }: Guarded, address: string): Promise<Wallet> {
  return (await list()).find(({ walletAddress }) => walletAddress === address) ?? assert.fail(address)
}

const at = ({ store }: Guarded, { id }: Pick<Wallet, 'id'>, verb: string) =>
  `/stores/${store.id}/wallets/${id}/${verb}`

async function sign({ key }: Payer, message: string): Promise<string> {
  return await privateKeyToAccount(key).signMessage({ message })
}

async function standing({ store }: Guarded): Promise<StoreStanding> {
  return (await store.call('GET', '/api/v1/store')).json().standing
}

test('an owner enters an address, sees it in groups beside the one in use, and one touch puts it to use', async () => {
  const guarded = await openGuardedStore(console, { evmWallet: null })
  const { store, owner } = guarded
  assert.match(await read(owner.browser, `/stores/${store.id}/wallets`), /No wallet yet[\s\S]*wallets\/new"/)
  const first = await enter(guarded, owner, ` ${a.toLowerCase()} `)
  assert(first.body.includes(fours(a)), 'as it is written with its checksum')
  await isStatus(touched(guarded, owner, 'use', fieldsOf(first.body, 'wallet.use')), 303)
  assert.equal(await guarded.paidTo(), a)

  const second = await enter(guarded, owner, b)
  const [now, soon] = [second.body.indexOf(fours(a)), second.body.indexOf(fours(b))]
  assert(now > 0 && soon > now)
  const done = await touched(guarded, owner, 'use', fieldsOf(second.body, 'wallet.use'))
  assert.equal(done.headers.location, `/stores/${store.id}/wallets/${(await findOwn(guarded, b)).id}`)
  assert.equal(await guarded.paidTo(), b)
  assert.equal((await enter(guarded, owner, b)).statusCode, 303, 'what is in use needs no touch')
  await isStatus(add(guarded, solanaWallets[0]), 303)

  const told = (await store.events()).filter(({ type }) => type.startsWith('wallet.'))
  assert.deepEqual(
    told.map(({ type, actor, data }) => [type, actor?.name, 'wallet' in data && data.wallet.walletAddress]),
    [a, b, solanaWallets[0]].map((address) => ['wallet.registered', 'Olga', address]),
  )
  const news = await read(owner.browser, `/stores/${store.id}/members`)
  assert(news.includes(b), 'every owner is told on the next screen')
  await isStatus(guarded.undo(await guarded.newest(), false), 303)
})

test('what is no address that can be paid is refused with the reason, and a secret is not shown again', async () => {
  const guarded = await openGuardedStore(console)
  const { owner, store } = guarded
  const key = 'ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
  const cases: readonly (readonly [string, RegExp, boolean])[] = [
    ['', /not the address of a wallet/, true],
    ['shop.eth', /not the address of a wallet/, true],
    [b.slice(0, -1), /not the address of a wallet/, true],
    [b.replace('C', 'c'), /typing error/, true],
    [`0x${'0'.repeat(40)}`, /Nobody holds the keys/, true],
    ['0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', /address of a token/, true],
    [key, /secret key/, false],
    [`0x${key}`, /secret key/, false],
    ['test test test test test test test test test test test junk', /secret key/, false],
    [`[${Array.from({ length: 30 }, () => 7)}]`, /secret key/, false],
  ]
  for (const [text, reason, isKept] of cases) {
    const { statusCode, body } = await enter(guarded, owner, text)
    assert.equal(statusCode, 422, text)
    assert.match(body, reason, text)
    if (text) assert.equal(body.includes(`value="${text}"`), isKept, text)
  }
  // The screen for the touch cannot be reached by a link, which could name another wallet.
  const { statusCode } = await owner.browser.get(`/stores/${store.id}/wallets/use?address=${b}`)
  assert.equal(statusCode, 404)
  assert.equal(await guarded.paidTo(), a)
})

test('the touch is for exactly the wallet on the screen, its kind and the one that is replaced', async () => {
  const [guarded, other] = await Promise.all([openGuardedStore(console), openGuardedStore(console)])
  const { store, owner } = guarded
  const right = fieldsOf((await enter(guarded, owner, b)).body, 'wallet.use')
  assert.deepEqual(right, {
    ...{ storeId: store.id, family: 'EVM', address: b },
    ...{ custodialType: 'NON_CUSTODIAL', paidNow: a },
  })
  const path = `/stores/${store.id}/wallets/use`
  for (const change of [
    { address: c },
    { custodialType: 'CUSTODIAL' },
    { paidNow: '' },
    { paidNow: b },
    { storeId: other.store.id },
  ]) {
    const touch = await owner.browser.confirm(owner.authenticator, 'wallet.use', { ...right, ...change })
    await isStatus(owner.browser.post(path, { ...right, touch }), 409)
  }
  const touch = await owner.browser.confirm(owner.authenticator, 'wallet.use', right)
  await isStatus(owner.browser.post(path, { ...right, address: c, touch }), 409)
  await isStatus(owner.browser.post(path, right), 403)
  const foreign = await other.owner.browser.confirm(other.owner.authenticator, 'wallet.use', right)
  await isStatus(owner.browser.post(path, { ...right, touch: foreign }), 401)
  await isStatus(owner.browser.post(`/stores/${other.store.id}/wallets/use`, { ...right, touch }), 404)
  assert.equal(await guarded.paidTo(), a)
  const again = await owner.browser.confirm(owner.authenticator, 'wallet.use', right)
  const twice = await Promise.all([1, 2].map(() => owner.browser.post(path, { ...right, touch: again })))
  assert.deepEqual(twice.map(({ statusCode }) => statusCode).sort(), [303, 409])
  assert.equal(await guarded.paidTo(), b)
})

test('of two owners who look at the same wallet, the second to confirm overwrites nothing', async () => {
  const guarded = await openGuardedStore(console)
  const { store, owner } = guarded
  const second = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Second', role: 'owner' }))
  const [hers, his] = [await enter(guarded, owner, b), await enter(guarded, second, c)]
  const answers = await Promise.all([
    touched(guarded, owner, 'use', fieldsOf(hers.body, 'wallet.use')),
    touched(guarded, second, 'use', fieldsOf(his.body, 'wallet.use')),
  ])
  assert.deepEqual(answers.map(({ statusCode }) => statusCode).sort(), [303, 409])
  const paid = await guarded.paidTo()
  assert.equal(paid, answers[0]?.statusCode === 303 ? b : c)
  assert.match(answers.find(({ statusCode }) => statusCode === 409)?.body ?? '', /changed meanwhile/)

  // The same for stopping: the wallet that would follow is not the one that the screen named.
  const wallet = await findOwn(guarded, paid ?? '')
  const stop = fieldsOf(await read(owner.browser, at(guarded, wallet, 'stop')), 'wallet.stop')
  assert.equal(stop.paidNext, a)
  const key = await store.call(
    'POST',
    `/api/v1/stores/${store.id}/wallets/${(await findOwn(guarded, a)).id}/retire`,
  )
  assert.equal(key.statusCode, 200)
  await isStatus(touched(guarded, second, 'stop', stop), 409)
  assert.equal(await guarded.paidTo(), paid)
})

test('a member who loses the role, the store or the session between screen and touch changes nothing', async () => {
  const guarded = await openGuardedStore(console)
  const { store, owner } = guarded
  const join = async (name: string) =>
    await enrolWith(console, await inviteBy(owner, store.id, { name, role: 'owner' }))
  const holder = newPayer()
  await isStatus(add(guarded, holder.address), 303)
  const wallet = await findOwn(guarded, holder.address)
  const lose: readonly (readonly [string, number, (name: string) => Promise<unknown>])[] = [
    ['Demoted', 403, (name) => demote(guarded, name)],
    ['Removed', 404, (name) => remove(guarded, name)],
    [
      'Ended',
      401,
      () => db.query("delete from sessions where member_id = (select id from members where name = 'Ended')"),
    ],
  ]
  for (const [name, status, work] of lose) {
    const member = await join(name)
    const screen = fieldsOf((await enter(guarded, member, c)).body, 'wallet.use')
    const { browser, authenticator } = member
    const touch = await browser.confirm(authenticator, 'wallet.use', screen)
    const { message } = (await browser.done(at(guarded, wallet, 'challenge'))).json()
    const signature = await sign(holder, message)
    await work(name)
    // A removed member of one store is signed out.
    const expected = name === 'Removed' ? [401, 404] : [status]
    const used = await browser.post(`/stores/${store.id}/wallets/use`, { ...screen, touch })
    assert(expected.includes(used.statusCode), `${name}: ${used.statusCode}`)
    const proven = await browser.post(at(guarded, wallet, 'prove'), { signature })
    assert(expected.includes(proven.statusCode), `${name}: ${proven.statusCode}`)
    assert.equal((await findOwn(guarded, holder.address)).provenAt, null)
  }
  assert.equal(await guarded.paidTo(), holder.address)
})

async function demote({ store, owner }: Guarded, name: string): Promise<void> {
  const { id: memberId } = await findMember(store.id, name)
  const values = { storeId: store.id, memberId, role: 'viewer' }
  const touch = await owner.browser.confirm(owner.authenticator, 'member.role', values)
  await owner.browser.done(`/stores/${store.id}/members/role`, { ...values, touch })
}

async function remove({ store }: Guarded, name: string): Promise<void> {
  await removeAsOperator(ctx, store.store.id, operator, (await findMember(store.id, name)).id, new Date())
}

async function findMember(storeId: string, name: string) {
  return (await listStoreMembers(db, storeId)).find((each) => each.name === name) ?? assert.fail(name)
}

test('stopping says what follows, can be undone for a day, and the wallet can be used again', async () => {
  const guarded = await openGuardedStore(console)
  const { store, owner } = guarded
  await isStatus(add(guarded, b), 303)
  const stop = async (address: string, says: RegExp) => {
    const page = await read(owner.browser, at(guarded, await findOwn(guarded, address), 'stop'))
    assert.match(withoutTags(page), says)
    await isStatus(touched(guarded, owner, 'stop', fieldsOf(page, 'wallet.stop')), 303)
  }
  await stop(b, new RegExp(`Paid to once you confirm${a}[\\s\\S]*in use before`))
  assert.equal(await guarded.paidTo(), a)
  await stop(a, /No wallet[\s\S]*cannot be paid on Base until/)
  assert.equal(await guarded.paidTo(), null)

  const undoing = await guarded.newest()
  const page = await read(owner.browser, `/stores/${store.id}/wallets/undo/${undoing.id}`)
  assert(page.includes(fours(a)))
  const values = { ...fieldsOf(page, 'wallet.undo'), cancelsOpen: 'yes' }
  await isStatus(touched(guarded, owner, 'undo', values), 303)
  assert.equal(await guarded.paidTo(), a)
  await isStatus(owner.browser.get(`/stores/${store.id}/wallets/undo/${undoing.id}`), 409)

  const overview = await read(owner.browser, `/stores/${store.id}/wallets`)
  const [, former = ''] = overview.split('Former wallets')
  assert(former.includes(fours(b)) && former.includes('Use again') && !former.includes(fours(a)))
  await isStatus(add(guarded, b), 303)
  assert.equal(await guarded.paidTo(), b)
})

test('a wallet is proven by its own signature alone, in the browser or pasted, and a proof counts for one store', async () => {
  const holder = newPayer()
  const [mine, other] = await Promise.all([
    openGuardedStore(console, { evmWallet: holder.address }),
    openGuardedStore(console, { evmWallet: holder.address }),
  ])
  const [wallet, twin] = [await findOwn(mine, holder.address), await findOwn(other, holder.address)]
  const { browser } = mine.owner
  const challenge = async () => (await browser.done(at(mine, wallet, 'challenge'))).json().message
  const first = await challenge()
  const message = await challenge()
  for (const [text, by] of [
    [message, newPayer()],
    [first, holder],
    [message.replace(mine.store.id, other.store.id), holder],
  ] as const)
    await isStatus(browser.post(at(mine, wallet, 'prove'), { signature: await sign(by, text) }), 422)
  const signature = await sign(holder, message)
  await isStatus(other.owner.browser.post(at(other, twin, 'prove'), { signature }), 422)
  await other.owner.browser.done(at(other, twin, 'challenge'))
  await isStatus(other.owner.browser.post(at(other, twin, 'prove'), { signature }), 422)
  await isStatus(browser.post(at(mine, twin, 'prove'), { signature }), 404)
  await isStatus(browser.post(at(mine, twin, 'challenge')), 404)
  assert.equal((await findOwn(mine, holder.address)).provenAt, null)

  const both = await Promise.all([1, 2].map(() => browser.post(at(mine, wallet, 'prove'), { signature })))
  assert.deepEqual(both.map(({ statusCode }) => statusCode).sort(), [200, 422])
  assert.notEqual((await findOwn(mine, holder.address)).provenAt, null)
  assert.equal((await findOwn(other, holder.address)).provenAt, null)
  assert.equal((await mine.store.events()).at(-1)?.actor?.name, 'Olga')

  const { browser: theirs } = other.owner
  const shown = await theirs.post(at(other, twin, 'message'))
  const [, copied = ''] = /data-copy="([^"]+)"/.exec(shown.body) ?? []
  const unescaped = copied.replaceAll('&#39;', "'")
  assert.equal(unescaped.split('\n').length, 8, 'line by line, as it has to be signed')
  const wrong = await theirs.post(at(other, twin, 'signature'), {
    signature: await sign(newPayer(), unescaped),
    message: unescaped,
  })
  assert.equal(wrong.statusCode, 422)
  assert(wrong.body.includes(`data-copy="${copied}"`), 'the message is still there to be signed')
  await isStatus(
    theirs.post(at(other, twin, 'signature'), { signature: ` ${await sign(holder, unescaped)} ` }),
    303,
  )
  assert.notEqual((await findOwn(other, holder.address)).provenAt, null)
})

test('managers, developers and viewers see wallets and neither add, prove, stop nor declare anything', async () => {
  const guarded = await openGuardedStore(console)
  const { store, owner } = guarded
  const wallet = await findOwn(guarded, a)
  for (const role of ['manager', 'developer', 'viewer']) {
    const member = await enrolWith(console, await inviteBy(owner, store.id, { name: role, role }))
    const { browser } = member
    const seen = await browser.get(`/stores/${store.id}/wallets/${wallet.id}`)
    assert.equal(seen.statusCode, role === 'viewer' ? 403 : 200)
    assert.doesNotMatch(seen.body, /data-confirm|data-sign/)
    for (const path of ['new', `${wallet.id}/stop`])
      await isStatus(browser.get(`/stores/${store.id}/wallets/${path}`), 403)
    for (const path of ['new', 'use', 'stop', 'custody'])
      await isStatus(browser.post(`/stores/${store.id}/wallets/${path}`), 403)
    for (const verb of ['challenge', 'prove', 'message', 'signature'])
      await isStatus(browser.post(at(guarded, wallet, verb)), 403)
  }
})

test('a store that has to prove its wallet and says that it cannot waits for the operator, who vouches for it', async () => {
  const guarded = await openGuardedStore(console)
  const { store, owner } = guarded
  await db.query("update stores set admission = 'unproven', signed_up = true where id = $1", [store.id])
  assert.equal(await standing(guarded), 'unproven')
  const home = await read(owner.browser, `/stores/${store.id}`)
  assert.match(home, /Not open yet[\s\S]*Prove that your wallet is yours/)

  const wallet = await findOwn(guarded, a)
  const page = await read(owner.browser, `/stores/${store.id}/wallets/${wallet.id}`)
  assert.match(withoutTags(page), /No payment can be refunded[\s\S]*waits until the operator/)
  const values = fieldsOf(page, 'wallet.custody')
  assert.deepEqual(values, { storeId: store.id, walletId: wallet.id, address: a })
  const other = await openGuardedStore(console)
  await isStatus(owner.browser.post(`/stores/${store.id}/wallets/custody`, values), 403)
  await isStatus(touched(guarded, other.owner, 'custody', values), 404)
  await isStatus(touched(guarded, owner, 'custody', values), 303)
  assert.equal(await standing(guarded), 'waiting')
  assert.equal((await store.call('POST', '/api/v1/checkouts', order)).json().code, 'store_inactive')
  const [last] = (await store.events()).filter(({ type }) => type === 'wallet.updated')
  assert(last && 'wallet' in last.data && last.data.wallet.custodialType === 'CUSTODIAL')
  const said = await read(owner.browser, `/stores/${store.id}`)
  assert.match(said, /as soon as the operator of this service has approved it/)
  assert.doesNotMatch(said, /Prove that your wallet is yours/)

  // A wallet that can sign is the other way out.
  const holder = newPayer()
  await isStatus(add(guarded, holder.address), 303)
  assert.equal(await standing(guarded), 'unproven')
  await isStatus(add(guarded, a), 303)
  assert.equal(await standing(guarded), 'waiting', 'it is still custodial')
  await db.transaction((tx) =>
    decideStanding(ctx, tx, {
      ...{ storeId: store.store.id, actor: operator, now: new Date() },
      decision: { verb: 'approve' },
    }),
  )
  assert.equal(await standing(guarded), 'approved')
  await store.create()
})

test('a custodial wallet that signs after all is proven, and a proven one cannot be called custodial', async () => {
  const holder = newPayer()
  const guarded = await openGuardedStore(console, { evmWallet: null })
  const { store, owner } = guarded
  await db.query("update stores set admission = 'unproven' where id = $1", [store.id])
  await isStatus(add(guarded, holder.address, 'CUSTODIAL'), 303)
  assert.equal(await standing(guarded), 'waiting')
  const wallet = await findOwn(guarded, holder.address)
  const { message } = (await owner.browser.done(at(guarded, wallet, 'challenge'))).json()
  await owner.browser.done(at(guarded, wallet, 'prove'), { signature: await sign(holder, message) })
  assert.equal(await standing(guarded), 'approved')
  const values = { storeId: store.id, walletId: wallet.id, address: holder.address }
  await isStatus(touched(guarded, owner, 'custody', values), 409)
})

test('a wallet that a key asked for is not put to use by an owner’s session without a touch', async () => {
  const guarded = await openGuardedStore(console)
  const { owner } = guarded
  const holder = newPayer()
  const asked = await registerWallet(guarded.store, holder.address)
  const { message } = await challengeWallet(ctx, guarded.store.store, asked.id, new Date())
  await owner.browser.done(at(guarded, asked, 'prove'), { signature: await sign(holder, message) })
  assert.equal(await guarded.paidTo(), a)
  const waiting = await findOwn(guarded, holder.address)
  assert.deepEqual([waiting.confirmationRequired, waiting.current], [true, false])
})

test('no screen of the wallets can be put into a frame, whatever the answer', async () => {
  const guarded = await openGuardedStore(console)
  const { store, owner } = guarded
  const wallet = await findOwn(guarded, a)
  const answers = await Promise.all([
    owner.browser.get(`/stores/${store.id}/wallets`),
    owner.browser.get(`/stores/${store.id}/wallets/new`),
    owner.browser.get(`/stores/${store.id}/wallets/${wallet.id}`),
    owner.browser.get(at(guarded, wallet, 'stop')),
    enter(guarded, owner, b),
    enter(guarded, owner, 'x'),
    owner.browser.post(at(guarded, wallet, 'message')),
    new TestBrowser(console).get('/sign-in'),
  ])
  for (const { headers } of answers) {
    assert.equal(headers['x-frame-options'], 'DENY')
    assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/)
  }
})
