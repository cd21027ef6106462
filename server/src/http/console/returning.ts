import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { readCookie } from '../cookies.ts'

/**
 * The address that somebody left because their session had ended, to which signing in leads back. It comes from the
 * browser, so it is only ever the path of a screen of this console: not another site's, and none that does something.
 */
const pathMax = 2_048
const screens = /^\/(stores|operator|account)(\/|\?|$)/

/** The path, or `/` for anything that is not one of our screens. */
export function readReturn({ config }: Context, text: unknown): string {
  // Visible ASCII only: URL() drops tabs and line breaks, and reads \ as /.
  if (typeof text !== 'string' || text.length > pathMax || !/^\/[\x21-\x5b\x5d-\x7e]*$/.test(text)) return '/'
  if (!URL.canParse(text, config.consoleUrl)) return '/'
  const { origin, pathname, search } = new URL(text, config.consoleUrl)
  // Checked as it is sent: /.//evil.example has become //evil.example.
  return origin === config.consoleUrl && screens.test(pathname) ? pathname + search : '/'
}

/** Where a visitor without a session is sent. A form comes back to the page that it was on. */
export function signInPath(ctx: Context, { method, url, headers }: FastifyRequest): string {
  const { referer = '' } = headers
  const isOurs = URL.canParse(referer) && new URL(referer).origin === ctx.config.consoleUrl
  const left = method === 'GET' ? url : isOurs ? referer.slice(ctx.config.consoleUrl.length) : ''
  const to = readReturn(ctx, left)
  return to === '/' ? '/sign-in' : `/sign-in?to=${encodeURIComponent(to)}`
}

const cookie = 'return'
/** As long as a provider has to answer. */
const cookieSeconds = 300

/** Keeps the path while the browser is at the identity provider, which brings back nothing of ours. */
export function keepReturn(ctx: Context, reply: FastifyReply, text: unknown): void {
  setCookie(ctx, reply, encodeURIComponent(readReturn(ctx, text)), cookieSeconds)
}

export function takeReturn(ctx: Context, request: FastifyRequest, reply: FastifyReply): string {
  const kept = readCookie(request, cookie) ?? ''
  setCookie(ctx, reply, '', 0)
  return readReturn(ctx, /%(?![0-9A-Fa-f]{2})/.test(kept) ? '/' : decodeURIComponent(kept))
}

function setCookie({ config }: Context, reply: FastifyReply, value: string, seconds: number): void {
  const secure = config.consoleUrl.startsWith('https:') ? '; Secure' : ''
  const rules = `Path=/oidc; HttpOnly; SameSite=Lax; Max-Age=${seconds}${secure}`
  reply.header('set-cookie', `${cookie}=${value}; ${rules}`)
}
