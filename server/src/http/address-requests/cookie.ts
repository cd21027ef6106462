import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import type { RefundId } from '../../ids.ts'
import { isToken, newToken } from '../../members/token.ts'
import type { Opened } from '../../refunds/address-requests/open.ts'
import { readCookie, readCookies } from '../cookies.ts'

/** The link lives 14 days; after that the buyer may still come back to see the code, and whether the money was sent. */
const keptSeconds = 60 * 86_400
/** Another site can send a browser through many links. All cookies go with every request, whose size is limited. */
const cookiesMax = 10

/**
 * A browser that opens a link gets a cookie for that refund: the link's token, and a secret of the browser's own. Opening
 * the link again keeps the secret, so that the browser that named the address still sees the code.
 */
export function keepOpened(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  refundId: RefundId,
  token: string,
): void {
  const secret = readOpened(ctx, request, refundId)?.secret ?? newToken()
  const others = listCookies(ctx, request).filter((name) => name !== nameOf(ctx, refundId))
  reply.header('set-cookie', [
    cookie(ctx, nameOf(ctx, refundId), `${token}.${secret}`, keptSeconds),
    ...others.slice(0, Math.max(0, others.length - cookiesMax + 1)).map((name) => cookie(ctx, name, '', 0)),
  ])
}

/** Null if the browser has not opened the link. */
export function readOpened(ctx: Context, request: FastifyRequest, refundId: string): Opened | null {
  const [token, secret, ...more] = (readCookie(request, nameOf(ctx, refundId)) ?? '').split('.')
  if (more.length > 0 || !isToken(token) || !isToken(secret)) return null
  return { token, secret }
}

function listCookies(ctx: Context, request: FastifyRequest): string[] {
  const form = new RegExp(`^${nameOf(ctx, 'rf_[0-9a-z]+')}$`)
  return readCookies(request)
    .map(({ name }) => name)
    .filter((name) => form.test(name))
}

function cookie(ctx: Context, name: string, value: string, seconds: number): string {
  const secure = isSecure(ctx) ? '; Secure' : ''
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}; Max-Age=${seconds}`
}

/** With the prefix, browsers take the cookie only from this very host over https. */
function nameOf(ctx: Context, refundId: string): string {
  return `${isSecure(ctx) ? '__Host-' : ''}address-request-${refundId}`
}

function isSecure(ctx: Context): boolean {
  return ctx.config.checkoutPageUrl.startsWith('https:')
}
