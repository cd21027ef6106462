/** What is exported before it is deleted, and what is left of a payer whose data was erased. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eraseCommand, exportCommand } from '../../src/commands/retention.ts'
import { rollupsCommand } from '../../src/commands/rollups.ts'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import { newId } from '../../src/ids.ts'
import { withdrawUntold } from '../../src/payments/credits/single-provider.ts'
import { writeCredits } from '../../src/payments/credits/write.ts'
import {
  agedDays,
  deleteAll,
  isThere,
  makeAged,
  openWork,
  sendAged,
} from '../checkouts/retention/support/aged.ts'
import { openTestApp, type TestApp } from '../support/app.ts'
import { creditByHand, payer, payFinally, refundByHand } from '../support/by-hand.ts'
import { openAs } from '../support/database.ts'
import { assertProblem, openStore } from '../support/store.ts'

async function open() {
  const farthing = await openTestApp({ NETWORKS: 'LOCAL', LOCAL_RPC_URLS: 'http://127.0.0.1:1' })
  const operator = { ...farthing.ctx, db: openAs('operator', farthing.databaseUrl) }
  return {
    ...{ farthing, ctx: farthing.ctx, shop: await openStore(farthing, { mode: 'test' }) },
    erase: (address: string) => eraseCommand(operator, ['payer', address]),
    exportAll: async () => {
      const lines: string[] = []
      const before = new Date(Date.now() - 90 * 86_400_000).toISOString().slice(0, 10)
      const told = await exportCommand(operator, { before }, async (line) => void lines.push(line))
      return { told, lines: lines.map((line) => JSON.parse(line)) }
    },
  }
}

/** The tables that still name an address. */
async function listNaming({ ctx }: TestApp, address: string): Promise<string[]> {
  const naming: string[] = []
  for (const table of [
    'checkouts',
    'events',
    'credits',
    'authorizations',
    'transaction_calls',
    'pasted_transactions',
  ]) {
    const found = await ctx.db.query(
      `select 1 as one from ${table} t where to_jsonb(t)::text ~* $1 limit 1`,
      [address.slice(2)],
    )
    if (found.length > 0) naming.push(table)
  }
  return naming
}

test('what would be deleted is exported with everything about it, and nothing else', async () => {
  const { farthing, ctx, shop, exportAll } = await open()
  const [{ id, paymentId }, undecided] = [await makeAged(farthing, shop), await makeAged(farthing, shop)]
  await sendAged(farthing, [id])
  await ctx.db.query("update credits set disposition = 'late' where checkout_id = $1", [undecided.id])
  await shop.create()
  // Counts what the stores took, without which nothing is over.
  await deleteAll({ ...openWork(farthing), config: { ...ctx.config, retentionDays: 0 } })
  const { told, lines } = await exportAll()
  assert.match(told, /^Exported 1 checkout that ended before/)
  const [line] = lines
  assert.equal(line.checkout.id, id)
  assert.equal(line.credits[0].payment_id, paymentId)
  assert.equal(line.events.length, 1)
  assert.equal(line.authorizations[0].transactions[0].broadcasts[0].hash, '0xba7c4')
  await deleteAll(openWork(farthing))
  assert.deepEqual([await isThere(farthing, id), await isThere(farthing, undecided.id)], [false, true])
  assert.deepEqual((await exportAll()).lines, [])
  await assert.rejects(
    exportCommand(ctx, {}, async () => {}),
    /requires --before DATE/,
  )
  await assert.rejects(
    exportCommand(ctx, { before: '2026-13-01' }, async () => {}),
    /requires --before DATE/,
  )
})

test('what stores took is not counted again without the events that were deleted', async () => {
  const { farthing, ctx, shop } = await open()
  const { id, paymentId } = await makeAged(farthing, shop)
  const rebuild = () => rollupsCommand(ctx, ['rebuild'], { store: shop.id })
  await deleteAll({ ...openWork(farthing), config: { ...ctx.config, retentionDays: 0 } })
  assert.match(await rebuild(), /^Counted 1 store again/)
  await deleteAll(openWork(farthing))
  await assert.rejects(rebuild(), /is not whole/)
  assertProblem(await shop.call('GET', `/api/v1/checkouts/${id}`), 404, 'not_found')
  assertProblem(await shop.call('GET', `/api/v1/payments/${paymentId}`), 404, 'not_found')
  assertProblem(await shop.call('POST', `/api/v1/payments/${paymentId}/refunds`, {}), 404, 'not_found')
})

test('a payer’s address leaves recent checkouts too, and what the store wrote about the buyer; amounts and transactions stay', async () => {
  const { farthing, ctx, shop, erase } = await open()
  const { id } = await shop.create()
  const paymentId = await payFinally(farthing, id)
  await ctx.db.query("update authorizations set claimed_at = claimed_at - interval '1 day'")
  await sendAged(farthing, [id])
  await ctx.db.query(`update checkouts set metadata = '{"customer":"ada@example.com"}' where id = $1`, [id])
  await ctx.db.query(
    `insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
     select 'evt_' || substr($1, 4), store_id, 'payment.finalized', id, 9,
       json_build_object('checkout', json_build_object('id', id, 'metadata', metadata), 'payment',
         json_build_object('payer', $2::text)), created_at from checkouts where id = $1`,
    [id, payer],
  )
  await assignWaitingSequences(ctx)
  const before = (await shop.call('GET', `/api/v1/payments/${paymentId}`)).json()
  assert.match(await erase(payer), /from 1 checkout\./)
  assert.deepEqual(await listNaming(farthing, payer), [])
  assert.deepEqual(await ctx.db.query("select 1 as one from events where data::text like '%ada@%'"), [])
  const after = (await shop.call('GET', `/api/v1/payments/${paymentId}`)).json()
  assert.deepEqual(after, { ...before, payer: `0x${'0'.repeat(32)}e2A5ed00` })
  assert.equal((await shop.call('GET', `/api/v1/checkouts/${id}`)).json().status, 'COMPLETED')
  assertProblem(await shop.call('POST', `/api/v1/payments/${paymentId}/refunds`, {}), 409, 'payment_not_open')
  assert.match(await erase(payer.toLowerCase()), /from 0 checkouts/)
  await assert.rejects(erase('nobody'), /not the address of a wallet/)
})

test('money of an erased payer is not taken back by the next reading of its block, nor counted once more', async () => {
  const { farthing, ctx, shop, erase } = await open()
  const { id } = await shop.create()
  await payFinally(farthing, id)
  await ctx.db.query("update authorizations set claimed_at = claimed_at - interval '1 day'")
  const [credit] = await ctx.db.query<Record<string, string>>('select * from credits')
  assert(credit)
  const { network = '', block_hash: hash = '' } = credit
  const seen = {
    ...{
      asset: credit.asset ?? '',
      payer: credit.payer ?? '',
      nonce: credit.nonce ?? '',
      to: credit.pay_to ?? '',
    },
    ...{
      value: BigInt(credit.amount ?? '0'),
      transactionHash: credit.transaction_hash ?? '',
      logIndex: 0,
      position: 0,
    },
  }
  await erase(payer)
  const erased = await ctx.db.query('select * from credits')
  await ctx.db.transaction(async (tx) => {
    assert.deepEqual(await withdrawUntold(tx, network, hash, [seen]), [])
    for (const place of [hash, '0xe15e'])
      await writeCredits(
        ctx,
        tx,
        network,
        { hash: place, number: 1, time: new Date() },
        {
          concerns: [{ seen, claim: null }],
        },
      )
  })
  assert.deepEqual(await ctx.db.query('select * from credits'), erased)
})

/** Each keeps a payer from being erased, until it is undone. */
const moving: readonly (readonly [why: string, does: string, undoes: string])[] = [
  [
    'a signature is on its way',
    'update authorizations set is_credited = false',
    'update authorizations set is_credited = true',
  ],
  [
    'a refused signature is still valid',
    "update authorizations set state = 'rejected', is_credited = false, valid_before = 4000000000",
    'update authorizations set valid_before = 1',
  ],
  [
    'its payment is not final',
    'update credits set finalized_at = null',
    'update credits set finalized_at = clock()',
  ],
  [
    'one provider alone told of it',
    'update credits set witnessed_at = null',
    'update credits set witnessed_at = clock()',
  ],
  [
    'it left the chain and may return',
    'update credits set orphaned_at = clock()',
    'update credits set orphaned_at = null',
  ],
]

test('a payer is not erased while anything of theirs can still move money', async () => {
  const { farthing, ctx, shop, erase } = await open()
  const { id } = await shop.create()
  await payFinally(farthing, id)
  await ctx.db.query("update authorizations set claimed_at = claimed_at - interval '1 day'")
  for (const [why, does, undoes] of moving) {
    await ctx.db.query(does)
    await assert.rejects(erase(payer), /can still move money/, why)
    await ctx.db.query(undoes)
  }
  const naming = await listNaming(farthing, payer)
  assert(naming.includes('credits') && naming.includes('authorizations'))
  for (const status of ['REQUESTED', 'SENT', 'COMPLETED'] as const) {
    await refundByHand(farthing, id, status, 1)
    await assert.rejects(erase(payer), /can still move money/, status)
    await ctx.db.query("update refunds set status = 'CANCELED', ended_at = clock()")
  }
  assert.match(await erase(payer), /^1 with a refund still name it/m)
  assert.deepEqual(await listNaming(farthing, payer), naming)
})

test('what a store has not decided about still names its payer, and so does money without a checkout until it is accepted', async () => {
  const { farthing, ctx, shop, erase } = await open()
  const { id } = await shop.create()
  await payFinally(farthing, id)
  await ctx.db.query("update authorizations set claimed_at = claimed_at - interval '1 day'")
  const paymentId = await creditByHand(farthing, id)
  await ctx.db.query(
    `insert into events (id, store_id, type, data, created_at)
     select $2, store_id, 'payment.unmatched', json_build_object('checkout', null, 'payment', json_build_object('id',
       payment_id, 'payer', upper(payer))), clock() from credits where payment_id = $1`,
    [paymentId, newId('evt', ctx.config.cell, new Date())],
  )
  const accept = (how: string) =>
    ctx.db.query(
      `update credits set checkout_id = $2, disposition = 'overpaid', finalized_at = clock(), witnessed_at = clock(), ${how}
       where payment_id = $1`,
      [paymentId, id],
    )
  await accept('accepted_at = null')
  assert.match(
    await erase(payer),
    /from 0 checkouts.*\n1 with a payment that the store has not decided about/,
  )
  await ctx.db.query(
    "update credits set checkout_id = null, disposition = 'unmatched', sender = payer where payment_id = $1",
    [paymentId],
  )
  const { id: other } = await shop.create()
  await payFinally(farthing, other)
  await ctx.db.query("update authorizations set claimed_at = claimed_at - interval '1 day'")
  assert.match(await erase(payer), /from 2 checkouts.*\n1 payment without a checkout still names it/)
  await accept('accepted_at = clock()')
  assert.match(await erase(payer), /from 1 checkout\./)
  assert.deepEqual(await listNaming(farthing, payer), [])
})

test('two payers of one amount in one transaction, with one nonce between them, can be erased', async () => {
  const { farthing, ctx, shop, erase } = await open()
  const made = [await makeAged(farthing, shop), await makeAged(farthing, shop)]
  const payers = ['0x00000000000000000000000000000000000000a1', '0x00000000000000000000000000000000000000a2']
  const nonce = `0x${'7'.repeat(64)}`
  for (const [i, { id }] of made.entries()) {
    await ctx.db.query('update authorizations set payer = $2, nonce = $3 where checkout_id = $1', [
      id,
      payers[i],
      nonce,
    ])
    await ctx.db.query(
      `update credits set payer = $2, nonce = $3, transaction_hash = '0x7a', block_hash = '0x7b', log_index = $4
       where checkout_id = $1`,
      [id, payers[i], nonce, i],
    )
  }
  for (const each of payers) assert.match(await erase(each), /from 1 checkout/)
  const whole = await ctx.db.query(
    `select 1 as one from credits k join authorizations a using (payer, nonce, asset, network)
     where a.checkout_id = k.checkout_id and a.is_credited and a.nonce <> $1`,
    [nonce],
  )
  assert.equal(whole.length, 2, 'each payment still has the signature that made it')
})

test('an address that only sent the transaction, such as the owner of a smart wallet, is erased too', async () => {
  const { farthing, ctx, shop, erase } = await open()
  const owner = '0x00000000000000000000000000000000000000e2'
  const [plain, refunded] = [await makeAged(farthing, shop), await makeAged(farthing, shop, 'refunded')]
  await ctx.db.query('update credits set sender = $1, sender_nonce = 7', [owner])
  await refundByHand(farthing, refunded.id, 'DECLARED')
  await ctx.db.query(`update refunds set created_at = created_at - interval '${agedDays} days'`)
  assert.match(await erase(owner), /from 1 checkout\..*\n1 with a refund still name it/)
  const left = await ctx.db.query('select checkout_id from credits where sender = $1', [owner])
  assert.deepEqual(left, [{ checkout_id: refunded.id }])
  assert(await isThere(farthing, plain.id))
})
