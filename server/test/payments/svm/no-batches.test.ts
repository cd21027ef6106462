/** Providers of Solana that refuse requests with several calls, some of them only where an address is looked up. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readView } from '../../../src/checkouts/view.ts'
import type { Policy } from '../../chains/support/policies.ts'
import { openProvider } from '../../chains/support/provider.ts'
import { transferWire } from '../../support/chain/svm-payment.ts'
import { openShop, svmPayTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { ledTo, post } from '../transfers/support/hand-transfers.ts'

const provider = await openProvider('')
const shop = await openShop({ network: 'SOLANA_LOCAL', nodes: [provider] })
const { chain } = shop

async function reserve(id: string): Promise<string> {
  assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?way=send')
  const [transfer] = (await readView(shop.ctx, id))?.transfers ?? []
  assert(transfer?.reference)
  return transfer.reference
}

// What was refused once is remembered, so each refuses more than the one before.
const cases: Readonly<Record<string, Policy>> = {
  'lookups of an address among other calls': { aloneOnly: ['getSignaturesForAddress'] },
  'statuses among other calls': { aloneOnly: ['getSignaturesForAddress', 'getSignatureStatuses'] },
  'more than three calls': { callsMax: 3 },
  'more than one call': { callsMax: 1 },
}
for (const [name, policy] of Object.entries(cases))
  for (const refusal of ['status-400', 'one-error'] as const)
    test(`transfers by hand and signed payments are found where ${name} are refused, by ${refusal}`, async () => {
      provider.policy = { ...policy, refusal }
      const payer = await chain.payer()
      await chain.fund(payer.address, { lamports: 1_000_000_000n })
      const ids = await Promise.all(Array.from({ length: 3 }, () => shop.create('1.00')))
      const references = await Promise.all(ids.map(reserve))
      for (const reference of references) {
        const wire = await transferWire(chain, payer, svmPayTo, 1_000_000n, [reference])
        await chain.rpc('sendTransaction', [wire, { encoding: 'base64', preflightCommitment: 'processed' }])
      }
      const id = await shop.create()
      assert.equal((await shop.pay(id, await shop.sign(id, await chain.payer()))).statusCode, 200)
      for (const one of ids)
        await until('the transfer is found', async () => (await shop.read(one)).status === 'COMPLETED')
    })
