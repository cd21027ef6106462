/** What people come to the console for, in a real browser and by the keyboard alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { en as english } from '../../../src/http/console/texts/en.ts'
import { setOperator } from '../../../src/members/operators.ts'
import { listStoreMembers } from '../../../src/members/rows.ts'
import { operator } from '../../support/operator.ts'
import { openBrowser } from '../page/support/browser.ts'
import { inviteBy } from './support/console.ts'
import { openDevice } from './support/device.ts'
import { openFurnished } from './support/furnished.ts'
import { pressByKeyboard as press, reach, fillByKeyboard as type } from './support/keyboard.ts'

test('journeys by keyboard', async (t) => {
  const furnished = await openFurnished()
  const { url, store, owner, waiting, farthing } = furnished
  const { ctx } = farthing
  const chromium = await openBrowser()
  const { page, complaints } = await openDevice(chromium)
  const home = `${url}/stores/${store.id}`

  await t.test('an owner uses their link and is on Home', async () => {
    const token = await inviteBy(owner, store.id, { name: 'Ada', role: 'owner' })
    await page.goto(`${url}/enrol#${token}`)
    await page.getByRole('button', { name: english.enrol.button }).waitFor()
    await press(page, 'button', english.enrol.button)
    await page.waitForURL(/\/stores\/|\/account/)
  })

  await t.test('finds a payment by a transaction’s hash that was pasted', async () => {
    const [paid] = await ctx.db.query<{ hash: string; order: string }>(
      `select k.transaction_hash as hash, c.order_id as order from credits k join checkouts c on c.id = k.checkout_id
       where k.disposition = 'exact' and k.store_id = $1 order by k.included_at limit 1`,
      [store.id],
    )
    assert(paid)
    await page.goto(home)
    await type(page, 'input[name=q]', paid.hash)
    await page.keyboard.press('Enter')
    await page.waitForURL(/q=0x/)
    await press(page, 'main a[href*="/checkouts/"], main a[href*="/payments/pay_"]')
    await page.getByRole('heading', { name: 'Facts' }).waitFor()
    const shown = (await page.locator('main').innerText()).replace(/\s/g, '')
    assert(shown.toLowerCase().includes(paid.hash), 'the transaction is on the screen')
    assert(shown.includes(paid.order))
  })

  await t.test('sees why a payment was not credited, and accepts it', async () => {
    await page.goto(home)
    await press(page, 'nav a', 'Inbox')
    await page.waitForURL(/\/inbox/)
    const item = page.locator('details.item').filter({ hasText: 'had expired' }).first()
    const why = await item.locator('> summary').innerText()
    assert.match(why, /Late[\s\S]*had expired/)
    const id = (await item.getAttribute('id')) ?? ''
    if ((await item.getAttribute('open')) === null) await press(page, `#${id} > summary`)
    await press(page, `#accept-${id} > summary`, 'Accept for')
    await press(page, `#accept-${id} button`, 'Yes, accept it')
    await page.locator(`#${id}.decided`).getByRole('button', { name: 'Undo' }).waitFor()
    const [decision] = await ctx.db.query<{ kind: string; by: string }>(
      `select kind, actor->>'name' as by from decisions where payment_id = $1`,
      [id],
    )
    assert.deepEqual(decision, { kind: 'accept', by: 'Ada' })
  })

  await t.test('sends a webhook again that failed', async () => {
    // The newest that was tried: it is on the first page.
    const [failed] = await ctx.db.query<{ id: string; run: Date }>(
      `select d.id, d.run_at as run from deliveries d join webhook_endpoints e on e.id = d.endpoint_id
       where e.url like '%mailing%' and e.store_id = $1 and d.state = 'pending'
         and exists (select 1 from delivery_attempts a where a.delivery_id = d.id) order by d.event_id desc limit 1`,
      [store.id],
    )
    assert(failed)
    await page.goto(`${home}/developers`)
    await press(page, 'main a[href$="/developers/deliveries"]')
    await page.waitForURL(/deliveries/)
    await press(page, `a[href$="${failed.id}"]`)
    await page.getByText('The newsletter service is being moved.').waitFor()
    const sent = page.waitForResponse(/deliveries\/resend/)
    await press(page, 'main button', 'Send again')
    await sent
    await page.getByRole('heading', { name: 'Tries' }).waitFor()
    const [again] = await ctx.db.query<{ run: Date }>('select run_at as run from deliveries where id = $1', [
      failed.id,
    ])
    assert.notDeepEqual(again?.run, failed.run, 'it is due at once')
  })

  await t.test('makes a key with one scope, which is shown once', async () => {
    await page.goto(`${home}/developers/keys/new`)
    await type(page, 'input[name=label]', 'Bookkeeping')
    await reach(page, 'input[name=preset]')
    while (!(await page.locator('input[name=preset][value=scopes]').isChecked()))
      await page.keyboard.press('ArrowDown')
    await reach(page, 'select[name=payments]')
    await page.keyboard.type('r')
    await press(page, 'main form button', 'key')
    await page
      .getByText(/sk_live_\w{20,}/)
      .first()
      .waitFor()
    const [key] = await ctx.db.query<{ scopes: string[] }>(
      `select scopes from api_keys where label = 'Bookkeeping' and store_id = $1`,
      [store.id],
    )
    assert.deepEqual(key?.scopes, ['payments:read'])
  })

  await t.test('makes a link and a code at the counter, and closes it', async () => {
    await page.goto(`${home}/new`)
    await page.locator('main input:focus').waitFor()
    await page.keyboard.type('Two mugs')
    await type(page, 'input[name=amount]', '12.50')
    await press(page, 'main form button')
    await page.waitForURL(/\/links\/lnk_/)
    await page.locator('main', { hasText: '$12.50' }).waitFor()
    assert((await page.locator('main svg').count()) > 0, 'there is a code to scan')
    await press(page, 'main form button', 'Close')
    await page.getByText('Closed', { exact: true }).first().waitFor()
  })

  await t.test('invites an employee, who sees payments and no keys', async () => {
    await page.goto(`${home}/members`)
    await type(page, 'input[name=name]', 'Emil')
    await press(page, 'form button', english.team.makeLink)
    const link = await page.locator('code.link').textContent()
    const guest = await openDevice(chromium)
    await guest.page.goto(link ?? '')
    await guest.page.getByRole('button', { name: english.enrol.button }).waitFor()
    await press(guest.page, 'button', english.enrol.button)
    await guest.page.waitForURL(/\/stores\/|\/account/)
    await guest.page.goto(`${home}/payments`)
    await guest.page.getByRole('heading', { name: 'Payments' }).waitFor()
    assert.equal(await guest.page.locator('nav a', { hasText: 'Developers' }).count(), 0)
    const refused = await guest.page.goto(`${home}/developers`)
    assert.equal(refused?.status(), 403)
    assert.doesNotMatch(await guest.page.content(), /sk_live_/)
    await guest.page.context().close()
  })

  await t.test('an operator approves a store', async () => {
    const ada = (await listStoreMembers(ctx.db, store.store.id)).find(({ name }) => name === 'Ada')
    assert(ada)
    await setOperator(ctx, operator, ada.id, true, ctx.now())
    await page.goto(`${url}/operator/stores`)
    await press(page, 'main a', 'Corner Books')
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    await press(page, 'main button', 'Approve')
    await page.getByText('Approved').first().waitFor()
    const [row] = await ctx.db.query<{ admission: string }>('select admission from stores where id = $1', [
      waiting.store.id,
    ])
    assert.equal(row?.admission, 'approved')
  })
  assert.deepEqual(complaints, [])
})
