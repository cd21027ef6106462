import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { scopeToStore } from '../../database/scope.ts'
import type { StoreId } from '../../ids.ts'
import type { Session } from '../../members/member.ts'
import { Refusal } from '../../members/refusal.ts'
import { type Browser, readSession, sessionSeconds } from '../../members/session.ts'
import { formTokenOf, isFormToken, isToken, newToken } from '../../members/token.ts'
import { Problem } from '../../problems.ts'

declare module 'fastify' {
  interface FastifyRequest {
    visitor: Visitor
  }
  interface FastifyContextConfig {
    /** Needs no session. Every other route of the console does. */
    isOpen?: boolean
  }
}

/**
 * Who asks. Every browser has a random token in a cookie, before it signs in and after: its forms and challenges belong
 * to that token. Signing in replaces it by the session's, so a token that somebody planted before is worth nothing.
 */
export type Visitor = {
  /** Null if the browser sent none, or more than one. */
  readonly token: string | null
  readonly session: Session | null
}

const safe = ['GET', 'HEAD']

/**
 * A form of ours comes from a page of ours. Browsers say so in a header that no script can set; one that does not is
 * judged by the origin, and who sends neither is no browser that we serve.
 */
export function refuseCrossSite(ctx: Context, { method, headers }: FastifyRequest): void {
  if (safe.includes(method)) return
  const site = headers['sec-fetch-site']
  const isOurs = site === undefined ? headers.origin === ctx.config.consoleUrl : site === 'same-origin'
  if (!isOurs) throw new Problem('cross_site', 'This can be submitted only from the console itself.')
}

/** Reads the cookie, and refuses a change without the form's token and, unless the route is open, without a session. */
export async function readVisitor(ctx: Context, request: FastifyRequest): Promise<Visitor> {
  const token = readCookie(ctx, request)
  if (!safe.includes(request.method)) {
    const { formToken } = (request.body ?? {}) as { formToken?: unknown }
    if (token === null || !isFormToken(token, formToken))
      throw new Problem('cross_site', 'The page is too old, or the browser keeps no cookies. Reload it.')
  }
  const session = token === null ? null : await readSession(ctx, token, ctx.now())
  if (!session && !request.routeOptions.config.isOpen) throw new Refusal('signed_out')
  return { token, session }
}

/** The token for this browser's forms. A browser that has no cookie yet gets one. */
export function giveFormToken(ctx: Context, { visitor }: FastifyRequest, reply: FastifyReply): string {
  const token = visitor.token ?? newToken()
  if (visitor.token === null) setCookie(ctx, reply, token, null)
  return formTokenOf(token)
}

/** The session of a request to a route that needs one. */
export function sessionOf({ visitor }: FastifyRequest): Session {
  if (!visitor.session) throw new Refusal('signed_out')
  return visitor.session
}

/** For one store's screens: in a deployment with roles, PostgreSQL shows them no other store's rows. */
export function forStore(ctx: Context, storeId: StoreId): Context {
  return { ...ctx, db: scopeToStore(ctx.db, storeId) }
}

export function browserOf({ visitor, headers, ip }: FastifyRequest): Browser {
  if (visitor.token === null) throw new Refusal('signed_out')
  return { token: visitor.token, userAgent: headers['user-agent'] ?? '', address: ip }
}

export function startSession(ctx: Context, reply: FastifyReply, token: string): void {
  setCookie(ctx, reply, token, sessionSeconds)
}

/** The next page gives the browser a token that has nothing to do with the last one. */
export function clearSession(ctx: Context, reply: FastifyReply): void {
  setCookie(ctx, reply, '', 0)
}

function setCookie(ctx: Context, reply: FastifyReply, token: string, seconds: number | null): void {
  const age = seconds === null ? '' : `; Max-Age=${seconds}`
  const secure = isSecure(ctx) ? '; Secure' : ''
  reply.header('set-cookie', `${cookieName(ctx)}=${token}; Path=/; HttpOnly; SameSite=Lax${secure}${age}`)
}

/**
 * With the prefix, browsers take the cookie only from this very host over https, so nobody can set it from a sibling
 * host. On http://localhost they would not take it at all.
 */
function cookieName(ctx: Context): string {
  return isSecure(ctx) ? '__Host-farthing' : 'farthing'
}

function isSecure(ctx: Context): boolean {
  return ctx.config.consoleUrl.startsWith('https:')
}

/** Two cookies of one name would mean that one of them is not ours. */
function readCookie(ctx: Context, { headers }: FastifyRequest): string | null {
  const prefix = `${cookieName(ctx)}=`
  const found = (headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(prefix))
  const token = found[0]?.slice(prefix.length)
  return found.length === 1 && isToken(token) ? token : null
}
