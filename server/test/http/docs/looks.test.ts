import assert from 'node:assert/strict'
import { test } from 'node:test'
import axe from 'axe-core'
import { openTestApp } from '../../support/app.ts'
import { patienceMs } from '../../support/patience.ts'
import { openBrowser } from '../page/support/browser.ts'

const { app } = await openTestApp()
const url = await app.listen({ host: '127.0.0.1', port: 0 })
const browser = await openBrowser()

const paths = [
  '/',
  '/docs/search?q=webhook+signature',
  '/docs/sdk',
  '/docs/payment',
  '/docs/api',
  '/docs/build',
  '/docs/errors/wallet_required',
  '/docs/deploying',
]
/** Code has the same colours everywhere, and operations have the same form: all of them would take minutes. */
const withoutCode = { exclude: ['pre'] }
const parts: Readonly<Record<string, object>> = {
  '/docs/sdk': {},
  '/docs/api': { include: ['header', 'main > section:first-of-type', '#contents'] },
}
const windows = [
  { name: 'a light desktop', viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { name: 'a dark phone', viewport: { width: 360, height: 740 }, colorScheme: 'dark' },
] as const

for (const { name, viewport, colorScheme } of windows) {
  test(`on ${name} screen nothing overflows, breaks the content security policy, or fails the axe checks`, async () => {
    const context = await browser.newContext({ viewport, colorScheme })
    context.setDefaultTimeout(patienceMs)
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
    for (const path of paths) {
      await page.goto(url + path)
      const excess = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
      assert.equal(excess, 0, `${path} is too wide`)
      const broken = await page.evaluate(
        '[...document.images].filter((image) => image.complete && image.naturalWidth === 0).length',
      )
      assert.equal(broken, 0, `${path} has a picture that does not load`)
      const part = JSON.stringify(parts[path] ?? withoutCode)
      const { violations } = (await page.evaluate(`${axe.source}; axe.run(${part})`)) as axe.AxeResults
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${path}: ${id} ${nodes[0]?.html}`),
        [],
      )
    }
    assert.deepEqual(complaints, [])
    await context.close()
  })
}

test('a block of code is copied with one click', async () => {
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] })
  context.setDefaultTimeout(patienceMs)
  const page = await context.newPage()
  await page.goto(`${url}/docs/sdk`)
  const block = page.locator('figure.code').first()
  await block.getByRole('button', { name: 'Copy' }).click()
  await block.getByRole('button', { name: 'Copied' }).waitFor()
  assert.equal(
    await page.evaluate('navigator.clipboard.readText()'),
    await block.locator('code').textContent(),
  )
  await context.close()
})

test('the search works without JavaScript', async () => {
  const page = await browser.newPage({ javaScriptEnabled: false })
  await page.goto(`${url}/docs/sdk`)
  await page.getByRole('searchbox', { name: 'Search the docs' }).fill('verify a webhook')
  await page.keyboard.press('Enter')
  await page.locator('main').getByRole('link', { name: 'Verify it' }).click()
  assert.equal(page.url(), `${url}/docs/build#verify-it`)
  await page.close()
})

test('on a phone the contents are one tap away', async () => {
  const page = await browser.newPage({ viewport: { width: 360, height: 740 }, javaScriptEnabled: false })
  await page.goto(`${url}/docs/sdk`)
  await page.getByRole('link', { name: 'Contents' }).click()
  await page.locator('#contents').getByRole('link', { name: 'Build on the API' }).click()
  assert.equal(new URL(page.url()).pathname, '/docs/build')
  await page.close()
})
