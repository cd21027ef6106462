/** The console in a real browser with virtual authenticators: what people do, from the invitation to a lost passkey. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { cancelUndone } from '../../../src/checkouts/cancel.ts'
import { atEnd } from '../../support/at-end.ts'
import { registerWallet, wallets } from '../../support/store.ts'
import { openBrowser } from '../page/support/browser.ts'
import { openConsole, openInvitedStore } from './support/console.ts'
import { addAuthenticator, openDevice } from './support/device.ts'

const console = await openConsole({ listens: true })
const { url } = console
const { ctx } = console.farthing
const chromium = await openBrowser()

async function enrol(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.getByRole('button', { name: 'Create a passkey' }).click()
  await page.waitForURL(`${url}/stores/**`)
}

async function signIn(page: Page): Promise<void> {
  await page.goto(`${url}/sign-in`)
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
}

test('enrolment, sign-in, a second passkey, an invitation and a lost passkey', async () => {
  const { store, link } = await openInvitedStore(console)
  const owner = await openDevice(chromium)
  await owner.page.goto(link)
  await owner.page.getByRole('heading', { name: 'Join Shop' }).waitFor()
  assert.equal(owner.page.url(), `${url}/enrol`, 'the token does not stay in the address bar')
  await owner.page.getByRole('button', { name: 'Create a passkey' }).click()
  await owner.page.waitForURL(`${url}/stores/**`)
  await owner.page.getByText('Owner ·').waitFor()

  await owner.page.getByRole('button', { name: 'Sign out' }).click()
  await owner.page.waitForURL(`${url}/sign-in`)
  await signIn(owner.page)
  await owner.page.waitForURL(`${url}/stores/**`)

  await owner.page.getByRole('link', { name: 'Olga' }).click()
  await owner.page.getByText('You are an owner').waitFor()
  await addAuthenticator(owner.cdp, 'usb')
  await owner.page.getByLabel('Name of another passkey').fill('Security key')
  await owner.page.getByRole('button', { name: 'Add a passkey' }).click()
  await owner.page.getByText('Security key').waitFor()
  assert.equal(await owner.page.getByRole('button', { name: 'Remove' }).count(), 2)
  await owner.page.getByRole('listitem').filter({ hasText: 'Security key' }).getByRole('button').click()
  await owner.page.getByText('Security key').waitFor({ state: 'detached' })
  assert.equal(await owner.page.getByRole('button', { name: 'Remove' }).count(), 0, 'the last one stays')

  await owner.page.getByRole('link', { name: 'Shop' }).click()
  await owner.page.getByRole('link', { name: 'Team' }).click()
  await owner.page.getByLabel('Name').fill('Max <b>Manager</b>')
  await owner.page.getByLabel('Role').selectOption('manager')
  await owner.page.getByRole('button', { name: 'Make a link' }).click()
  const invitation = (await owner.page.locator('code.link').textContent()) ?? ''

  const guest = await openDevice(chromium)
  await enrol(guest.page, invitation)
  await guest.page.getByText('Manager ·').waitFor()

  await owner.page.getByRole('link', { name: 'Back to the members' }).click()
  await owner.page.getByRole('button', { name: 'Lost passkey' }).click()
  const recovery = (await owner.page.locator('code.link').textContent()) ?? ''
  const found = await openDevice(chromium)
  await found.page.goto(recovery)
  await found.page.getByRole('heading', { name: 'A new passkey for Shop' }).waitFor()
  await found.page.getByRole('button', { name: 'Create a passkey' }).click()
  await found.page.waitForURL(`${url}/stores/**`)
  await guest.page.reload()
  assert.equal(new URL(guest.page.url()).pathname, '/sign-in', 'the lost device is signed out')
  await signIn(guest.page)
  await guest.page.getByText('This passkey was not accepted').waitFor()
  await guest.page.goto(recovery)
  await guest.page.getByText('This link does not work').waitFor()

  for (const { complaints } of [owner, guest, found]) assert.deepEqual(complaints, [])
  const types = (await store.events()).map(({ type }) => type)
  assert.deepEqual(types.slice(-6), [
    'member.passkey_added',
    'member.passkey_removed',
    'member.invited',
    'member.joined',
    'member.invited',
    'member.recovered',
  ])
})

test('a copy of an authenticator is refused once the other has been used', async () => {
  const { link } = await openInvitedStore(console)
  const owner = await openDevice(chromium)
  await enrol(owner.page, link)
  const { credentials } = await owner.cdp.send('WebAuthn.getCredentials', {
    authenticatorId: owner.authenticatorId,
  })
  const [credential] = credentials
  assert(credential)
  for (let i = 0; i < 2; i++) {
    await signIn(owner.page)
    await owner.page.waitForURL(`${url}/stores/**`)
  }
  const thief = await openDevice(chromium)
  await thief.cdp.send('WebAuthn.addCredential', { authenticatorId: thief.authenticatorId, credential })
  await signIn(thief.page)
  await thief.page.getByText('This passkey was not accepted').waitFor()
})

test('an owner confirms the wallet that a key asked for, and goes back to the one before', async () => {
  const { store, link } = await openInvitedStore(console, { evmWallet: wallets[0] })
  const { page, complaints } = await openDevice(chromium)
  await enrol(page, link)
  await registerWallet(store, wallets[1])
  await page.reload()
  await page.getByRole('link', { name: 'Team' }).click()
  await page.getByRole('status').getByText(wallets[1]).waitFor()
  await page.getByRole('link', { name: 'Look at the wallets' }).click()
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByText('confirmed by Olga').waitFor()
  const { id } = await store.create()
  await page.getByRole('listitem').filter({ hasText: 'confirmed by Olga' }).getByRole('link').click()
  await page.getByRole('button', { name: 'Go back' }).click()
  await page.getByText('Undone by Olga').waitFor()
  while (await cancelUndone(ctx, ctx.now()));
  assert.equal((await store.call('GET', `/api/v1/checkouts/${id}`)).json().status, 'CANCELED')
  await page.getByLabel('another wallet').last().selectOption('key')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('a key is enough to change the wallet').waitFor()
  await page.getByRole('link', { name: 'Team' }).click()
  await page.getByRole('button', { name: 'Got it' }).click()
  await page.getByRole('status').waitFor({ state: 'detached' })
  assert.deepEqual(complaints, [])
})

test('an answer that a page of another origin got for our relying party is refused', async () => {
  const { link } = await openInvitedStore(console)
  const owner = await openDevice(chromium)
  await enrol(owner.page, link)
  // Another program on this machine: the same host, so the browser lets it ask for our passkeys.
  const other = createServer((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<p>Hi'),
  )
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  atEnd(() => other.close())
  const tab = await owner.page.context().newPage()
  await tab.goto(`${url}/sign-in`)
  const { options } = await ask(tab, '/sign-in/options', {})
  await owner.page.goto(`http://localhost:${(other.address() as AddressInfo).port}/`)
  const answer = await owner.page.evaluate(`(async () => {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(options)})
    return (await navigator.credentials.get({ publicKey })).toJSON()
  })()`)
  assert.match((await ask(tab, '/sign-in', { answer })).error, /not accepted/)
  await signIn(tab)
})

/** Posts to the console from its own page. */
// biome-ignore lint/suspicious/noExplicitAny: the tests name what they read.
async function ask(page: Page, path: string, fields: object): Promise<any> {
  return await page.evaluate(`(async () => {
    const formToken = document.querySelector('meta[name="form-token"]').content
    const body = JSON.stringify({ ...${JSON.stringify(fields)}, formToken })
    const headers = { 'content-type': 'application/json' }
    return await (await fetch('${path}', { method: 'POST', headers, body })).json()
  })()`)
}

test('a photo of any size is scaled down in the browser and becomes the logo; what is no picture is refused in words', async () => {
  const { link, store } = await openInvitedStore(console)
  const { page } = await openDevice(chromium)
  await enrol(page, link)
  const photo = async (type: string) => {
    const url = await page.evaluate((wanted) => {
      const canvas = document.createElement('canvas')
      canvas.width = 1_200
      canvas.height = 800
      const pen = canvas.getContext('2d')
      const pixels = pen?.createImageData(1_200, 800)
      if (!pen || !pixels) throw new Error('no canvas')
      for (let i = 0; i < pixels.data.length; i += 65_536)
        crypto.getRandomValues(pixels.data.subarray(i, i + 65_536))
      pen.putImageData(pixels, 0, 0)
      return canvas.toDataURL(wanted)
    }, type)
    return { name: 'photo', mimeType: type, buffer: Buffer.from(url.split(',')[1] ?? '', 'base64') }
  }
  const save = async (file: { name: string; mimeType: string; buffer: Buffer }) => {
    await page.goto(`${url}/stores/${store.id}/branding`)
    await page.locator('input[type=file]').setInputFiles(file)
    await page.getByRole('button', { name: 'Save' }).click()
  }
  for (const type of ['image/png', 'image/jpeg', 'image/webp']) {
    const file = await photo(type)
    assert(file.buffer.length > 262_144, `${file.buffer.length} bytes`)
    await save(file)
    await page.getByText('Saved. New and open').waitFor()
    const [width, height] = await page
      .locator('img.logo')
      .evaluate((image: HTMLImageElement) => [image.naturalWidth, image.naturalHeight])
    assert(width === height && Number(width) >= 48, `${width} by ${height}`)
    await store.call('PATCH', '/api/v1/store', { logoUrl: null })
  }
  await save({ name: 'logo.png', mimeType: 'text/plain', buffer: Buffer.alloc(300_000, 'x') })
  await page.getByText('The logo is larger than 9 KB').waitFor()
  await save({ name: 'logo.png', mimeType: 'text/plain', buffer: Buffer.from('no picture') })
  await page.getByText('not a PNG, JPEG or WebP').waitFor()
})
