/** Slack and Discord endpoints: a line of text for each event, at a URL that nobody gets to see again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resealEndpoints } from '../../../src/events/webhooks/reseal.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { secretsKeyFile } from '../../support/secrets-key.ts'
import { registerWallet } from '../../support/store.ts'
import { deliverDue, openHookShop, openLocalApp } from './support/endpoints.ts'
import { answer, openReceiver, type Received } from './support/receiver.ts'

const farthing = await openLocalApp({ LOG_LEVEL: 'debug', SECRETS_KEY_FILE: secretsKeyFile })
const { ctx } = farthing

const at = (id: string, rest = '') => `/api/v1/webhook-endpoints/${id}${rest}`
const token = 'T0TOKEN0B0TOKEN0abcdefghijklmnopqrstuvwx'
const linesOf = (received: readonly Received[]) =>
  received.map(({ body }) => {
    const { text, content } = JSON.parse(body.toString())
    return String(text ?? content)
  })

/** Everything that the store or the operator can read: rows, answers, log lines. */
async function everything(shop: Awaited<ReturnType<typeof openHookShop>>, id: string): Promise<string> {
  const answers = await Promise.all(
    ['/api/v1/webhook-endpoints', at(id), at(id, '/deliveries'), '/api/v1/events?limit=100'].map((path) =>
      shop.call('GET', path),
    ),
  )
  const tables = ['webhook_endpoints', 'events', 'deliveries', 'delivery_attempts', 'idempotency_keys']
  const rows = await Promise.all(tables.map((table) => ctx.db.query(`select t::text as row from ${table} t`)))
  return JSON.stringify([answers.map(({ body }) => body), rows, farthing.logged])
}

for (const format of ['slack', 'discord'] as const)
  test(`${format}: one line of text per event, unsigned, security events too, and the URL is in no row, answer, event or log line`, async () => {
    const shop = await openHookShop(farthing)
    const receiver = await openReceiver()
    // A receiver that repeats the URL it was called at.
    receiver.behave = ({ path }, response) =>
      response.writeHead(500).end(`nothing at ${path}, token ${token}`)
    const url = `${receiver.url}/services/${token}`
    const made = await shop.register({ url, format, types: ['checkout.created'] })
    assert.equal(made.secret, '')
    assert.equal(made.format, format)
    const { hostname } = new URL(url)
    assert(made.url.includes(hostname) && !made.url.includes(token), made.url)
    await shop.create({ orderId: 'tea <!channel> `x` @everyone https://evil.example' })
    await registerWallet(shop, newPayer().address)
    await shop.call('POST', at(made.id, '/test'))
    await deliverDue(ctx)
    const [first = assert.fail()] = receiver.received
    assert.equal(first.path, new URL(url).pathname)
    assert.equal(first.headers['webhook-signature'], undefined)
    const lines = linesOf(receiver.received)
    assert.equal(lines.length, 3)
    assert(lines.some((line) => line.includes('New checkout')))
    assert(
      lines.some((line) => line.startsWith('Test store: Security'.slice(0, 10)) && /Security/.test(line)),
    )
    for (const line of lines) assert.doesNotMatch(line, /(?<!\\)<!|@everyone|:\/\/evil/)
    // After a failure, an undeliverable one, and a receiver that is gone.
    receiver.behave = ({ path }, response) => response.writeHead(410).end(`gone: ${path}`)
    await shop.create()
    await deliverDue(ctx)
    const seen = await everything(shop, made.id)
    assert(
      !seen.includes(token),
      seen.slice(Math.max(0, seen.indexOf(token) - 200), seen.indexOf(token) + 60),
    )
    assert(seen.includes('[redacted]'), 'what the receiver said is there')
  })

test('no change of an endpoint shows its URL, and its format cannot be changed', async () => {
  const shop = await openHookShop(farthing)
  const [receiver, next] = await Promise.all([openReceiver(), openReceiver()])
  const { id, url } = await shop.register({ url: `${receiver.url}/${token}`, format: 'slack' })
  for (const format of ['json', 'discord', 'slack'])
    assert.equal((await shop.call('PATCH', at(id), { format })).statusCode, 422, format)
  assert.equal((await shop.call('POST', at(id, '/roll-secret'), {})).statusCode, 422)
  const same = await shop.call('PATCH', at(id), { url, types: ['checkout.created'] })
  assert.equal(same.json().url, url, 'what was read can be sent back')
  await shop.create()
  await deliverDue(ctx)
  assert(receiver.received.some(({ path }) => path === `/${token}`))
  const twice = await shop.call('POST', '/api/v1/webhook-endpoints', {
    url: `${receiver.url}/${token}`,
    format: 'discord',
  })
  assert.equal(twice.json().code, 'endpoint_exists')
  const moved = await shop.call('PATCH', at(id), { url: `${next.url}/next-${token}` })
  assert.equal(moved.statusCode, 200, moved.body)
  assert(!moved.body.includes(token))
  await deliverDue(ctx)
  const told = linesOf(receiver.received).filter((line) => /Webhook endpoint updated/.test(line))
  assert(told.length > 0, 'the URL before a change gets security events for a day')
  await shop.create()
  await deliverDue(ctx)
  assert(next.received.length > 0)
  assert(next.received.every(({ path }) => path === `/next-${token}`))
  const seen = await everything(shop, id)
  assert(!seen.includes(token))
})

test('a new key seals the URLs again, and they go on arriving', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  const { id } = await shop.register({ url: `${receiver.url}/${token}`, format: 'discord' })
  await ctx.db.query(
    `update webhook_endpoints set secrets = jsonb_build_array(jsonb_build_object('secret', $2::text, 'expiresAt', null))
     where id = $1`,
    [id, `${receiver.url}/${token}`],
  )
  await resealEndpoints(ctx)
  const [row] = await ctx.db.query<{ row: string }>(
    'select e::text as row from webhook_endpoints e where id = $1',
    [id],
  )
  assert(row && !row.row.includes(token))
  await shop.create()
  await deliverDue(ctx)
  assert.equal(receiver.received.at(-1)?.path, `/${token}`)
})

test('the address of a channel is checked as any other, and its limits and retries are the same', async () => {
  const shop = await openHookShop(farthing, 'live')
  for (const url of [
    'http://hooks.example/a',
    'https://127.0.0.1/a',
    'https://10.0.0.1/a',
    'https://hooks.example:22/a',
  ])
    for (const format of ['slack', 'discord']) {
      const refused = await shop.call('POST', '/api/v1/webhook-endpoints', { url, format })
      assert.equal(refused.statusCode, 422, url)
    }
  const own = await openHookShop(farthing)
  const receiver = await openReceiver(answer(429, { 'retry-after': '3600' }))
  const { id } = await own.register({ url: `${receiver.url}/${token}`, format: 'slack', ordered: true })
  await own.create()
  await own.create()
  await deliverDue(ctx)
  assert.equal(receiver.received.length, 1, 'in order, and not before the time that it asked for')
  const [delivery] = (await own.deliveries(id)).filter(({ tries }) => tries > 0)
  assert.equal(delivery?.attempts[0]?.status, 429)
})
