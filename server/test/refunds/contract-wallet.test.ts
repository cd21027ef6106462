import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, concat, type Hex } from 'viem'
import { sentenceFor } from '../../src/http/console/screen.ts'
import { languages } from '../../src/http/console/texts/choose.ts'
import { forStore } from '../../src/http/console/visitor.ts'
import { openRails } from '../../src/payments/rails.ts'
import { signRefund } from '../../src/refunds/sign.ts'
import { newPayer, wrap } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { openRefunding, signTyped } from './support/refunding.ts'
import { assertRefuses } from './support/refunds.ts'

const shop = await openRefunding()
const { chain, refunds } = shop
const { db } = shop.ctx
const daySeconds = 24 * 3_600

/** A store's wallet that is a contract, which accepts what its owner signs. */
const owner = newPayer()
const wallet = await chain.deploy('OwnedWallet', [owner.address])

const pay = async () => await shop.payment(await shop.fund())

/** They are made before any test moves the clock: payers sign for minutes only. */
await shop.payTo(wallet)
const payments = [await pay(), await pay(), await pay()]
const next = () => payments.pop() ?? assert.fail()
const later = await chain.foresee(owner.address)
await shop.payTo(later.address)
const toLater = await pay()

async function storedSignatures(payer: Address): Promise<Hex[]> {
  const rows = await db.query<{ signature: Hex }>(
    `select '0x' || encode(signature, 'hex') as signature from authorizations where payer = $1`,
    [payer.toLowerCase()],
  )
  return rows.map(({ signature }) => signature)
}

test('a contract wallet that wraps its signature by ERC-6492 signs one refund, however often and in whichever form', async () => {
  const { id } = await refunds.create(next())
  const prepared = await refunds.prepare(id)
  const bare = await signTyped(prepared, owner.key)
  const stranger = await signTyped(prepared, newPayer().key)
  await assert.rejects(refunds.present(id, wrap(stranger, later)), /does not accept this signature/)
  for (const nested of [wrap(wrap(bare)), wrap(concat([bare, `0x${'6492'.repeat(16)}`]))])
    await assertRefuses(refunds.present(id, nested), 'invalid_request', /wrapped more than once/)
  await assertRefuses(refunds.present(id, wrap('0x')), 'invalid_request', /empty/)
  await assertRefuses(
    refunds.present(id, concat([bare, `0x${'6492'.repeat(16)}`])),
    'invalid_request',
    /as ERC-6492 requires/,
  )
  await assertRefuses(refunds.present(id, `0x${'ab'.repeat(4_097)}`), 'invalid_request', /at most 4096 bytes/)
  const signed = await refunds.present(id, wrap(bare, later))
  assert.equal(signed.status, 'SIGNED')
  for (const again of [bare, wrap(bare), wrap(bare, later)])
    assert.deepEqual(await refunds.present(id, again), signed)
  assert.deepEqual(await storedSignatures(wallet), [bare])
  await shop.land()
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
  assert.equal((await chain.transferLogs({ from: wallet })).length, 1)
  assert.equal(await chain.client.getCode({ address: later.address }), undefined, 'nobody ran the wrapper')
})

test('a store’s wallet that is not deployed is told so, and signs the refund once it is', async () => {
  const { id } = await refunds.create(toLater)
  const bare = await signTyped(await refunds.prepare(id), owner.key)
  const said = /is a smart wallet that is not deployed on Local chain.*Or send the refund yourself/
  await assertRefuses(refunds.present(id, wrap(bare, later)), 'invalid_request', said)
  await assertRefuses(refunds.present(id, concat([bare, bare])), 'invalid_request', said)
  await assertRefuses(refunds.present(id, bare), 'invalid_request', /has not signed this/)
  const refused: unknown = await refunds.present(id, wrap(bare, later)).then(
    () => assert.fail(),
    (error) => error,
  )
  const words = /not active on this network|no está activa en esta red/
  for (const { texts } of languages) assert.match(sentenceFor(refused, texts.refunds.problems) ?? '', words)
  assert.equal(await chain.client.getCode({ address: later.address }), undefined)
  await chain.perform({ to: later.factory, data: later.calldata })
  assert.equal((await refunds.present(id, wrap(bare, later))).status, 'SIGNED')
  assert.deepEqual(await storedSignatures(later.address), [bare])
  await shop.land()
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
})

test('the owners of a contract wallet take a day, sign twice, and it is sent once, after the payments', async () => {
  const before = (await chain.transferLogs({ from: wallet })).length
  const { id } = await refunds.create(next())
  const prepared = await refunds.prepare(id)
  const left = (prepared.expiresAt.getTime() - shop.ctx.now().getTime()) / 1_000
  assert(Math.abs(left - 7 * daySeconds) < 60, `${left} seconds`)
  await shop.pass(daySeconds)
  assert.deepEqual(await refunds.prepare(id), prepared, 'the owner who comes later signs the same')
  const stranger = await signTyped(prepared, newPayer().key)
  await assert.rejects(refunds.present(id, stranger), /does not accept this signature/)
  const signature = await signTyped(prepared, owner.key)
  const both = await Promise.all([refunds.present(id, signature), refunds.present(id, signature)])
  assert.deepEqual(
    both.map(({ status }) => status),
    ['SIGNED', 'SIGNED'],
  )
  await shop.land()
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
  await shop.pass(7 * daySeconds)
  assert.equal((await refunds.read(id)).status, 'COMPLETED')
  const moved = await chain.transferLogs({ from: wallet })
  assert.equal(moved.length, before + 1)
})

test('in the console too, a contract wallet that failed on the chain lately is told that nothing of it is sent', async () => {
  const { id } = await refunds.create(next())
  const signature = await signTyped(await refunds.prepare(id), owner.key)
  await db.query('update authorizations set failed_at = clock() where payer = $1 and refund_id <> $2', [
    wallet.toLowerCase(),
    id,
  ])
  const console = { ...shop.ctx, db: openAs('console', shop.databaseUrl) }
  const mine = forStore(console, shop.store.id)
  await assert.rejects(
    signRefund(mine, openRails(console), shop.store.id, id, { signature }),
    /failed on the chain lately/,
  )
})
