import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'
import type { Mail } from '../../mails/mail.ts'
import { takeRecipient } from '../../mails/recipients.ts'
import { sendsMail, writeMail } from '../../mails/write.ts'
import type { CheckoutView } from '../view.ts'
import type { BuyerReceipt } from './receipt.ts'

/**
 * How often one receipt can be mailed: to a buyer, to a bookkeeper, and to a few mistyped addresses. Whoever knows the
 * URL of the payment page can use these up, and do nothing worse.
 */
const mailsPerReceipt = 5

/** Whether the page offers to mail the receipt. Payments to test stores cost nothing, so those could be used to spam. */
export function offersMail(ctx: Context, { store }: Pick<CheckoutView, 'store'>): boolean {
  return sendsMail(ctx) && store.mode === 'live'
}

/**
 * Leaves a receipt for `work` to mail. `taken`: the mail is on its way, or the e-mail address already had a receipt
 * within the last hour. The caller is not told which, because that would tell strangers what others get.
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
      if (!(await mayMail(tx, storeId)) || !(await countMailed(tx, storeId, receipt))) return 'unavailable'
      if (!(await takeRecipient(ctx, tx, mail.to))) return 'taken'
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
 * The rule for links that members have mailed, too: the store is live and not suspended, and it has proven a wallet, or
 * an operator opened it.
 */
async function mayMail(db: Database | Transaction, storeId: StoreId): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from stores where id = $1 and mode = 'live' and suspended_at is null
       and (proven_at is not null or (not signed_up and admission = 'approved'))`,
    [storeId],
  )
  return rows.length > 0
}

/**
 * Counts a mail of this receipt, unless it is void, its payment is in doubt, or there were enough. Locks the receipt:
 * if it becomes void after this, the mail is taken back.
 */
async function countMailed(tx: Transaction, storeId: StoreId, { number: id, checkoutId }: BuyerReceipt) {
  const rows = await tx.query(
    `update buyer_receipts set mailed = mailed + 1
     where store_id = $1 and series = $2 and year = $3 and number = $4 and void_at is null and mailed < $5
       and exists (select 1 from checkouts c where c.id = $6 and c.status = 'COMPLETED')
     returning mailed`,
    [storeId, id.series, id.year, id.number, mailsPerReceipt, checkoutId],
  )
  return rows.length > 0
}
