import type { Context } from '../context.ts'
import { openBatcher } from '../database/batch.ts'
import { isLockTimeout } from '../database/db.ts'
import { newId } from '../ids.ts'
import { idOfNetwork } from '../networks.ts'
import { Problem } from '../problems.ts'
import { claimAuthorizations, type NewClaim, reclaimAuthorization } from './claim-rows.ts'

export type Claim = (claim: Omit<NewClaim, 'eventId'>) => Promise<boolean>

const batchRowsMax = 128
const batchesInFlightMax = 2

/**
 * Claims an authorization for a checkout. From then on it belongs to this checkout for good, and no other can be
 * claimed for the checkout until its fate is known. True if this call made the claim. False says only that it did not:
 * the caller must read the checkout again to learn why.
 */
export function openClaim(ctx: Context): Claim {
  const joined = openBatcher<NewClaim, boolean>({
    run: async (batch) => {
      const claimed = await claimAuthorizations(ctx.db, batch, 'skip locked')
      return batch.map(({ eventId }) => claimed.has(eventId))
    },
    runAlone: (claim) => claimAlone(ctx, claim),
    itemsMax: batchRowsMax,
    inFlightMax: batchesInFlightMax,
    observe: (rows) => ctx.metrics.batchRows.observe({ statement: 'claim' }, rows),
  })
  const claimOnce = async (input: Omit<NewClaim, 'eventId'>) => {
    const claim = { ...input, eventId: newId('evt', ctx.config.cell, input.now) }
    // A batch skips locked checkouts, and the lock may have been brief.
    const isClaimed = (await joined(claim)) || (await claimAlone(ctx, claim))
    if (!isClaimed) return false
    ctx.db.wakeUps.send('claims')
    const network = idOfNetwork(claim.network)
    ctx.metrics.payments.inc({ network, outcome: 'claimed' })
    ctx.log.info(
      { checkoutId: claim.checkoutId, network, amount: `${claim.transfer.authorization.value}` },
      'payment claimed: it is sent next',
    )
    return true
  }
  // Duplicates of a payment that this process is already claiming wait for that claim, and their callers read again.
  // Otherwise each would hold a connection while it waits for the same checkout, and a few thousand would use up all
  // connections.
  const underWay = new Map<string, Promise<boolean>>()
  return async (input) => {
    const { from, nonce } = input.transfer.authorization
    const key = [input.checkoutId, input.network, input.transfer.asset, from, nonce].join(' ')
    const other = underWay.get(key)
    if (other) return await other.then(() => false)
    const claiming = claimOnce(input).finally(() => underWay.delete(key))
    underWay.set(key, claiming)
    return await claiming
  }
}

async function claimAlone(ctx: Context, claim: NewClaim): Promise<boolean> {
  return await ctx.db
    .transaction(async (tx) => {
      const claimed = await claimAuthorizations(tx, [claim], '')
      return claimed.has(claim.eventId) || (await reclaimAuthorization(tx, claim))
    })
    .catch((error) => {
      if (!isLockTimeout(error)) throw error
      throw new Problem(
        'unavailable',
        'The checkout is busy. Repeat the same request with the same payment.',
        {
          retryAfterSeconds: 1,
        },
      )
    })
}
