import { randomInt } from 'node:crypto'
import type { AddressRequest as Wire } from '@farthing/sdk'
import { toShown } from '../../chains/families.ts'
import { isToken } from '../../members/token.ts'

/**
 * A link with which a buyer says where a refund should go, for payments whose sender may be an exchange.
 *
 * The holder of the link can name an address, once. That alone moves nothing. The browser that named the address shows a
 * code, the buyer gives the code to the store through a channel that they already have, and a member of the store confirms
 * it. No other browser shows the code, not even with the link. If a stranger uses the link first, the buyer is told so and
 * has no code to give. Until an address is confirmed, a new link makes the old link, its address and its code invalid.
 */
export type AddressRequest = {
  readonly expiresAt: Date
  readonly isExpired: boolean
  readonly named: {
    readonly address: string
    readonly code: string
    /** SHA-256 of the secret in the cookie of the browser that named the address. */
    readonly browserHash: Buffer
  } | null
  readonly isConfirmed: boolean
}

/** Long enough for a buyer on holiday. */
export const linkDays = 14

/** The last part of a link's path: the cell, by which the proxy routes, and the token. */
export function toLinkKey(cell: string, token: string): string {
  return `${cell}_${token}`
}

export function parseLinkKey(text: string): { readonly cell: string; readonly token: string } | null {
  const [, cell, token] = /^([0-9a-z]{2})_(.+)$/.exec(text) ?? []
  return cell !== undefined && isToken(token) ? { cell, token } : null
}

/** Letters and digits that are not confused with each other, written or spoken: no 0 O 1 I L, no 2 Z, 5 S, 8 B, U V. */
const alphabet = '34679ACDEFGHJKMNPQRTWXY'
const codeLength = 8
const groupLength = 4

/** 36 bits: too many to guess, and short enough to read out on the phone. */
export function newCode(): string {
  return Array.from({ length: codeLength }, () => alphabet[randomInt(alphabet.length)]).join('')
}

/** A code as people see it, in two groups. */
export function showCode(code: string): string {
  return `${code.slice(0, groupLength)}-${code.slice(groupLength)}`
}

/** Reads a code as it was typed, with or without gaps and in either case. */
export function readCode(text: string): string {
  return text.replace(/[\s-]/g, '').toUpperCase()
}

export function addressRequestToWire(
  network: string,
  { expiresAt, isExpired, named, isConfirmed }: AddressRequest,
): Wire {
  const open = isExpired ? 'EXPIRED' : 'OPEN'
  return {
    status: isConfirmed ? 'CONFIRMED' : named ? 'NAMED' : open,
    expiresAt: expiresAt.toISOString(),
    ...(named && { address: toShown(network, named.address), code: showCode(named.code) }),
  }
}
