import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'

const tabsMax = 150

/** Presses Tab until an element that matches has the focus. */
export async function reach(page: Page, selector: string, text = ''): Promise<void> {
  for (let i = 0; i < tabsMax; i++) {
    await page.keyboard.press('Tab')
    const isThere = await page.evaluate(
      `document.activeElement.matches(${JSON.stringify(selector)}) && document.activeElement.textContent.includes(${JSON.stringify(text)})`,
    )
    if (isThere) return
  }
  assert.fail(`Tab does not reach ${selector} ${text} at ${page.url()}`)
}

export async function pressByKeyboard(page: Page, selector: string, text = ''): Promise<void> {
  await reach(page, selector, text)
  await page.keyboard.press('Enter')
}

export async function fillByKeyboard(page: Page, selector: string, text: string): Promise<void> {
  await reach(page, selector)
  await page.keyboard.type(text)
}
