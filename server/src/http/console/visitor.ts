import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { scopeToStore } from '../../database/scope.ts'
import type { StoreId } from '../../ids.ts'
import type { Membership, Session } from '../../members/member.ts'
import { Refusal } from '../../members/refusal.ts'
import { type Right, requireRight } from '../../members/rights.ts'
import { listMemberships } from '../../members/rows.ts'
import { type Browser, sessionSeconds, useSession } from '../../members/session.ts'
import { formTokenOf, isFormToken, isToken, newToken } from '../../members/token.ts'
import { Problem } from '../../problems.ts'
import { readCookie } from '../cookies.ts'
import { addressNetwork } from '../limits.ts'

declare module 'fastify' {
  interface FastifyRequest {
    visitor: Visitor
  }
  interface FastifyContextConfig {
    /** Needs no session. Every other route of the console does. */
    isOpen?: boolean
    /** Its path has a token that is for this one thing, so it takes no cookie into account. */
    isByLink?: boolean
    /** What the member's role in the store of the path must include. Every route with a store has one. */
    right?: Right
  }
}

/**
 * Who asks. Every browser has a random token in a cookie, before it signs in and after: its forms and challenges belong
 * to that token. Signing in replaces it by the session's, so a token that was planted before is worth nothing.
 */
type Visitor = {
  /** Null if the browser sent none, or more than one. */
  readonly token: string | null
  readonly session: Session | null
  /** The stores that the member belongs to. */
  readonly stores: readonly Membership[]
  /** The one in the path. */
  readonly store: Membership | null
}

const safe = ['GET', 'HEAD']

/**
 * A form of ours comes from a page of ours. Browsers say so in a header that no script can set. An older browser is judged
 * by its origin. Requests with neither header are rejected.
 */
export function refuseCrossSite(ctx: Context, { method, headers, routeOptions }: FastifyRequest): void {
  if (safe.includes(method) || routeOptions.config?.isByLink) return
  const site = headers['sec-fetch-site']
  const isOurs = site === undefined ? headers.origin === ctx.config.consoleUrl : site === 'same-origin'
  if (!isOurs) throw new Problem('cross_site', 'This can be submitted only from the console itself.')
}

/** Refuses a change without the form's token and, unless the route is open, a browser without a session. */
export async function meetVisitor(ctx: Context, request: FastifyRequest): Promise<void> {
  const { token } = request.visitor
  if (request.routeOptions.config.isByLink) return
  if (!safe.includes(request.method)) {
    // Browsers delete the cookie of a session that is over. Only a sign-in has to say that they may block it.
    if (token === null && !request.routeOptions.config.isOpen) throw new Refusal('signed_out')
    const { formToken } = (request.body ?? {}) as { formToken?: unknown }
    if (token === null || !isFormToken(token, formToken))
      throw new Problem('cross_site', 'The page is too old, or your browser blocks cookies. Reload it.')
  }
  // A screen that loads itself again does not show that the member is there.
  const isByItself = request.headers['x-refresh'] !== undefined
  const session =
    token === null ? null : await useSession(ctx, placedAt(request, token), ctx.now(), isByItself)
  if (!session && !request.routeOptions.config.isOpen) throw new Refusal('signed_out')
  const stores = session ? await listMemberships(ctx.db, session.member.id) : []
  request.visitor = { token, session, stores, store: null }
}

/** In a store, refuses everybody but its members, and a member whose role does not include the route's right. */
export function enterStore(request: FastifyRequest): void {
  const { right } = request.routeOptions.config
  if (right === undefined) return
  const { storeId } = request.params as { storeId: string }
  const store = request.visitor.stores.find((each) => each.storeId === storeId)
  // A store of others is answered like one that does not exist.
  if (!store) throw new Refusal('not_found')
  requireRight(store.role, right)
  request.visitor = { ...request.visitor, store }
}

/**
 * The token for this browser's forms. A browser that has no cookie yet gets one, but not from what another site may have
 * submitted: browsers leave the cookie out there, and a new one would sign the member out.
 */
export function giveFormToken(ctx: Context, request: FastifyRequest, reply: FastifyReply): string {
  const { visitor, method } = request
  if (visitor.token !== null) return formTokenOf(visitor.token)
  const token = newToken()
  if (safe.includes(method)) {
    setCookie(ctx, reply, token, null)
    request.visitor = { ...visitor, token }
  }
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

/** The store of a request to a route that names one, with the member's role in it. */
export function storeOf({ visitor }: FastifyRequest): Membership {
  if (!visitor.store) throw new Refusal('not_found')
  return visitor.store
}

export function browserOf(request: FastifyRequest): Browser {
  const { token } = request.visitor
  if (token === null) throw new Refusal('signed_out')
  return placedAt(request, token)
}

export function placedAt({ headers, ip }: FastifyRequest, token: string): Browser {
  return { token, userAgent: headers['user-agent'] ?? '', address: ip, network: addressNetwork(ip) }
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
 * With the prefix, browsers take the cookie only from this very host over https, so no sibling host can set it. On
 * http://localhost they would not take it at all.
 */
function cookieName(ctx: Context): string {
  return isSecure(ctx) ? '__Host-farthing' : 'farthing'
}

function isSecure(ctx: Context): boolean {
  return ctx.config.consoleUrl.startsWith('https:')
}

/** The browser's token, if it sent one that can be ours. */
export function readToken(ctx: Context, request: FastifyRequest): string | null {
  const token = readCookie(request, cookieName(ctx))
  return isToken(token) ? token : null
}
