import { isDeepStrictEqual } from 'node:util'
import type { Actor, FinalityRule, UpdateStore, WalletChanges } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import type { StoreId } from '../ids.ts'
import { actorOfSession } from '../members/announce.ts'
import { type Touch, useTouch } from '../members/confirm.ts'
import { lockFor } from '../members/invite.ts'
import { Refusal } from '../members/refusal.ts'
import { parseDecimal } from '../money.ts'
import { invalid, type Mistake } from '../problems.ts'
import { parseCurrency } from '../rates/iso4217.ts'
import { checkEmail, checkPostalAddress, checkText, checkWebUrl, imageForm } from './check-text.ts'
import { lockStore } from './rows.ts'
import { type Store, storeToEvent } from './store.ts'

/** A longer logoUrl can't be a link, so it must be a data URL. */
const addressLengthMax = 2_048
/** As long as any register's names and numbers. */
const legalNameBytesMax = 200
const taxIdBytesMax = 50

export async function updateStore(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  change: UpdateStore,
  now: Date,
): Promise<Store> {
  return await ctx.db.transaction(async (tx) => {
    const store = await lockStore(tx, storeId)
    const mistakes = [
      ...(change.name === undefined ? [] : checkText('/name', change.name, 100)),
      ...(typeof change.logoUrl === 'string' ? checkLogo(change.logoUrl, store.mode) : []),
      ...(typeof change.supportEmail === 'string' ? checkEmail('/supportEmail', change.supportEmail) : []),
      ...(typeof change.supportUrl === 'string'
        ? checkWebUrl('/supportUrl', change.supportUrl, store.mode)
        : []),
      ...(typeof change.legalName === 'string'
        ? checkText('/legalName', change.legalName, legalNameBytesMax)
        : []),
      ...(typeof change.legalAddress === 'string'
        ? checkPostalAddress('/legalAddress', change.legalAddress)
        : []),
      ...(typeof change.taxId === 'string' ? checkText('/taxId', change.taxId, taxIdBytesMax) : []),
      ...(change.finalityPolicy ? checkPolicy(change.finalityPolicy) : []),
      ...(change.timeZone === undefined || isTimeZone(change.timeZone) ? [] : [wrongZone]),
      ...(change.reportCurrency === undefined || parseCurrency(change.reportCurrency) ? [] : [wrongCurrency]),
    ]
    if (mistakes.length > 0) throw invalid(...mistakes)
    const changed: Store = {
      ...store,
      name: change.name ?? store.name,
      logoUrl: change.logoUrl === undefined ? store.logoUrl : change.logoUrl,
      accentColor:
        change.accentColor === undefined ? store.accentColor : (change.accentColor?.toLowerCase() ?? null),
      supportEmail: change.supportEmail === undefined ? store.supportEmail : change.supportEmail,
      supportUrl: change.supportUrl === undefined ? store.supportUrl : change.supportUrl,
      legalName: change.legalName === undefined ? store.legalName : change.legalName,
      legalAddress: change.legalAddress === undefined ? store.legalAddress : change.legalAddress,
      taxId: change.taxId === undefined ? store.taxId : change.taxId,
      finalityPolicy: change.finalityPolicy ?? store.finalityPolicy,
      timeZone: change.timeZone ?? store.timeZone,
      reportCurrency: parseCurrency(change.reportCurrency ?? '') ?? store.reportCurrency,
    }
    await writeStore(tx, changed)
    const announced = storeToEvent(changed)
    if (!isDeepStrictEqual(announced, storeToEvent(store)))
      await appendEvent(
        tx,
        newEvent(ctx, storeId, actor, { type: 'store.updated', data: { store: announced } }, now),
      )
    return changed
  })
}

const wrongZone = {
  pointer: '/timeZone',
  code: 'timeZone',
  detail: 'Must be the IANA name of a time zone, such as Europe/Madrid or UTC.',
}
const wrongCurrency = {
  pointer: '/reportCurrency',
  code: 'currency',
  detail: 'Must be an ISO 4217 code, such as USD.',
}

/**
 * The name is stored as it was sent, because Intl replaces some zones' names with older ones. An offset such as +02:00
 * is refused, because it has no summer time.
 */
function isTimeZone(text: string): boolean {
  if (!/^[A-Za-z]/.test(text)) return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone !== ''
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

function checkLogo(text: string, mode: Store['mode']): Mistake[] {
  if (imageForm.test(text)) return []
  const isLong = text.length > addressLengthMax
  return isLong || text.startsWith('data:')
    ? [{ pointer: '/logoUrl', code: 'url', detail: 'Must be a base64 data URL of a PNG, JPEG, WebP or SVG.' }]
    : checkWebUrl('/logoUrl', text, mode)
}

/** Rules start at zero and increase, so that exactly one applies to each amount. */
function checkPolicy(policy: readonly FinalityRule[]): Mistake[] {
  const amounts = policy.map(({ minAmount }) => parseDecimal(minAmount))
  const micros = amounts.map(({ coefficient, scale }) => coefficient * 10n ** BigInt(6 - scale))
  const isRising = micros.every((amount, i) => (i === 0 ? amount === 0n : amount > (micros[i - 1] ?? 0n)))
  return isRising
    ? []
    : [
        {
          pointer: '/finalityPolicy',
          code: 'order',
          detail: 'The first minAmount must be 0, and each one after it larger than the one before.',
        },
      ]
}

async function writeStore(tx: Transaction, store: Store): Promise<void> {
  await tx.query(
    `update stores set name = $2, logo_url = $3, accent_color = $4, finality_policy = $5, support_email = $6,
       support_url = $7, time_zone = $8, report_currency = $9, legal_name = $10, legal_address = $11, tax_id = $12
     where id = $1`,
    [
      store.id,
      store.name,
      store.logoUrl,
      store.accentColor,
      JSON.stringify(store.finalityPolicy),
      store.supportEmail,
      store.supportUrl,
      store.timeZone,
      store.reportCurrency,
      store.legalName,
      store.legalAddress,
      store.taxId,
    ],
  )
}

/** An owner chooses who must approve a change of wallet. */
export async function confirmSetting(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  walletChanges: WalletChanges,
  now: Date,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await lockFor(tx, storeId, touch.session.member.id, 'wallets:write')
    await useTouch(ctx, tx, touch, { action: 'wallet.setting', values: { storeId, walletChanges } }, now)
    const actor = actorOfSession(touch.session)
    await setWalletChanges(ctx, tx, { storeId, actor, walletChanges, now })
  })
}

/**
 * Sets who must approve a change of wallet. An operator may set it, or an owner with a touch, but no API key, because
 * it protects against stolen keys. A change that is already waiting keeps waiting, even if a key is enough from now on.
 */
export async function setWalletChanges(
  ctx: Context,
  tx: Transaction,
  wanted: {
    readonly storeId: StoreId
    readonly actor: Actor
    readonly walletChanges: WalletChanges
    readonly now: Date
  },
): Promise<void> {
  const { storeId, actor, walletChanges, now } = wanted
  const store = await lockStore(tx, storeId)
  await tx.query('update stores set wallet_changes = $2 where id = $1', [storeId, walletChanges])
  if (store.walletChanges === walletChanges) return
  const data = { store: storeToEvent({ ...store, walletChanges }) }
  await appendEvent(tx, newEvent(ctx, storeId, actor, { type: 'store.updated', data }, now))
}

/** Whole tokens with at most two decimals, and more digits than a store takes in a day. */
const limitForm = /^(0|[1-9]\d{0,8})(\.\d{1,2})?$/

/** An owner sets how much each manager may refund within 24 hours. */
export async function setRefundLimit(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  limit: string,
  now: Date,
): Promise<void> {
  if (!limitForm.test(limit)) throw new Refusal('invalid')
  await ctx.db.transaction(async (tx) => {
    await lockFor(tx, storeId, touch.session.member.id, 'members:write')
    await useTouch(ctx, tx, touch, { action: 'refund.limit', values: { storeId, limit } }, now)
    const store = await lockStore(tx, storeId)
    if (store.managerRefundLimit === limit) return
    await tx.query('update stores set manager_refund_limit = $2 where id = $1', [storeId, limit])
    const data = { store: storeToEvent({ ...store, managerRefundLimit: limit }) }
    await appendEvent(
      tx,
      newEvent(ctx, storeId, actorOfSession(touch.session), { type: 'store.updated', data }, now),
    )
  })
}
