import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Lie, lies } from '../../../../chaos/harness/liar.ts'
import { turnMs } from '../../../src/chains/evm/follower.ts'
import { payTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { openNodes } from './attacks/support/two-nodes.ts'

/**
 * One provider lies, of two and of three, while an honest payer pays two checkouts at once. Blocks come by hand, and the
 * head is made to look old now and then, because a follower that has waited in vain believes a single provider sooner.
 */
const price = 1_000_000n
const blocksToFinal = 14
/** Longer than a liar is left out. */
const asideSeconds = 16
/** How old the head looks before each block of a lie: new, past the patience with a laggard, past that with a fork. */
const headAges = [0, 6, 0, 12, 0, 6]
/** So many of these blocks come before anything is sent: what is credited in them is not on the chain. */
const blocksUnsent = 2
const blocksMax = 40
const validSeconds = 240

type Nodes = Awaited<ReturnType<typeof openNodes>>
type Stage = {
  readonly shop: Nodes
  /** Ends a lie and lets the time pass in which the liar is left out. */
  readonly endLie: () => Promise<void>
  readonly isMajorityHonest: boolean
}
type Paying = { readonly id: string; readonly header: string; status: number | null }

/**
 * Told only to whoever asks for a transaction, and nobody does for a signed payment that stays on the chain. Those who do
 * ask are lied to in `attacks/false-sender.test.ts` and `attacks/false-marker.test.ts`.
 */
const unasked = new Set([
  'transactions of another sender',
  'transactions of another account nonce',
  'transactions of another content',
])

// The two shops share nothing, so they run at the same time; within each, one lie follows the other.
suite('one provider lies', { concurrency: 2 }, () => {
  for (const count of [2, 3])
    suite(`of ${count}`, { concurrency: 1 }, async () => {
      const opened = await openNodes(count)
      let aheadMs = 0
      Object.defineProperty(opened.clock, 'now', { get: () => new Date(Date.now() + aheadMs) })
      // Time passes with the blocks, a turn with each: it decides which provider is asked for the head.
      const mine = async () => {
        aheadMs += turnMs
        await opened.mine()
      }
      const shop = { ...opened, mine }
      const endLie = async () => {
        shop.first.liar = null
        aheadMs += asideSeconds * 1_000
        // Otherwise the settler's balance is read again within ten seconds.
        await shop.ctx.db.query('update settlers set balance_at = null')
        await shop.mine()
        await shop.send()
      }
      // Final before anybody lies.
      const [early = assert.fail()] = await prepare(shop, 1)
      present(shop, early)
      await drive(shop, [early])
      assert.equal(early.status, 200)
      for (let i = 0; i < blocksToFinal; i++) await shop.mine()

      for (const [name, open] of Object.entries(lies).filter(([lie]) => !unasked.has(lie)))
        test(name, { timeout: 120_000 }, () =>
          endure({ shop, endLie, isMajorityHonest: count > 2 }, early.id, open()),
        )
      test('balances too high, for a payer without money', { timeout: 120_000 }, () =>
        refuse({ shop, endLie, isMajorityHonest: count > 2 }, lies['balances too high']()),
      )
    })
})

/** Creates checkouts and has one payer sign for each. */
async function prepare(shop: Nodes, count: number, units = 10n * price): Promise<Paying[]> {
  const payer = await shop.fund(units)
  await shop.follow()
  const validBefore = BigInt(Math.floor(shop.ctx.now().getTime() / 1_000) + validSeconds)
  const payments: Paying[] = []
  for (let i = 0; i < count; i++) {
    const id = await shop.create('1.00')
    payments.push({ id, header: await shop.sign(id, payer, { validBefore }), status: null })
  }
  return payments
}

function present(shop: Nodes, paying: Paying): void {
  paying.status = null
  void shop.pay(paying.id, paying.header).then(({ statusCode }) => {
    paying.status = statusCode
  })
}

async function untilClaimed(shop: Nodes, payments: readonly Paying[]): Promise<void> {
  const isDone = async ({ id, status }: Paying) => status !== null || (await shop.read(id)).status !== 'OPEN'
  await until('claimed or answered', async () =>
    (await Promise.all(payments.map(isDone))).every((isTrue) => isTrue),
  )
}

/** Mines and steps the lanes until the payers are answered. Those who were told to come back do. */
async function drive(shop: Nodes, payments: readonly Paying[]): Promise<void> {
  await untilClaimed(shop, payments)
  for (let blocks = 0; blocks < blocksMax && payments.some(({ status }) => status !== 200); blocks++) {
    for (const paying of payments) if (paying.status === 503 || paying.status === 202) present(shop, paying)
    await untilClaimed(shop, payments)
    await shop.send()
    await shop.mine()
    for (const paying of payments)
      if ((await shop.read(paying.id)).status === 'COMPLETED')
        await until('the answer', async () => paying.status !== null)
  }
}

async function endure({ shop, endLie, isMajorityHonest }: Stage, early: string, lie: Lie): Promise<void> {
  const payments = await prepare(shop, 2)
  shop.first.liar = lie
  shop.first.falsehoods = 0
  for (const paying of payments) {
    present(shop, paying)
    await untilClaimed(shop, [paying])
  }
  for (const [block, seconds] of headAges.entries()) {
    await makeHeadOld(shop, seconds)
    if (block >= blocksUnsent) await shop.send()
    await shop.mine()
    await assertSound(shop, early)
    for (const { status } of payments) assert([null, 200, 202, 503].includes(status), `answered ${status}`)
  }
  if (isMajorityHonest) {
    await drive(shop, payments)
    for (const { status } of payments) assert.equal(status, 200, 'an honest majority settles payments')
  }
  assert(shop.first.falsehoods > 0, 'nothing false was told')
  await endLie()
  await drive(shop, payments)
  for (const { status } of payments) assert.equal(status, 200, 'once the lie is over, payments are settled')
  await assertSound(shop, early)
}

/** A payer without money is believed to have some. */
async function refuse({ shop, endLie, isMajorityHonest }: Stage, lie: Lie): Promise<void> {
  const [paying = assert.fail()] = await prepare(shop, 1, price - 1n)
  const [{ sent } = { sent: '' }] = await readSends(shop)
  shop.first.liar = lie
  present(shop, paying)
  await untilClaimed(shop, [paying])
  for (const seconds of headAges) {
    await makeHeadOld(shop, seconds)
    await shop.send()
    await shop.mine()
  }
  if (isMajorityHonest) await until('the refusal', async () => paying.status === 402)
  await endLie()
  await until('the end of the rest of what could not be sent', async () => {
    await shop.send()
    return paying.status !== null
  })
  assert.equal(paying.status, 402)
  assert.equal((await readSends(shop))[0]?.sent, sent, 'nothing was sent for it')
}

const readSends = (shop: Nodes) =>
  shop.ctx.db.query<{ sent: string }>('select count(*) as sent from transactions')

async function makeHeadOld(shop: Nodes, seconds: number): Promise<void> {
  await shop.ctx.db.query('update followers set head_seen_at = head_seen_at - make_interval(secs => $1)', [
    seconds,
  ])
}

/** Nothing is COMPLETED without its money or final before its time, nothing final is taken back, no nonce is skipped. */
async function assertSound(shop: Nodes, early: string): Promise<void> {
  const [found] = await shop.ctx.db.query<Record<'completed' | 'gaps' | 'safe' | 'finalized', string>>(
    `select (select count(*) from checkouts where status = 'COMPLETED') as completed,
       (select sum(s.next_nonce) - (select count(*) from transactions) from settlers s) as gaps,
       safe_number as safe, finalized_number as finalized from followers`,
  )
  assert(found)
  const balance = await shop.chain.balance(payTo)
  assert(BigInt(found.completed) * price <= balance, `${found.completed} completed, ${balance} units paid`)
  assert.equal(found.gaps, '0', 'settlers skip no nonce')
  const [safe, finalized] = await Promise.all(
    (['safe', 'finalized'] as const).map((blockTag) => shop.chain.client.getBlock({ blockTag })),
  )
  assert(BigInt(found.safe) <= (safe?.number ?? 0n), `${found.safe} is not safe yet`)
  assert(BigInt(found.finalized) <= (finalized?.number ?? 0n), `${found.finalized} is not final yet`)
  const { status, payment } = await shop.read(early)
  assert.deepEqual({ status, finality: payment?.finality }, { status: 'COMPLETED', finality: 'finalized' })
}
