import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'
import type { Mail } from '../../mails/mail.ts'
import { takeRecipient } from '../../mails/recipients.ts'
import { sendsMail, writeMail } from '../../mails/write.ts'
import type { CheckoutView } from '../view.ts'
import type { BuyerReceipt } from './receipt.ts'

/** A buyer, a bookkeeper and some typing errors. Whoever knows the payment's page can use them up, and nothing else. */
const mailsPerReceipt = 5

/** Whether the page offers to mail the receipt. Payments to test stores cost nothing, so those could be used to spam. */
export function offersMail(ctx: Context, { store }: Pick<CheckoutView, 'store'>): boolean {
  return sendsMail(ctx) && store.mode === 'live'
}

/**
 * Leaves a receipt for `work` to mail. `taken`: it is on its way, unless the address had a receipt within the last hour;
 * which of them is not said, because it would tell strangers what others get. `unavailable`: not this receipt now.
 */
export async function mailReceipt(
  ctx: Context,
  storeId: StoreId,
  receipt: BuyerReceipt,
  mail: Mail,
  now: Date,
): Promise<'taken' | 'unavailable'> {
  return await ctx.db.transaction(async (tx) => {
    if (!(await mayMail(tx, storeId)) || !(await countMailed(tx, storeId, receipt))) return 'unavailable'
    if (!(await takeRecipient(ctx, tx, mail.to))) return 'taken'
    const cause = { kind: 'receipt', storeId, about: receipt.checkoutId } as const
    return (await writeMail(ctx, tx, cause, mail, now)) ? 'taken' : 'unavailable'
  })
}

/** As for the links that members have mailed: a live store that an operator opened or that has proven a wallet. */
async function mayMail(db: Database | Transaction, storeId: StoreId): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from stores where id = $1 and mode = 'live' and suspended_at is null
       and (proven_at is not null or (not signed_up and admission = 'approved'))`,
    [storeId],
  )
  return rows.length > 0
}

/**
 * Counts a mail of this receipt, unless it is void, its payment is in doubt, or there were enough. Locks the receipt: if
 * it becomes void after this, the mail is taken back.
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
