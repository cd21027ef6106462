import { isDeepStrictEqual } from 'node:util'
import type { Actor, FinalityRule, UpdateStore } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import type { StoreId } from '../ids.ts'
import { parseDecimal } from '../money.ts'
import { invalid, type Mistake, Problem } from '../problems.ts'
import { parseCurrency } from '../rates/iso4217.ts'
import { checkEmail, checkText, checkWebUrl, imageForm } from './check-text.ts'
import { lockStore, updateStore as updateRow } from './rows.ts'
import { type Store, storeToEvent } from './store.ts'

/** A longer logoUrl cannot be a link; it must be a data URL. */
const addressLengthMax = 2_048

export async function updateStore(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  change: UpdateStore,
  now: Date,
): Promise<Store> {
  return await ctx.db.transaction(async (tx) => {
    const store = await lockStore(tx, storeId)
    if (!store) throw new Problem('not_found', 'No such store.')
    const mistakes = [
      ...(change.name === undefined ? [] : checkText('/name', change.name, 100)),
      ...(typeof change.logoUrl === 'string' ? checkLogo(change.logoUrl, store.mode) : []),
      ...(typeof change.supportEmail === 'string' ? checkEmail('/supportEmail', change.supportEmail) : []),
      ...(typeof change.supportUrl === 'string'
        ? checkWebUrl('/supportUrl', change.supportUrl, store.mode)
        : []),
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
      finalityPolicy: change.finalityPolicy ?? store.finalityPolicy,
      timeZone: change.timeZone ?? store.timeZone,
      reportCurrency: parseCurrency(change.reportCurrency ?? '') ?? store.reportCurrency,
    }
    await updateRow(tx, changed)
    const told = storeToEvent(changed)
    if (!isDeepStrictEqual(told, storeToEvent(store)))
      await appendEvent(tx, newEvent(ctx, storeId, actor, 'store.updated', { store: told }, now))
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

/** As it was sent, because Intl calls some zones by older names. An offset such as +02:00 knows no summer time. */
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
