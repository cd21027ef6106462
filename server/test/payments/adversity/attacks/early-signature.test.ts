/**
 * Attack: whoever runs a node reads every payer's signature in the service's questions and sends it first, in a
 * transaction and at a time of their choosing.
 * What should hold: a node sees the signature of an ordinary wallet first in bytes that are committed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Hex, keccak256 } from 'viem'
import { openChain } from '../../../../src/chains/evm/chain.ts'
import { parseNode } from '../../../../src/config/parse.ts'
import { buildApp } from '../../../../src/http/app.ts'
import { stepLane } from '../../../../src/payments/evm/lane.ts'
import { atEnd } from '../../../support/at-end.ts'
import { until } from '../../../support/until.ts'
import { openDriven } from '../driven.ts'
import { openGate } from '../gate.ts'

const shop = await openDriven()
const payments = await shop.prepare(3)
const signatures = payments.map(({ signed }) => signed.signature.slice(2, 66).toLowerCase())
/** Every call that contained a signature, and whether its bytes were committed by then. */
const shown: { method: string; isCommitted: boolean }[] = []
let calls = 0
const gate = await openGate(shop.chain.url, async ({ method, params }) => {
  calls++
  if (!signatures.some((signature) => JSON.stringify(params).toLowerCase().includes(signature))) return
  const hash = method === 'eth_sendRawTransaction' ? keccak256(params[0] as Hex) : ''
  const rows = await shop.ctx.db.query('select 1 as one from broadcasts where hash = $1', [hash])
  shown.push({ method, isCommitted: rows.length === 1 })
})
const nodes = { LOCAL: [parseNode(gate.url)] }
const ctx = { ...shop.ctx, config: { ...shop.ctx.config, nodes } }
const app = buildApp(ctx, { isDraining: false })
atEnd(() => app.close())
await app.ready()

test('no node sees a payer’s signature before it is committed', async () => {
  const answers = payments.map(({ checkoutId, header }) =>
    app.inject({
      method: 'POST',
      url: `/api/v1/checkouts/${checkoutId}`,
      headers: { 'payment-signature': header },
    }),
  )
  const read = (state: string) =>
    shop.ctx.db.query('select 1 as one from authorizations where state = $1', [state])
  await until('claimed', async () => (await read('claimed')).length === payments.length)
  assert(calls > 0, 'the payments were checked on the chain')
  assert.deepEqual(shown, [])
  const [lane = assert.fail()] = shop.engine.lanes
  const chain = openChain(shop.chain.network, nodes.LOCAL, shop.ctx.now)
  while (await stepLane(shop.ctx, { ...lane, chain }));
  assert.deepEqual(shown, [{ method: 'eth_sendRawTransaction', isCommitted: true }])
  await shop.mine()
  for (const answer of await Promise.all(answers)) assert.equal(answer.statusCode, 200, answer.body)
})
