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

/** All that is stored of a token. Looking it up by this tells nobody how much of a guess was right. */
export function hashToken(text: string): Buffer {
  return Buffer.from(hash('sha256', text, 'hex'), 'hex')
}

/**
 * What every form of a browser carries. It follows from the token in the browser's cookie, which no script and no other
 * site can read, so only a page that we gave to this browser has it.
 */
export function formTokenOf(browserToken: string): string {
  return hash('sha256', `form ${browserToken}`, 'base64url')
}

export function isFormToken(browserToken: string, text: unknown): boolean {
  const given = hashToken(typeof text === 'string' ? text : '')
  return timingSafeEqual(given, hashToken(formTokenOf(browserToken)))
}
