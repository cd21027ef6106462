import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listLimitsRecords } from '../../src/chains/record-nodes.ts'
import { examine } from '../../src/commands/doctor.ts'
import { openChainStates } from '../../src/payments/chain-states.ts'
import { openRails } from '../../src/payments/rails.ts'
import { openShop } from '../support/shop.ts'
import { until } from '../support/until.ts'
import { openProvider } from './support/provider.ts'

test('what a provider refused to work is kept, and both doctor and the operator’s screen tell it', async () => {
  const provider = await openProvider('', { callsMax: 3, refusal: 'status-400', blocksMax: 4 })
  const settings = { LOCAL_RPC_URLS: `small=${provider.url}` }
  const shop = await openShop({ network: 'LOCAL', worker: false, settings })
  provider.target = shop.chain.url
  const stop = shop.startWork()
  const read = async () => await listLimitsRecords(shop.ctx.db)
  await until('its limits are kept', async () => (await read()).length > 0)
  await stop()
  const [kept] = await read()
  assert.equal(kept?.provider, 'small')
  const { eth_getLogs: calls } = kept.calls
  assert(calls !== undefined && calls <= 3, JSON.stringify(kept))

  const [chain] = await openChainStates(shop.ctx, openRails(shop.ctx))()
  assert.match(chain?.nodes[0]?.limits ?? '', /\d calls? per request of .*eth_getLogs/)
  const findings = await examine(shop.ctx, async () => shop.signers)
  const [node] = findings.filter(({ what }) => what.startsWith('LOCAL node small'))
  assert.match(node?.says ?? '', /^2 calls per request.*; work found: \d calls? per request of /)
})
