/**
 * Attack: a thief with a stolen key disables the store's webhook endpoint, registers a wallet and enables the
 * endpoint again. New checkouts pay the thief, and the endpoint never receives the event of the new wallet.
 * What should hold: nobody can use a key to keep the event of a new wallet from the store's endpoints.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assignWaitingSequences } from '../../../../src/events/assign-sequence.ts'
import { makeStore, openTestApp } from '../../../support/app.ts'

const thief = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const app = await openTestApp()

test('an endpoint that was disabled for a moment still receives the event of a wallet registered in that time', async () => {
  const { store, key } = await makeStore(app.ctx)
  const call = async (method: 'POST' | 'PATCH', path: string, payload: object) => {
    const answer = await app.request({
      method,
      url: `/api/v1${path}`,
      headers: { 'x-api-key': key },
      payload,
    })
    assert(answer.statusCode < 300, answer.body)
    while (await assignWaitingSequences(app.ctx));
    return answer.json()
  }
  const endpoint = await call('POST', '/webhook-endpoints', { url: 'https://shop.example/hooks' })
  await call('PATCH', `/webhook-endpoints/${endpoint.id}`, { status: 'disabled' })
  const wallet = await call('POST', `/stores/${store.id}/wallets/evm`, {
    walletAddress: thief,
    custodialType: 'NON_CUSTODIAL',
  })
  await call('PATCH', `/webhook-endpoints/${endpoint.id}`, { status: 'enabled' })

  const deliveries = await app.ctx.db.query<{ wallet_id: string | null }>(
    `select e.data -> 'wallet' ->> 'id' as wallet_id
       from deliveries d join events e on e.id = d.event_id where d.endpoint_id = $1`,
    [endpoint.id],
  )
  const walletIds = deliveries.map(({ wallet_id }) => wallet_id)
  assert(walletIds.includes(wallet.id), `${walletIds.length} deliveries, none of them of the new wallet`)
})
