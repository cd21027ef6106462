import { createHash } from 'node:crypto'
import type { Event, WebhookFormat } from '@farthing/sdk'
import { securityTypes } from '../security.ts'

/**
 * Events as lines of text for Slack and Discord. Names in an event may come from strangers, so nothing in a line is
 * markup, a mention or a link that we did not write. Whoever knows the URL of such a channel can write into it.
 */
export type ChatFormat = Exclude<WebhookFormat, 'json'>

/** One name in a line. Longer ones are cut. */
const nameLengthMax = 80
/** Both services take at least 2,000 characters. With it, a line fits even if each character is escaped. */
const lineLengthMax = 900

/** The body of a request that shows an event in a channel. */
export function chatBody(format: ChatFormat, event: Event, mode: 'live' | 'test'): string {
  const line = escapeFor(format, `${mode === 'test' ? 'Test store: ' : ''}${describe(event)}`)
  return JSON.stringify(
    format === 'slack' ? { text: line } : { content: line, allowed_mentions: { parse: [] } },
  )
}

/** What may be shown of a secret URL: where it leads, and a mark that tells it from others there. */
export function maskUrl(url: string): string {
  return `${new URL(url).origin}/***${createHash('sha256').update(url).digest('hex').slice(0, 8)}`
}

/** What a receiver answered, without the URL that it may have repeated. */
export function withoutUrl(text: string, url: string): string {
  const { pathname, search } = new URL(url)
  const parts = pathname.split('/').filter((part) => part.length >= secretPartLength)
  return [url, pathname + search, pathname, ...parts]
    .filter((part) => part.length > 1)
    .reduce((rest, part) => rest.replaceAll(part, '[redacted]'), text)
}

const secretPartLength = 8

/** Sentences that a shop reads every day. All others name the event and what it is about. */
const sentences: Readonly<Record<string, string>> = {
  'checkout.completed': 'Paid',
  'checkout.created': 'New checkout',
  'checkout.expired': 'Checkout expired',
  'checkout.canceled': 'Checkout canceled',
  'webhook_endpoint.test': 'Test: the events of your store arrive here',
}

type Data = Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>

function describe({ type, data, actor }: Event): string {
  const { checkout, payment, refund, wallet, member, key, link, store, webhookEndpoint } = data as Data
  const words = type.replaceAll(/[._]/g, ' ')
  const told = sentences[type] ?? `${words.charAt(0).toUpperCase()}${words.slice(1)}`
  const about = [
    checkout &&
      `${say(checkout.priceAmount)} ${say(checkout.priceCurrency)} for order ${say(checkout.orderId)} (${say(checkout.id)})`,
    payment && `payment ${say(payment.id)}`,
    refund && `refund ${say(refund.id)}`,
    wallet && `wallet ${say(wallet.walletAddress)}`,
    member && `${say(member.name)}, ${say(member.role)}`,
    key && `key ${say(key.label ?? key.id)}`,
    link && `link ${say(link.title)}`,
    store && `store ${say(store.name)}`,
    webhookEndpoint && `endpoint ${say(webhookEndpoint.url)}`,
  ].filter((part) => part !== undefined)
  const by = actor ? `, by ${say(actor.name ?? actor.id)}` : ''
  const isSecurity = securityTypes.includes(type)
  return `${isSecurity ? 'Security: ' : ''}${told}${about.length > 0 ? `: ${about.join(', ')}` : ''}${by}`
}

/** Control characters, and characters that are invisible or change the direction of text. */
const unseen = /[\p{C}\p{Zl}\p{Zp}]+/gu

/** A value in one line of visible characters. */
function say(value: unknown): string {
  const text = String(value ?? '–')
    .toWellFormed()
    .replaceAll(unseen, ' ')
  const characters = [...text]
  return characters.length > nameLengthMax ? `${characters.slice(0, nameLengthMax).join('')}…` : text
}

/** Invisible, and between two characters it keeps services from seeing a link or a mention in them. */
const joint = '\u200b'

export function escapeFor(format: ChatFormat, text: string): string {
  const [line] = text.toWellFormed().replaceAll(unseen, ' ').split('\n')
  const plain = [...(line ?? '')].slice(0, lineLengthMax).join('')
  const unlinked = plain
    .replaceAll(/@(?=\S)/g, `@${joint}`)
    .replaceAll(/:(?=\/\/)/g, `:${joint}`)
    .replaceAll(/(?<=[\p{L}\p{N}])\.(?=\p{L})/gu, `.${joint}`)
  return format === 'slack' ? escapeSlack(unlinked) : unlinked.replaceAll(discordMarkup, '\\$&')
}

/** Slack knows escapes only for these three; of the rest of its markup, it shows characters that look the same. */
const slackEscapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '*': '\u2217',
  '~': '\u223c',
  '`': '\u02cb',
}

function escapeSlack(text: string): string {
  return (
    text
      .replaceAll(/[&<>*~`]/g, (character) => slackEscapes[character] ?? '')
      // Within a word, as in an id, it is no markup.
      .replaceAll(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, '\uff3f')
  )
}

const discordMarkup = /[\\*_~`|<>#:@[\]()-]/g
