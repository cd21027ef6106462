import { lockFollower } from '../chains/rows.ts'
import type { Context } from '../context.ts'
import type { Rail, SentRefusal } from '../payments/rail.ts'
import { listProven } from './recipient-rows.ts'
import { type Named, takeNamed, writeProof, writeRefuted } from './sent-rows.ts'

/** At first every two blocks or so, later every minute: a transfer proves a refund only once it is final. */
const again = { secondsMin: 3, secondsMax: 60 }
const lookedForPerRun = 20
/** A transaction that no node knows after this long was never sent, or was mistyped. */
const unknownSeconds = 60 * 60
/** What is not final in enough nodes' eyes after a day is not for us to wait for. */
const waitingSeconds = 24 * 60 * 60

/**
 * Looks for the transfers with which stores say they paid refunds by themselves. One proves its refund if it is a plain
 * transfer of exactly the amount, to the recipient, from a wallet that this store has proven, in a final block that is
 * not older than the request, and if it is neither a payment to some store nor the proof of another refund. Anything
 * else is forgotten, with the reason, and another transaction can be named. Returns whether anything was due.
 */
export async function proveSent(ctx: Context, rail: Rail): Promise<boolean> {
  const { sent } = rail
  if (!sent) return false
  const named = await takeNamed(ctx.db, rail.network.caip2, again, lookedForPerRun)
  for (const each of named) await prove(ctx, sent, each)
  return named.length === lookedForPerRun
}

async function prove(ctx: Context, sent: NonNullable<Rail['sent']>, named: Named): Promise<void> {
  const { transaction, asset, recipient, amount, createdAt, storeId, ageSeconds } = named
  const wallets = await listProven(ctx.db, storeId)
  const found = await sent.find({ transaction, asset, recipient, amount, wallets, notBefore: createdAt })
  if (found.outcome === 'waiting' && ageSeconds > waitingSeconds) return await refute(ctx, named, 'not_final')
  if (found.outcome === 'unknown' && ageSeconds > unknownSeconds) return await refute(ctx, named, 'unknown')
  if (found.outcome === 'refused') return await refute(ctx, named, found.why)
  if (found.outcome !== 'found') return
  const isProven = await ctx.db.transaction(async (tx) => {
    await lockFollower(tx, named.network)
    let why: Why = 'taken'
    for (const place of found.places) {
      const outcome = await writeProof(tx, named, {
        block: found.block,
        place,
        logIndex: found.creditedAs ?? place,
      })
      // Somebody named another transaction meanwhile.
      if (outcome === 'changed') return false
      if (outcome === 'proven') return true
      why = outcome
    }
    await writeRefuted(tx, named, reasons[why])
    return false
  })
  if (isProven) ctx.db.wakeUps.send('outcomes')
}

async function refute(ctx: Context, named: Named, why: Why): Promise<void> {
  if (!(await writeRefuted(ctx.db, named, reasons[why]))) return
  ctx.log.info(
    { refundId: named.id, txHash: named.transaction, why },
    'named transaction does not prove its refund; the store can name another',
  )
}

type Why = SentRefusal | 'unknown' | 'not_final' | 'taken'

/** What the store reads about it. */
const reasons: Readonly<Record<Why, string>> = {
  unknown: 'No node of the network has the transaction an hour after it was named. Check its hash.',
  not_final: 'The transaction was not final a day after it was named. Name it again once it is.',
  no_transfer: 'The transaction moved none of this token.',
  authorized:
    'The transaction moved the token by a signed authorization. Only a plain transfer proves a refund of this way.',
  other_recipient: 'The transaction did not pay the refund’s recipient.',
  other_amount: 'The transaction paid the recipient another amount than the refund’s.',
  other_wallet:
    'The money came from a wallet that the store has not proven. Prove that wallet, then name the transaction again.',
  too_old: 'The transfer is older than the refund, so it was for something else.',
  credited: 'The transfer is recorded as a payment to a store.',
  taken: 'The transfer proves another refund already.',
}
