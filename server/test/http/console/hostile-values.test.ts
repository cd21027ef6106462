/**
 * The values of http/hostile-values.test.ts in every path, query and field of the console's routes, signed in or not: no
 * 500, which would page an operator.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAuthenticator } from './support/authenticator.ts'
import { openFurnished } from './support/furnished.ts'
import { listRoutes } from './support/routes.ts'

const { app, owner, ops, store, url, farthing } = await openFurnished()
const first = async (sql: string) =>
  (await farthing.ctx.db.query<{ id: string }>(`${sql} where store_id = $1 limit 1`, [store.id]))[0]?.id ?? ''
const ids: Readonly<Record<string, string>> = {
  storeId: store.id,
  checkoutId: await first('select id from checkouts'),
  paymentId: await first('select payment_id as id from credits'),
  refundId: await first('select id from refunds'),
  endpointId: await first('select id from webhook_endpoints'),
  keyId: await first('select id from api_keys'),
  walletId: await first('select id from wallets'),
  changeId: await first('select id from wallet_changes'),
}

const values = [
  ...['\0', 'a\0b', '\ufffd', '%00', '__proto__', '9'.repeat(60), '1-9999999999999999999999'],
  ...[
    '+275760-09-13T00:00:00Z',
    '-271821-04-20T00:00:00Z',
    '2099-12-31',
    '0000-01-01',
    `0X${'A'.repeat(64)}`,
  ],
]
const names = [
  ...[
    'q',
    'as',
    'show',
    'status',
    'kind',
    'network',
    'least',
    'most',
    'from',
    'to',
    'cursor',
    'said',
    'payment',
  ],
  ...[
    'find',
    'type',
    'actor',
    'before',
    'after',
    'page',
    'range',
    'checkoutId',
    'paymentId',
    'refundId',
    'until',
  ],
  ...[
    'endpointId',
    'deliveryId',
    'eventId',
    'keyId',
    'memberId',
    'invitationId',
    'sessionId',
    'passkeyId',
    'role',
  ],
  ...[
    'changeId',
    'walletId',
    'signature',
    'custodialType',
    'family',
    'paidNow',
    'paidNext',
    'name',
    'email',
    'walletChanges',
    'address',
    'amount',
    'currency',
    'description',
    'order',
    'key',
  ],
  ...[
    'note',
    'reason',
    'recipient',
    'transaction',
    'reference',
    'code',
    'url',
    'label',
    'preset',
    'since',
    'values',
  ],
  ...[
    'storeName',
    'walletAddress',
    'mode',
    'invitation',
    'action',
    'answer',
    'touch',
    'timeZone',
    'signature',
  ],
]
const routes = listRoutes(app).filter(
  ({ path }) => !/\/(live|export|sign-out)$|sessions\/end$|assets/.test(path),
)

let addresses = 0

/** From another address each time, so that no limit applies. */
async function ask(
  who: typeof owner,
  method: 'GET' | 'POST',
  address: string,
  fields?: object,
  form?: string,
) {
  addresses++
  return await app.inject({
    method,
    url: address,
    remoteAddress: `11.${addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`,
    headers: {
      cookie: who.browser.cookie,
      'sec-fetch-site': 'same-origin',
      ...(fields && { 'content-type': 'application/json' }),
      ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
    },
    ...(fields && { payload: JSON.stringify({ ...fields, formToken: who.browser.formToken }) }),
    ...(form && { payload: `${form}&formToken=${encodeURIComponent(who.browser.formToken)}` }),
  })
}

const fill = (path: string, other?: string) =>
  path.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(other !== undefined && name !== 'storeId' ? other : (ids[name] ?? 'x')),
  )

test('no value in any path, query or field of the console is answered with 500', async () => {
  let refused = 0
  for (const { method, path } of routes) {
    const who = path.startsWith('/operator') ? ops : owner
    for (const value of values) {
      const text = encodeURIComponent(value)
      const all = Object.fromEntries(names.map((name) => [name, value]))
      const form = names.map((name) => `${name}=${text}`).join('&')
      const answers =
        method === 'GET'
          ? [await ask(who, 'GET', fill(path, value)), await ask(who, 'GET', `${fill(path)}?${form}`)]
          : [
              await ask(who, 'POST', fill(path, value), {}),
              await ask(who, 'POST', fill(path), all),
              await ask(who, 'POST', fill(path), undefined, form),
            ]
      for (const { statusCode, body } of answers) {
        assert(statusCode < 500, `${method} ${path} ${JSON.stringify(value)}: ${statusCode} ${body}`)
        if (statusCode === 422) refused++
      }
    }
  }
  assert(refused > routes.length, 'values reached the routes')
})

test('each field of a form and each parameter of a screen that is a time takes an extreme one', async () => {
  for (const { method, path } of routes.filter((route) =>
    /wallets|activity|payments|developers/.test(route.path),
  ))
    for (const name of ['from', 'to', 'until', 'since', 'before', 'after', 'cursor'])
      for (const value of ['-271821-04-20T00:00:00Z', '+275760-09-13T00:00:00Z']) {
        const query = `${fill(path)}?${name}=${encodeURIComponent(value)}`
        const { statusCode, body } =
          method === 'GET'
            ? await ask(owner, 'GET', query)
            : await ask(owner, 'POST', fill(path), { [name]: value })
        assert(statusCode < 500, `${method} ${path} ${name}=${value}: ${statusCode} ${body}`)
      }
})

test('nobody’s passkey with U+0000 in its id is refused as any other', async () => {
  for (const id of ['\0', 'a\0', '\ufffd', 'x'.repeat(2_000)]) {
    const answer = { ...(openAuthenticator(url).touch({ challenge: 'AAAA' }) as object), id, rawId: id }
    const { statusCode } = await ask(owner, 'POST', '/sign-in', { answer })
    assert(statusCode >= 400 && statusCode < 500, String(statusCode))
  }
})
