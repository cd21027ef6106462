import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** 256 random bits: the token of an invitation or a session, or a challenge. */
const tokenBytes = 32
const pattern = /^[A-Za-z0-9_-]{43}$/

export function newToken(): string {
  return randomBytes(tokenBytes).toString('base64url')
}

export function isToken(text: unknown): text is string {
  return typeof text === 'string' && pattern.test(text)
}

/** The only part of a token that is stored. A lookup by it does not reveal how much of a guess was right. */
export function hashToken(text: string): Buffer {
  return Buffer.from(hash('sha256', text, 'hex'), 'hex')
}

/** 12 random bytes as base64url. */
const saltLength = 16

/**
 * The token in every form. It follows from the token in the browser's cookie, which no script and no other site can
 * read, so only a page that we gave to this browser has it. Each page has its own: pages are compressed, and the
 * lengths of many pages with different text by an attacker would reveal a constant token.
 */
export function formTokenOf(browserToken: string): string {
  return saltedToken(browserToken, randomBytes(12).toString('base64url'))
}

export function isFormToken(browserToken: string, text: unknown): boolean {
  const given = typeof text === 'string' ? text : ''
  const expected = saltedToken(browserToken, given.slice(0, saltLength))
  return timingSafeEqual(hashToken(given), hashToken(expected))
}

function saltedToken(browserToken: string, salt: string): string {
  return salt + hash('sha256', `form ${salt} ${browserToken}`, 'base64url')
}
