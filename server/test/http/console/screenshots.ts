/**
 * Takes the screenshots in docs/console: every screen, on a desktop and on a phone, light and dark, one image per screen.
 * Run it after a change to the design: `npm run screenshots`. SCREENS=home,payments takes only those.
 */
import { mkdir } from 'node:fs/promises'
import { test } from 'node:test'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { giveWallets, openBrowser } from '../page/support/browser.ts'
import { openFurnished, openSignedIn } from './support/furnished.ts'

const folder = new URL('../../../../docs/console/', import.meta.url).pathname
const asked = process.env.SCREENS?.split(',')
const sizes = [
  { viewport: { width: 1200, height: 760 } },
  { viewport: { width: 390, height: 760 }, hasTouch: true, isMobile: true },
]
/** Of a long list the beginning is enough. */
const heightMax = 1_100

test('screenshots of every screen', async () => {
  const chromium = await openBrowser()
  const furnished = await openFurnished()
  await mkdir(folder, { recursive: true })
  const table = await chromium.newPage({ viewport: { width: 1330, height: 100 } })
  for (const { name, path, by } of furnished.screens) {
    if (asked && !asked.includes(name)) continue
    const views: Buffer[] = []
    for (const size of sizes) {
      const page = await openSignedIn(chromium, furnished, by, size)
      // What a wallet is asked for shows only where there is one. Nobody asks this one.
      await giveWallets(page.context(), '', [{ key: newPayer().key, name: 'Fox Wallet' }])
      await page.goto(`${furnished.url}${path}`)
      // Not `fullPage`: Chromium takes that with the pointer of a desk, whatever the context's.
      const height = Math.min(
        heightMax,
        (await page.evaluate('document.documentElement.scrollHeight')) as number,
      )
      await page.setViewportSize({ ...size.viewport, height })
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        views.push(await page.screenshot({ animations: 'disabled' }))
      }
      await page.context().close()
    }
    const images = views.map((view) => `<img src="data:image/png;base64,${view.toString('base64')}">`)
    await table.setContent(
      `<!doctype html><style>body{margin:0;display:flex;align-items:start;gap:12px;padding:11px;background:#c9ccd3}img{zoom:.4}</style>${images.join('')}`,
    )
    await table.locator('body').screenshot({ path: `${folder}${name}.png` })
  }
})
