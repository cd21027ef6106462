/** How buyers see the store: settings, the logo as a file, and previews of the payment page that can do nothing. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { previewStates } from '../../../src/http/console/branding/preview.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore, type TestBrowser } from './support/console.ts'

const console = await openConsole()
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  const own = async () => (await store.call('GET', `/api/v1/stores/${store.id}`)).json()
  return { store, owner, browser: owner.browser, path: `/stores/${store.id}/branding`, own }
}

/** As a browser without a script sends the form. */
async function submit(
  browser: TestBrowser,
  path: string,
  change: Readonly<Record<string, string>> = {},
  logo: Buffer = Buffer.alloc(0),
) {
  const fields = {
    ...{ formToken: browser.formToken, name: 'Shop', supportEmail: '', supportUrl: '' },
    ...{ timeZone: 'Europe/Madrid', reportCurrency: 'EUR', ...change },
  }
  const mark = '----form5QbX'
  const parts = Object.entries(fields).map(
    ([name, value]) => `--${mark}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const file = `--${mark}\r\nContent-Disposition: form-data; name="logo"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n`
  return await console.app.inject({
    method: 'POST',
    url: path,
    remoteAddress: browser.remoteAddress,
    headers: {
      cookie: browser.cookie,
      'sec-fetch-site': 'same-origin',
      'content-type': `multipart/form-data; boundary=${mark}`,
    },
    payload: Buffer.concat([Buffer.from(parts.join('') + file), logo, Buffer.from(`\r\n--${mark}--\r\n`)]),
  })
}

test('an owner changes all of it by one form, the logo as a file; the log has their name', async () => {
  const { store, browser, path, own } = await openShop()
  await browser.get(path)
  const change = {
    ...{ name: 'Juniper — té', hasColor: 'yes', accentColor: '#FFE9A8' },
    ...{ supportEmail: 'help@shop.example', supportUrl: 'https://shop.example/help' },
    ...{ legalName: 'Juniper Ltd', legalAddress: '4 Mill Lane\r\nBristol', taxId: 'GB1' },
  }
  const saved = await submit(browser, path, change, png)
  assert.equal(saved.headers.location, `${path}?said=saved`)
  const { name, logoUrl, accentColor, supportEmail, timeZone, reportCurrency } = await own()
  assert.deepEqual(
    [name, logoUrl, accentColor, supportEmail, timeZone, reportCurrency],
    [
      ...['Juniper — té', `data:image/png;base64,${png.toString('base64')}`, '#ffe9a8'],
      ...['help@shop.example', 'Europe/Madrid', 'EUR'],
    ],
  )
  const { legalName, legalAddress, taxId } = await own()
  assert.deepEqual([legalName, legalAddress, taxId], ['Juniper Ltd', '4 Mill Lane\nBristol', 'GB1'])
  const told = (await store.events()).filter(({ type }) => type === 'store.updated')
  assert.deepEqual(
    told.map(({ actor }) => actor?.name),
    ['Olga'],
  )
  const { body } = await browser.get(saved.headers.location)
  for (const each of [
    'Saved.',
    'Black letters',
    'On a light page the button itself is hard to see (1.2 to 1)',
  ])
    assert(body.includes(each), each)
  await submit(browser, path)
  assert.equal((await own()).logoUrl, logoUrl, 'no file leaves the logo as it is')
  await submit(browser, path, { removeLogo: 'yes' })
  const plain = await own()
  assert.deepEqual([plain.logoUrl, plain.accentColor, plain.supportEmail], [null, null, null])
})

test('what is wrong is said in words, nothing is saved, and what was entered stays', async () => {
  const { browser, path, own } = await openShop()
  await browser.get(path)
  const before = await own()
  const large = Buffer.concat([png, Buffer.alloc(9_000)])
  for (const [change, logo, sentence] of [
    [{ name: '' }, undefined, 'The name needs'],
    [{ supportEmail: 'x' }, undefined, 'Write an email address'],
    [{ supportUrl: 'javascript:alert(1)' }, undefined, 'Write a web address'],
    [{ legalAddress: 'a\r\n\r\nb' }, undefined, 'an address of up to 6 lines'],
    [{ timeZone: 'Mars' }, undefined, 'Choose a time zone'],
    [{ reportCurrency: 'XX' }, undefined, 'Choose a currency'],
    [{ hasColor: 'yes', accentColor: 'red;}' }, undefined, 'six hexadecimal digits'],
    [{ name: 'Kept' }, large, 'larger than 9 KB'],
    [{ name: 'Kept' }, Buffer.from('<svg onload="alert(1)">'), 'not a PNG, JPEG or WebP image'],
  ] as const) {
    const { statusCode, body } = await submit(browser, path, change, logo)
    assert.equal(statusCode, 422, sentence)
    assert(body.includes(sentence), sentence)
    if ('name' in change) assert(body.includes(`name="name" value="${change.name}"`))
  }
  const huge = await submit(browser, path, {}, Buffer.alloc(300_000))
  assert.equal(huge.headers.location, `${path}?said=large`)
  assert((await browser.get(`${path}?said=large`)).body.includes('larger than 9 KB'))
  assert.deepEqual(await own(), before)
  assert.equal((await submit(browser, `${path.replace('branding', 'new')}`)).statusCode, 415)
})

test('the preview is the payment page in every state, in a frame of ours alone, without any script', async () => {
  const { browser, path } = await openShop()
  await browser.get(path)
  await submit(browser, path, { name: 'A <b>', hasColor: 'yes', accentColor: '#123456' }, png)
  const screen = await browser.get(path)
  assert.match(String(screen.headers['content-security-policy']), /frame-src 'self';.*frame-ancestors 'none'/)
  assert.match(screen.body, /<iframe class="preview" sandbox title="[^"]+" src="[^"]+"><\/iframe>/)
  const elsewhere = await browser.get('/account')
  assert.doesNotMatch(String(elsewhere.headers['content-security-policy']), /frame-src/)
  const seen = new Set<string>()
  for (const state of previewStates) {
    const { body, headers, statusCode } = await browser.get(`${path}/preview?state=${state}`)
    assert.equal(statusCode, 200)
    const policy = String(headers['content-security-policy'])
    assert.match(
      policy,
      /^default-src 'none'; style-src 'sha256-.*; img-src data:; .*frame-ancestors 'self'; sandbox$/,
    )
    assert.equal(headers['x-frame-options'], 'SAMEORIGIN')
    assert.doesNotMatch(body, /<script(?! type="application\/json")/)
    assert(
      body.includes('<body inert>') && body.includes('A &#60;b&#62;') && body.includes('--accent:#123456'),
    )
    assert(body.includes(`src="data:image/png;base64,${png.toString('base64').slice(0, 20)}`))
    seen.add(/<div class="act">([\s\S]*?)<\/main>/.exec(body)?.[1] ?? '')
  }
  assert.equal(seen.size, previewStates.length, 'each looks different')
})

test('who may only look sees the settings and changes nothing', async () => {
  const { store, owner, path, own } = await openShop()
  const developer = await enrolWith(
    console,
    await inviteBy(owner, store.id, { name: 'Dev', role: 'developer' }),
  )
  const before = await own()
  const { body } = await developer.browser.get(path)
  assert(body.includes('Owners change this.') && body.includes(' disabled>'))
  assert.equal((await submit(developer.browser, path, { name: 'Mine' })).statusCode, 403)
  assert.deepEqual(await own(), before)
})

test('an upload that is too large is answered after its last byte: before, a browser would show an error of its own', async () => {
  const { browser, path } = await openShop()
  await browser.get(path)
  if (!console.app.server.listening) await console.app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = console.app.server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1')
  let heard = ''
  socket.on('data', (chunk) => {
    heard += chunk
  })
  const body = Buffer.alloc(3_000_000, 'x')
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${new URL(console.url).host}`,
    `cookie: ${browser.cookie}`,
    'sec-fetch-site: same-origin',
    'content-type: multipart/form-data; boundary=b',
    `content-length: ${body.length}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  socket.write(body.subarray(1))
  if (socket.writableNeedDrain) await once(socket, 'drain')
  // By now the server has read and answered another request.
  await (await fetch(`http://127.0.0.1:${port}/sign-in`)).text()
  assert.equal(heard, '')
  socket.write('x')
  const [answer] = await once(socket, 'data')
  assert.match(String(answer), /^HTTP\/1\.1 303 /)
  assert.match(String(answer), /said=large/)
  socket.destroy()
})
