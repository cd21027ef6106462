import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import type { Subject } from '../mails/mail.ts'
import { writeMail } from '../mails/write.ts'
import * as rows from './alert-rows.ts'
import type { AlertKind } from './member.ts'

/**
 * Mails the owners of a store what needs somebody: money that completed no checkout, and webhooks that do not arrive.
 * The same is on their screens; a mail is for those who are not looking.
 *
 * A cursor in the store's event log says what was told. Reading the events, writing the mails and moving the cursor are
 * one transaction, so nothing is told twice and nothing is skipped, whoever dies when. A store's owners get at most one
 * mail of a kind per hour, which sums up what has happened since the last. What happened before the store had an owner
 * with an address is not told.
 */
const quietHours = 1
/** A receiver that is being restarted is back by then. */
const failingMinutes = 15
const storesPerRun = 100
/** Bounds one run; the rest is told by the next mail. */
const eventsPerStore = 20_000

type Alert = {
  readonly kind: AlertKind
  readonly subject: Subject
  readonly text: string
  readonly path: string
}

/** Returns whether there may be more. */
export async function tellAlerts(ctx: Context, now: Date): Promise<boolean> {
  const waiting = await rows.storesWithNews(ctx.db, { quietHours, failingMinutes, limit: storesPerRun })
  for (const storeId of waiting) await tellStore(ctx, storeId, now)
  return waiting.length === storesPerRun
}

async function tellStore(ctx: Context, storeId: StoreId, now: Date): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const news = await rows.lockNews(tx, storeId, eventsPerStore, failingMinutes)
    if (!news) return
    const { storeName, money, undelivered, failing } = news
    const sentences: readonly Alert[] = [
      ...(money > 0
        ? [
            {
              kind: 'money' as const,
              subject: `Payments to your store need a decision (${storeId})` as const,
              text: `${count(money, 'payment')} completed no checkout: late, short, too much or unexpected`,
              path: 'inbox',
            },
          ]
        : []),
      ...(failing.length > 0 || undelivered > 0
        ? [
            {
              kind: 'webhooks' as const,
              subject: `Webhooks of your store do not arrive (${storeId})` as const,
              text: describeWebhooks(failing, undelivered),
              path: 'developers',
            },
          ]
        : []),
    ]
    let isTold = false
    for (const { kind, subject, text, path } of sentences)
      for (const to of await rows.listAddresses(tx, storeId, kind)) {
        const mail = { to, subject, text: letter(ctx, storeId, storeName, text, path) }
        isTold = (await writeMail(ctx, tx, { kind: 'alert', storeId }, mail, now)) || isTold
      }
    await rows.moveCursor(tx, storeId, news, isTold)
  })
}

function describeWebhooks(failing: readonly string[], undelivered: number): string {
  const hosts = failing.map((url) => new URL(url).host).join(', ')
  const silent = failing.length > 0 ? [`${hosts} has not taken webhooks for ${failingMinutes} minutes`] : []
  const lost = undelivered > 0 ? [`${count(undelivered, 'event')} could not be delivered`] : []
  return [...silent, ...lost].join('; ')
}

function letter(
  { config }: Context,
  storeId: StoreId,
  storeName: string,
  text: string,
  path: string,
): string {
  return `${text}.

Store: ${storeName} (${storeId})
Look at it: ${config.consoleUrl}/stores/${storeId}/${path}

You get this mail because you are an owner of the store, at most once per hour. To get no more of its kind, open your account: ${config.consoleUrl}/account
`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
