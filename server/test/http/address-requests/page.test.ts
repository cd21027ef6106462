import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTurn } from '../../support/turns.ts'
import { findFaults } from '../page/support/axe.ts'
import { openBrowser } from '../page/support/browser.ts'
import {
  type AddressRequestStateName,
  addressRequestStates,
  openAddressRequestShop,
  openAddressRequestState,
} from './support/states.ts'

const browser = await openBrowser()
const shop = await openAddressRequestShop()

test('a buyer whose browser runs no script names an address and gets a code', async () => {
  const page = await openAddressRequestState(browser, shop, 'named', {
    lang: 'en',
    context: { javaScriptEnabled: false },
  })
  assert.match(new URL(page.url()).pathname, /^\/pay\/refund\/rf_\w+$/, 'the token is still in the URL')
  assert.match(String(await page.locator('.code strong').textContent()), /^[A-Z0-9]{4}-[A-Z0-9]{4}$/)
  assert.equal(await page.locator('.address').textContent(), '0x90F79bf6EB2c4f870365E785982E1f101E93b906')
  await page.context().close()
})

for (const [lang, direction] of [
  ['en', 'ltr'],
  ['ar', 'rtl'],
] as const) {
  for (const [place, name] of (Object.keys(addressRequestStates) as AddressRequestStateName[]).entries()) {
    // In the gate half of them at a time, each in one of the two languages.
    if (!isTurn(place + (lang === 'ar' ? 1 : 0), 2)) continue
    test(`the addressRequest page (${name}, ${lang}) passes the axe checks, light and dark, and fits 320 px`, async () => {
      const page = await openAddressRequestState(browser, shop, name, { lang })
      assert.equal(await page.evaluate('document.documentElement.dir'), direction)
      assert.deepEqual(await findFaults(page), [])
      await page.context().close()
    })
  }
}
