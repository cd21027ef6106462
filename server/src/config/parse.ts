import { isIP } from 'node:net'
import { networks } from '../networks.ts'

/** How the text of a setting becomes its value, or the reason why it isn't one. */

export type Environment = Readonly<Record<string, string | undefined>>

export type Setting<Value> = {
  readonly name: string
  /** One sentence for `.env.example` and the docs. */
  readonly about: string
  /** Undefined means that the setting is required. */
  readonly fallback?: string | ((environment: Environment) => string)
  /** The value, or the reason why the text isn't one. */
  readonly parse: (text: string) => { readonly value: Value } | { readonly mistake: string }
}

/**
 * A node and its provider: all nodes of one provider count as one witness. A limit that is not set is found by trying.
 */
export type Node = {
  readonly provider: string
  readonly url: string
  /** Calls per request. */
  readonly callsMax?: number
  /** Blocks per log query. */
  readonly blocksMax?: number
  /** Methods that must be alone in a request. */
  readonly alone?: readonly string[]
}

export function anyText(text: string) {
  return { value: text }
}

/** Empty, or what `parse` accepts. */
export function optional(parse: Setting<string>['parse']): Setting<string>['parse'] {
  return (text) => (text === '' ? { value: text } : parse(text))
}

export function oneOf<const Value extends string>(...values: readonly Value[]) {
  return (text: string) => {
    const value = values.find((each) => each === text)
    return value === undefined ? { mistake: `must be ${values.join(', ')}` } : { value }
  }
}

export function list(text: string) {
  return {
    value: text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  }
}

export function knownNetworks(text: string) {
  const parsed = list(text)
  const unknown = parsed.value.filter((name) => !networks.some(({ id }) => id === name))
  return unknown.length === 0 ? parsed : { mistake: `contains unknown networks: ${unknown.join(', ')}` }
}

export function rateList(text: string) {
  const parsed = list(text)
  const isRate = (item: string) => /^[A-Z]{3}=\d{1,9}(\.\d{1,9})?$/i.test(item) && /=.*[1-9]/.test(item)
  return parsed.value.every(isRate)
    ? {
        value: new Map(
          parsed.value.map((item): [string, string] => [item.slice(0, 3).toUpperCase(), item.slice(4)]),
        ),
      }
    : { mistake: 'must be rates such as EUR=0.86,JPY=155' }
}

/** Amounts of currencies with 18 and 9 decimals, in their smallest units. */
export const nativeAmount = amount(18)
export const solAmount = amount(9)

function amount(decimals: number) {
  return (text: string) => {
    if (text === '') return { value: null }
    const [, whole = '', fraction = ''] = /^(\d{1,9})(?:\.(\d{1,18}))?$/.exec(text) ?? []
    return whole === '' || fraction.length > decimals
      ? { mistake: 'must be an amount such as 0.05, or empty' }
      : { value: BigInt(whole + fraction.padEnd(decimals, '0')) }
  }
}

/** CIDR ranges, such as 10.1.0.0/16 or fd00::/8. */
export function networkRanges(text: string) {
  const parsed = list(text)
  const isRange = (item: string) => {
    const [address = '', bits = ''] = item.split('/')
    const family = isIP(address)
    return family !== 0 && /^\d{1,3}$/.test(bits) && Number.parseInt(bits, 10) <= (family === 4 ? 32 : 128)
  }
  const wrong = parsed.value.filter((item) => !isRange(item))
  return wrong.length === 0
    ? parsed
    : { mistake: `must be CIDR ranges such as 10.1.0.0/16, but contains ${wrong.join(', ')}` }
}

export function integer(min: number, max: number) {
  return (text: string) => {
    const value = /^\d{1,9}$/.test(text) ? Number.parseInt(text, 10) : Number.NaN
    return value >= min && value <= max
      ? { value }
      : { mistake: `must be a whole number from ${min} to ${max}` }
  }
}

/** A whole number in a range, or 0, which turns off what the setting is about. */
export function zeroOr(min: number, max: number) {
  const parse = integer(min, max)
  return (text: string) => {
    const parsed = text === '0' ? { value: 0 } : parse(text)
    return 'mistake' in parsed ? { mistake: `${parsed.mistake}, or 0` } : parsed
  }
}

function url(...protocols: string[]) {
  return (text: string) =>
    URL.canParse(text) && protocols.includes(new URL(text).protocol)
      ? { value: text }
      : {
          mistake: `must be a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
        }
}

export const databaseUrl = url('postgres:', 'postgresql:')

export function nodeList(text: string) {
  const nodes = list(text).value.map(parseNode)
  const wrong = nodes.some(
    ({ url: address }) => 'mistake' in url('https:', 'http:')(address) || address.includes('#'),
  )
  return wrong
    ? {
        mistake:
          'must be URLs separated by commas, each with or without a label and limits: alpha=https://…#calls=3&blocks=10',
      }
    : { value: nodes }
}

const limitForm = /^(?:(?:(?:calls|blocks)=[1-9]\d{0,5}|alone=\w+(?:\+\w+)*)(?:&(?!$)|$))+$/

/**
 * A node as a setting names it, `alpha=https://…#calls=3&blocks=10`. Without a label, its host stands for its provider. The
 * fragment has the provider's limits; it is never sent.
 */
export function parseNode(text: string): Node {
  const [, label, address = text] = /^([\w.-]{1,40})=(https?:.*)$/i.exec(text) ?? []
  const [, url = address, limits = ''] = /^([^#]*)#(.*)$/.exec(address) ?? []
  const provider = label ?? (URL.canParse(url) ? new URL(url).host : url)
  if (!limitForm.test(limits)) return { provider, url: address }
  const set = new URLSearchParams(limits)
  const limit = (name: string) => {
    const text = set.get(name)
    return text === null ? undefined : Number.parseInt(text, 10)
  }
  const [callsMax, blocksMax] = [limit('calls'), limit('blocks')]
  // URLSearchParams turns a plus sign into a space.
  const alone = set.get('alone')?.split(' ')
  return {
    provider,
    url,
    ...(callsMax !== undefined && { callsMax }),
    ...(blocksMax !== undefined && { blocksMax }),
    ...(alone && { alone }),
  }
}

export function webUrl(text: string) {
  const parsed = url('https:', 'http:')(text)
  if ('mistake' in parsed) return parsed
  const { hash, username, password } = new URL(text)
  if (text.endsWith('/') || hash !== '' || username !== '' || password !== '') {
    return { mistake: 'must not end with a slash or carry a fragment or credentials' }
  }
  return parsed
}

/** An origin that passkeys can belong to: https with a name, or this machine. */
export function passkeyOrigin(text: string) {
  const parsed = URL.canParse(text) ? new URL(text) : null
  if (parsed?.origin !== text)
    return { mistake: 'must be an origin such as https://console.shop.example, without a path or a slash' }
  const { protocol, hostname } = parsed
  if (isIP(hostname.replace(/^\[|\]$/g, '')) !== 0)
    return { mistake: 'must have a name instead of an IP address: browsers keep no passkeys for addresses' }
  if (protocol === 'https:' || (protocol === 'http:' && hostname === 'localhost')) return { value: text }
  return { mistake: 'must begin with https://, or be http://localhost with a port' }
}

export function mailServer(text: string) {
  const parsed = URL.canParse(text) ? new URL(text) : null
  const isServer =
    /^smtps?:$/.test(parsed?.protocol ?? '') && parsed?.hostname && /^\/?$/.test(parsed.pathname)
  return isServer && parsed.search === '' && parsed.hash === ''
    ? { value: text }
    : { mistake: 'must be smtp:// or smtps:// with a host, and no path' }
}

/** Where people can write to: an e-mail address or a page. */
export function mailOrPage(text: string) {
  const mail = mailAddress(text)
  if (!('mistake' in mail)) return mail
  return 'mistake' in url('https:', 'http:')(text)
    ? { mistake: 'must be an e-mail address, or a URL that begins with https:// or http://' }
    : { value: text }
}

export function mailAddress(text: string) {
  return /^[^\s@<>(),:;"\\]{1,64}@[A-Za-z0-9.-]{1,190}$/.test(text)
    ? { value: text }
    : { mistake: 'must be an e-mail address' }
}
