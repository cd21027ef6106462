/** Undoing changes of the wallet that is paid; what survives a failure in between; and histories against a small model. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cancelUndone } from '../../src/checkouts/cancel.ts'
import { registerWallet as registerByVerb } from '../../src/stores/wallets.ts'
import { openConsole } from '../http/console/support/console.ts'
import {
  a,
  b,
  c,
  type Guarded,
  isStatus,
  openGuardedStore,
  passTime,
  readPayTo,
} from '../http/console/support/wallets.ts'
import { runs } from '../support/full.ts'
import { operator } from '../support/operator.ts'
import { registerWallet } from '../support/store.ts'

const console = await openConsole()
const { ctx } = console.farthing

const statusOf = async ({ store }: Guarded, checkoutId: string) =>
  (await store.call('GET', `/api/v1/checkouts/${checkoutId}`)).json().status
const cancelAll = async () => {
  while (await cancelUndone(ctx, ctx.now()));
}

test('undoing a change undoes all after it, so a thief who changed the wallet twice gains nothing', async () => {
  const guarded = await openGuardedStore(console)
  const { store } = guarded
  await isStatus(guarded.set('key'), 303)
  const before = await store.create()
  await registerWallet(store, b)
  const toB = await store.create()
  const first = await guarded.newest()
  const { id: aId } = (await guarded.list()).find(({ walletAddress }) => walletAddress === a) ?? assert.fail()
  await store.call('POST', `/api/v1/stores/${store.id}/wallets/${aId}/retire`)
  await registerWallet(store, c)
  const toC = await store.create()
  const second = await guarded.newest()

  await isStatus(guarded.undo(first, true), 303)
  assert.equal(await guarded.paidTo(), a, 'also though it was retired meanwhile')
  await cancelAll()
  const statuses = [before, toB, toC].map(({ id }) => statusOf(guarded, id))
  assert.deepEqual(await Promise.all(statuses), ['OPEN', 'CANCELED', 'CANCELED'])
  await isStatus(guarded.undo(first, true), 409)
  await isStatus(guarded.undo(second, true), 409)
  assert.deepEqual(
    (await guarded.list()).map(({ walletAddress, current }) => [walletAddress, current]),
    [[a, true]],
  )
  const events = (await store.events()).slice(-6)
  assert.deepEqual(
    events.map(({ type, actor }) => [type, actor?.type]),
    [
      ['wallet.retired', 'member'],
      ['wallet.retired', 'member'],
      ['wallet.undone', 'member'],
      ['checkout.created', 'key'],
      ['checkout.canceled', 'member'],
      ['checkout.canceled', 'member'],
    ],
  )
})

test('without canceling, open checkouts keep what they were created with', async () => {
  const guarded = await openGuardedStore(console)
  await registerWallet(guarded.store, b)
  await isStatus(guarded.confirm(await guarded.newest()), 303)
  const { id } = await guarded.store.create()
  await isStatus(guarded.undo(await guarded.newest(), false), 303)
  await cancelAll()
  assert.deepEqual([await statusOf(guarded, id), await readPayTo(console, id)], ['OPEN', b])
})

test('a checkout that opens again after a failed payment, or commits late, is canceled too', async () => {
  const guarded = await openGuardedStore(console)
  await registerWallet(guarded.store, b)
  await isStatus(guarded.confirm(await guarded.newest()), 303)
  const { id } = await guarded.store.create()
  const setStatus = (status: string) =>
    ctx.db.query('update checkouts set status = $2 where id = $1', [id, status])
  await setStatus('PROCESSING')
  await isStatus(guarded.undo(await guarded.newest(), true), 303)
  await cancelAll()
  assert.equal(await statusOf(guarded, id), 'PROCESSING', 'what is being settled is left alone')
  await setStatus('OPEN')
  await cancelAll()
  assert.equal(await statusOf(guarded, id), 'OPEN', 'the next look is half a minute later')
  await ctx.db.query('update wallet_changes set cancel_at = clock() where cancel_at is not null')
  await cancelAll()
  assert.equal(await statusOf(guarded, id), 'CANCELED')
  await ctx.db.query(
    "update wallet_changes set cancel_at = clock(), undone_at = undone_at - interval '30 minutes' where cancel_at is not null",
  )
  await cancelAll()
  assert.deepEqual(await ctx.db.query('select 1 as one from wallet_changes where cancel_at is not null'), [])
})

test('a change can be undone for 24 hours, the first wallet and a retirement too', async () => {
  const guarded = await openGuardedStore(console, { evmWallet: null })
  const wallet = await registerWallet(guarded.store, b)
  await isStatus(guarded.confirm(await guarded.newest()), 303)
  await guarded.store.call('POST', `/api/v1/stores/${guarded.store.id}/wallets/${wallet.id}/retire`)
  await isStatus(guarded.confirm(await guarded.newest()), 303)
  assert.equal(await guarded.paidTo(), null)
  await isStatus(guarded.undo(await guarded.newest(), true), 303)
  assert.equal(await guarded.paidTo(), b)
  const [, first = assert.fail()] = await guarded.changes()
  await isStatus(guarded.undo(first, true), 303)
  assert.equal(await guarded.paidTo(), null)

  await registerWallet(guarded.store, c)
  await isStatus(guarded.confirm(await guarded.newest()), 303)
  const old = await guarded.newest()
  await passTime(console, guarded.store.id, '24 hours')
  await isStatus(guarded.undo(old, true), 409)
  assert.equal(await guarded.paidTo(), c)
})

test('confirming and undoing happen completely or not at all, and a touch that failed with them still counts', async () => {
  const guarded = await openGuardedStore(console)
  const { store, owner } = guarded
  await registerWallet(store, b)
  const change = await guarded.newest()
  const tryTwice = async (
    path: string,
    action: string,
    values: Readonly<Record<string, string>>,
    stays: string,
  ) => {
    const touch = await owner.browser.confirm(owner.authenticator, action, { storeId: store.id, ...values })
    const attempt = () => owner.browser.post(`/stores/${store.id}/wallets/${path}`, { ...values, touch })
    const before = await guarded.changes()
    // The last thing that either writes is its event.
    await ctx.db.query(
      "create function fail() returns trigger language plpgsql as 'begin raise exception ''no''; end'",
    )
    await ctx.db.query('create trigger fail before insert on events for each row execute function fail()')
    await isStatus(attempt(), 500)
    await ctx.db.query('drop function fail cascade')
    assert.deepEqual(await guarded.changes(), before)
    assert.equal(await guarded.paidTo(), stays)
    await isStatus(attempt(), 303)
  }
  await tryTwice('confirm', 'wallet.confirm', { changeId: change.id, kind: 'use', address: b }, a)
  assert.equal(await guarded.paidTo(), b)
  await tryTwice('undo', 'wallet.undo', { changeId: change.id, address: a, cancelsOpen: 'yes' }, b)
  assert.equal(await guarded.paidTo(), a)
})

test('while wallets are confirmed and undone, every checkout pays to the wallet that was current when it was made', async () => {
  const guarded = await openGuardedStore(console)
  const { store } = guarded
  const make = () => store.create()
  for (let round = 0; round < 3; round++) {
    await registerWallet(store, b)
    const change = await guarded.newest()
    const [once, twice] = await Promise.all([
      guarded.confirm(change),
      guarded.confirm(change),
      make(),
      make(),
    ])
    assert.deepEqual([once.statusCode, twice.statusCode].sort(), [303, 409])
    const confirmed = await make()
    const made = await guarded.newest()
    const [undone, undoneToo] = await Promise.all([
      guarded.undo(made, true),
      guarded.undo(made, true),
      make(),
      make(),
    ])
    const after = await make()
    assert.deepEqual([undone.statusCode, undoneToo.statusCode].sort(), [303, 409])
    assert.equal(await readPayTo(console, confirmed.id), b)
    assert.equal(await readPayTo(console, after.id), a)
    await cancelAll()
    const [left] = await ctx.db.query<{ count: number }>(
      `select count(*)::integer as count from checkouts
       where store_id = $1 and status = 'OPEN' and options -> 0 ->> 'payTo' <> $2`,
      [store.id, a],
    )
    assert.equal(left?.count, 0)
  }
})

test('a confirmation that races with another request confirms what its owner saw, or nothing', async () => {
  const guarded = await openGuardedStore(console)
  for (let round = 0; round < 5; round++) {
    await registerWallet(guarded.store, b)
    const [answer] = await Promise.all([
      guarded.confirm(await guarded.newest()),
      registerWallet(guarded.store, c),
    ])
    assert.equal(await guarded.paidTo(), answer.statusCode === 303 ? b : a)
    const [waiting, made = assert.fail()] = await guarded.changes()
    assert.deepEqual([waiting?.isWaiting, waiting?.wallet.address], [true, c])
    if (answer.statusCode === 303) await isStatus(guarded.undo(made, true), 303)
  }
})

/** What should be: active wallets in the order in which they were last put to use, and the changes. */
type Change = { kind: 'use' | 'retire'; address: string; previous: string | undefined; isOver: boolean }
class Model {
  active: string[] = [a]
  waiting: Pick<Change, 'kind' | 'address'> | null = null
  made: Change[] = [{ kind: 'use', address: a, previous: undefined, isOver: false }]

  get current() {
    return this.active.at(-1)
  }
  make(kind: Change['kind'], address: string) {
    this.made.push({ kind, address, previous: this.current, isOver: false })
    this.active = [...this.active.filter((each) => each !== address), ...(kind === 'use' ? [address] : [])]
    this.waiting = null
  }
  undo(from: number) {
    const { previous } = this.made[from] ?? assert.fail()
    for (const change of this.made.slice(from).filter(({ isOver }) => !isOver)) {
      change.isOver = true
      if (change.kind === 'use') this.active = this.active.filter((each) => each !== change.address)
    }
    if (previous) this.active = [...this.active.filter((each) => each !== previous), previous]
    this.waiting = null
  }
}

const address = fc.constantFrom(a, b, c)
const step = fc.oneof(
  fc.record({ does: fc.constant('ask' as const), address }),
  fc.record({ does: fc.constant('operate' as const), address }),
  fc.record({ does: fc.constant('undo' as const), at: fc.nat(5) }),
  fc.record({ does: fc.constantFrom('retire', 'confirm', 'confirm', 'refuse', 'week', 'choose') }),
)

test('any history of asking, confirming, refusing, undoing and waiting leaves the wallet that the model says', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
      const guarded = await openGuardedStore(console)
      const model = new Model()
      let needsOwner = true
      for (const each of steps) {
        const changes = await guarded.changes()
        const waiting = changes.find(({ isWaiting }) => isWaiting)
        if ('address' in each) {
          if (each.does === 'ask') await registerWallet(guarded.store, each.address)
          else {
            const input = { walletAddress: each.address, custodialType: 'NON_CUSTODIAL' } as const
            await registerByVerb(
              ctx,
              guarded.store.store.id,
              operator,
              { family: 'EVM', ...input },
              new Date(),
            )
          }
          if (each.address === model.current) model.waiting = null
          else if (each.does === 'ask' && needsOwner) model.waiting = { kind: 'use', address: each.address }
          else model.make('use', each.address)
        } else if ('at' in each) {
          const undoable = changes.filter(({ isUndoable }) => isUndoable).reverse()
          const expected = model.made.flatMap(({ isOver }, i) => (isOver ? [] : [i]))
          assert.equal(undoable.length, expected.length)
          const [change, place] = [undoable[each.at % undoable.length], expected[each.at % undoable.length]]
          if (!change || place === undefined) continue
          await isStatus(guarded.undo(change, true), 303)
          model.undo(place)
        } else if (each.does === 'retire') {
          const current = (await guarded.list()).find(({ current }) => current)
          if (!current || !model.current) continue
          await guarded.store.call('POST', `/api/v1/stores/${guarded.store.id}/wallets/${current.id}/retire`)
          if (needsOwner) model.waiting = { kind: 'retire', address: model.current }
          else model.make('retire', model.current)
        } else if (each.does === 'choose') {
          needsOwner = !needsOwner
          await isStatus(guarded.set(needsOwner ? 'member' : 'key'), 303)
        } else if (each.does === 'week') {
          await passTime(console, guarded.store.id, '7 days')
          model.waiting = null
          for (const change of model.made) change.isOver = true
        } else if (waiting && model.waiting) {
          await isStatus(each.does === 'confirm' ? guarded.confirm(waiting) : guarded.refuse(waiting), 303)
          if (each.does === 'confirm') model.make(model.waiting.kind, model.waiting.address)
          model.waiting = null
        }
        const list = await guarded.list()
        const now = (await guarded.changes()).find(({ isWaiting }) => isWaiting)
        assert.deepEqual(
          list.filter(({ current }) => current).map(({ walletAddress }) => walletAddress),
          model.active.slice(-1),
        )
        assert.deepEqual(now ? { kind: now.kind, address: now.wallet.address } : null, model.waiting)
        assert.equal(await guarded.paidTo(), model.current ?? null)
      }
    }),
    runs(10, 2_000),
  )
})
