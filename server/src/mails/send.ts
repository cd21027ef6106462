import type { Transporter } from 'nodemailer'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { readSecretsKeys } from '../secrets/key-file.ts'
import { unseal } from '../secrets/seal.ts'
import { type Mail, placeOf, type WaitingMail, waitingColumns } from './mail.ts'

const triesMax = 10
/** Doubles with each try: ten tries take about four hours. A link lives for 24. */
const firstWaitSeconds = 30
/** A mail server answers within seconds. Together these stay below the 25 that a stopping process gives its jobs. */
const answerMs = 5_000
const sendMs = 20_000

/** Sends the waiting mails, one at a time. The function returns whether there may be more. */
export function openMailer(ctx: Context): () => Promise<boolean> {
  const { mailFrom: from, smtpUrl } = ctx.config
  let transport: Transporter | null = null

  async function send(waiting: WaitingMail): Promise<void> {
    const keys = readSecretsKeys(ctx.config.secretsKeyFile)
    const { to, subject, text, stopUrl }: Mail = JSON.parse(unseal(keys, placeOf(waiting.id), waiting))
    transport ??= await openTransport(smtpUrl)
    const sending = transport.sendMail({
      from: { name: 'Farthing', address: from },
      to: { name: '', address: to },
      envelope: { from, to: [to] },
      subject,
      text,
      messageId: `<${waiting.id}@${from.split('@')[1]}>`,
      // Stops automatic replies, which would only go round in circles.
      headers: { 'auto-submitted': 'auto-generated', ...(stopUrl !== undefined && stopHeaders(stopUrl)) },
    })
    await within(sending, sendMs)
  }

  return async () => {
    const waiting = await takeMail(ctx.db, firstWaitSeconds)
    if (!waiting) return false
    const { id, about, tries } = waiting
    try {
      await send(waiting)
    } catch (err) {
      if (tries < triesMax) {
        ctx.log.warn({ mailId: id, about, tries, err }, 'could not send a mail; trying again later')
        return true
      }
      ctx.log.error(
        { mailId: id, about, tries, err },
        'gave up on a mail: check SMTP_URL and the mail server’s log; if it was a link, make another one',
      )
    }
    await ctx.db.query('delete from mails where id = $1', [id])
    return true
  }
}

/** Mail programs show a button that stops these mails (RFC 8058). */
function stopHeaders(stopUrl: string) {
  return { 'list-unsubscribe': `<${stopUrl}>`, 'list-unsubscribe-post': 'List-Unsubscribe=One-Click' }
}

/** Loaded with the first mail: a deployment without a mail server never needs it. */
async function openTransport(smtpUrl: string): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  return createTransport({
    ...serverOf(smtpUrl),
    connectionTimeout: answerMs,
    greetingTimeout: answerMs,
    dnsTimeout: answerMs,
    socketTimeout: 2 * answerMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

/**
 * To another machine, mail goes only encrypted and only to the server that the certificate names: smtps from the start,
 * smtp by STARTTLS. On this machine, where certificates are rarely real, smtp stays plain.
 */
function serverOf(smtpUrl: string) {
  const { protocol, hostname, port, username, password } = new URL(smtpUrl)
  const host = hostname.replace(/^\[|\]$/g, '')
  const isSecure = protocol === 'smtps:'
  const isLocal = /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(host)
  return {
    host,
    port: port === '' ? (isSecure ? 465 : 587) : Number.parseInt(port, 10),
    secure: isSecure,
    requireTLS: !isSecure && !isLocal,
    ignoreTLS: !isSecure && isLocal,
    ...(username !== '' && {
      auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) },
    }),
  }
}

async function within<Result>(work: Promise<Result>, ms: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the mail server took more than ${ms} ms`)), ms)
  })
  return await Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/**
 * Takes the mail that has been due longest. It is due again after a delay that doubles with each try, so if this
 * process dies while sending, another one sends it.
 */
export async function takeMail(db: Database, firstWaitSeconds: number): Promise<WaitingMail | null> {
  const [mail] = await db.query<WaitingMail>(
    `update mails set tries = tries + 1, due_at = clock() + make_interval(secs => $1 * power(2, tries))
     where id = (select id from mails where due_at <= clock() order by due_at limit 1 for update skip locked)
     returning ${waitingColumns}`,
    [firstWaitSeconds],
  )
  return mail ?? null
}

/** Mails that wait to be sent. */
export async function measureMails(
  db: Database,
): Promise<{ readonly count: number; readonly oldestAt: Date | null }> {
  const [row] = await db.query<{ count: number; oldestAt: Date | null }>(
    'select count(*)::integer as count, min(created_at) as "oldestAt" from mails',
  )
  return row ?? { count: 0, oldestAt: null }
}
