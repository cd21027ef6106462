/** Two cells on one chain reserve amounts without knowing of each other: their wallets tell the transfers apart. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, encodeFunctionData } from 'viem'
import { makeStore, openTestApp } from '../../support/app.ts'
import { openEvm, tokenAbi } from '../../support/chain/evm.ts'
import { openClient, startWork } from '../../support/client.ts'
import { wallets } from '../../support/store.ts'
import { until } from '../../support/until.ts'
import { buyers, ledTo, post } from './support/hand-transfers.ts'

const chain = await openEvm({ blockTimeSeconds: null })
await chain.mint(buyers, 10n ** 12n)
const cells = [await open('0a', wallets[0]), await open('0b', wallets[1])] as const

test('of two checkouts in two cells with the same reserved amount, a transfer completes the one whose wallet it reaches', async () => {
  const [here, there] = cells
  const amount = await here.reserve()
  await there.reserve(amount)
  for (const [paid, statuses, payments] of [
    [here, ['COMPLETED', 'OPEN'], [1, 0]],
    [there, ['COMPLETED', 'COMPLETED'], [1, 1]],
  ] as const) {
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [paid.payTo, amount] })
    await chain.send({ to: chain.token, data, from: buyers[0] })
    await chain.mine()
    for (const cell of cells) await cell.untilRead()
    await until(`${paid.payTo} paid`, async () => (await paid.read()) === 'COMPLETED')
    assert.deepEqual([await here.read(), await there.read()], statuses)
    assert.deepEqual([await here.countPayments(), await there.countPayments()], payments)
  }
})

async function open(tag: string, payTo: Address) {
  const app = await openTestApp({
    CELL: tag,
    NETWORKS: 'LOCAL',
    LOCAL_RPC_URLS: chain.url,
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
  })
  const { key } = await makeStore(app.ctx, { mode: 'test', evmWallet: payTo })
  startWork(app)
  const client = openClient(app, key)
  const id = await client.create()
  const untilRead = async () => {
    const { number } = await chain.client.getBlock()
    await until(`block ${number} read in ${tag}`, async () => {
      const [row] = await app.ctx.db.query<{ head_number: string }>('select head_number from followers')
      return row !== undefined && BigInt(row.head_number) >= number
    })
  }
  return {
    payTo,
    untilRead,
    /** Reserves an amount, by the form; this one, if it is given. */
    async reserve(amount?: bigint): Promise<bigint> {
      await chain.mine()
      await untilRead()
      assert.equal(ledTo(await post(app, `${id}/transfer`)), '?way=send')
      const [row] = await app.ctx.db.query<{ amount: string }>(
        'update reserved_amounts set amount = coalesce($2, amount) where checkout_id = $1 returning amount',
        [id, amount?.toString() ?? null],
      )
      return BigInt(row?.amount ?? assert.fail('nothing was reserved'))
    },
    read: async (): Promise<string> => (await client.read(id)).status,
    async countPayments(): Promise<number> {
      const answer = await app.request({ url: '/api/v1/payments', headers: { 'x-api-key': key } })
      return answer.json<{ data: unknown[] }>().data.length
    },
  }
}
