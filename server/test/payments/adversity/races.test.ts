import assert from 'node:assert/strict'
import { test } from 'node:test'
import { transferCalldata } from '../../../src/chains/evm/eip3009.ts'
import { claimAuthorizations, type NewClaim, openClaim } from '../../../src/checkouts/claim.ts'
import { rejectAuthorizations } from '../../../src/payments/end.ts'
import { insertSend, leaseSettler, lockForSending } from '../../../src/payments/settlers/rows.ts'
import { encodeTransfer, newPayer } from '../../support/chain/evm-payment.ts'
import { claimOf, keyOf, openHeld, readInclusion, reject, untilBlocked } from './claims.ts'
import { openDriven, type Prepared, settleInside } from './driven.ts'
import { checkInvariants } from './invariants.ts'
import { print, trials } from './size.ts'

const shop = await openDriven()
const { db } = shop.ctx
const { chain, look, listener, lanes } = shop.engine
const { token } = shop.chain
const network = chain.network.caip2
const attacker = await shop.chain.deploy('Attacker')
const perRace = trials(20, 500)

async function stateOf({ signed }: Prepared): Promise<string | undefined> {
  const [row] = await db.query<{ state: string }>('select state from authorizations where nonce = $1', [
    signed.authorization.nonce,
  ])
  return row?.state
}

async function statusOf({ checkoutId }: Prepared): Promise<string> {
  return (await shop.read(checkoutId)).status
}

/** Commits a batch of one for sending, as a lane does. The lane sends it later. */
async function openSend(payment: Prepared) {
  const [lane] = lanes
  assert(lane)
  const { address } = lane.signer
  const settler = await leaseSettler(db, network, address, lane.holder, 60)
  assert(settler)
  const { transfer } = await claimOf(shop, payment)
  return openHeld(db, async (tx) => {
    const wanted = [{ ...keyOf(payment, token), sends: 0, unsettled: 0n }]
    const locked = await lockForSending(
      tx,
      { network, address, holder: lane.holder, epoch: settler.epoch },
      wanted,
    )
    assert(locked)
    if (locked.keys.length === 0) return false
    const signed = await lane.signer.sign(chain, {
      to: token,
      data: transferCalldata(transfer.authorization, transfer.signature),
      gas: 200_000n,
      maxFeePerGas: 4_000_000_000n,
      maxPriorityFeePerGas: 1_000_000n,
      nonce: locked.nonce,
    })
    await insertSend(tx, { network, settler: address, nonce: locked.nonce, ...signed, keys: locked.keys })
    return true
  })
}

test('an authorization is either rejected or broadcast, never both', async () => {
  const payments = await shop.prepare(perRace)
  const ends = { sent: 0, rejected: 0 }
  for (const [i, payment] of payments.entries()) {
    const claimed = await claimAuthorizations(db, [await claimOf(shop, payment)], '')
    assert.equal(claimed.size, 1)
    if (i % 3 === 0) {
      // The send holds the row; the rejection waits for it and finds nothing left to reject.
      const send = await openSend(payment)
      assert.equal(await send.worked, true)
      const rejection = reject(shop, payment)
      await untilBlocked(db)
      await send.commit()
      assert.equal(await rejection, 0)
    } else if (i % 3 === 1) {
      // The rejection holds the row; the send skips it.
      const rejection = openHeld(db, async (tx) => {
        const refused = [{ ...keyOf(payment, token), reason: 'x' }]
        const rejected = await rejectAuthorizations(tx, network, refused)
        const changed = rejected.flatMap(({ checkoutId }) => checkoutId ?? [])
        await look(tx, changed, shop.ctx.now())
        return changed.length
      })
      assert.equal(await rejection.worked, 1)
      assert.equal(await (await openSend(payment)).commit(), false)
      await rejection.commit()
    } else {
      const [rejected, sent] = await Promise.all([
        reject(shop, payment),
        openSend(payment).then((send) => send.commit()),
      ])
      assert.equal(rejected === 1, !sent)
    }
    const state = await stateOf(payment)
    assert(state === 'sent' || state === 'rejected', state)
    ends[state]++
    const carried = await db.query('select 1 as one from transaction_calls where nonce = $1', [
      payment.signed.authorization.nonce,
    ])
    assert.equal(carried.length, state === 'sent' ? 1 : 0)
    assert.equal(await statusOf(payment), state === 'sent' ? 'PROCESSING' : 'OPEN')
  }
  assert(ends.sent > 0 && ends.rejected > 0)
  // Payments committed for sending are sent and complete; rejected ones are never sent.
  for (let sent = 0; sent < ends.sent; sent += 20) {
    await shop.send()
    await shop.mine()
  }
  for (const payment of payments)
    assert.equal(await statusOf(payment), (await stateOf(payment)) === 'sent' ? 'COMPLETED' : 'OPEN')
})

test('a batch that contains payments several times claims each of them once', async () => {
  const payments = await shop.prepare(perRace)
  const batch: NewClaim[] = []
  for (const payment of payments)
    for (let copy = 0; copy < 3; copy++) batch.push(await claimOf(shop, payment))
  const claimed = await claimAuthorizations(db, batch, 'skip locked')
  assert.equal(claimed.size, payments.length)
  for (const payment of payments) assert.equal(await statusOf(payment), 'PROCESSING')
  for (let sent = 0; sent < payments.length; sent += 100) {
    await shop.send()
    await shop.mine()
  }
  for (const payment of payments) assert.equal(await statusOf(payment), 'COMPLETED')
})

test('one payment presented many times at once is claimed once, without a database connection per copy', async () => {
  const [payment] = await shop.prepare(1)
  assert(payment)
  let borrowed = 0
  const claim = openClaim({
    ...shop.ctx,
    db: {
      ...db,
      transaction: (work) => {
        borrowed++
        return db.transaction(work)
      },
    },
  })
  const input = { ...(await claimOf(shop, payment)), now: shop.ctx.now() }
  const made = await Promise.all(Array.from({ length: 500 }, () => claim(input)))
  assert.equal(made.filter(Boolean).length, 1)
  assert(borrowed <= 1, `${borrowed} connections were borrowed`)
  // A later request checks for itself and gets the same result.
  assert.equal(await claim(input), false)
  await shop.send()
  await shop.mine()
  assert.equal(await statusOf(payment), 'COMPLETED')
})

test('an authorization claimed by another checkout changes no checkout', async () => {
  const [owner, thief] = await shop.prepare(2)
  assert(owner && thief)
  const stolen = { ...owner, checkoutId: thief.checkoutId }
  assert.equal((await claimAuthorizations(db, [await claimOf(shop, owner)], '')).size, 1)
  for (const locking of ['', 'skip locked'] as const)
    assert.equal((await claimAuthorizations(db, [await claimOf(shop, stolen)], locking)).size, 0)
  assert.equal(await statusOf(thief), 'OPEN')
  await shop.send()
  await shop.mine()
  assert.equal(await statusOf(owner), 'COMPLETED')
})

test('of two payments for one checkout in one batch, exactly one is claimed', async () => {
  const payments = await shop.prepare(perRace)
  const batch: NewClaim[] = []
  for (const payment of payments) {
    const rival = await shop.prepareOne(payment.payer, { rivalOf: payment })
    batch.push(await claimOf(shop, payment), await claimOf(shop, rival))
  }
  const claimed = await claimAuthorizations(db, batch, 'skip locked')
  assert.equal(claimed.size, payments.length)
  for (const { checkoutId } of payments) {
    const claims = await db.query('select nonce from authorizations where checkout_id = $1', [checkoutId])
    assert.equal(claims.length, 1)
  }
  await shop.send()
  await shop.mine()
  for (const payment of payments) assert.equal(await statusOf(payment), 'COMPLETED')
})

test('if a claim and a completion coincide, the checkout is paid once and the claim is never sent', async () => {
  const payments = await shop.prepare(perRace)
  const rivals: Prepared[] = []
  for (const payment of payments) {
    // Rejected, so that the checkout is open again; its money arrives anyway.
    await claimAuthorizations(db, [await claimOf(shop, payment)], '')
    await reject(shop, payment)
  }
  const others = Array.from({ length: perRace }, newPayer)
  await shop.chain.mint(
    others.map(({ address }) => address),
    2_000_000n,
  )
  for (const [i, rivalOf] of payments.entries())
    rivals.push(await shop.prepareOne(others[i] ?? assert.fail(), { rivalOf }))
  // Each in its own transaction, so that the block can be fed one payment at a time.
  await shop.submit(payments.map(({ signed }) => ({ to: token, data: encodeTransfer(signed) })))
  await shop.chain.mine()
  const inclusion = await readInclusion(shop, Number(await shop.chain.client.getBlockNumber()))

  for (const [i, payment] of payments.entries()) {
    const rival = rivals[i]
    assert(rival)
    const claim = await claimOf(shop, rival)
    const complete = (tx: Parameters<typeof look>[0]) =>
      listener.onBlock(tx, inclusion.block, inclusion.logsOf(payment), {
        isWitnessed: true,
        isDoubted: false,
        isAgain: false,
      })
    if (i % 4 === 0) {
      const claiming = openHeld(db, (tx) => claimAuthorizations(tx, [claim], ''))
      assert.equal((await claiming.worked).size, 1)
      const completing = db.transaction(complete)
      await untilBlocked(db)
      await claiming.commit()
      await completing
      assert.equal(await stateOf(rival), 'rejected')
    } else if (i % 4 === 1) {
      const completing = openHeld(db, complete)
      await completing.worked
      const claiming = claimAuthorizations(db, [claim], '')
      await untilBlocked(db)
      await completing.commit()
      assert.equal((await claiming).size, 0)
    } else if (i % 4 === 2) {
      const completing = openHeld(db, complete)
      await completing.worked
      assert.equal((await claimAuthorizations(db, [claim], 'skip locked')).size, 0)
      await completing.commit()
    } else await Promise.all([db.transaction(complete), claimAuthorizations(db, [claim], '')])
    assert.equal(await statusOf(payment), 'COMPLETED')
    assert(['rejected', undefined].includes(await stateOf(rival)))
  }
  await shop.follow()
  await shop.send()
  await shop.mine()
  for (const rival of rivals)
    assert.equal((await shop.chain.transferLogs({ from: rival.payer.address })).length, 0)
})

test('money seen before its claim is written completes the checkout that it is bound to as soon as the claim is there', async () => {
  for (let left = perRace; left > 0; left -= 50) {
    const payments = await shop.prepare(Math.min(50, left), undefined, { isBound: true })
    const [early, open] = [payments.filter((_, i) => i % 2 === 0), payments.filter((_, i) => i % 2 === 1)]
    const settle = settleInside(
      attacker,
      token,
      payments.map(({ signed }) => signed),
    )
    await shop.submit([settle])
    const claims = await Promise.all(open.map((payment) => claimOf(shop, payment)))
    // Half of the claims are written but not committed when the block is read; the other half come after it.
    const claiming = openHeld(db, (tx) => claimAuthorizations(tx, claims, ''))
    assert.equal((await claiming.worked).size, open.length)
    await shop.mine()
    await claiming.commit()
    for (const payment of early)
      assert.equal((await claimAuthorizations(db, [await claimOf(shop, payment)], '')).size, 1)
    for (const payment of payments) assert.equal(await statusOf(payment), 'PROCESSING')
    await shop.send()
    await shop.mine()
    for (const payment of payments) assert.equal(await statusOf(payment), 'COMPLETED')
  }
})

test('unbound money that is known when it is presented is not claimed; one that was presented before it landed pays', async () => {
  const payments = await shop.prepare(4)
  const [early, open] = [payments.slice(0, 2), payments.slice(2)]
  const settle = settleInside(
    attacker,
    token,
    payments.map(({ signed }) => signed),
  )
  await shop.submit([settle])
  const claims = await Promise.all(open.map((payment) => claimOf(shop, payment)))
  const claiming = openHeld(db, (tx) => claimAuthorizations(tx, claims, ''))
  assert.equal((await claiming.worked).size, open.length)
  await shop.mine()
  await claiming.commit()
  for (const payment of early)
    assert.equal((await claimAuthorizations(db, [await claimOf(shop, payment)], '')).size, 0)
  await shop.mine()
  for (const payment of early) assert.equal(await statusOf(payment), 'OPEN')
  for (const payment of open) assert.equal(await statusOf(payment), 'COMPLETED')
})

test('the invariants hold after all races', async (t) => {
  await shop.idle()
  t.diagnostic(print(await checkInvariants({ db, chain: shop.chain })))
})
