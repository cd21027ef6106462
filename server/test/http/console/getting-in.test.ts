/** In a browser: an owner who loses every passkey and comes back by a code, and a session that ends while a form is filled in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { openBrowser } from '../page/support/browser.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'
import { addAuthenticator, type Device, openDevice } from './support/device.ts'

const console = await openConsole({ listens: true })
const { url } = console
const { db } = console.farthing.ctx
const chromium = await openBrowser()

async function enrol({ page }: Device, link: string): Promise<void> {
  await page.goto(link)
  await page.getByRole('button', { name: 'Create a passkey' }).click()
  await page.waitForURL(`${url}/stores/**`)
}

async function signIn(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
}

const endSessions = () => db.query('delete from sessions')

test('an owner prints codes, loses the passkey, gets in with a code, and removes the lost one a day later', async () => {
  const { store, link } = await openInvitedStore(console)
  const owner = await openDevice(chromium)
  await enrol(owner, link)
  await owner.page.goto(`${url}/stores/${store.id}`)
  await owner.page.getByRole('link', { name: 'Make a second way in' }).click()
  await owner.page.getByText('You have none.').waitFor()
  await owner.page.getByRole('button', { name: 'Make recovery codes' }).click()
  await owner.page.getByRole('heading', { name: 'Your recovery codes', exact: true }).waitFor()
  const codes = await owner.page.locator('.codes code').allTextContents()
  assert.equal(codes.length, 8)
  await owner.page.emulateMedia({ media: 'print' })
  assert.equal(await owner.page.getByText(codes[0] ?? '').isVisible(), true)
  assert.equal(await owner.page.getByRole('button', { name: 'Print' }).isVisible(), false)
  await owner.page.emulateMedia({ media: 'screen' })
  await owner.page.getByRole('link', { name: 'I have kept them' }).click()
  await owner.page.getByText('8 of 8 left').waitFor()

  // Another device, without the passkey.
  const found = await openDevice(chromium)
  await found.page.goto(`${url}/sign-in`)
  await found.page.getByText('No passkey, or lost it?').click()
  await found.page.getByRole('link', { name: 'use one of them' }).click()
  await found.page.getByLabel('Recovery code').fill('0000-0000')
  await found.page.getByRole('button', { name: 'Create a passkey' }).click()
  await found.page.getByText('This code does not work').waitFor()
  await found.page.getByLabel('Recovery code').fill((codes[0] ?? '').toLowerCase())
  await found.page.getByRole('button', { name: 'Create a passkey' }).click()
  await found.page.waitForURL(`${url}/stores/**`)
  await found.page.getByText('Your new passkey cannot confirm changes yet').waitFor()
  await owner.page.reload()
  await owner.page.getByText('A passkey was made for you with a recovery code').waitFor()
  assert.equal(await owner.page.getByRole('button', { name: 'It was not me' }).isVisible(), true)

  await found.page.goto(`${url}/account`)
  await found.page.getByText('7 of 8 left').waitFor()
  assert.equal(await found.page.getByRole('button', { name: 'Remove' }).count(), 2)
  await found.page.getByRole('button', { name: 'Remove' }).first().click()
  await found.page.getByRole('alert').waitFor()
  assert.equal(
    await found.page.getByRole('button', { name: 'Remove' }).count(),
    2,
    'not before a day is over',
  )

  await db.query("update passkeys set waits_until = waits_until - interval '1 day'")
  await found.page.reload()
  await found.page.getByRole('button', { name: 'Remove' }).first().click()
  await found.page.getByRole('button', { name: 'Remove' }).first().waitFor({ state: 'detached' })
  await owner.page.goto(`${url}/sign-in`)
  await signIn(owner.page)
  await owner.page.getByText('This passkey was not accepted').waitFor()
  for (const { complaints } of [owner, found]) assert.deepEqual(complaints, [])
  assert.deepEqual(
    (await store.events()).slice(-3).map(({ type }) => type),
    ['member.codes_made', 'member.code_used', 'member.passkey_removed'],
  )
})

test('a passkey that a thief made with a code is refused with one touch of a button', async () => {
  const { link } = await openInvitedStore(console)
  const owner = await openDevice(chromium)
  await enrol(owner, link)
  await owner.page.goto(`${url}/account`)
  await owner.page.getByRole('button', { name: 'Make recovery codes' }).click()
  const code = (await owner.page.locator('.codes code').first().textContent()) ?? ''
  const thief = await openDevice(chromium)
  await thief.page.goto(`${url}/recover`)
  await thief.page.getByLabel('Recovery code').fill(code)
  await thief.page.getByRole('button', { name: 'Create a passkey' }).click()
  await thief.page.waitForURL(`${url}/stores/**`)
  await owner.page.goto(`${url}/account`)
  await owner.page.getByRole('button', { name: 'It was not me' }).click()
  await owner.page.getByText('You have none.').waitFor()
  await thief.page.reload()
  assert.match(thief.page.url(), /\/sign-in/)
  assert.deepEqual([owner.complaints, thief.complaints], [[], []])
})

for (const [how, button, isConfirmed] of [
  ['is sent', 'Save', false],
  ['asks for the passkey', 'Make a link', true],
] as const)
  test(`a session that ends before a form ${how}: after signing in, the page and what was typed are back`, async () => {
    const { store, link } = await openInvitedStore(console)
    const owner = await openDevice(chromium)
    const { page } = owner
    await enrol(owner, link)
    const path = `/stores/${store.id}/${isConfirmed ? 'members?x=1' : 'branding'}`
    const field = isConfirmed ? 'Name' : 'Name of the store'
    await page.goto(url + path)
    const input = isConfirmed
      ? page.getByLabel(field, { exact: true })
      : page.locator('form[method="post"] input[name="name"]')
    await input.fill('Typed “before” <b>it</b> ended')
    if (isConfirmed) await page.getByLabel('Role').last().selectOption('developer')
    await endSessions()
    await page.getByRole('button', { name: button }).first().click()
    if (!isConfirmed) await page.getByRole('link', { name: 'Sign in' }).click()
    await page.waitForURL(`${url}/sign-in?to=*`)
    await signIn(page)
    await page.waitForURL(url + path)
    await page.getByText('You were signed out before this was sent').waitFor()
    assert.equal(await input.inputValue(), 'Typed “before” <b>it</b> ended')
    if (isConfirmed) assert.equal(await page.getByLabel('Role').last().inputValue(), 'developer')
    assert.equal(await page.evaluate("sessionStorage.getItem('left')"), null)
    await page.getByRole('button', { name: button }).first().click()
    await page
      .getByText(isConfirmed ? 'Typed “before” <b>it</b> ended' : 'Saved')
      .first()
      .waitFor()
    await page.goto(url + path)
    assert.equal(await page.getByText('You were signed out before').isVisible(), false, 'and only once')
    assert.deepEqual(owner.complaints, [])
  })

test('another member who signs in on the same browser does not get what the first one typed', async () => {
  const { store, token } = await openInvitedStore(console)
  const boss = await enrolWith(console, token)
  const first = await openDevice(chromium)
  const { page, cdp, authenticatorId } = first
  await enrol(first, `${url}/enrol#${await inviteBy(boss, store.id, { name: 'Ada', role: 'owner' })}`)
  const ben = await openDevice(chromium)
  await enrol(ben, `${url}/enrol#${await inviteBy(boss, store.id, { name: 'Ben', role: 'owner' })}`)
  const path = `${url}/stores/${store.id}/members`
  await page.goto(path)
  await page.getByLabel('Name', { exact: true }).fill('Ada’s secret hire')
  await endSessions()
  await page.getByRole('button', { name: 'Make a link' }).click()
  await page.waitForURL(`${url}/sign-in?to=*`)
  assert.match(`${await page.evaluate("sessionStorage.getItem('left')")}`, /secret hire/)
  // Ada leaves, and Ben signs in right there, with his passkey.
  const { credentials } = await ben.cdp.send('WebAuthn.getCredentials', {
    authenticatorId: ben.authenticatorId,
  })
  await cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
  const his = await addAuthenticator(cdp, 'internal')
  for (const credential of credentials)
    await cdp.send('WebAuthn.addCredential', { authenticatorId: his, credential })
  await signIn(page)
  await page.waitForURL(path)
  await page.getByRole('link', { name: 'Ben' }).waitFor()
  assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), '')
  assert.equal(await page.evaluate("sessionStorage.getItem('left')"), null)
  assert.deepEqual(first.complaints, [])
})
