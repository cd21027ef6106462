import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProblemDetails } from '@farthing/sdk'
import { makeStore, openTestApp } from '../support/app.ts'

const farthing = await openTestApp()
const { key } = await makeStore(farthing.ctx)

const order = { orderId: 'order-1', priceAmount: '12.50', priceCurrency: 'USD' }

/** What the API says about a request that it refuses: where and what is wrong, and the whole sentence. */
async function complain(method: 'GET' | 'POST' | 'PATCH', url: string, payload?: unknown) {
  const answer = await farthing.request({
    method,
    url: `/api/v1${url}`,
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    ...(payload !== undefined && { payload: JSON.stringify(payload) }),
  })
  assert.equal(answer.statusCode, 422, answer.body)
  const { detail, errors = [] } = answer.json<ProblemDetails>()
  return { detail, errors: errors.map((error) => `${error.pointer} ${error.detail}`) }
}

test('a value of the wrong type is answered with the type that it must have, in words', async () => {
  for (const [change, ...expected] of [
    [{ priceAmount: 12.5 }, '/priceAmount must be a string'],
    [{ orderId: null }, '/orderId must be a string'],
    [{ expiresInSeconds: '300' }, '/expiresInSeconds must be an integer'],
    [{ expiresInSeconds: 300.5 }, '/expiresInSeconds must be an integer'],
    [{ metadata: 'blue' }, '/metadata must be an object'],
    [{ metadata: { size: 4 } }, '/metadata/size must be a string'],
    [{ orderId: 1, priceAmount: 2 }, '/orderId must be a string', '/priceAmount must be a string'],
  ] as const) {
    const { errors, detail } = await complain('POST', '/checkouts', { ...order, ...change })
    assert.deepEqual(errors, expected)
    assert.equal(detail, `${expected.join('. ')}.`)
  }
  assert.deepEqual((await complain('POST', '/checkouts', [])).detail, 'The body must be an object.')
  assert.deepEqual(
    (await complain('POST', '/webhook-endpoints', { url: 1, types: 'all', ordered: 'no' })).errors,
    ['/url must be a string', '/types must be an array', '/ordered must be a boolean'],
  )
  assert.deepEqual((await complain('GET', '/checkouts?limit=many')).errors, ['limit must be an integer'])
})

test('a value that may be null is answered with what else it may be, once', async () => {
  for (const [value, expected] of [
    [5, '/description must be a string or null'],
    [{}, '/description must be a string or null'],
  ] as const)
    assert.deepEqual((await complain('POST', '/checkouts', { ...order, description: value })).errors, [
      expected,
    ])
  const long = `https://shop.example/${'x'.repeat(2_048)}`
  assert.deepEqual((await complain('POST', '/checkouts', { ...order, cancelUrl: long })).errors, [
    '/cancelUrl must NOT have more than 2048 characters',
  ])
})

test('a body full of mistakes gets twenty of them back', async () => {
  const metadata = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`m${i}`, i]))
  const { errors } = await complain('POST', '/checkouts', {
    ...order,
    description: 1,
    cancelUrl: 2,
    metadata,
  })
  assert.equal(errors.length, 20)
  assert.equal(new Set(errors).size, 20)
  for (const error of errors)
    assert.match(
      error,
      /^\/(metadata(\/m\d+)?|description|cancelUrl) must (be a string( or null)?|NOT have more than 20 properties)$/,
    )
})
