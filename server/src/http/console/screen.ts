import assert from 'node:assert/strict'
import type { Actor } from '@farthing/sdk'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify'
import type { Context } from '../../context.ts'
import type { StoreId } from '../../ids.ts'
import { type Acting, actAs, actingAs, actWithTouch } from '../../members/act.ts'
import { actorOfSession } from '../../members/announce.ts'
import type { Subject } from '../../members/challenge.ts'
import { type Action, readTouch, type Touch } from '../../members/confirm.ts'
import type { Membership, Session } from '../../members/member.ts'
import { Refusal } from '../../members/refusal.ts'
import { mayAct, type Right } from '../../members/rights.ts'
import { Problem } from '../../problems.ts'
import { type Html, html } from '../page/html.ts'
import { type Content, formField, sendPage } from './document.ts'
import { fieldsOf, textOf, touchOf } from './fields.ts'
import { type Locale, localeOf } from './formats.ts'
import { type Texts, textsOf } from './texts/choose.ts'
import { forStore, giveFormToken, sessionOf, storeOf } from './visitor.ts'

/** One request to a page of the console: the visitor's language, the input, and the ways to answer. */
export type Page = {
  readonly ctx: Context
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  /** What paths on this page begin with: `/stores/…`, or nothing outside of a store. */
  readonly base: string
  readonly texts: Texts
  readonly locale: Locale
  readonly now: Date
  /** What every form that posts has in it: its token and, in a store, the store, which a touch names too. */
  readonly formFields: Html
  /** A part of the path that the route names. */
  readonly part: (name: string) => string
  /** A value of the query; empty if it is missing or too long. */
  readonly asked: (name: string) => string
  /** A field of the form that was sent. */
  readonly field: (name: string) => string
  readonly send: (content: Content) => Promise<FastifyReply>
  /** On to a path below `base`. */
  readonly go: (path: string) => FastifyReply
  /** The passkey's answer that came with the form. */
  readonly touch: () => Promise<Touch>
}

/** One request to a page of a store: also who asks, what they may do, and the ways to act as them. */
export type Screen = Page & {
  /** For this store: in a deployment with roles, PostgreSQL shows it no other store's rows. */
  readonly ctx: Context
  readonly session: Session
  readonly store: Membership
  readonly storeId: StoreId
  readonly actor: Actor
  /** For changes: nothing is committed once the member has lost the route's right, or the session has ended. */
  readonly memberCtx: Context
  /** Whether the member's role includes something. */
  readonly may: (right: Right) => boolean
  /** Runs a change with the route's right, which its transaction checks again. */
  readonly act: <Result>(work: (acting: Acting) => Promise<Result>) => Promise<Result>
  /** The same as `act`, confirmed by a touch for exactly these values. */
  readonly actWith: <Result>(
    touch: Touch,
    action: Action,
    values: Subject,
    work: (acting: Acting) => Promise<Result>,
  ) => Promise<Result>
}

const askedLengthMax = 100

export function openPage(ctx: Context, request: FastifyRequest, reply: FastifyReply, base = ''): Page {
  const fields = fieldsOf(request)
  return {
    ...{ ctx, request, reply, base },
    texts: textsOf(request),
    locale: localeOf(request),
    now: ctx.now(),
    formFields: formField(giveFormToken(ctx, request, reply)),
    part: (name) => (request.params as Readonly<Record<string, string>>)[name] ?? '',
    asked(name) {
      const value = (request.query as Readonly<Record<string, unknown>>)[name]
      return typeof value === 'string' && value.length <= askedLengthMax ? value.trim() : ''
    },
    field: (name) => textOf(fields, name),
    send: (content) => sendPage(ctx, request, reply, content),
    go: (path) => reply.code(303).header('location', `${base}${path}`).send(),
    touch: () => readTouch(ctx, sessionOf(request), touchOf(fields)),
  }
}

/** Adds routes to the screens of a store. Paths are below `/stores/…`, and `right` is what the member's role must include. */
export type StoreRoutes = ReturnType<typeof storeRoutes>

export function storeRoutes(scope: FastifyInstance, ctx: Context) {
  const add =
    (method: 'GET' | 'POST') =>
    (path: string, right: Right, handle: (screen: Screen) => unknown, options: RouteShorthandOptions = {}) =>
      scope.route({
        ...options,
        method,
        url: `/stores/:storeId${path}`,
        config: { right },
        handler: async (request, reply) => await handle(openScreen(ctx, request, reply)),
      })
  return { get: add('GET'), post: add('POST') }
}

/** Adds routes to the pages that belong to no store. */
export type PageRoutes = ReturnType<typeof pageRoutes>

export function pageRoutes(scope: FastifyInstance, ctx: Context) {
  const add = (method: 'GET' | 'POST') => (path: string, handle: (page: Page) => unknown) =>
    scope.route({
      method,
      url: path,
      handler: async (request, reply) => await handle(openPage(ctx, request, reply)),
    })
  return { get: add('GET'), post: add('POST') }
}

function openScreen(outer: Context, request: FastifyRequest, reply: FastifyReply): Screen {
  const [store, session] = [storeOf(request), sessionOf(request)]
  const { storeId } = store
  const { right } = request.routeOptions.config
  assert(right, 'a route with a store has a right')
  const page = openPage(outer, request, reply, `/stores/${storeId}`)
  const ctx = forStore(outer, storeId)
  return {
    ...page,
    ...{ ctx, session, store, storeId },
    actor: actorOfSession(session),
    memberCtx: actingAs(ctx, storeId, session, right),
    formFields: html`${page.formFields}<input type="hidden" name="storeId" value="${storeId}">`,
    may: (wanted) => mayAct(store.role, wanted),
    act: (work) => actAs(ctx, storeId, session, right, work),
    actWith: (touch, action, values, work) =>
      actWithTouch(ctx, { storeId, touch, right, action, values, now: ctx.now() }, work),
  }
}

/** A screen's sentences about problems, by the problem's code, the mistake's code, or the field. */
type Sentences = Readonly<Record<string, string>>

/** Translates an API problem for the member; null if there is no sentence for it. */
export function sentenceFor(error: unknown, sentences: Sentences): string | null {
  if (!(error instanceof Problem)) return null
  const [mistake] = error.extras.errors ?? []
  const pointer = /^\/\w+/.exec(mistake?.pointer ?? '')?.[0] ?? ''
  return sentences[error.code] ?? sentences[mistake?.code ?? ''] ?? sentences[pointer] ?? null
}

/** Turns an API problem into a Refusal in the member's words. */
export async function inWords<Result>(sentences: Sentences, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem && error.code === 'not_found') throw new Refusal('not_found')
    const detail = sentenceFor(error, sentences)
    if (detail === null) throw error
    throw new Refusal('invalid', { detail, cause: error })
  }
}

/** A path with the parameters that are not empty. */
export function withQuery(path: string, parameters: Readonly<Record<string, string | null>>): string {
  const filled = Object.entries(parameters).filter(([, value]) => value !== null && value !== '')
  const query = new URLSearchParams(filled as [string, string][]).toString()
  return query === '' ? path : `${path}?${query}`
}
