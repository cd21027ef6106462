import assert from 'node:assert/strict'
import { test } from 'node:test'
import { examine } from '../../src/commands/doctor.ts'
import { parseNode } from '../../src/config/parse.ts'
import { openShop } from '../support/shop.ts'

const shop = await openShop({ network: 'SOLANA_LOCAL' })
const wrongs = async (config: object = {}) => {
  const ctx = { ...shop.ctx, config: { ...shop.ctx.config, settlerKeysFile: '/settler-keys', ...config } }
  return (await examine(ctx, async () => shop.signers)).filter(({ fix }) => fix !== null)
}

test('doctor finds nothing wrong with a working deployment on Solana', async () => {
  assert.deepEqual(await wrongs(), [])
})

test('a node of another chain and a network without nodes are reported', async () => {
  const [elsewhere] = await wrongs({
    networks: ['SOLANA_DEVNET'],
    nodes: { SOLANA_DEVNET: [parseNode(shop.chain.url)] },
  })
  assert.match(elsewhere?.says ?? '', /the node is on chain GuLKXAZV\w+, not EtWTRABZ/)
  const [without] = await wrongs({ networks: ['SOLANA_MAINNET'] })
  assert.match(without?.says ?? '', /has no nodes/)
})

test('a settler that can no longer pay fees is reported and accepts no payments', async () => {
  const [settler] = shop.signers
  assert(settler)
  await shop.stopWork()
  await shop.ctx.db.query('update settlers set balance_wei = 900000')
  const findings = await wrongs()
  assert(
    findings.some(
      ({ says, fix }) => says.includes('0 payments left') && fix === 'Send it SOL on SOLANA_LOCAL.',
    ),
  )
  const id = await shop.create()
  const answer = await shop.pay(id, await shop.sign(id, await shop.chain.payer()))
  assert.equal(answer.statusCode, 503, answer.body)
})
