/** A member's decision is held back for ten seconds, in which it can be undone. Either it is undone or it is applied, once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyDecisions } from '../../../src/checkouts/payments/apply-decisions.ts'
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
      String((await owner.browser.post(`${path}/undo`, { together: told })).headers.location),
      /said=undone$/,
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
  assert(body.includes('The last decision was not carried out. That checkout is paid already.'))
  assert(body.includes(`id="${paymentId}" open`))
  const again = await accept(owner.browser, shop, { paymentId, checkoutId })
  assert.match(String(again.headers.location), /said=already_paid$/)
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
