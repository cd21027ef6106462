import type { StoreCheckout } from '@farthing/sdk'
import type { Block, ChainLog } from '../../../src/chains/evm/chain.ts'
import { readAccounts } from '../../../src/chains/evm/witnesses.ts'
import type { Hex } from '../../../src/chains/hex.ts'
import type { NewClaim } from '../../../src/checkouts/claim.ts'
import type { Database, Transaction } from '../../../src/database/db.ts'
import { newId } from '../../../src/ids.ts'
import { rejectAuthorizations } from '../../../src/payments/end.ts'
import { isBoundTo } from '../../../src/payments/nonces.ts'
import type { Transfer } from '../../../src/payments/rail.ts'
import { until } from '../../support/until.ts'
import type { Driven, Prepared } from './driven.ts'

/** The claim that `serve` writes for a payment that passed, for tests that decide when to write it. */
export async function claimOf(
  shop: Driven,
  { checkoutId, signed }: Prepared,
): Promise<NewClaim & { readonly transfer: Transfer<Hex> }> {
  const { from, to, value, validAfter, validBefore, nonce } = signed.authorization
  const lower = (text: string) => text.toLowerCase() as Hex
  const checkout: StoreCheckout = await shop.read(checkoutId)
  return {
    checkoutId,
    network: shop.engine.chain.network.caip2,
    transfer: {
      asset: lower(shop.chain.token),
      isContract: false,
      signature: lower(signed.signature),
      authorization: {
        from: lower(from),
        to: lower(to),
        value: BigInt(value),
        validAfter: BigInt(validAfter),
        validBefore: BigInt(validBefore),
        nonce: lower(nonce),
      },
    },
    isBound: isBoundTo(lower(nonce), checkoutId),
    identifier: null,
    eventId: newId('evt', shop.ctx.config.cell, shop.ctx.now()),
    data: { checkout: { ...checkout, status: 'PROCESSING' } },
    now: shop.ctx.now(),
  }
}

export function keyOf({ signed: { authorization } }: Prepared, asset: string) {
  return {
    asset: asset.toLowerCase() as Hex,
    payer: authorization.from.toLowerCase() as Hex,
    nonce: authorization.nonce.toLowerCase() as Hex,
  }
}

/** Rejects an unsent claim, as a lane does when the token refuses. Returns how many claims it rejected. */
export async function reject(shop: Driven, payment: Prepared): Promise<number> {
  return await shop.ctx.db.transaction(async (tx) => {
    const refused = [{ ...keyOf(payment, shop.chain.token), reason: 'refused' }]
    const rejected = await rejectAuthorizations(tx, shop.engine.chain.network.caip2, refused)
    const changed = rejected.flatMap(({ checkoutId }) => checkoutId ?? [])
    if (changed.length > 0) await shop.engine.look(tx, changed, shop.ctx.now())
    return changed.length
  })
}

/** A transaction that does its work and then waits, uncommitted, until it is released. */
export function openHeld<Result>(db: Database, work: (tx: Transaction) => Promise<Result>) {
  const worked = Promise.withResolvers<Result>()
  const release = Promise.withResolvers<void>()
  const committed = db.transaction(async (tx) => {
    const result = await work(tx).catch((error) => {
      worked.reject(error)
      throw error
    })
    worked.resolve(result)
    await release.promise
    return result
  })
  committed.catch(() => {})
  return {
    /** Resolves when the work is done but not yet committed. */
    worked: worked.promise,
    async commit(): Promise<Result> {
      release.resolve()
      return await committed
    },
  }
}

/** Returns once some connection waits for another one's lock. */
export async function untilBlocked(db: Database): Promise<void> {
  const blocked = () =>
    db.query(
      `select 1 as one from pg_locks l join pg_stat_activity a on a.pid = l.pid
       where not l.granted and a.datname = current_database()`,
    )
  await until('one transaction waits for the other', async () => (await blocked()).length > 0)
}

/** A block, its logs, and a way to pick the logs of one payer. */
export async function readInclusion(
  shop: Driven,
  blockNumber: number,
): Promise<{ block: Block; logsOf: (payment: Prepared) => ChainLog[]; logs: readonly ChainLog[] }> {
  const { chain } = shop.engine
  const [[account] = []] = await readAccounts(chain, [{ number: blockNumber, hash: null }], false)
  if (!account?.block || !account.logs) throw new Error(`block ${blockNumber} does not exist`)
  const { block, logs } = account
  return {
    block,
    logs,
    logsOf: ({ payer }) =>
      logs.filter((log) => log.topics[1]?.endsWith(payer.address.slice(2).toLowerCase())),
  }
}
