import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeTransfer } from '../../support/chain/evm-payment.ts'
import { openDriven, settleInside } from './driven.ts'
import { checkInvariants } from './invariants.ts'
import { print, trials } from './size.ts'

const shop = await openDriven()
const attacker = await shop.chain.deploy('Attacker')
const { client, token } = shop.chain
const paidBy = { us: 0, stranger: 0 }
const payers: string[] = []

type Mode = 'before our send' | 'after our send' | 'ahead in the same block' | 'behind in the same block'

/** One round: payments are claimed, a stranger submits the same authorizations, and the chain decides. */
async function race(mode: Mode, by: 'account' | 'contract', count: number): Promise<void> {
  const payments = await shop.prepare(count)
  const answers = await shop.present(payments)
  const signed = payments.map((payment) => payment.signed)
  const calls =
    by === 'contract'
      ? [settleInside(attacker, token, signed)]
      : signed.map((one) => ({ to: token, data: encodeTransfer(one) }))
  if (mode !== 'before our send') await shop.send()
  const { baseFeePerGas } = await client.getBlock()
  assert(baseFeePerGas)
  // Our transaction offers twice the base fee, and the node mines the highest offer first.
  const maxFeePerGas =
    mode === 'behind in the same block' ? baseFeePerGas + 2n : baseFeePerGas * 10n + 10_000_000n
  const fees = { maxFeePerGas, maxPriorityFeePerGas: 1n }
  if (mode === 'after our send') await client.setNextBlockBaseFeePerGas({ baseFeePerGas: baseFeePerGas * 4n })
  const hashes = await shop.submit(calls, fees)
  await client.mine({ blocks: 1 })
  if (mode === 'after our send') {
    // That block was too expensive for ours, and the node dropped it. The same bytes get into the next one, too late.
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas })
    for (const { bytes } of await listUnminedBytes())
      await client.sendRawTransaction({ serializedTransaction: `0x${bytes.toString('hex')}` })
    await client.mine({ blocks: 1 })
  }
  if (mode === 'before our send') await shop.send()
  await shop.follow()

  for (const [i, answer] of (await Promise.all(answers)).entries()) {
    assert.equal(answer.statusCode, 200, answer.body)
    assert.equal(answer.json().status, 'COMPLETED')
    const { transaction } = shop.settlementOf(answer)
    const isStranger = hashes.includes(transaction)
    assert.equal(isStranger, mode !== 'behind in the same block', `payment ${i} of ${mode} by ${by}`)
    paidBy[isStranger ? 'stranger' : 'us']++
  }
  payers.push(...payments.map(({ payer }) => payer.address))
}

const listUnminedBytes = () =>
  shop.ctx.db.query<{ bytes: Buffer }>(
    `select b.bytes from broadcasts b join transactions t on t.network = b.network and t.settler = b.settler
       and t.nonce = b.nonce where t.mined_at is null order by b.nonce`,
  )

const perKind = trials(4, 125)

for (const mode of [
  'before our send',
  'after our send',
  'ahead in the same block',
  'behind in the same block',
] as const) {
  for (const by of ['account', 'contract'] as const) {
    test(`a stranger's submission from ${by === 'contract' ? 'inside a contract' : 'an account'} ${mode} pays the checkout once`, async () => {
      let left = perKind
      // A single payment goes straight to the token; several go through the batcher.
      for (const size of [1, 50, 50, 50]) {
        const count = Math.min(size, left)
        if (count > 0) await race(mode, by, count)
        left -= count
      }
      assert.equal(left, 0)
    })
  }
}

test('every payer pays once, every checkout has one exact credit, and the invariants hold', async (t) => {
  await shop.idle()
  const transfers = Map.groupBy(await shop.chain.transferLogs(), ({ args }) => args.from)
  assert.deepEqual(
    payers.filter((payer) => transfers.get(payer as `0x${string}`)?.length !== 1),
    [],
  )
  const checked = await checkInvariants({ db: shop.ctx.db, chain: shop.chain })
  assert.equal(checked.completed, perKind * 8)
  assert.deepEqual(paidBy, { us: perKind * 2, stranger: perKind * 6 })
  t.diagnostic(print({ ...paidBy, ...checked }))
})
