/**
 * Takes the screenshots in docs/page: every state, on a desktop and on a phone, light and dark, one image per state. Run
 * it after a change to the design: `npm run screenshots`. STATES=open,sign takes only those states.
 */
import { mkdir } from 'node:fs/promises'
import { test } from 'node:test'
import { updateStore } from '../../../src/stores/update.ts'
import { operator } from '../../support/operator.ts'
import { openBrowser } from './support/browser.ts'
import { openPageShop } from './support/page-shop.ts'
import { mailing, openState, type StateName, states } from './support/states.ts'

const folder = new URL('../../../../docs/page/', import.meta.url).pathname
const asked = process.env.STATES?.split(',')
const screens = [
  { viewport: { width: 1120, height: 720 } },
  { viewport: { width: 390, height: 720 }, hasTouch: true, isMobile: true },
]
const languages: Partial<Record<StateName, string>> = {
  completed: 'ar',
  receipt: 'ar',
  'receipt-void': 'de',
  'refunded-part': 'ar',
  refunded: 'de',
  sign: 'zh',
  rejected: 'es',
  'no-wallet': 'fr',
  'send-amount': 'de',
}

test('screenshots of every state', async () => {
  const browser = await openBrowser()
  const shop = await openPageShop({ worker: false, settings: mailing })
  await updateStore(
    shop.ctx,
    shop.store.id,
    operator,
    { name: 'Juniper & Pine', supportEmail: 'help@shop.example', supportUrl: 'https://shop.example/help' },
    shop.ctx.now(),
  )
  await mkdir(folder, { recursive: true })
  const table = await browser.newPage({ viewport: { width: 1568, height: 100 } })
  for (const name of Object.keys(states) as StateName[]) {
    if (asked && !asked.includes(name)) continue
    for (const lang of ['en', languages[name]]) {
      if (lang === undefined) continue
      const views: Buffer[] = []
      for (const context of screens) {
        const page = await openState(browser, shop, name, { context, lang })
        // Not `fullPage`: Chromium takes that with the pointer of a desk, whatever the context's.
        const height = (await page.evaluate('document.documentElement.scrollHeight')) as number
        await page.setViewportSize({ ...context.viewport, height })
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
          views.push(await page.screenshot({ animations: 'disabled' }))
        }
        await page.context().close()
      }
      const images = views.map((view) => `<img src="data:image/png;base64,${view.toString('base64')}">`)
      await table.setContent(
        `<!doctype html><style>body{margin:0;display:flex;align-items:start;gap:12px;padding:11px;background:#c9ccd3}img{zoom:.5}</style>${images.join('')}`,
      )
      await table
        .locator('body')
        .screenshot({ path: `${folder}${name}${lang === 'en' ? '' : `-${lang}`}.png` })
    }
  }
})
