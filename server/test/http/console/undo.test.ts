/** A member's decision is held back for ten seconds, in which it can be undone. Either it is undone or it is applied, once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyDecisions, forgetDecisions } from '../../../src/checkouts/payments/apply-decisions.ts'
import { creditByHand, setStatus } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { openAs } from '../../support/database.ts'
import { applyHeld } from '../../support/decide.ts'
import { openBrowser } from '../page/support/browser.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore, type TestBrowser } from './support/console.ts'
import { openSignedIn } from './support/furnished.ts'

const console = await openConsole({ listens: true })
const { farthing } = console
const { ctx, databaseUrl } = farthing
const { db } = ctx
const work = { ...ctx, db: openAs('work', databaseUrl) }
const consoleRole = openAs('console', databaseUrl)
const chromium = await openBrowser()

async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  return { store, owner, path: `/stores/${store.id}/inbox` }
}

type Shop = Awaited<ReturnType<typeof openShop>>

async function receive({ store }: Shop, orderId = '1271') {
  const { id } = await store.create({ orderId })
  return { checkoutId: id, paymentId: await creditByHand(farthing, id) }
}

const accept = (browser: TestBrowser, { path }: Shop, fields: Record<string, string>) =>
  browser.post(`${path}/accept`, fields)

const textOf = (body: string) => body.replaceAll(/<[^>]+>/g, '').replaceAll(/\s+/g, ' ')

const saidOf = ({ headers }: { headers: object }) =>
  /[?&]said=(\w+)/.exec(String('location' in headers ? headers.location : ''))?.[1] ?? null

/** An API key's decision, carried out. */
async function decideByKey({ store }: Shop, path: string, body?: object): Promise<void> {
  const answer = store.call('POST', `/api/v1/payments/${path}`, body)
  for (let applied = 0; applied === 0; ) applied = await applyDecisions(work, ctx.now())
  assert.equal((await answer).statusCode, 200)
}

async function togetherOf(paymentId: string): Promise<string> {
  const [row] = await db.query<{ together: string }>(
    'select together from decisions where payment_id = $1 and due_at is not null',
    [paymentId],
  )
  return row?.together ?? ''
}

async function isAccepted(paymentId: string): Promise<boolean> {
  const [row] = await db.query<{ is: boolean }>(
    'select accepted_at is not null as is from credits where payment_id = $1',
    [paymentId],
  )
  return row?.is ?? false
}

async function countTold({ store }: Shop, type: string): Promise<number> {
  return (await store.events()).filter((event) => event.type === type).length
}

test('what was accepted stays in its place with an Undo, is not applied for ten seconds, and then once', async () => {
  const shop = await openShop()
  const { owner, path } = shop
  const { paymentId, checkoutId } = await receive(shop)
  const first = await accept(owner.browser, shop, { paymentId, checkoutId })
  const again = await accept(owner.browser, shop, { paymentId, checkoutId })
  assert.equal(first.headers.location, `${path}?payment=${paymentId}#${paymentId}`)
  assert.equal(again.headers.location, first.headers.location, 'a double click is one decision')
  assert.equal(await applyDecisions(work, ctx.now()), 0)
  const { body } = await owner.browser.get(path)
  assert.match(
    body,
    new RegExp(`<div class="item decided" id="${paymentId}">.*Accepted for .*1271.*>Undo<`, 's'),
  )
  assert(!body.includes('to decide</span>') && !body.includes('Yes, accept it'))
  const [row] = await db.query<{ seconds: number }>(
    'select extract(epoch from due_at - created_at)::integer as seconds from decisions where payment_id = $1',
    [paymentId],
  )
  assert.equal(row?.seconds, 10)
  assert.equal(await applyHeld(farthing), 1)
  assert.equal(await applyHeld(farthing), 0)
  assert.equal(await countTold(shop, 'payment.accepted'), 1)
  const after = (await owner.browser.get(path)).body
  assert.match(after, new RegExp(`<div class="item decided" id="${paymentId}">.*Accepted for .*1271`, 's'))
  assert(!after.includes('>Undo<'))
})

test('what is undone was never decided, in another browser too; what is applied cannot be undone', async () => {
  const shop = await openShop()
  const { owner, path, store } = shop
  const max = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'manager' }))
  const viewer = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Vera', role: 'viewer' }))
  const stranger = await openShop()
  const { paymentId, checkoutId } = await receive(shop)
  await accept(owner.browser, shop, { paymentId, checkoutId })
  const together = await togetherOf(paymentId)
  assert.equal((await viewer.browser.post(`${path}/undo`, { together, paymentId })).statusCode, 403)
  await stranger.owner.browser.post(`${stranger.path}/undo`, { together, paymentId })
  assert.equal(await togetherOf(paymentId), together, 'another store undoes nothing here')
  const undone = await max.browser.post(`${path}/undo`, { together, paymentId })
  assert.match(String(undone.headers.location), /said=undone$/)
  assert.equal(await applyHeld(farthing), 0)
  assert.equal(await isAccepted(paymentId), false)
  assert((await owner.browser.get(path)).body.includes('1 to decide'))
  await accept(owner.browser, shop, { paymentId, checkoutId })
  assert.equal(await applyHeld(farthing), 1)
  const late = await owner.browser.post(`${path}/undo`, { together: await togetherOf(paymentId), paymentId })
  assert.match(String(late.headers.location), /said=tooLate$/)
  assert.equal(await isAccepted(paymentId), true)
  for (const told of ['', 'dec_x', '<b>'])
    assert.match(
      String((await owner.browser.post(`${path}/undo`, { together: told, paymentId })).headers.location),
      /said=nothing$/,
    )
})

test('of undoing and applying at the same moment exactly one happens', async () => {
  const shop = await openShop()
  const { owner, path, store } = shop
  const races: { paymentId: string; together: string }[] = []
  for (let i = 0; i < 12; i++) {
    const { paymentId, checkoutId } = await receive(shop, `race ${i}`)
    await accept(owner.browser, shop, { paymentId, checkoutId })
    races.push({ paymentId, together: await togetherOf(paymentId) })
  }
  await db.query('update decisions set due_at = clock() where store_id = $1', [store.id])
  const [answers] = await Promise.all([
    Promise.all(races.map((race) => owner.browser.post(`${path}/undo`, race))),
    ...[1, 2, 3].map(() => applyDecisions(work, ctx.now())),
  ])
  await applyDecisions(work, ctx.now())
  for (const [i, { paymentId }] of races.entries()) {
    const isUndone = /said=undone$/.test(String(answers[i]?.headers.location))
    assert.equal(await isAccepted(paymentId), !isUndone, `race ${i}`)
  }
  const accepted =
    races.length - answers.filter(({ headers }) => /undone$/.test(String(headers.location))).length
  assert.equal(await countTold(shop, 'payment.accepted'), accepted)
})

test('a process that dies while it applies a decision neither loses nor repeats it', async () => {
  const shop = await openShop()
  const { paymentId, checkoutId } = await receive(shop)
  await accept(shop.owner.browser, shop, { paymentId, checkoutId })
  await db.query('update decisions set due_at = clock() where payment_id = $1', [paymentId])
  const dying = openAs('work', databaseUrl)
  await db.transaction(async (tx) => {
    await tx.query('select 1 as one from checkouts where id = $1 for update', [checkoutId])
    const applying = assert.rejects(applyDecisions({ ...ctx, db: dying }, ctx.now()))
    for (let killed = 0; killed === 0; )
      killed = (
        await db.query(
          `select pg_terminate_backend(pid) as gone from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock' and query like '%checkouts%'`,
        )
      ).length
    await applying
  })
  assert.equal(await isAccepted(paymentId), false)
  assert.equal(await applyDecisions(work, ctx.now()), 1)
  assert.equal(await isAccepted(paymentId), true)
  assert.equal(await countTold(shop, 'payment.accepted'), 1)
})

test('two members cannot hold different decisions about one payment, whichever came first', async () => {
  const shop = await openShop()
  const { owner, path, store } = shop
  const max = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'manager' }))
  const { paymentId, checkoutId } = await receive(shop)
  const other = await store.create({ orderId: '1272' })
  const answers = await Promise.all([
    accept(owner.browser, shop, { paymentId, checkoutId }),
    accept(max.browser, shop, { paymentId, checkoutId: other.id }),
    max.browser.post(`${path}/dismiss`, { paymentId }),
  ])
  const refused = answers.filter(({ headers }) => /said=payment_not_open$/.test(String(headers.location)))
  assert.equal(refused.length, 2)
  assert.equal(await applyHeld(farthing), 1)
  const told = (await store.events()).filter(({ type }) => /^payment\.(accepted|dismissed)$/.test(type))
  assert.equal(told.length, 1)
})

test('a member who loses the right, the store or the session within the ten seconds has decided nothing', async () => {
  const shop = await openShop()
  const { owner, path, store } = shop
  const take = {
    right: (id: string) =>
      db.query("update memberships set role = 'viewer' where member_id = $1 and store_id = $2", [
        id,
        store.id,
      ]),
    store: (id: string) =>
      db.query('delete from memberships where member_id = $1 and store_id = $2', [id, store.id]),
    session: (id: string) => db.query('delete from sessions where member_id = $1', [id]),
  }
  for (const [name, lose] of Object.entries(take)) {
    const max = await enrolWith(console, await inviteBy(owner, store.id, { name, role: 'manager' }))
    const { paymentId, checkoutId } = await receive(shop, name)
    await accept(max.browser, shop, { paymentId, checkoutId })
    const [member] = await db.query<{ id: string }>(
      "select actor->>'id' as id from decisions where payment_id = $1",
      [paymentId],
    )
    await lose(member?.id ?? '')
    assert.equal(await applyHeld(farthing), 1)
    assert.equal(await isAccepted(paymentId), false, name)
    const { body } = await owner.browser.get(`${path}?payment=${paymentId}`)
    assert(body.includes(`id="${paymentId}" open`) && body.includes('may no longer decide about payments'))
    await accept(owner.browser, shop, { paymentId, checkoutId })
    assert.equal(await applyHeld(farthing), 1)
    assert.equal(await isAccepted(paymentId), true, 'somebody else can still decide')
  }
})

test('a key’s same decision is applied at once and takes the place of the held one; another one is refused in its turn', async () => {
  const shop = await openShop()
  const { owner, store } = shop
  const { paymentId, checkoutId } = await receive(shop)
  await accept(owner.browser, shop, { paymentId, checkoutId })
  const answer = store.call('POST', `/api/v1/payments/${paymentId}/accept`, { checkoutId })
  for (let applied = 0; applied === 0; ) applied = await applyDecisions(work, ctx.now())
  assert.equal((await answer).statusCode, 200)
  const [told] = (await store.events()).filter(({ type }) => type === 'payment.accepted')
  assert.equal(told?.actor?.type, 'key')
  assert.equal(await applyHeld(farthing), 0)
  const late = await receive(shop, 'late')
  await accept(owner.browser, shop, late)
  const dismissed = store.call('POST', `/api/v1/payments/${late.paymentId}/dismiss`)
  for (let applied = 0; applied === 0; ) applied = await applyDecisions(work, ctx.now())
  assert.equal((await dismissed).statusCode, 200)
  assert.equal(await applyHeld(farthing), 1)
  assert.equal(await isAccepted(late.paymentId), false)
})

test('what became impossible within the ten seconds is said at the payment, which waits again', async () => {
  const shop = await openShop()
  const { owner, path } = shop
  const { paymentId, checkoutId } = await receive(shop)
  await accept(owner.browser, shop, { paymentId, checkoutId })
  await setStatus(farthing, checkoutId, 'COMPLETED')
  assert.equal(await applyHeld(farthing), 1)
  const { body } = await owner.browser.get(`${path}?payment=${paymentId}`)
  assert(textOf(body).includes('It was not accepted for 1271. That checkout is paid already.'))
  assert(body.includes(`id="${paymentId}" open`))
  const again = await accept(owner.browser, shop, { paymentId, checkoutId })
  assert.match(String(again.headers.location), /said=already_paid$/)
})

test('a member who decides what another one has just decided is told at once, and sees it when the first loses the session', async () => {
  const shop = await openShop()
  const { owner, path, store } = shop
  const max = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'manager' }))
  const page = await openSignedIn(chromium, console, max, { javaScriptEnabled: true })
  await page.clock.install()
  for (const kind of ['accept', 'dismiss'] as const) {
    const { paymentId, checkoutId } = await receive(shop, kind)
    const asked = kind === 'accept' ? { paymentId, checkoutId } : { paymentId }
    assert.equal(saidOf(await owner.browser.post(`${path}/${kind}`, asked)), null)
    assert.equal(saidOf(await owner.browser.post(`${path}/${kind}`, asked)), null, 'a double click')
    const second = await max.browser.post(`${path}/${kind}`, asked)
    assert.equal(saidOf(second), 'theirs')
    await page.goto(`${console.url}${second.headers.location}`)
    await page.getByText('Only that decision counts').waitFor()
    await page.locator(`#${paymentId}`).getByText('by Olga').waitFor()
    await db.query("update decisions set session_id = 'gone' where payment_id = $1", [paymentId])
    assert.equal(await applyHeld(farthing), 1)
    await page.clock.fastForward(5_000)
    await page.locator(`#${paymentId}`).getByText('Whoever decided was signed out').waitFor()
    assert.equal(saidOf(await max.browser.post(`${path}/${kind}`, asked)), null)
    assert.equal(await applyHeld(farthing), 1)
  }
  assert.equal(await countTold(shop, 'payment.accepted'), 1)
  assert.equal(await countTold(shop, 'payment.dismissed'), 1)
  await page.context().close()
})

test('an open inbox says by itself that a payment was not accepted because the network took it back, for a day', async () => {
  const shop = await openShop()
  const { owner, path } = shop
  const page = await openSignedIn(chromium, console, owner, { javaScriptEnabled: true })
  await page.clock.install()
  const { paymentId, checkoutId } = await receive(shop)
  await accept(owner.browser, shop, { paymentId, checkoutId })
  await page.goto(`${console.url}${path}?payment=${paymentId}`)
  await page.getByRole('button', { name: 'Undo' }).waitFor()
  await db.query('update credits set orphaned_at = clock() where payment_id = $1', [paymentId])
  await page.clock.fastForward(5_000)
  await page.locator('.decided').waitFor({ state: 'detached' })
  assert.equal(await applyHeld(farthing), 1)
  await page.reload()
  const said = page.getByText('was not accepted for 1271: the network took the payment back')
  await said.waitFor()
  const later = (hours: number) =>
    db.query(
      'update decisions set created_at = created_at - make_interval(hours => $2), decided_at = decided_at - make_interval(hours => $2) where payment_id = $1',
      [paymentId, hours],
    )
  await later(22)
  await page.reload()
  await said.waitFor()
  await db.query('update credits set orphaned_at = null where payment_id = $1', [paymentId])
  await page.reload()
  await page.locator(`#${paymentId}[open]`).getByText('It was not accepted for 1271.').waitFor()
  await later(3)
  await forgetDecisions(work)
  assert(!textOf((await owner.browser.get(path)).body).includes('not accepted'))
  await page.context().close()
})

test('whatever a decision is refused for, the payment says so, until the next decision', async () => {
  const shop = await openShop()
  const { owner, path } = shop
  const refused = [
    ['already_paid', 'That checkout is paid already.'],
    ['payment_refunded', 'This payment is being refunded'],
    ['wallet_unproven', 'Another store has registered the same wallet.'],
    ['unforeseen', 'Something about the payment or the order had changed'],
  ] as const
  for (const [code, sentence] of refused) {
    const { paymentId, checkoutId } = await receive(shop, code)
    await accept(owner.browser, shop, { paymentId, checkoutId })
    await db.query(
      `update decisions set decided_at = clock(), outcome = $2, created_at = created_at - interval '3 hours'
       where payment_id = $1`,
      [paymentId, JSON.stringify({ problem: { code, detail: '', extras: {} } })],
    )
    const { body } = await owner.browser.get(path)
    assert(textOf(body).includes(`It was not accepted for ${code}. ${sentence}`), code)
    assert.equal(body.split('>Not accepted<').length, 2)
    await owner.browser.post(`${path}/dismiss`, { paymentId })
    assert(!(await owner.browser.get(path)).body.includes('>Not accepted<'), 'the next decision counts')
    await applyHeld(farthing)
  }
})

test('Undo says what holds after a key, another member or both have decided', async () => {
  const shop = await openShop()
  const { owner, path, store } = shop
  const max = await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'manager' }))
  const undo = async (fields: Record<string, string>) =>
    saidOf(await owner.browser.post(`${path}/undo`, fields))

  const one = await receive(shop, 'by key')
  await accept(owner.browser, shop, one)
  const asked = { together: await togetherOf(one.paymentId), paymentId: one.paymentId }
  await decideByKey(shop, `${one.paymentId}/accept`, { checkoutId: one.checkoutId })
  assert.equal(await undo(asked), 'tooLate')
  const { body } = await owner.browser.get(path)
  assert.match(textOf(body), /Accepted for by key by /, 'it keeps its place and names the key')
  assert(!body.includes('>Undo<'))

  const two = await receive(shop, 'undone, then by key')
  await accept(owner.browser, shop, two)
  const again = { together: await togetherOf(two.paymentId), paymentId: two.paymentId }
  await max.browser.post(`${path}/undo`, again)
  assert.equal(await undo(again), 'undone', 'it is undone, whoever did it')
  await accept(max.browser, shop, two)
  assert.equal(await undo(again), 'nothing', 'another decision waits')
  await decideByKey(shop, `${two.paymentId}/accept`, { checkoutId: two.checkoutId })
  assert.equal(await undo(again), 'nothing')

  const three = [await receive(shop, '3'), await receive(shop, '4')]
  await owner.browser.post(`${path}/dismiss-all`, { kind: 'unmatched', newest: three[1]?.paymentId ?? '' })
  const together = await togetherOf(three[0]?.paymentId ?? '')
  assert.equal(together, await togetherOf(three[1]?.paymentId ?? ''))
  await decideByKey(shop, `${three[0]?.paymentId}/dismiss`)
  assert.equal(await undo({ together }), 'undonePartly')
  assert.equal(await undo({ together }), 'tooLate')
  assert.equal(await countTold(shop, 'payment.dismissed'), 1)
})

test('while work stands still a decision waits and can be undone; then it is carried out', async () => {
  const shop = await openShop()
  const { owner, path } = shop
  const page = await openSignedIn(chromium, console, owner, { javaScriptEnabled: true })
  await page.clock.install()
  const [first, second] = [await receive(shop, 'first'), await receive(shop, 'second')]
  for (const each of [first, second]) await accept(owner.browser, shop, each)
  await db.query(
    "update decisions set due_at = due_at - interval '1 minute', created_at = created_at - interval '1 minute' where store_id = $1",
    [shop.store.id],
  )
  await page.goto(`${console.url}${path}`)
  for (let looks = 0; looks < 3; looks++) {
    const again = page.waitForResponse((answer) => answer.url().endsWith('/inbox'))
    await page.clock.fastForward(5_000)
    await again
  }
  await page.locator(`#${second.paymentId} .undo button`).click()
  await page.getByText('Undone. Nothing was decided.').waitFor()
  assert.equal(await applyDecisions(work, ctx.now()), 1)
  await page.clock.fastForward(5_000)
  await page.locator(`#${first.paymentId} .undo`).waitFor({ state: 'detached' })
  assert.equal(await page.locator(`#${first.paymentId}`).getByText('Accepted for first').count(), 1)
  assert.equal(await isAccepted(second.paymentId), false)
  await page.context().close()
})

test('a taken console takes nothing out of the queue but what it holds back', async () => {
  const shop = await openShop()
  const { paymentId, checkoutId } = await receive(shop)
  await accept(shop.owner.browser, shop, { paymentId, checkoutId })
  await applyHeld(farthing)
  await db.query(
    `insert into decisions (id, store_id, payment_id, kind, actor, created_at)
     values ($1, $2, $1, 'dismiss', '{}', clock())`,
    [`dec_${shop.store.id}`, shop.store.id],
  )
  const gone = await consoleRole.transaction(async (tx) => {
    await tx.query("select set_config('farthing.store', $1, true)", [shop.store.id])
    return await tx.query('delete from decisions returning id')
  })
  assert.equal(gone.length, 0)
  const left = await db.query('select id from decisions where store_id = $1', [shop.store.id])
  assert.equal(left.length, 2)
})

for (const width of [390, 1_440])
  test(`at ${width} px a double press decides about one payment, and nothing that decides or undoes comes under it`, async () => {
    const shop = await openShop()
    const received = [
      await receive(shop, 'first'),
      await receive(shop, 'second'),
      await receive(shop, 'third'),
    ]
    const page = await openSignedIn(chromium, console, shop.owner, { viewport: { width, height: 800 } })
    await page.goto(`${console.url}${shop.path}?payment=${received[1]?.paymentId}`)
    const item = page.locator(`#${received[1]?.paymentId}`)
    await item.locator('input[type=radio]').first().check()
    await item.locator('.ask > summary').dblclick()
    await page.waitForLoadState()
    assert.equal(await page.locator('.decided').count(), 0, 'asking twice decides nothing')
    if ((await item.locator('.ask').getAttribute('open')) === null)
      await item.locator('.ask > summary').click()
    const yes = item.getByRole('button', { name: 'Yes, accept it' })
    const box = await yes.boundingBox()
    await yes.dblclick()
    await page.locator('.decided').waitFor()
    const undo = await page.locator('.undo button').boundingBox()
    assert(box && undo && undo.x > box.x + box.width, 'Undo is beside the button that decides')
    assert.equal(await page.locator('.ask[open]').count(), 0)
    assert.equal(await page.locator('.decided').getAttribute('id'), received[1]?.paymentId)
    const order = await page.locator('.item').evaluateAll((items) => items.map(({ id }) => id))
    assert.deepEqual(order, received.map(({ paymentId }) => paymentId).toReversed(), 'it stays in its place')
    const held = await db.query('select id from decisions where store_id = $1', [shop.store.id])
    assert.equal(held.length, 1)
    await page.locator('.undo button').click()
    await page.getByRole('status').getByText('Undone. Nothing was decided.').waitFor()
    assert.equal(await page.locator('.decided').count(), 0)
    await page.context().close()
  })

test('without a script everything is decided and undone as well', async () => {
  const shop = await openShop()
  const { paymentId } = await receive(shop)
  const page = await openSignedIn(chromium, console, shop.owner, { javaScriptEnabled: false })
  await page.goto(`${console.url}${shop.path}`)
  await page.locator(`#${paymentId} input[type=radio]`).check()
  await page.locator(`#accept-${paymentId} > summary`).click()
  await page.getByRole('button', { name: 'Yes, accept it' }).click()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Undone. Nothing was decided.').waitFor()
  const left = await db.query('select id from decisions where store_id = $1', [shop.store.id])
  assert.equal(left.length, 0)
  await page.context().close()
})
