/** A deployment that works on while its directory is gone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '@farthing/sdk'
import type { InjectOptions } from 'fastify'
import { openUses } from '../../src/checkouts/uses.ts'
import { openDatabase } from '../../src/database/db.ts'
import { adopt } from '../../src/directory/adopt.ts'
import { buildApp } from '../../src/http/app.ts'
import { answer, openReceiver } from '../events/webhooks/support/receiver.ts'
import {
  enrolWith,
  inviteBy,
  openConsole,
  openInvitedStore,
  signInWith,
} from '../http/console/support/console.ts'
import { atEnd } from '../support/at-end.ts'
import { openClient, startWork, untilReady } from '../support/client.ts'
import { openShop } from '../support/shop.ts'
import { until } from '../support/until.ts'
import { killDirectory, openDirectory } from './support/cells.ts'

test('payments settle and their webhooks arrive without the directory', async () => {
  const directory = await openDirectory()
  const shop = await openShop({ worker: false, settings: { BASE_URL: 'http://127.0.0.1:8402' } })
  const ctx = {
    ...shop.ctx,
    config: { ...shop.ctx.config, directoryUrl: directory.url },
    directory: openDatabase({ url: directory.url, connections: 4, name: 'test-directory' }),
  }
  atEnd(() => ctx.directory.close())
  assert.deepEqual(await adopt(ctx, openUses(ctx.db)), { wallets: 1, settlers: 1, elsewhere: [] })
  await killDirectory(ctx)

  const app = buildApp(ctx, { isDraining: false })
  atEnd(() => app.close())
  const cell = { ...shop, ctx, app, request: (options: InjectOptions) => app.inject(options) }
  startWork(cell, shop.signers)
  await untilReady(cell, shop.chain.network.caip2)
  const receiver = await openReceiver(answer(204))
  const headers = { 'x-api-key': shop.key, 'content-type': 'application/json' }
  const payload = { url: receiver.url, types: ['checkout.completed'] }
  const registered = await app.inject({ method: 'POST', url: '/api/v1/webhook-endpoints', headers, payload })
  assert.equal(registered.statusCode, 201, registered.body)

  const { create, pay } = openClient(cell, shop.key)
  const id = await create()
  const paid = await pay(id, await shop.sign(id, await shop.fund()))
  assert.equal(paid.statusCode, 200, paid.body)
  await until('the webhook', async () =>
    receiver.received.some(({ body }) => {
      const { type, data } = JSON.parse(body.toString()) as Event
      return type === 'checkout.completed' && JSON.stringify(data).includes(id)
    }),
  )
})

test('members sign in, read their store and invite others without the directory', async () => {
  const directory = await openDirectory()
  const console = await openConsole({ settings: { DIRECTORY_URL: directory.url } })
  const { ctx } = console.farthing
  assert.deepEqual(await adopt(ctx, openUses(ctx.db)), { wallets: 0, settlers: 0, elsewhere: [] })
  const { store, token } = await openInvitedStore(console)
  await killDirectory(ctx)
  const owner = await enrolWith(console, token)
  const browser = await signInWith(console, owner.authenticator)
  for (const path of ['', '/payments', '/wallets', '/members'])
    assert.equal((await browser.get(`/stores/${store.id}${path}`)).statusCode, 200, path)
  await enrolWith(console, await inviteBy(owner, store.id, { name: 'Max', role: 'viewer' }))
})
