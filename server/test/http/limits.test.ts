import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeStore, openTestApp } from '../support/app.ts'

test('the limit applies to the client’s address behind a trusted proxy, and to the proxy’s own address otherwise', async () => {
  const settings = { ADDRESS_REQUESTS_PER_SECOND: '1' }
  const ask = async (app: Awaited<ReturnType<typeof openTestApp>>, client: string) =>
    (
      await app.request({
        url: '/api/v1/networks',
        headers: { 'x-forwarded-for': client },
        remoteAddress: '10.0.0.1',
      })
    ).statusCode
  const trusting = await openTestApp({ ...settings, TRUSTED_PROXIES: '10.0.0.0/8' })
  trusting.clock.now = new Date()
  assert.deepEqual(
    [await ask(trusting, '192.0.2.1'), await ask(trusting, '192.0.2.2'), await ask(trusting, '192.0.2.1')],
    [200, 200, 429],
  )
  const wary = await openTestApp(settings)
  wary.clock.now = new Date()
  assert.deepEqual([await ask(wary, '192.0.2.1'), await ask(wary, '192.0.2.2')], [200, 429])
})

test('a key has its own limit, which headers report, and a wrong key counts against the client’s address', async () => {
  const { ctx, clock, request } = await openTestApp({
    KEY_REQUESTS_PER_SECOND: '2',
    ADDRESS_REQUESTS_PER_SECOND: '3',
  })
  const { key } = await makeStore(ctx)
  clock.now = new Date()
  const list = (apiKey: string) => request({ url: '/api/v1/checkouts', headers: { 'x-api-key': apiKey } })
  const answers = [await list(key), await list(key), await list(key)]
  assert.deepEqual(
    answers.map(({ statusCode }) => statusCode),
    [200, 200, 429],
  )
  assert.equal(answers[1]?.headers.ratelimit, '"key";r=0;t=1')
  assert.equal(answers[2]?.headers['retry-after'], '1')
  const wrong = [await list('sk_live_x'), await list('sk_live_x'), await list('sk_live_x')]
  assert.deepEqual(
    wrong.map(({ statusCode }) => statusCode),
    [401, 401, 429],
  )
})
