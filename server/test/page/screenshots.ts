/**
 * Takes the pictures in docs/page: every state, light and dark, on a desk and on a phone. Run it after a change of looks:
 * `npm run screenshots`, with names of states to take only those.
 */
import { mkdir } from 'node:fs/promises'
import { test } from 'node:test'
import { updateStore } from '../../src/stores/update.ts'
import { openBrowser, openPageShop } from './support/browser.ts'
import { openState, type StateName, states } from './support/states.ts'

const folder = new URL('../../../docs/page/', import.meta.url).pathname
const asked = process.env.STATES?.split(',')
const screens = {
  desktop: { viewport: { width: 1120, height: 760 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
}

test('pictures of every state', async () => {
  const browser = await openBrowser()
  const shop = await openPageShop({ worker: false })
  await updateStore(shop.ctx, shop.store.id, { name: 'Juniper & Pine' })
  await mkdir(folder, { recursive: true })
  for (const name of Object.keys(states) as StateName[]) {
    if (asked && !asked.includes(name)) continue
    for (const [screen, context] of Object.entries(screens)) {
      const page = await openState(browser, shop, name, { context })
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        await page.screenshot({
          path: `${folder}${name}-${screen}-${colorScheme}.png`,
          fullPage: true,
          animations: 'disabled',
        })
      }
      await page.context().close()
    }
  }
})
