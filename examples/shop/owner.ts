import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** The owner signs in as user "owner" with the password. A real shop has accounts. */
export function isOwner({ headers }: IncomingMessage, password: string): boolean {
  const expected = `Basic ${Buffer.from(`owner:${password}`).toString('base64')}`
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return password !== '' && timingSafeEqual(digest(headers.authorization ?? ''), digest(expected))
}

/** Browsers send the password along with other sites' forms too, but they say which site a form came from. */
export function mayChange({ method, headers }: IncomingMessage, shopUrl: string): boolean {
  return method === 'POST' && headers.origin === new URL(shopUrl).origin
}
