import assert from 'node:assert/strict'
import { createHmac, hkdfSync } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { readSecretsKeys } from '../secrets/key-file.ts'

/**
 * Receipts go to addresses that anybody can enter on a payment page, so each address gets at most one per hour, whichever
 * stores they are from. Mails about payments go to addresses that owners enter, and are counted per hour. What is kept of
 * an address is a keyed hash, for an hour. Receipts and mails about payments do not count for each other.
 */
const quietMinutes = 60
const receiptPurpose = 'farthing mail recipient 1'
const hourlyPurpose = 'farthing hourly mail recipient 1'
const keyBytes = 32

/** False if the address had a receipt within the last hour. Two requests at once: one of them is told so. */
export async function takeRecipient(ctx: Context, tx: Transaction, address: string): Promise<boolean> {
  const rows = await tx.query(
    `insert into mail_recipients as r (recipient, mailed_at) values ($1, clock())
     on conflict (recipient) do update set mailed_at = excluded.mailed_at
       where r.mailed_at <= clock() - make_interval(mins => $2)
     returning recipient`,
    [hashOf(ctx, receiptPurpose, address), quietMinutes],
  )
  return rows.length > 0
}

/**
 * Adds to the mails about payments that the address gets in this hour, and returns how many those are now. Until the
 * transaction ends, nobody else adds to them.
 */
export async function countHourly(
  ctx: Context,
  tx: Transaction,
  address: string,
  mails: number,
): Promise<number> {
  const [row] = await tx.query<{ mails: number }>(
    `insert into mail_recipients as r (recipient, mailed_at, mails) values ($1, date_trunc('hour', clock()), $2)
     on conflict (recipient) do update set mailed_at = excluded.mailed_at,
       mails = excluded.mails + case when r.mailed_at = excluded.mailed_at then r.mails else 0 end
     returning mails`,
    [hashOf(ctx, hourlyPurpose, address), mails],
  )
  assert(row)
  return row.mails
}

/** How many mails about payments the address got in this hour. */
export async function readHourly(ctx: Context, tx: Transaction, address: string): Promise<number> {
  const [row] = await tx.query<{ mails: number }>(
    "select mails from mail_recipients where recipient = $1 and mailed_at = date_trunc('hour', clock())",
    [hashOf(ctx, hourlyPurpose, address)],
  )
  return row?.mails ?? 0
}

export async function forgetRecipients(db: Database): Promise<void> {
  await db.query('delete from mail_recipients where mailed_at <= clock() - make_interval(mins => $1)', [
    quietMinutes,
  ])
}

/** Mail to jane+shop@ arrives at jane@, and most servers ignore case. */
function hashOf({ config }: Context, purpose: string, address: string): Buffer {
  const [key] = readSecretsKeys(config.secretsKeyFile)
  assert(key, 'config requires SECRETS_KEY_FILE where SMTP_URL is set')
  const [local = '', host = ''] = address.toLowerCase().split('@')
  const own = Buffer.from(hkdfSync('sha256', key.bytes, '', purpose, keyBytes))
  return createHmac('sha256', own)
    .update(`${local.replace(/\+.*/, '')}@${host}`)
    .digest()
}
