/** A credit that is written as what is expected of it is still decided about with its checkout. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { orphanCredits } from '../../../src/payments/credits/rows.ts'
import { type NewCredit, upsertCredits } from '../../../src/payments/credits/write.ts'
import { freshDatabase } from '../../support/database.ts'

const { db } = await freshDatabase()
const network = 'eip155:1'

function creditOf(name: string, logIndex: number, checkoutId: string | null, isExpected = false): NewCredit {
  const transactionHash = `0x${name}` as const
  const seen = {
    ...{ asset: '0xa', payer: '0xb', nonce: transactionHash, to: '0xc', value: 5n, position: 0 },
    ...{ transactionHash, logIndex },
  } as const
  const storeId = checkoutId === null ? null : 'st_1'
  return { seen, paymentId: `pay_${name}`, checkoutId, storeId, isExpected, sender: null }
}

async function write(hash: string, ...credits: NewCredit[]): Promise<void> {
  const block = { hash, number: 7, time: new Date() }
  await db.transaction((tx) => upsertCredits(tx, network, block, credits, true))
}

async function dispositionsIn(hash: string): Promise<string[]> {
  const rows = await db.query<{ disposition: string }>(
    'select disposition from credits where block_hash = $1 and orphaned_at is null order by log_index',
    [hash],
  )
  return rows.map(({ disposition }) => disposition)
}

test('money that was there before its claim is not taken as exact unseen: a refund of it may count', async () => {
  await write('one', creditOf('1', 0, null))
  await write('one', creditOf('1', 0, 'ch_1', true))
  assert.deepEqual(await dispositionsIn('one'), ['overpaid'])
})

test('a block that comes back with one more payment of the same checkout has one exact', async () => {
  await write('two', creditOf('2', 5, 'ch_2', true))
  assert.deepEqual(await dispositionsIn('two'), ['exact'])
  await db.transaction((tx) => orphanCredits(tx, network, ['two']))
  await write('two', creditOf('3', 1, 'ch_2', true), creditOf('2', 5, 'ch_2'))
  assert.deepEqual(await dispositionsIn('two'), ['overpaid', 'exact'])
})
