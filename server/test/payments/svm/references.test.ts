/** Transfers that carry a reference: Solana Pay. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyPairSigner } from '@solana/kit'
import { readView } from '../../../src/checkouts/view.ts'
import { svmHeader, transferWire } from '../../support/chain/svm-payment.ts'
import { openShop, svmPayTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { ledTo, post } from '../transfers/support/hand-transfers.ts'

/** Finality comes late, so that nothing is final before a test forks. */
const shop = await openShop({ network: 'SOLANA_LOCAL', finalizedAfter: 100 })
const { chain } = shop

async function reserve(id: string): Promise<string> {
  assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?way=send')
  const [transfer] = (await readView(shop.ctx, id))?.transfers ?? []
  assert(transfer?.reference)
  return transfer.reference
}

async function buyer(): Promise<KeyPairSigner> {
  const signer = await chain.payer()
  await chain.fund(signer.address, { lamports: 1_000_000_000n })
  return signer
}

async function send(wire: string): Promise<string> {
  return await chain.rpc('sendTransaction', [wire, { encoding: 'base64', preflightCommitment: 'processed' }])
}

const untilStatus = (id: string, status: string) =>
  until(`${id} is ${status}`, async () => (await shop.read(id)).status === status)

const creditsOf = async (hash: string) =>
  await shop.ctx.db.query<{ checkout_id: string; disposition: string }>(
    'select checkout_id, disposition from credits where transaction_hash = $1 and orphaned_at is null',
    [hash],
  )

test('the amount is the price, and a second request returns the same reference', async () => {
  const id = await shop.create('1.00')
  const reference = await reserve(id)
  assert.equal(await reserve(id), reference)
  const [transfer] = (await readView(shop.ctx, id))?.transfers ?? []
  assert.equal(transfer?.amount, '1000000')
})

test('a hundred checkouts of one price are each paid by the transfer with their reference', async () => {
  const payer = await buyer()
  const ids = await Promise.all(Array.from({ length: 100 }, () => shop.create('1.00')))
  const sent = new Map<string, string>()
  for (const id of ids.slice(0, 50))
    sent.set(id, await send(await transferWire(chain, payer, svmPayTo, 1_000_000n, [await reserve(id)])))
  for (const id of ids.slice(50)) await reserve(id)
  for (const [id, hash] of sent) {
    await untilStatus(id, 'COMPLETED')
    assert.equal((await shop.read(id)).payment.transaction, hash)
  }
  for (const id of ids.slice(50)) assert.equal((await shop.read(id)).status, 'OPEN')
})

test('one transfer with the references of two checkouts pays one of them', async () => {
  const payer = await buyer()
  const ids = [await shop.create('1.00'), await shop.create('1.00')]
  const references = [await reserve(ids[0] ?? ''), await reserve(ids[1] ?? '')]
  const hash = await send(await transferWire(chain, payer, svmPayTo, 1_000_000n, references))
  await until('one checkout is paid', async () => (await creditsOf(hash)).length > 0)
  const later = await shop.create('1.00')
  await send(await transferWire(chain, payer, svmPayTo, 1_000_000n, [await reserve(later)]))
  await untilStatus(later, 'COMPLETED')
  const statuses = await Promise.all(ids.map(async (id) => (await shop.read(id)).status))
  assert.deepEqual(statuses.toSorted(), ['COMPLETED', 'OPEN'])
  assert.equal((await creditsOf(hash)).length, 1)
})

test('a transaction with a reference that pays someone else, or fails, is not credited', async () => {
  const [payer, stranger] = [await buyer(), await buyer()]
  const id = await shop.create('1.00')
  const reference = await reserve(id)
  const elsewhere = await send(await transferWire(chain, payer, stranger.address, 1_000_000n, [reference]))
  const poor = await buyer()
  const failing = await transferWire(chain, poor, svmPayTo, 10n ** 15n, [reference])
  const failed: string = await chain.rpc('sendTransaction', [
    failing,
    { encoding: 'base64', skipPreflight: true },
  ])
  const paid = await send(await transferWire(chain, payer, svmPayTo, 1_000_000n, [reference]))
  await untilStatus(id, 'COMPLETED')
  assert.equal((await shop.read(id)).payment.transaction, paid)
  for (const hash of [elsewhere, failed]) assert.deepEqual(await creditsOf(hash), [])
})

test('a payment is found behind dozens of transactions that only carry its reference', async () => {
  const [payer, stranger] = [await buyer(), await buyer()]
  const id = await shop.create('1.00')
  const reference = await reserve(id)
  const lookIn = async (seconds: number) =>
    await shop.ctx.db.query(
      'update reserved_amounts set looked_at = clock() + make_interval(secs => $2) where reference = $1',
      [reference, seconds],
    )
  await lookIn(3_600)
  const paid = await send(await transferWire(chain, payer, svmPayTo, 1_000_000n, [reference]))
  let last = ''
  for (let units = 1n; units <= 60n; units++)
    last = await send(await transferWire(chain, stranger, payer.address, units, [reference]))
  await until('the transactions are on the chain', async () => {
    const { value } = await chain.rpc<{ value: unknown[] }>('getSignatureStatuses', [[last]])
    return value[0] !== null
  })
  await lookIn(-3_600)
  await untilStatus(id, 'COMPLETED')
  assert.equal((await shop.read(id)).payment.transaction, paid)
})

test('a payer who signs and then also sends has paid twice, and the store is notified', async () => {
  const payer = await buyer()
  const id = await shop.create('1.00')
  const reference = await reserve(id)
  const header = await svmHeader(chain, await shop.require(id), payer)
  assert.equal((await shop.pay(id, header)).statusCode, 200)
  const hash = await send(await transferWire(chain, payer, svmPayTo, 1_000_000n, [reference]))
  await until('the second payment is recorded', async () => (await creditsOf(hash)).length > 0)
  assert.deepEqual(await creditsOf(hash), [{ checkout_id: id, disposition: 'overpaid' }])
})

test('a transfer taken back by a fork holds the checkout, and completes it when it is included again', async () => {
  const payer = await buyer()
  const id = await shop.create('1.00')
  const wire = await transferWire(chain, payer, svmPayTo, 1_000_000n, [await reserve(id)])
  const signedAt = chain.slot()
  await send(wire)
  await untilStatus(id, 'COMPLETED')
  // Back to the block of its blockhash, so that the same bytes stay valid.
  chain.fork(chain.slot() - signedAt)
  await untilStatus(id, 'PROCESSING')
  assert.equal((await shop.pay(id)).statusCode, 409)
  await send(wire)
  await untilStatus(id, 'COMPLETED')
})

test('a transfer that does not come back is given up, and the checkout can be paid again', async () => {
  const payer = await buyer()
  const id = await shop.create('1.00')
  const signedAt = chain.slot()
  const hash = await send(await transferWire(chain, payer, svmPayTo, 1_000_000n, [await reserve(id)]))
  await untilStatus(id, 'COMPLETED')
  chain.fork(chain.slot() - signedAt)
  await untilStatus(id, 'PROCESSING')
  await shop.ctx.db.query(
    "update credits set orphaned_at = orphaned_at - interval '10 minutes' where transaction_hash = $1",
    [hash],
  )
  await untilStatus(id, 'OPEN')
  const header = await svmHeader(chain, await shop.require(id), payer)
  assert.equal((await shop.pay(id, header)).statusCode, 200)
})
