/**
 * What holds for every screen of the console, found in its router: nobody is shut out by colours, size, zoom or the
 * direction of writing, and nothing but passkeys needs a script.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { isTurn } from '../../support/turns.ts'
import { findFaults } from '../page/support/axe.ts'
import { openBrowser } from '../page/support/browser.ts'
import { openFurnished, openSignedIn, type Screen } from './support/furnished.ts'
import { listRoutes } from './support/routes.ts'

const furnished = await openFurnished()
const chromium = await openBrowser()
const { app, owner, ops, screens, url } = furnished
const routes = new Set(listRoutes(app).map(({ method, path }) => `${method} ${path}`))
/** In the gate half of the screens at a time, because each takes a second or two. */
const turns = 2
const mine = screens.filter((_, place) => isTurn(place, turns))

async function open(screen: Screen, page: Page): Promise<void> {
  const answer = await page.goto(`${url}${screen.path}`)
  assert.equal(answer?.status(), 200, screen.path)
}

test('every screen passes the axe checks, light and dark, and fits 320 px, twice the size, and right to left', async () => {
  const faults: string[] = []
  for (const by of [owner, ops]) {
    const page = await openSignedIn(chromium, furnished, by)
    const complaints: string[] = []
    // The page for a link says so if there is no link.
    page.on('console', (message) => {
      if (message.type() === 'error' && !/status of 410/.test(message.text())) complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(String(error)))
    for (const screen of mine.filter((each) => each.by === by)) {
      await page.setViewportSize({ width: 1280, height: 800 })
      await open(screen, page)
      faults.push(...(await findFaults(page)).map((fault) => `${screen.name}: ${fault}`))
      // A window of 1280 px at 200 % has room for 640.
      for (const width of [640, 320, 390, 800, 1100, 1440, 1280])
        for (const direction of ['ltr', 'rtl']) {
          await page.setViewportSize({ width, height: 800 })
          await page.evaluate(`document.documentElement.dir = '${direction}'`)
          const wide = await page.evaluate(`document.documentElement.scrollWidth > ${width}`)
          if (wide) faults.push(`${screen.name} is too wide for ${width} px, ${direction}`)
          // A ledger keeps its columns side by side: on a narrow screen it is scrolled, also by the keyboard.
          const tables = width < 1100 ? '.table:not([tabindex]:has(> .ledger))' : '.table'
          const cut = await page.evaluate(
            `[...document.querySelectorAll('${tables}')].some((table) => table.scrollWidth > table.clientWidth)`,
          )
          if (cut) faults.push(`${screen.name} has a table that is cut at ${width} px, ${direction}`)
        }
      faults.push(...(await findFaults(page)).map((fault) => `${screen.name}, right to left: ${fault}`))
    }
    assert.deepEqual(complaints, [])
    await page.context().close()
  }
  assert.deepEqual(faults, [])
})

test('without scripts every screen shows the same, and each of its forms goes to a route with what that needs', async () => {
  for (const by of [owner, ops]) {
    const page = await openSignedIn(chromium, furnished, by, { javaScriptEnabled: false })
    for (const screen of mine.filter((each) => each.by === by)) {
      await open(screen, page)
      assert.equal(await page.locator('h1').first().isVisible(), true, screen.name)
      const text = await page.locator('main').innerText()
      assert(text.length > 40, `${screen.name}: ${text}`)
      for (const form of await page.locator('form').all()) {
        const method = ((await form.getAttribute('method')) ?? 'get').toUpperCase()
        const action = (await form.getAttribute('action')) ?? screen.path
        const path = new URL(action, url).pathname
        const where = `${screen.name}: ${method} ${action}`
        // Everything but a passkey's touch is in the form itself.
        if (method === 'POST') assert.equal(await form.locator('input[name=formToken]').count(), 1, where)
        // A box of its own is sent by Enter.
        assert((await form.locator('button, input[type=search]').count()) > 0, where)
        assert(
          [...routes].some((route) => matches(route, `${method} ${path}`)),
          where,
        )
      }
    }
    await page.context().close()
  }
})

function matches(route: string, asked: string): boolean {
  return new RegExp(`^${route.replace(/:\w+/g, '[^/]+')}$`).test(asked)
}

test('without scripts the box finds an order, and a checkout is canceled by its form', async () => {
  const page = await openSignedIn(chromium, furnished, owner, { javaScriptEnabled: false })
  await page.goto(`${url}/stores/${furnished.store.id}/payments`)
  const box = page.locator('input[name=q]').first()
  await box.fill('2003')
  await box.press('Enter')
  await page.locator('main a[href*="/checkouts/"]').first().click()
  await page
    .getByRole('button', { name: /^Cancel/ })
    .first()
    .click()
  await page.getByText('Canceled').first().waitFor()
  await page.context().close()
})
