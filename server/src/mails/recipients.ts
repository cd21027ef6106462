import assert from 'node:assert/strict'
import { createHmac, hkdfSync } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { readSecretsKeys } from '../secrets/key-file.ts'

/**
 * Receipts go to addresses that anybody can enter on a payment page, so each address gets at most one per hour of a store,
 * and three in all. Mails about payments go to addresses that owners enter, and are counted per hour: those of a store, and
 * all. One store alone uses up neither, so the others can still reach the address. What is kept of an address is a keyed
 * hash, for an hour. Links with which members confirm an address go to any address too. Receipts, these links and mails
 * about payments do not count for each other.
 */
const quietMinutes = 60
/** A buyer has bought in as many shops within an hour. For a victim it is no flood. */
const receiptsPerHour = 3
/** A link that got lost can be asked for again; a stranger whose address is entered over and over is left in peace. */
const linksPerHour = 3
const receiptPurpose = 'farthing mail recipient 1'
const linkPurpose = 'farthing link recipient 1'
const hourlyPurpose = 'farthing hourly mail recipient 1'
const keyBytes = 32

type Recipient = { readonly address: string; readonly storeId: StoreId }

/**
 * False if the address had a receipt of this store within the last hour, or enough of all stores. Two requests at once: one
 * of them is told so. The store's own limit comes first, so that its attempts do not count for the others.
 */
export async function takeRecipient(ctx: Context, tx: Transaction, to: Recipient): Promise<boolean> {
  const [ofStore, inAll] = hashesOf(ctx, receiptPurpose, to)
  return (await takeOne(tx, ofStore, 1)) && (await takeOne(tx, inAll, receiptsPerHour))
}

/** False if the address had enough links with which members confirm one in this hour, whoever asked for them. */
export async function takeLinkRecipient(ctx: Context, tx: Transaction, address: string): Promise<boolean> {
  return await takeOne(tx, hashOf(ctx, linkPurpose, mailboxOf(address)), linksPerHour)
}

async function takeOne(tx: Transaction, recipient: Buffer, max: number): Promise<boolean> {
  const rows = await tx.query(
    `insert into mail_recipients as r (recipient, mailed_at) values ($1, clock())
     on conflict (recipient) do update set
       mailed_at = case when ${isOver} then excluded.mailed_at else r.mailed_at end,
       mails = case when ${isOver} then 1 else r.mails + 1 end
       where ${isOver} or r.mails < $3
     returning recipient`,
    [recipient, quietMinutes, max],
  )
  return rows.length > 0
}

/** SQL: whether the hour that began with a row's first mail is over. */
const isOver = 'r.mailed_at <= clock() - make_interval(mins => $2)'

/** Mails to an address: those of one store, and those of all. */
type Hourly = { readonly ofStore: number; readonly inAll: number }

/**
 * Adds to the mails about payments that the address gets in this hour, and returns how many those are now. Until the
 * transaction ends, nobody else adds to them.
 */
export async function countHourly(
  ctx: Context,
  tx: Transaction,
  to: Recipient,
  mails: Hourly,
): Promise<Hourly> {
  const [ofStore, inAll] = hashesOf(ctx, hourlyPurpose, to)
  const rows = await tx.query<{ recipient: Buffer; mails: number }>(
    `insert into mail_recipients as r (recipient, mailed_at, mails)
     select i.recipient, date_trunc('hour', clock()), i.mails
     from unnest($1::bytea[], $2::integer[]) as i (recipient, mails) order by i.recipient
     on conflict (recipient) do update set mailed_at = excluded.mailed_at,
       mails = excluded.mails + case when r.mailed_at = excluded.mailed_at then r.mails else 0 end
     returning recipient, mails`,
    [
      [ofStore, inAll],
      [mails.ofStore, mails.inAll],
    ],
  )
  return pick(rows, ofStore, inAll)
}

/** How many mails about payments the address got in this hour. */
export async function readHourly(ctx: Context, tx: Transaction, to: Recipient): Promise<Hourly> {
  const [ofStore, inAll] = hashesOf(ctx, hourlyPurpose, to)
  const rows = await tx.query<{ recipient: Buffer; mails: number }>(
    "select recipient, mails from mail_recipients where recipient = any($1) and mailed_at = date_trunc('hour', clock())",
    [[ofStore, inAll]],
  )
  return pick(rows, ofStore, inAll)
}

function pick(
  rows: readonly { readonly recipient: Buffer; readonly mails: number }[],
  ofStore: Buffer,
  inAll: Buffer,
): Hourly {
  const mailsOf = (hash: Buffer) => rows.find(({ recipient }) => recipient.equals(hash))?.mails ?? 0
  return { ofStore: mailsOf(ofStore), inAll: mailsOf(inAll) }
}

export async function forgetRecipients(db: Database): Promise<void> {
  await db.query('delete from mail_recipients where mailed_at <= clock() - make_interval(mins => $1)', [
    quietMinutes,
  ])
}

/** An address among those of a store, and among all. */
function hashesOf(ctx: Context, purpose: string, { address, storeId }: Recipient): [Buffer, Buffer] {
  const mailbox = mailboxOf(address)
  return [hashOf(ctx, purpose, `${storeId} ${mailbox}`), hashOf(ctx, purpose, mailbox)]
}

/** Mail to jane+shop@ arrives at jane@, and most servers ignore case. */
function mailboxOf(address: string): string {
  const [local = '', host = ''] = address.toLowerCase().split('@')
  return `${local.replace(/\+.*/, '')}@${host}`
}

function hashOf({ config }: Context, purpose: string, text: string): Buffer {
  const [key] = readSecretsKeys(config.secretsKeyFile)
  assert(key, 'config requires SECRETS_KEY_FILE where SMTP_URL is set')
  const own = Buffer.from(hkdfSync('sha256', key.bytes, '', purpose, keyBytes))
  return createHmac('sha256', own).update(text).digest()
}
