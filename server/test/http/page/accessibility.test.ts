import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTurn } from '../../support/turns.ts'
import { findFaults } from './support/axe.ts'
import { openBrowser } from './support/browser.ts'
import { openPageShop } from './support/page-shop.ts'
import { mailing, openState, type StateName, states } from './support/states.ts'

const browser = await openBrowser()
const shop = await openPageShop({ worker: false, settings: mailing })

for (const [lang, direction] of [
  ['en', 'ltr'],
  ['ar', 'rtl'],
] as const) {
  for (const [place, name] of (Object.keys(states) as StateName[]).entries()) {
    // In the gate half of them at a time, each in one of the two languages.
    if (!isTurn(place + (lang === 'ar' ? 1 : 0), 2)) continue
    test(`${name} in ${lang} passes the axe checks, light and dark, and fits 320 px`, async () => {
      const page = await openState(browser, shop, name, { lang })
      assert.equal(await page.evaluate('document.documentElement.dir'), direction)
      assert.deepEqual(await findFaults(page), [])
      await page.context().close()
    })
  }
}
