import { randomFillSync } from 'node:crypto'
import { toSafeNumber } from './safe-number.ts'

/**
 * An id is prefix + cell + 26 characters of lower-case Crockford base32: 48 bits of milliseconds, then 80 random bits.
 * Ids of one cell sort by creation time, so inserts stay local in an index of any size and a range of time is a range
 * of ids. 80 random bits cannot be guessed.
 */
export type Id<Prefix extends string> = `${Prefix}_${string}`
export type CheckoutId = Id<'ch'>
export type StoreId = Id<'st'>
export type RefundId = Id<'rf'>
export type LinkId = Id<'lnk'>
export type WalletId = Id<'wal'>
export type EventId = Id<'evt'>
export type EndpointId = Id<'we'>
export type DeliveryId = Id<'dlv'>
export type MemberId = Id<'mem'>
export type InvitationId = Id<'inv'>
export type PasskeyId = Id<'pk'>
export type SessionId = Id<'ses'>
export type WalletChangeId = Id<'wch'>
export type MovementId = Id<'mov'>

/** The cell of a deployment that is the only one. */
export const firstCell = '00'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const timeLength = 10
const randomLength = 16

export function newId<Prefix extends string>(prefix: Prefix, cell: string, now: Date): Id<Prefix> {
  return `${prefix}_${cell}${encodeTime(now)}${randomText(randomLength)}`
}

/** The smallest id possible at this time, to turn a range of time into a range of ids. */
export function firstIdAt<Prefix extends string>(prefix: Prefix, cell: string, time: Date): Id<Prefix> {
  return `${prefix}_${cell}${encodeTime(time)}${'0'.repeat(randomLength)}`
}

export function isId<Prefix extends string>(prefix: Prefix, text: string): text is Id<Prefix> {
  return (
    text.startsWith(`${prefix}_`) && /^[0-9a-z]{2}[0-9a-hjkmnp-tv-z]{26}$/.test(text.slice(prefix.length + 1))
  )
}

/** The cell that made an id; null if the text is not an id. */
export function cellOf(text: string): string | null {
  const [, cell = null] = /^[a-z]{2,4}_([0-9a-z]{2})[0-9a-hjkmnp-tv-z]{26}$/.exec(text) ?? []
  return cell
}

/** The 128 bits of an id's body: 16 bytes that go on the chain with a settlement, so that the id can be recovered. */
export function markerOf(id: string): `0x${string}` {
  let value = 0n
  for (const character of id.slice(-(timeLength + randomLength)))
    value = value * 32n + BigInt(alphabet.indexOf(character))
  return `0x${value.toString(16).padStart(32, '0')}`
}

/** The id that a marker came from. */
export function idOfMarker<Prefix extends string>(prefix: Prefix, cell: string, marker: string): Id<Prefix> {
  let value = BigInt(marker)
  let text = ''
  for (let i = 0; i < timeLength + randomLength; i++) {
    text = alphabet[toSafeNumber(value % 32n)] + text
    value /= 32n
  }
  return `${prefix}_${cell}${text}`
}

/** Random Crockford base32, 5 bits per character. */
export function randomText(length: number): string {
  let text = ''
  for (let i = 0; i < length; i++) text += alphabet[randomByte() & 31]
  return text
}

// Under load, several ids are made in the same millisecond.
let encoded = { milliseconds: Number.NaN, text: '' }

function encodeTime(time: Date): string {
  const milliseconds = time.getTime()
  if (milliseconds === encoded.milliseconds) return encoded.text
  let rest = milliseconds
  let text = ''
  for (let i = 0; i < timeLength; i++) {
    text = alphabet[rest % 32] + text
    rest = Math.floor(rest / 32)
  }
  encoded = { milliseconds, text }
  return text
}

// Random bytes are drawn 4,096 at a time: one system call for a few hundred ids.
const pool = new Uint8Array(4096)
let used = pool.length

function randomByte(): number {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  return pool[used++] as number
}
