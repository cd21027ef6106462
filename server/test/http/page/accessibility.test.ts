import assert from 'node:assert/strict'
import { test } from 'node:test'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { isTurn } from '../../support/turn.ts'
import { openBrowser } from './support/browser.ts'
import { openPageShop } from './support/page-shop.ts'
import { openState, type StateName, states } from './support/states.ts'

const browser = await openBrowser()
const shop = await openPageShop({ worker: false })

const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** The violations that axe finds, one per line. */
async function findFaults(page: Page, runOnly: readonly string[]): Promise<string[]> {
  const found = (await page.evaluate(`axe.run({ runOnly: ${JSON.stringify(runOnly)} })`)) as axe.AxeResults
  assert(found.passes.length > 0, 'axe checked nothing')
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}

for (const [lang, direction] of [
  ['en', 'ltr'],
  ['ar', 'rtl'],
] as const) {
  for (const [place, name] of (Object.keys(states) as StateName[]).entries()) {
    // In the gate every state comes in one of the two languages, and in the other with the next commit.
    if (!isTurn(place + (lang === 'ar' ? 1 : 0), 2)) continue
    test(`${name} in ${lang} passes the axe checks, light and dark, and fits 320 px`, async () => {
      const page = await openState(browser, shop, name, { lang })
      assert.equal(await page.evaluate('document.documentElement.dir'), direction)
      await page.evaluate(axe.source)
      await page.emulateMedia({ colorScheme: 'light' })
      assert.deepEqual(await findFaults(page, rules), [])
      // The themes differ only in colours.
      await page.emulateMedia({ colorScheme: 'dark' })
      assert.deepEqual(await findFaults(page, ['color-contrast']), [])
      await page.setViewportSize({ width: 320, height: 640 })
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320)
      await page.context().close()
    })
  }
}
