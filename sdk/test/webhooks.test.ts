/** The mistakes that people make when they write a receiver. What a forger may try: server/test/events/webhooks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { signWebhook, verifyWebhook, WebhookError, type WebhookErrorCode } from '@farthing/sdk/webhooks'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const event = { id: 'evt_1', type: 'checkout.completed', data: { price: '12.50' } }
const body = JSON.stringify(event, null, 1)
const headers = await signWebhook({ id: event.id, timestamp: new Date(), body, secrets: secret })
const delivery = { body, headers, secrets: secret }

/** Calls it as JavaScript can, without type checks. */
const verify = (change: Readonly<Record<string, unknown>>) => verifyWebhook({ ...delivery, ...change })

async function assertTrap(
  change: Readonly<Record<string, unknown>>,
  code: WebhookErrorCode,
  words: RegExp,
): Promise<void> {
  for (const act of [
    () => verify(change),
    // The same mistakes in a store's own tests.
    ...('headers' in change
      ? []
      : [() => signWebhook({ id: 'evt_1', timestamp: new Date(), ...delivery, ...change })]),
  ])
    await assert.rejects(act, (error) => {
      assert(error instanceof WebhookError, String(error))
      assert.equal(error.code, code)
      assert.match(error.message, words)
      return true
    })
}

test('a body that a parser has read is refused with a WebhookError that says so', async () => {
  for (const parsed of [event, [event], null, undefined, 5, true, Buffer.from(body).toJSON()])
    await assertTrap({ body: parsed }, 'parsed_body', /raw bytes.*before any JSON parser/)
})

test('a body that was parsed and written again has another signature, and the error names that as a cause', async () => {
  await assert.rejects(verify({ body: JSON.stringify(event) }), (error) => {
    assert(error instanceof WebhookError)
    assert.equal(error.code, 'wrong_signature')
    assert.match(error.message, /parsed and written again/)
    return true
  })
})

test('a missing secret is refused with a WebhookError that asks for it, in whatever way it is missing', async () => {
  for (const secrets of [undefined, null, '', [], [''], [undefined], [secret, undefined]])
    await assertTrap({ secrets }, 'missing_secret', /whsec_.*environment variable/)
  for (const secrets of [5, {}, [{}], 'whsec_', 'hunter2'])
    await assertTrap({ secrets }, 'malformed_secret', /whsec_/)
})

test('missing headers are refused with a WebhookError', async () => {
  for (const none of [undefined, null, {}, 'webhook-id: evt_1', new Headers()])
    await assertTrap({ headers: none }, 'missing_header', /webhook-id/)
})

test('raw bytes are accepted in every form in which a framework hands them out', async () => {
  const bytes = new TextEncoder().encode(body)
  const within = new Uint8Array([0, ...bytes, 0]).subarray(1, -1)
  for (const raw of [
    body,
    bytes,
    within,
    Buffer.from(body),
    bytes.buffer,
    new DataView(within.buffer, 1, bytes.length),
    await new Response(body).arrayBuffer(),
    // Of another realm, as in a test runner.
    runInNewContext('Uint8Array.from(bytes)', { bytes }),
    runInNewContext('Uint8Array.from(bytes).buffer', { bytes }),
  ])
    assert.deepEqual(await verify({ body: raw }), event)
})

test('headers are read from any object with get, not only from this realm’s Headers', async () => {
  const entries = new Map<string, string>(Object.entries(headers))
  assert.deepEqual(await verify({ headers: { get: (name: string) => entries.get(name) ?? null } }), event)
})
