/** Signing in leads back to the address that was left, and to no other site. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readReturn } from '../../../src/http/console/returning.ts'
import { enrolWith, openConsole, openInvitedStore, TestBrowser } from './support/console.ts'

const console = await openConsole()
const { url, farthing } = console
const { store, token } = await openInvitedStore(console)
const owner = await enrolWith(console, token)

async function signInTo(to: unknown): Promise<string> {
  const browser = new TestBrowser(console)
  await browser.get('/sign-in')
  const { options } = (await browser.done('/sign-in/options')).json()
  return (await browser.done('/sign-in', { answer: owner.authenticator.touch(options), to })).json().to
}

test('a screen that was asked for without a session is where signing in leads', async () => {
  const nobody = new TestBrowser(console)
  const deep = `/stores/${store.id}/payments?q=%231273&kind=late%26x`
  const { statusCode, headers } = await nobody.get(deep)
  assert.equal(statusCode, 303)
  const asked = new URL(`${headers.location}`, url)
  assert.deepEqual([asked.pathname, asked.searchParams.get('to')], ['/sign-in', deep])
  assert.equal(await signInTo(asked.searchParams.get('to')), deep)
  assert.equal((await nobody.get('/')).headers.location, '/sign-in')
  assert.equal(await signInTo(null), '/')
})

test('a form comes back to the page that it was on, if that page is ours', async () => {
  const path = `/stores/${store.id}/members`
  const post = async (referer: string) => {
    const nobody = new TestBrowser(console)
    await nobody.get('/sign-in')
    const answer = await console.app.inject({
      method: 'POST',
      url: path,
      payload: new URLSearchParams({ formToken: nobody.formToken, name: 'x' }).toString(),
      headers: {
        ...{ cookie: nobody.cookie, referer, 'sec-fetch-site': 'same-origin' },
        'content-type': 'application/x-www-form-urlencoded',
      },
    })
    return { status: answer.statusCode, to: /href="(\/sign-in[^"]*)"/.exec(answer.body)?.[1] }
  }
  const ours = await post(`${url}${path}?page=2`)
  assert.deepEqual(ours, { status: 401, to: `/sign-in?to=${encodeURIComponent(`${path}?page=2`)}` })
  for (const referer of ['', 'https://evil.example/stores/x', `${url}.evil.example/stores/x`, 'x'])
    assert.deepEqual(await post(referer), { status: 401, to: '/sign-in' })
})

test('no address outside of this console’s screens is ever led to', async () => {
  const hostile: unknown[] = [
    ...[
      'https://evil.example',
      '//evil.example/stores/x',
      '/\\evil.example',
      '\\\\evil.example',
      '///evil.example',
    ],
    ...[
      '/.//evil.example',
      '/..//evil.example/stores',
      '/stores/..//evil.example',
      '/stores/../..//evil.example',
    ],
    ...['/%2e%2e//evil.example', '/stores/%2e%2e//evil.example', '/stores/%2E./%2f/evil.example/../..'],
    ...[
      'javascript:alert(1)',
      'data:text/html,x',
      '/\t/evil.example',
      '/\n/evil.example',
      '/stores\r\nx: y',
      ' //evil.example',
    ],
    ...[
      '//stores@evil.example',
      '/@evil.example',
      '@evil.example',
      '.evil.example',
      `${url}.evil.example/`,
      `${url}/account`,
    ],
    ...[
      '/sign-out',
      '/oidc',
      '/oidc?to=/account',
      '/sign-in?to=/account',
      '/enrol',
      '/recover',
      '/',
      '',
      '?',
      '#',
      '/storesx',
    ],
    ...[
      '/stores/../sign-out',
      '/account/../oidc',
      '/stores/\u202e',
      '/stores/ü',
      `/stores/${'x'.repeat(3_000)}`,
    ],
    ...[null, undefined, 7, true, ['/account'], { to: '/account' }],
  ]
  for (const text of hostile) {
    const to = readReturn(farthing.ctx, text)
    const led = new URL(to, url)
    assert.equal(led.origin, url, `${text}`)
    assert(to === '/' || /^\/(stores|operator|account)(\/|\?|$)/.test(led.pathname), `${text} leads to ${to}`)
    assert(!to.startsWith('//'), `${text}`)
  }
  assert.equal(readReturn(farthing.ctx, '//evil.example/stores/x'), '/')
  assert.equal(await signInTo('/stores/..//evil.example'), '/')
  for (const fine of [
    '/account',
    '/account?lang=es',
    `/stores/${store.id}`,
    '/operator/doctor?run=yes',
    '/stores/x/inbox?find=a%2Fb',
  ])
    assert.equal(readReturn(farthing.ctx, fine), fine)
})

test('a browser without its cookie is signed out, and one whose cookie is another’s is refused', async () => {
  const nobody = new TestBrowser(console)
  assert.equal((await nobody.post(`/stores/${store.id}/members`, { name: 'x' })).statusCode, 401)
  assert.equal((await nobody.post('/sign-in', {})).statusCode, 403, 'signing in needs a cookie')
  await nobody.get('/sign-in')
  const { cookie } = nobody
  nobody.cookie = owner.browser.cookie
  assert.equal((await nobody.post(`/stores/${store.id}/members`, { name: 'x' })).statusCode, 403)
  nobody.cookie = cookie
  const { isSignedOut } = (await nobody.post('/confirm', {})).json()
  assert.equal(isSignedOut, true)
})
