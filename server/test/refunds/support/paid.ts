import type { Refund } from '@farthing/sdk'
import type { Context } from '../../../src/context.ts'
import { newId } from '../../../src/ids.ts'
import { type AskedRefund, createRefund } from '../../../src/refunds/create.ts'
import type { TestApp } from '../../support/app.ts'
import { completeByHand } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { openAs } from '../../support/database.ts'
import { openStore } from '../../support/store.ts'

/** The amount of every payment here, in units. */
export const paid = 12_500_000n
export const actor = { type: 'key', id: 'a', name: null } as const

/** A store with a proven wallet, and its final payments, without a chain. Refunds are asked for with serve's rights. */
export async function openShopOfPaid(farthing: TestApp) {
  const ctx: Context = { ...farthing.ctx, db: openAs('serve', farthing.databaseUrl) }
  const work: Context = { ...farthing.ctx, db: openAs('work', farthing.databaseUrl) }
  const shop = await openStore(farthing, { evmWallet: newPayer().address })
  await farthing.ctx.db.query('update wallets set proven_at = clock() where store_id = $1', [shop.store.id])

  async function openPaid() {
    const { id } = await shop.create()
    await completeByHand(farthing, id)
    const paymentId = newId('pay', '00', new Date())
    await farthing.ctx.db.query(
      `update credits set payment_id = $2, finalized_at = clock(), safe_at = clock(), pay_to = lower(pay_to),
         witnessed_at = clock() where checkout_id = $1`,
      [id, paymentId],
    )
    const ask = (asked: Partial<AskedRefund> = {}): Promise<Refund> =>
      createRefund(
        ctx,
        shop.store.id,
        { actor, mayChooseRecipient: false },
        {
          paymentId,
          amount: null,
          recipient: null,
          reason: null,
          way: 'signed',
          idempotency: null,
          ...asked,
        },
        new Date(),
      )
    return { paymentId, ask }
  }

  async function readTotals(paymentId: string) {
    const [row] = await ctx.db.query<{ reserved: string; counted: string; refunds: string }>(
      `select coalesce(max(t.reserved), 0) as reserved, coalesce(sum(r.amount), 0) as counted, count(r.id) as refunds
       from refund_totals t left join refunds r on r.identity = t.identity and r.ended_at is null
       where t.payment_id = $1`,
      [paymentId],
    )
    return {
      reserved: BigInt(row?.reserved ?? 0),
      counted: BigInt(row?.counted ?? 0),
      refunds: Number.parseInt(row?.refunds ?? '0', 10),
    }
  }
  return { ctx, work, shop, openPaid, readTotals }
}
