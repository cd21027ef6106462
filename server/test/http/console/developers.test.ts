/** Developers: keys, webhook endpoints, deliveries and the event log, by the same verbs as the API. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { deliverDue } from '../../events/webhooks/support/endpoints.ts'
import { answer, openReceiver } from '../../events/webhooks/support/receiver.ts'
import { send } from '../../support/store.ts'
import { sendLines, textOf } from './support/api-lines.ts'
import { openAuthenticator } from './support/authenticator.ts'
import { type Enrolled, enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'
import { isStatus, read } from './support/wallets.ts'

const console = await openConsole()
const { ctx, app } = console.farthing
const { baseUrl } = ctx.config

async function openShop(mode: 'live' | 'test' = 'test') {
  const { store, token } = await openInvitedStore(console, { mode })
  const owner = await enrolWith(console, token, openAuthenticator(console.url, false))
  const base = `/stores/${store.id}/developers`
  const touched = async (
    by: Enrolled,
    path: string,
    action: string,
    values: Readonly<Record<string, string>>,
  ) => {
    const touch = await by.browser.confirm(by.authenticator, action, { storeId: store.id, ...values })
    return await by.browser.post(`${base}${path}`, { ...values, touch })
  }
  const invite = async (role: string) =>
    await enrolWith(console, await inviteBy(owner, store.id, { name: role, role }))
  return { store, owner, base, touched, invite }
}

const nothing = {
  checkouts: 'none',
  payments: 'none',
  refunds: 'none',
  wallets: 'none',
  webhooks: 'none',
  reports: 'none',
  keys: 'none',
}
const keyForm = { label: 'Till', preset: 'create', addresses: '', ...nothing }

async function register(
  shop: Awaited<ReturnType<typeof openShop>>,
  url: string,
  more: Readonly<Record<string, string>> = {},
) {
  // What happened before gets its number first, as it would with a worker running.
  await shop.store.events()
  const made = await shop.touched(shop.owner, '/endpoints', 'webhook.create', { url, ...more })
  assert.equal(made.statusCode, 200, made.body)
  const secret = textOf(/<code class="link"[^>]*>(.*?)<\/code>/.exec(made.body)?.[1] ?? '')
  const [, endpointId = ''] = /endpoints\/(we_\w+)/.exec(await read(shop.owner.browser, shop.base)) ?? []
  return { secret, endpointId }
}

test('a key is shown once, does what was chosen and no more, and is revoked by a touch', async () => {
  const { store, owner, base, touched } = await openShop()
  const made = await touched(owner, '/keys', 'key.create', {
    ...keyForm,
    preset: 'scopes',
    payments: 'read',
    webhooks: 'write',
    addresses: '127.0.0.1 10.0.0.0/8',
  })
  assert.equal(made.statusCode, 200, made.body)
  assert.equal(made.headers['cache-control'], 'no-store')
  const [key = assert.fail(made.body)] = /sk_test_\w+/.exec(made.body) ?? []
  const call = async (path: string) =>
    (await send(app, 'GET', `/api/v1/${path}`, undefined, { 'x-api-key': key })).statusCode
  assert.deepEqual([await call('payments'), await call('events'), await call('keys')], [200, 200, 403])
  const page = await read(owner.browser, base)
  assert.doesNotMatch(page, new RegExp(key), 'only once')
  for (const shown of ['Till', 'payments:read', 'webhooks:write', '127.0.0.1/32, 10.0.0.0/8'])
    assert(textOf(page).includes(shown), shown)
  const keyId = key.split('_')[2] ?? ''
  await isStatus(touched(owner, '/keys/revoke', 'key.revoke', { keyId }), 303)
  const { data: listed } = (await store.call('GET', '/api/v1/keys')).json()
  assert.notEqual(listed.find(({ id }: { id: string }) => id === keyId).revokedAt, null)
  assert.match(await read(owner.browser, base), /Revoked <time/)
  const told = (await store.events()).filter(({ type }) => type.startsWith('key.'))
  assert.deepEqual(
    told.slice(-2).map(({ type, actor }) => [type, actor?.type, actor?.name]),
    [
      ['key.created', 'member', 'Olga'],
      ['key.revoked', 'member', 'Olga'],
    ],
  )
  await isStatus(touched(owner, '/keys', 'key.create', { ...keyForm, preset: 'scopes' }), 422)
  await isStatus(touched(owner, '/keys', 'key.create', { ...keyForm, addresses: 'nowhere' }), 422)
})

test('a touch for one key makes no other: preset, scopes, label and addresses are what the passkey confirmed', async () => {
  const { store, owner, base } = await openShop()
  for (const change of [{ preset: 'full' }, { label: 'Other' }, { addresses: '::1' }, { keys: 'write' }]) {
    const touch = await owner.browser.confirm(owner.authenticator, 'key.create', {
      storeId: store.id,
      ...keyForm,
    })
    await isStatus(owner.browser.post(`${base}/keys`, { ...keyForm, ...change, touch }), 409)
  }
  assert.equal((await store.call('GET', '/api/v1/keys')).json().data.length, 1)
})

test('in a live store owners make keys and developers revoke them; in a test store developers make their own', async () => {
  const live = await openShop('live')
  const developer = await live.invite('developer')
  const page = await read(developer.browser, live.base)
  assert.match(page, /an owner makes the keys/)
  assert.doesNotMatch(page, /keys\/new/)
  await isStatus(developer.browser.get(`${live.base}/keys/new`), 403)
  await isStatus(live.touched(developer, '/keys', 'key.create', keyForm), 403)
  assert.equal((await live.touched(live.owner, '/keys', 'key.create', keyForm)).statusCode, 200)
  const keyId = live.store.key.split('_')[2] ?? ''
  await isStatus(live.touched(developer, '/keys/revoke', 'key.revoke', { keyId }), 303)
  const tried = await openShop('test')
  const tester = await tried.invite('developer')
  assert.equal((await tried.touched(tester, '/keys', 'key.create', keyForm)).statusCode, 200)
})

test('a manager sends again but changes nothing; a viewer sees none of it, not even in the navigation', async () => {
  const shop = await openShop()
  const { endpointId } = await register(shop, 'https://shop.example/hooks')
  const [manager, viewer] = [await shop.invite('manager'), await shop.invite('viewer')]
  const page = await read(manager.browser, `${shop.base}/endpoints/${endpointId}`)
  assert.match(page, /endpoints\/resend/)
  assert.doesNotMatch(page, /endpoints\/(update|roll|switch|delete|test)/)
  assert.doesNotMatch(await read(manager.browser, shop.base), /keys\/revoke|keys\/new|endpoints\/new/)
  for (const path of ['', '/keys/new', `/endpoints/${endpointId}`, '/deliveries', '/events'])
    await isStatus(viewer.browser.get(`${shop.base}${path}`), 403)
  await isStatus(viewer.browser.get(`/stores/${shop.store.id}/activity`), 403)
  const home = await read(viewer.browser, '/account')
  assert.doesNotMatch(home, /\/(developers|activity)"/)
})

test('an endpoint is added, tested, seen failing and why, switched off, moved, given another secret and deleted', async () => {
  const receiver = await openReceiver(answer(503, {}, '<script>alert(1)</script>\nsecond line'))
  const shop = await openShop()
  const { owner, base, touched, store } = shop
  const { secret, endpointId } = await register(shop, receiver.url, { 'type.checkout.completed': 'yes' })
  await isStatus(owner.browser.post(`${base}/endpoints/test`, { endpointId }), 303)
  await deliverDue(ctx)
  const { headers, body } = receiver.received.at(-1) ?? assert.fail('nothing was sent')
  new Webhook(secret).verify(body, headers)
  const failing = textOf(await read(owner.browser, base))
  assert.match(failing, /Failing<\/span>/)
  assert.match(failing, /checkout\.completed · 1 event waiting · last answer: 503 · next try/)
  const list = await read(
    owner.browser,
    `${base}/deliveries?endpoint=${endpointId}&state=pending&type=webhook_endpoint.test`,
  )
  const [, deliveryId = assert.fail(list)] = /deliveries\/(dlv_\w+)/.exec(list) ?? []
  const one = await read(owner.browser, `${base}/deliveries/${deliveryId}`)
  assert(!one.includes('<script>alert'), 'the answer is text')
  const shown = textOf(one)
  assert(shown.includes('<script>alert(1)</script>\nsecond line'), 'with its lines')
  assert(shown.includes(body.toString()), 'the body, as it was sent')
  for (const name of [
    'webhook-id',
    'webhook-timestamp',
    'content-type',
    'user-agent',
    'content-length',
    'host',
  ])
    assert(shown.includes(`${name}: ${headers[name]}`), name)
  receiver.behave = answer(204)
  await isStatus(owner.browser.post(`${base}/deliveries/resend`, { deliveryId }), 303)
  await deliverDue(ctx)
  assert.match(await read(owner.browser, `${base}/deliveries/${deliveryId}`), /Delivered<\/span>/)

  await isStatus(
    touched(owner, '/endpoints/switch', 'webhook.switch', { endpointId, status: 'disabled' }),
    303,
  )
  await isStatus(owner.browser.post(`${base}/endpoints/test`, { endpointId }), 422)
  await isStatus(
    touched(owner, '/endpoints/switch', 'webhook.switch', { endpointId, status: 'enabled' }),
    303,
  )
  const other = { endpointId, url: `${receiver.url}/other`, ordered: 'yes' }
  await isStatus(touched(owner, '/endpoints/update', 'webhook.update', other), 303)
  await isStatus(
    touched(owner, '/endpoints/update', 'webhook.update', { endpointId, url: 'http://10.0.0.1/' }),
    422,
  )
  const rolled = await touched(owner, '/endpoints/roll', 'webhook.roll', { endpointId, overlapSeconds: '0' })
  const [, text = ''] = /<code class="link"[^>]*>(.*?)<\/code>/.exec(rolled.body) ?? []
  await deliverDue(ctx)
  await store.create()
  const resent = await owner.browser.post(`${base}/endpoints/resend`, {
    endpointId,
    hours: '1',
    include: 'all',
  })
  assert.match(resent.body, /<h1>\d+ events are on their way/)
  await deliverDue(ctx)
  const { headers: signed, body: sent, path } = receiver.received.at(-1) ?? assert.fail()
  assert.equal(path, '/other')
  new Webhook(textOf(text)).verify(sent, signed)
  assert.throws(() => new Webhook(secret).verify(sent, signed))
  await isStatus(touched(owner, '/endpoints/delete', 'webhook.delete', { endpointId }), 303)
  await isStatus(owner.browser.get(`${base}/endpoints/${endpointId}`), 404)
  const told = (await store.events()).filter(({ type }) => type.startsWith('webhook_endpoint.'))
  assert.deepEqual(new Set(told.map(({ actor }) => actor?.name)), new Set(['Olga']))
})

test('the event log is read page by page and by type, checkout and payment, and each event is its JSON', async () => {
  const { store, owner, base } = await openShop()
  const { id } = await store.create({ orderId: '<img src=x onerror=alert(1)>' })
  for (let i = 0; i < 55; i++) await store.create({ orderId: `order ${i}` })
  const log = await store.events()
  const first = await read(owner.browser, `${base}/events`)
  const idsOf = (page: string) => [...page.matchAll(/events\/(evt_\w+)"/g)].map(([, each]) => each)
  const [, older = assert.fail()] = /href="([^"]*to=[^"]*)"/.exec(first) ?? []
  const second = await read(owner.browser, textOf(older))
  assert.deepEqual([...idsOf(first), ...idsOf(second)], log.map((each) => each.id).reverse())
  const byType = await read(owner.browser, `${base}/events?type=key.*`)
  assert.deepEqual(
    idsOf(byType),
    log.filter(({ type }) => type === 'key.created').map((each) => each.id),
  )
  const about = await read(owner.browser, `${base}/events?about=${id}`)
  const event = log.find(({ checkoutId }) => checkoutId === id) ?? assert.fail()
  assert.deepEqual(idsOf(about), [event.id])
  const detail = await read(owner.browser, `${base}/events/${event.id}`)
  assert(!detail.includes('<img src=x'))
  assert(textOf(detail).includes(JSON.stringify(event, null, 2)))
  assert.match(await read(owner.browser, `${base}/events?about=pay_none`), /No checkout of this store/)
  const neighbour = await openShop()
  await isStatus(neighbour.owner.browser.get(`${neighbour.base}/events/${event.id}`), 404)
})

test('the line for the API on every screen works as it is pasted, and answers what the screen shows', async () => {
  const receiver = await openReceiver()
  const shop = await openShop()
  const { store, owner, base } = shop
  await store.create()
  const { endpointId } = await register(shop, receiver.url)
  await register(shop, `${receiver.url}/second`)
  await owner.browser.done(`${base}/endpoints/test`, { endpointId })
  await deliverDue(ctx)
  const withDetails = (path: string) => `${base}${path}${path.includes('?') ? '&' : '?'}details=shown`
  const lines = async (path: string) =>
    await sendLines(store, await read(owner.browser, withDetails(path)), baseUrl)
  const [keys, endpoints] = await lines('')
  assert.equal(keys.data.length, 1)
  assert.equal(endpoints.data.length, 2)
  const both = await lines('/deliveries?type=webhook_endpoint.test')
  assert.deepEqual(both.map(({ data }) => data.length).sort(), [0, 1])
  const delivery = both.flatMap(({ data }) => data)[0]
  const [again] = await lines(`/deliveries/${delivery.id}`)
  assert.deepEqual([again.id, again.state], [delivery.id, 'pending'])
  assert.equal((await lines(`/endpoints/${endpointId}`))[0].id, endpointId)
  const page = await read(owner.browser, withDetails('/events?type=webhook_endpoint.*'))
  const shown = [...page.matchAll(/events\/(evt_\w+)"/g)].map(([, each]) => each)
  const [{ data }] = await sendLines(store, page, baseUrl)
  assert.deepEqual(data.map(({ id }: { id: string }) => id).reverse(), shown)
  assert.equal((await lines(`/events/${shown[0]}`))[0].data[0].id, shown[0])
  const [made] = await lines('/keys/new')
  assert.equal(made.label, 'Shop server')
  const [added] = await lines('/endpoints/new')
  assert.equal(added.url, 'https://shop.example/webhooks')
})
