/** Every screen of the console in a real browser: in each language, readable for everybody, usable by the keyboard. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { languages } from '../../../src/http/console/texts/choose.ts'
import { en as english } from '../../../src/http/console/texts/en.ts'
import { isTurn } from '../../support/turns.ts'
import { findFaults } from '../page/support/axe.ts'
import { openBrowser } from '../page/support/browser.ts'
import { openConsole, openInvitedStore, TestBrowser } from './support/console.ts'
import { openDevice } from './support/device.ts'

const console = await openConsole({ listens: true })
const { url } = console
const chromium = await openBrowser()

/** Presses Tab until the control has the focus, and then Enter. */
async function press(page: Page, name: string): Promise<void> {
  const reached: string[] = []
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab')
    const text = (await page.evaluate('document.activeElement.textContent')) as string
    if (text === name) return await page.keyboard.press('Enter')
    reached.push(text)
  }
  assert.fail(`Tab does not reach ${name}: ${reached}`)
}

for (const [place, { tag, texts }] of languages.entries()) {
  // In the gate the languages take turns.
  if (!isTurn(place, languages.length)) continue
  test(`all screens in ${tag} pass the axe checks, light and dark, fit 320 px and need no mouse`, async () => {
    const { store, link } = await openInvitedStore(console)
    const { page, complaints } = await openDevice(chromium, tag)
    const check = async (heading: string) => {
      const { lang, title } = (await page.evaluate(
        '({ lang: document.documentElement.lang, title: document.querySelector("h1:not([hidden] *)").textContent })',
      )) as { lang: string; title: string }
      assert.deepEqual([lang, title], [tag, heading])
      assert.deepEqual(await findFaults(page), [], heading)
    }
    const named = (text: string) =>
      text.replace(/\{(store|name)\}/, (_, part) => (part === 'store' ? 'Shop' : 'Max'))
    await page.goto(`${url}/sign-in`)
    await check(texts.signIn.heading)
    await page.goto(link)
    await page.getByRole('heading', { name: named(texts.enrol.join) }).waitFor()
    await page.getByText(texts.team.roles.owner, { exact: true }).waitFor()
    await check(named(texts.enrol.join))
    await press(page, texts.enrol.button)
    await page.waitForURL(`${url}/stores/**`)
    await press(page, 'Olga')
    await page.waitForURL(`${url}/account`)
    await check(texts.account.title)
    await press(page, 'Shop')
    await page.waitForURL(`${url}/stores/**`)
    await press(page, texts.frame.screens.team)
    await page.waitForURL(`${url}/stores/${store.id}/members`)
    await page.getByLabel(texts.team.name).fill('Max')
    await press(page, texts.team.makeLink)
    await page.getByRole('heading', { name: named(texts.link.heading) }).waitFor()
    await check(named(texts.link.heading))
    const invitation = (await page.locator('code.link').textContent()) ?? ''
    const guest = await openDevice(chromium, tag)
    await guest.page.goto(invitation)
    await guest.page.getByRole('button', { name: texts.enrol.button }).click()
    await guest.page.waitForURL(/\/(stores\/|account$)/)
    await press(page, texts.link.back)
    await page.getByRole('button', { name: texts.team.changeRole }).waitFor()
    await check(named(texts.team.title))
    await page.getByLabel(texts.team.roleOf.replace('{name}', 'Max')).selectOption('manager')
    await press(page, texts.team.changeRole)
    await page.locator('.chip', { hasText: texts.team.roles.manager }).waitFor()
    await press(page, texts.team.lostPasskey)
    await page.locator('code.link').waitFor()
    await guest.page.goto((await page.locator('code.link').textContent()) ?? '')
    await guest.page.getByRole('heading', { name: named(texts.enrol.recover) }).waitFor()
    assert.deepEqual(await findFaults(guest.page), [])
    await page.goto(`${url}/stores/st_none/members`)
    await page.getByText(texts.refusals.not_found).waitFor()
    await check(texts.failed.title)
    assert.deepEqual(
      complaints.filter((text) => !/404/.test(text)),
      [],
    )
  })
}

test('the language is the one that was chosen, else the browser’s, else English, and forms keep it', async () => {
  const browser = new TestBrowser(console)
  const langOf = async (path: string, headers: Readonly<Record<string, string>>) => {
    const { body, headers: answered } = await console.app.inject({ url: path, headers })
    const [, lang] = /<html lang="(\w+)" dir="ltr">/.exec(body) ?? []
    return [lang, [answered['set-cookie'] ?? []].flat().find((each) => each.startsWith('language='))]
  }
  const spanish = { 'accept-language': 'fr,es-MX;q=0.8,en;q=0.5' }
  assert.deepEqual(await langOf('/sign-in', {}), ['en', undefined])
  assert.deepEqual(await langOf('/sign-in', spanish), ['es', undefined])
  assert.deepEqual(await langOf('/sign-in', { ...spanish, cookie: 'a=b; language=en' }), ['en', undefined])
  assert.deepEqual(await langOf('/sign-in?lang=xx', { cookie: 'language=%22' }), ['en', undefined])
  const [lang, cookie] = await langOf('/sign-in?lang=es', { cookie: 'language=en' })
  assert.equal(lang, 'es')
  assert.match(cookie ?? '', /^language=es; Path=\/; SameSite=Lax; Max-Age=31536000$/)
  await browser.get('/sign-in')
  const refused = await browser.post(
    '/sign-in',
    { answer: {} },
    { 'sec-fetch-site': 'same-origin', ...spanish },
  )
  assert.match(refused.json().error, /^No se ha aceptado esta llave/)
})

test('every text has the names of the English one', () => {
  const namesOf = (value: unknown, path = ''): string[] =>
    typeof value === 'string'
      ? [`${path} ${[...value.matchAll(/\{\w+\}/g)].map(String).sort()}`]
      : Object.entries(value as object).flatMap(([key, inner]) => namesOf(inner, `${path}.${key}`))
  for (const { tag, texts } of languages)
    assert.deepEqual(namesOf(texts).sort(), namesOf(english).sort(), tag)
})
