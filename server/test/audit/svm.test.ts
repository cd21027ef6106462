/** The audit on Solana: it reads what nodes list for each wallet’s token account, so no transfer needs a reference. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { listAudited } from '../../src/audit/audited.ts'
import { listFindings } from '../../src/audit/read.ts'
import { auditDue, type Comparison } from '../../src/audit/run.ts'
import { toBase58 } from '../../src/chains/svm/message.ts'
import { findTokenAccount } from '../../src/chains/svm/transfer.ts'
import { readView } from '../../src/checkouts/view.ts'
import { ledTo, post } from '../payments/transfers/support/hand-transfers.ts'
import { transferWire } from '../support/chain/svm-payment.ts'
import { openAs } from '../support/database.ts'
import { openFaultyNode } from '../support/faulty-node.ts'
import { openShop, svmPayTo } from '../support/shop.ts'
import { until } from '../support/until.ts'
import { dayMs, kindsOf, plantCredit } from './support/auditing.ts'

let passedMs = 0
const now = () => new Date(Date.now() + passedMs)
const nodes = await Promise.all([openFaultyNode(''), openFaultyNode(''), openFaultyNode('')])
const shop = await openShop({
  network: 'SOLANA_LOCAL',
  now,
  settings: { SOLANA_LOCAL_AUDIT_RPC_URLS: nodes.map(({ url }, i) => `auditor-${i + 1}=${url}`).join(',') },
})
for (const node of nodes) node.target = shop.chain.url
const { chain } = shop
const auditCtx = { ...shop.ctx, db: openAs('audit', shop.databaseUrl) }
const audited = listAudited(auditCtx)
const account = await findTokenAccount(svmPayTo, chain.mint)

const payer = await chain.payer()
await chain.fund(payer.address, { lamports: 10_000_000_000n })

async function send(units: bigint, references: readonly string[] = []): Promise<string> {
  const wire = await transferWire(chain, payer, svmPayTo, units, references)
  return await chain.rpc('sendTransaction', [wire, { encoding: 'base64', preflightCommitment: 'processed' }])
}

async function endDay(): Promise<void> {
  const time = now().getTime()
  passedMs += Math.ceil(time / dayMs) * dayMs + 60_000 - time
  await until('the day is final', async () => {
    const slot = await chain.rpc<number>('getSlot', [{ commitment: 'finalized' }])
    const seconds = await chain.rpc<number>('getBlockTime', [slot])
    return seconds * 1_000 > Math.floor(now().getTime() / dayMs) * dayMs
  })
}

async function audit(): Promise<Comparison[]> {
  const told: Comparison[] = []
  const asked = { isOver: () => false, tell: (one: Comparison) => void told.push(one), tellStray: () => {} }
  await auditDue(auditCtx, audited, now(), asked)
  return told
}

const findings = () => listFindings(auditCtx.db, {})
const callsOf = (told: readonly Comparison[]) =>
  told.map((one) => ('result' in one ? one.result.calls : assert.fail(one.trouble)))

let paid = ''

test('a transfer without a reference is found, and what was paid with a signature or a reference is not told', async () => {
  const [signed, sent] = [await shop.create(), await shop.create()]
  assert.equal((await shop.pay(signed, await shop.sign(signed, payer))).statusCode, 200)
  assert.equal(ledTo(await post(shop, `${sent}/transfer`)), '?way=send')
  const [transfer] = (await readView(shop.ctx, sent))?.transfers ?? []
  await send(1_000_000n, [transfer?.reference ?? assert.fail()])
  const missed = await send(7_000_000n)
  await until('both are paid', async () =>
    (await Promise.all([signed, sent].map((id) => shop.read(id)))).every(
      ({ status }) => status === 'COMPLETED',
    ),
  )
  paid = signed
  await until('it landed', async () => {
    const told = await chain.rpc<{ signature: string }[]>('getSignaturesForAddress', [account])
    return told.some(({ signature }) => signature === missed)
  })
  await endDay()
  const calls = callsOf(await audit())
  const [finding, ...others] = await findings()
  assert.deepEqual(others, [])
  assert.equal(`${finding?.kind} ${finding?.amount}`, 'missing 7000000')
  assert.equal(finding?.transaction, missed)
  assert.equal(finding?.storeId, shop.store.id)
  const [day] = await shop.ctx.db.query<{ received: string; balance: string }>(
    'select received::text as received, balance::text as balance from audit_days',
  )
  assert.deepEqual(day, { received: '9000000', balance: '9000000' })
  assert(calls.length === 1 && Math.max(...calls) <= 30, `${calls} calls of three nodes for three transfers`)
})

test('quiet days say nothing, and each costs few calls; a day that was missed is read later', async () => {
  for (let day = 0; day < 3; day++) await endDay()
  const calls = callsOf(await audit())
  assert.equal(calls.length, 3)
  assert.equal((await findings()).length, 1)
  assert(Math.max(...calls) <= 18, `${calls} calls of three nodes for a day without transfers`)
  assert.deepEqual(await audit(), [])
})

test('an honest payment that changes after four days is no finding, with nodes and without', async () => {
  const change = async () => {
    for (const units of [1, -1]) await shop.ctx.db.query('update credits set amount = amount + $1', [units])
  }
  const changed = () => shop.ctx.db.query('select 1 as one from audit_changes')
  await change()
  assert.notDeepEqual(await changed(), [])
  callsOf(await audit())
  assert.deepEqual(await changed(), [])
  assert.equal((await findings()).length, 1)
  await change()
  const asked = { isOver: () => false, tell: () => assert.fail(), tellStray: () => assert.fail() }
  await auditDue(auditCtx, [], now(), asked)
  assert.equal((await findings()).length, 1)
  const troubles = async () => await shop.ctx.db.query<{ trouble: string }>('select trouble from audit_runs')
  assert.match((await troubles())[0]?.trouble ?? '', /set SOLANA_LOCAL_AUDIT_RPC_URLS/)
  // With nodes again, they are compared after all.
  callsOf(await audit())
  assert.deepEqual(await changed(), [])
  assert.deepEqual(await troubles(), [{ trouble: null }])
  assert.equal((await findings()).length, 1)
})

test('a payment without a transfer is found, and two of one transfer, on a day that was compared and on one that was not', async () => {
  const random = () => toBase58(randomBytes(64))
  const nobody = toBase58(randomBytes(32))
  const [of] = await shop.ctx.db.query<{ transaction: string; payer: string; at: Date }>(
    `select transaction_hash as "transaction", payer, block_time as at from credits where checkout_id = $1`,
    [paid],
  )
  assert(of)
  await shop.stopWork()
  const planted = [
    await plantCredit(shop, { at: now(), transaction: random(), payer: nobody }),
    await plantCredit(shop, { at: of.at, transaction: random(), payer: nobody }),
    await plantCredit(shop, { ...of, position: 1 }),
    await plantCredit(shop, { ...of, at: now(), position: 2 }),
    // Neither a signature nor anything that a node would look up.
    await plantCredit(shop, { at: now(), transaction: 'no signature', payer: nobody }),
  ]
  await endDay()
  callsOf(await audit())
  const named = (await findings())
    .filter(({ kind }) => kind === 'unfounded')
    .map(({ checkoutId }) => checkoutId)
  assert.deepEqual([...new Set(named)].toSorted(), [...planted, paid].toSorted())
  await shop.ctx.db.query('update credits set orphaned_at = clock() where checkout_id = any($1)', [planted])
  callsOf(await audit())
  assert.deepEqual(kindsOf(await findings()), ['missing 7000000'])
})

test('one lying provider of three changes nothing: neither hides it a transfer nor makes it one up', async () => {
  const [liar] = nodes
  assert(liar)
  const hidden = await send(5_000_000n)
  await until('it landed', async () => {
    const told = await chain.rpc<{ signature: string }[]>('getSignaturesForAddress', [account])
    return told.some(({ signature }) => signature === hidden)
  })
  await endDay()
  type Listed = { readonly signature: string }
  liar.lie = ({ method, params }, result) => {
    if (method === 'getSignaturesForAddress')
      return [
        { ...(result as Listed[])[0], signature: toBase58(randomBytes(64)) },
        ...(result as Listed[]).filter(({ signature }) => signature !== hidden),
      ]
    return method === 'getTransaction' && params[0] === hidden ? null : result
  }
  const calls = callsOf(await audit())
  assert.equal(calls.length, 1)
  assert.deepEqual(kindsOf(await findings()), ['missing 5000000', 'missing 7000000'])
  // Of two providers that contradict each other, none is believed: the day waits.
  const pair = nodes.slice(0, 2).map(({ url }, i) => ({ provider: `pair-${i}`, url }))
  const config = { ...auditCtx.config, auditNodes: { ...auditCtx.config.auditNodes, SOLANA_LOCAL: pair } }
  audited.splice(0, 9, ...listAudited({ ...auditCtx, config }))
  await endDay()
  await shop.ctx.db.query(`insert into audit_changes select distinct network, wallet, day, 1 from audit_days
    where day = (select max(day) from audit_days)`)
  const told = await audit()
  assert(
    told.some((one) => 'trouble' in one && /contradict each other/.test(one.trouble)),
    JSON.stringify(told),
  )
  assert.deepEqual(kindsOf(await findings()), ['missing 5000000', 'missing 7000000'])
})
