/** Which deliveries the SDK accepts. FULL=1: a million forged or replayed deliveries. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { Event } from '@farthing/sdk'
import { signWebhook, verifyWebhook, WebhookError } from '@farthing/sdk/webhooks'
import { Webhook } from 'standardwebhooks'

const forgeries = process.env.FULL === '1' ? 1_000_000 : 20_000

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`
const [secret, other] = [newSecret(), newSecret()]
const now = new Date('2026-11-15T12:00:00Z')
const event = {
  id: 'evt_1',
  type: 'key.created',
  sequence: 7,
  createdAt: now.toISOString(),
  checkoutId: null,
  checkoutVersion: null,
  actor: { type: 'operator', id: 'ü', name: null },
  data: {
    key: {
      id: 'ü',
      label: null,
      scopes: [],
      addresses: [],
      createdAt: now.toISOString(),
      lastUsedAt: null,
      expiresAt: null,
      revokedAt: null,
    },
  },
} satisfies Event
const body = Buffer.from(JSON.stringify(event))
const sign = (change: Partial<Parameters<typeof signWebhook>[0]> = {}) =>
  signWebhook({ id: event.id, timestamp: now, body, secrets: secret, ...change })
const genuine = await sign()
const codeOf = async (change: Partial<Parameters<typeof verifyWebhook>[0]>) =>
  await verifyWebhook({ body, headers: genuine, secrets: secret, now, ...change }).then(
    () => 'accepted',
    (error) => (error instanceof WebhookError ? error.code : String(error)),
  )

test('a genuine delivery is accepted as bytes or text, with headers of any kind and case, by either of two secrets', async () => {
  const headers = genuine
  assert.deepEqual(await verifyWebhook({ body, headers, secrets: secret, now }), event)
  for (const given of [
    { body: body.toString() },
    { headers: new Headers(headers) },
    {
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
      ),
    },
    { secrets: [other, secret] },
    { headers: await sign({ secrets: [other, secret] }) },
    { secrets: secret.slice('whsec_'.length) },
  ])
    assert.equal(await codeOf(given), 'accepted', JSON.stringify(given))
})

test('our signer agrees with the standard’s own library', async () => {
  const present = new Date()
  const ours = await sign({ timestamp: present })
  assert.deepEqual(new Webhook(secret).verify(body.toString(), ours), event)
  const theirs = new Webhook(secret).sign(event.id, present, body.toString())
  assert.equal(theirs, ours['webhook-signature'])
})

test('a missing or malformed header, and a delivery that is too old or too new, are each rejected with their own code', async () => {
  const headers = genuine
  const at = (ms: number) => new Date(now.getTime() + ms)
  for (const [change, code] of [
    [{ headers: {} }, 'missing_header'],
    [{ headers: { ...headers, 'webhook-id': '' } }, 'missing_header'],
    [{ headers: { ...headers, 'webhook-signature': ['a', 'b'] } }, 'missing_header'],
    [{ headers: { ...headers, 'webhook-timestamp': '1e3' } }, 'malformed_header'],
    [{ headers: { ...headers, 'webhook-signature': 'v2,xx' } }, 'malformed_header'],
    [{ headers: { ...headers, 'webhook-signature': 'v1,' } }, 'malformed_header'],
    [{ secrets: 'whsec_short' }, 'malformed_secret'],
    [{ secrets: [] }, 'missing_secret'],
    [{ secrets: other }, 'wrong_signature'],
    [{ now: at(300_000) }, 'accepted'],
    [{ now: at(-300_000) }, 'accepted'],
    [{ now: at(301_000) }, 'too_old'],
    [{ now: at(-301_000) }, 'too_new'],
    [{ headers: await sign({ body: '{' }), body: '{' }, 'malformed_body'],
    [{ headers: await sign({ body: Buffer.from([0xff]) }), body: Buffer.from([0xff]) }, 'malformed_body'],
    [{ headers: await sign({ id: 'evt_2' }) }, 'malformed_body'],
  ] as const)
    assert.equal(await codeOf(change), code, JSON.stringify(change))
})

test(`none of ${forgeries} forged or replayed deliveries is accepted`, async (t) => {
  const random = (below: number) => Math.floor(Math.random() * below)
  const flip = (bytes: Buffer) => {
    const copy = Buffer.from(bytes)
    const at = random(copy.length)
    copy[at] = (copy[at] ?? 0) ^ (1 << random(8))
    return copy
  }
  const signature = Buffer.from(genuine['webhook-signature'].slice(3), 'base64')
  const stamp = Math.floor(now.getTime() / 1_000)
  /** Each returns a delivery that differs from every genuine one. */
  const ways: (() => Promise<Partial<Parameters<typeof verifyWebhook>[0]>>)[] = [
    async () => ({ body: flip(body) }),
    async () => ({
      headers: { ...genuine, 'webhook-signature': `v1,${flip(signature).toString('base64')}` },
    }),
    async () => ({
      headers: { ...genuine, 'webhook-signature': `v1,${randomBytes(32).toString('base64')}` },
    }),
    async () => ({
      headers: {
        ...genuine,
        'webhook-signature': `v1,${signature.subarray(0, random(32)).toString('base64')}`,
      },
    }),
    // The signature of one delivery under another's id or time.
    async () => ({ headers: { ...genuine, 'webhook-id': `evt_${random(1e9) + 2}` } }),
    async () => ({
      headers: { ...genuine, 'webhook-timestamp': String(stamp + 1 + random(299)) },
      now: new Date(now.getTime() + 200_000),
    }),
    async () => ({ headers: { ...genuine, 'webhook-timestamp': `0${stamp}` } }),
    // A genuine delivery, replayed too late.
    async () => ({ now: new Date(now.getTime() + 300_001 + random(1e9)) }),
    async () => ({ headers: await sign({ secrets: newSecret() }) }),
    // Signed parts moved across the dots that separate them.
    async () => ({ headers: { ...genuine, 'webhook-id': `${event.id}.${stamp}`, 'webhook-timestamp': '1' } }),
    async () => ({ body: Buffer.concat([body, Buffer.from(' '.repeat(1 + random(5)))]) }),
    async () => ({
      body: Buffer.from(JSON.stringify({ ...event, sequence: event.sequence + 1 + random(99) })),
    }),
    async () => ({ secrets: [other, newSecret()] }),
    async () => ({
      headers: {
        ...genuine,
        'webhook-signature': Array.from({ length: 8 }, () => `v1,${randomBytes(32).toString('base64')}`).join(
          ' ',
        ),
      },
    }),
  ]
  const seen = new Map<string, number>()
  for (let i = 0; i < forgeries; i += 100) {
    const codes = await Promise.all(
      Array.from({ length: 100 }, async (_, j) => codeOf((await ways[(i + j) % ways.length]?.()) ?? {})),
    )
    for (const code of codes) seen.set(code, (seen.get(code) ?? 0) + 1)
  }
  t.diagnostic(JSON.stringify(Object.fromEntries(seen)))
  assert.equal(seen.get('accepted') ?? 0, 0)
  assert((seen.get('wrong_signature') ?? 0) > forgeries / 2 && (seen.get('too_old') ?? 0) > forgeries / 100)
})
