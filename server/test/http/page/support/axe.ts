import assert from 'node:assert/strict'
import axe from 'axe-core'
import type { Page } from 'playwright-core'

const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** What axe finds wrong with a page, light and dark, one fault per line; and whether it fits a small phone. */
export async function findFaults(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  await page.emulateMedia({ colorScheme: 'light' })
  const light = await runAxe(page, rules)
  // The themes differ only in colours.
  await page.emulateMedia({ colorScheme: 'dark' })
  const dark = await runAxe(page, ['color-contrast'])
  const size = page.viewportSize()
  await page.setViewportSize({ width: 320, height: 640 })
  const width = await page.evaluate('document.documentElement.scrollWidth')
  if (size) await page.setViewportSize(size)
  return [...light, ...dark, ...(width === 320 ? [] : [`${width} px wide on a phone of 320`])]
}

async function runAxe(page: Page, runOnly: readonly string[]): Promise<string[]> {
  const found = (await page.evaluate(`axe.run({ runOnly: ${JSON.stringify(runOnly)} })`)) as axe.AxeResults
  assert(found.passes.length > 0, 'axe checked nothing')
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}
