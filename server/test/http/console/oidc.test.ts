/** Sign-in through a real OpenID provider that runs here, in a real browser. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
// @ts-expect-error: the package has no types.
import OidcProvider from 'oidc-provider'
import type { Page } from 'playwright-core'
import { openIdentities } from '../../../src/members/identities.ts'
import { atEnd } from '../../support/at-end.ts'
import { freePort } from '../../support/free-port.ts'
import { openBrowser } from '../page/support/browser.ts'
import { openConsole, openInvitedStore, TestBrowser } from './support/console.ts'
import { openDevice } from './support/device.ts'

const issuer = `http://localhost:${await freePort()}`
const folder = await mkdtemp(join(tmpdir(), 'farthing-oidc-'))
atEnd(() => rm(folder, { recursive: true }))
const file = join(folder, 'oidc.json')
await writeFile(file, JSON.stringify({ issuer, clientId: 'farthing', clientSecret: 'a secret of the test' }))
const console = await openConsole({ listens: true, settings: { OIDC_FILE: file } })
const { url } = console
const { redirectPath } = openIdentities(console.farthing.ctx)?.provider ?? assert.fail()

await startProvider()
const chromium = await openBrowser()

/** The provider that npm has most of: it asks for any name and password, and then for consent. */
async function startProvider(): Promise<void> {
  const jwk = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })
  const provider = new OidcProvider(issuer, {
    clients: [
      {
        client_id: 'farthing',
        client_secret: 'a secret of the test',
        redirect_uris: [url + redirectPath],
        response_types: ['code'],
        grant_types: ['authorization_code'],
      },
    ],
    jwks: { keys: [{ ...jwk, use: 'sig', alg: 'RS256', kid: 'one' }] },
    cookies: { keys: ['test'] },
    pkce: { required: () => true },
  })
  const server = createServer(provider.callback())
  await new Promise<void>((resolve) =>
    server.listen(Number.parseInt(new URL(issuer).port, 10), '127.0.0.1', resolve),
  )
  atEnd(() => server.close())
}

/** Signs in at the provider, where any password is right, and agrees to be known here. */
async function agree(page: Page, login: string): Promise<void> {
  await page.locator('input[name="login"]').fill(login)
  await page.locator('input[name="password"]').fill('any')
  await page.locator('button[type="submit"]').click()
  await page.getByRole('button', { name: 'Continue' }).click()
}

test('an account that a member has connected signs them in, and no other account does', async () => {
  const { store, link } = await openInvitedStore(console)
  const owner = await openDevice(chromium)
  await owner.page.goto(link)
  await owner.page.getByRole('button', { name: 'Create a passkey' }).click()
  await owner.page.getByRole('link', { name: 'Olga' }).click()
  await owner.page.getByRole('button', { name: 'Connect' }).click()
  await agree(owner.page, 'olga@company.example')
  await owner.page.getByText('Your account there signs you in').waitFor()

  await owner.page.getByRole('button', { name: 'Sign out' }).click()
  const answered = owner.page.waitForRequest((request) => request.url().includes(`${redirectPath}?`))
  await owner.page.getByRole('link', { name: 'Sign in through localhost' }).click()
  await owner.page.waitForURL(`${url}/stores/**`)
  await owner.page.getByText('Owner ·').waitFor()
  const used = (await answered).url()

  // The same answer again, in the same browser, signed in or out.
  await owner.page.goto(used)
  await owner.page.getByText('already answered').waitFor()

  const eve = await openDevice(chromium)
  await eve.page.goto(used)
  assert.equal(eve.page.url(), `${url}/sign-in`, 'a browser that asked for nothing is asked to sign in')
  await eve.page.getByRole('link', { name: 'Sign in through localhost' }).click()
  // The same e-mail would not help: what counts is the provider's own name for the account.
  await agree(eve.page, 'eve')
  await eve.page.getByText('No member is connected to that account').waitFor()

  await owner.page.goto(url)
  await owner.page.goto(`${url}/account`)
  await owner.page.getByRole('button', { name: 'Disconnect' }).click()
  await owner.page.getByRole('button', { name: 'Connect', exact: true }).waitFor()
  const types = (await store.events()).map(({ type }) => type)
  assert.deepEqual(types.slice(-2), ['member.identity_added', 'member.identity_removed'])
})

test('disconnecting an account ends the sessions that it opened, and none that a passkey opened', async () => {
  const { store, link } = await openInvitedStore(console)
  const owner = await openDevice(chromium)
  await owner.page.goto(link)
  await owner.page.getByRole('button', { name: 'Create a passkey' }).click()
  await owner.page.getByRole('link', { name: 'Olga' }).click()
  await owner.page.getByRole('button', { name: 'Connect' }).click()
  await agree(owner.page, 'olga@other.example')
  await owner.page.getByText('Your account there signs you in').waitFor()
  const thief = await openDevice(chromium)
  const deep = `${url}/stores/${store.id}/payments?q=1273`
  await thief.page.goto(deep)
  await thief.page.getByRole('link', { name: 'Sign in through localhost' }).click()
  await agree(thief.page, 'olga@other.example')
  await thief.page.waitForURL(deep)
  const { db } = console.farthing.ctx
  await db.query(
    `insert into sessions (id, token_hash, member_id, passkey_id, browser, address, created_at, seen_at, expires_at)
     select 'another', sha256('another'), s.member_id, s.passkey_id, 'Other', s.address, s.created_at, s.seen_at,
       s.expires_at
     from sessions s join memberships m on m.member_id = s.member_id
     where m.store_id = $1 and s.passkey_id is not null`,
    [store.id],
  )

  await owner.page.goto(`${url}/account`)
  await owner.page.getByRole('button', { name: 'Disconnect' }).click()
  await owner.page.getByRole('button', { name: 'Connect', exact: true }).waitFor()
  await thief.page.goto(`${url}/account`)
  assert.equal(thief.page.url(), `${url}/sign-in?to=%2Faccount`)
  await owner.page.goto(`${url}/account`)
  assert.equal(owner.page.url(), `${url}/account`)
  assert.equal((await db.query("select 1 as one from sessions where id = 'another'")).length, 1)
})

test('a state of another browser, a changed one and an answer of another issuer are refused', async () => {
  const start = async () => {
    const browser = new TestBrowser(console)
    await browser.get('/sign-in')
    const { location = '' } = (await browser.get('/oidc')).headers
    return { browser, asked: new URL(String(location)).searchParams }
  }
  const mine = await start()
  const theirs = await start()
  assert.equal(mine.asked.get('code_challenge_method'), 'S256')
  assert(mine.asked.get('nonce'))
  const answer = async (state: string | null, iss = issuer) => {
    const query = new URLSearchParams({ code: 'stolen', state: state ?? '', iss })
    return (await mine.browser.get(`${redirectPath}?${query}`)).statusCode
  }
  assert.equal(await answer(theirs.asked.get('state')), 409)
  assert.equal(await answer('A'.repeat(43)), 409)
  assert.equal(await answer(mine.asked.get('state'), 'https://evil.example'), 502)
  assert.equal(await answer(mine.asked.get('state')), 409, 'used up')
  const again = await start()
  const query = new URLSearchParams({ code: 'guessed', state: again.asked.get('state') ?? '', iss: issuer })
  assert.equal((await again.browser.get(`${redirectPath}?${query}`)).statusCode, 502)
  assert.equal((await again.browser.get('/account')).statusCode, 303)
})
