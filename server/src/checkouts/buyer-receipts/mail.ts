import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'
import type { Mail } from '../../mails/mail.ts'
import { takeRecipient } from '../../mails/recipients.ts'
import { sendsMail, writeMail } from '../../mails/write.ts'
import { mayMailStrangers } from '../../members/rows.ts'
import type { CheckoutView } from '../view.ts'
import type { BuyerReceipt } from './receipt.ts'

/**
 * How often one receipt can be mailed: to a buyer, to a bookkeeper, and to a few mistyped addresses. Whoever knows the
 * URL of the payment page can use these up, and do nothing worse.
 */
const mailsPerReceipt = 5

/**
 * Whether the receipt can be mailed. Payments to test stores cost nothing, so those could be used to spam. A store that
 * accepts a cent for an order of its own could have an invoice mailed to anybody from the operator's domain.
 */
export function offersMail(
  ctx: Context,
  view: Pick<CheckoutView, 'store' | 'checkout' | 'payment'>,
): boolean {
  return sendsMail(ctx) && view.store.mode === 'live' && isInFull(view)
}

/** What was accepted in another token than the checkout asked for cannot be compared. */
function isInFull({ checkout, payment }: Pick<CheckoutView, 'checkout' | 'payment'>): boolean {
  if (!payment) return false
  const { network, asset, amount } = payment
  const asked = checkout.options.find(
    (each) => each.network === network && each.asset.toLowerCase() === asset.toLowerCase(),
  )
  return asked !== undefined && BigInt(amount) >= BigInt(asked.amount)
}

/**
 * Leaves a receipt for `work` to mail. `taken`: the mail is on its way, or the e-mail address already had receipts within
 * the last hour. The caller is not told which, because that would tell strangers what others get.
 * `unavailable`: this receipt cannot be mailed now.
 */
export async function mailReceipt(
  ctx: Context,
  storeId: StoreId,
  receipt: BuyerReceipt,
  mail: Mail,
  now: Date,
): Promise<'taken' | 'unavailable'> {
  return await ctx.db
    .transaction(async (tx) => {
      if (!(await countMailed(tx, storeId, receipt))) return 'unavailable'
      if (!(await takeRecipient(ctx, tx, { address: mail.to, storeId }))) return 'taken'
      const cause = { kind: 'receipt', storeId, about: receipt.checkoutId } as const
      // Thrown, so that what is not mailed counts neither as a mail of the receipt nor for its recipient.
      if (!(await writeMail(ctx, tx, cause, mail, now))) throw new NoMail()
      return 'taken' as const
    })
    .catch((error: unknown) => {
      if (error instanceof NoMail) return 'unavailable'
      throw error
    })
}

class NoMail extends Error {}

/**
 * Counts a mail of this receipt, unless its store may not mail strangers, it is void, its payment is in doubt, or there
 * were enough. Locks the receipt: if it becomes void after this, the mail is taken back.
 */
async function countMailed(tx: Transaction, storeId: StoreId, { number: id, checkoutId }: BuyerReceipt) {
  const rows = await tx.query(
    `update buyer_receipts set mailed = mailed + 1
     where store_id = $1 and series = $2 and year = $3 and number = $4 and void_at is null and mailed < $5
       and exists (select 1 from checkouts c where c.id = $6 and c.status = 'COMPLETED')
       and exists (select 1 from stores s where s.id = $1 and ${mayMailStrangers})
     returning mailed`,
    [storeId, id.series, id.year, id.number, mailsPerReceipt, checkoutId],
  )
  return rows.length > 0
}
