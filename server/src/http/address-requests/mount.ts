import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { isId, type RefundId } from '../../ids.ts'
import { isFormToken, isToken, newToken } from '../../members/token.ts'
import { Problem, wrongCell } from '../../problems.ts'
import { parseLinkKey } from '../../refunds/address-requests/address-request.ts'
import {
  findLinked,
  nameAddress,
  type Opened,
  readAddressRequest,
} from '../../refunds/address-requests/name.ts'
import { fieldOf, refuseCrossSite, takeForms } from '../buyer/forms.ts'
import { readCookie, readCookies } from '../cookies.ts'
import { addressBucket, openLimiter } from '../limits.ts'
import { prefersPage, sendCompressed } from '../page/accept.ts'
import { openAssets } from '../page/assets.ts'
import type { Document, PageHost } from '../page/document.ts'
import { chooseLanguage } from '../page/languages/choose.ts'
import type { AddressMistake, Language } from '../page/languages/language.ts'
import { renderUnavailable } from '../page/render.ts'
import { renderAddressRequest, renderNoAddressRequest } from './render.ts'

/** Each address is checked with every node. */
const namesPerSecond = 2
/** More than a buyer mistypes. */
const namesPerHour = 20
const hourSeconds = 3_600

/**
 * The page behind the link of an address request. The link's token is in its path, so opening it sets a cookie and
 * redirects to a URL without the token. No referrer is sent, so the token is in no open tab, screenshot or followed
 * link. Opening changes nothing, because mail programs and chats open links too.
 */
export function mountAddressRequests(app: FastifyInstance, ctx: Context, path: string): void {
  const { checkoutPageUrl: url, cell } = ctx.config
  const place: PageHost = { url, path, assets: openAssets(), cell }
  const perAddress = openLimiter('address-request', namesPerSecond, ctx.now)
  const perRefund = openLimiter('address-request', namesPerHour, ctx.now, hourSeconds)
  void app.register(async (scope) => {
    takeForms(scope)
    scope.addHook('onSend', async (request, reply, payload) => {
      reply.header('referrer-policy', 'no-referrer')
      const isProblem = String(reply.getHeader('content-type')).startsWith('application/problem+json')
      if (!isProblem || !prefersPage(request.headers.accept)) return payload
      const { headers, text } = renderUnavailable(place, languageOf(request), reply.statusCode)
      reply.headers(headers)
      return text
    })

    scope.get(`${path}/refund/:key`, async (request, reply) => {
      const { key } = request.params as { key: string }
      const language = languageOf(request)
      const link = parseLinkKey(key)
      if (link) {
        const { cell, token } = link
        if (cell !== ctx.config.cell) throw wrongCell('The link', cell, ctx.config.cell)
        const refundId = await findLinked(ctx, token)
        if (!refundId) return send(request, reply, renderNoAddressRequest(place, language, 'unknown'))
        keepOpened(ctx, request, reply, refundId, token)
        return lead(request, reply, path, refundId)
      }
      const opened = readOpened(ctx, request, key)
      if (!opened) return send(request, reply, renderNoAddressRequest(place, language, noCookie(key)))
      const view = await readAddressRequest(ctx, key, opened)
      if (!view) return send(request, reply, renderNoAddressRequest(place, language, 'unknown'))
      return send(request, reply, renderAddressRequest({ place, language, view, opened, mistaken: null }))
    })

    scope.post(`${path}/refund/:key`, async (request, reply) => {
      refuseCrossSite(ctx, request)
      const { key } = request.params as { key: string }
      const language = languageOf(request)
      const opened = readOpened(ctx, request, key)
      if (!opened) return send(request, reply, renderNoAddressRequest(place, language, noCookie(key)))
      if (!isFormToken(opened.secret, fieldOf(request, 'formToken')))
        throw new Problem('cross_site', 'The page is too old. Reload it.')
      const text = (fieldOf(request, 'address') ?? '').trim()
      const outcome = await name(request, key, opened, text)
      if (outcome === 'named' || outcome === 'closed') return lead(request, reply, path, key)
      const view = await readAddressRequest(ctx, key, opened)
      if (!view) return send(request, reply, renderNoAddressRequest(place, language, 'unknown'))
      const mistaken = { mistake: outcome, text }
      return send(request, reply, renderAddressRequest({ place, language, view, opened, mistaken }))
    })

    async function name(
      request: FastifyRequest,
      refundId: string,
      opened: NonNullable<ReturnType<typeof readOpened>>,
      text: string,
    ): Promise<AddressMistake | 'named' | 'closed'> {
      if (text === '') return 'empty'
      if (!perAddress.tryTake(addressBucket(request.ip)) || !perRefund.tryTake(refundId)) return 'unavailable'
      try {
        return await nameAddress(ctx, refundId, opened, text, ctx.now())
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== 'unavailable') throw error
        ctx.log.warn(
          { refundId, err: error.cause },
          'address that a buyer named could not be checked; the buyer was told',
        )
        return 'unavailable'
      }
    }
  })
}

/** Without its cookie, a refund's page was opened in another browser, or cookies are off. */
function noCookie(key: string): 'elsewhere' | 'unknown' {
  return isId('rf', key) ? 'elsewhere' : 'unknown'
}

function languageOf(request: FastifyRequest): Language {
  const { lang } = request.query as { lang?: unknown }
  return chooseLanguage(lang, request.headers['accept-language'])
}

/** Redirects to the page of the address request, in the language that the URL names. */
function lead(request: FastifyRequest, reply: FastifyReply, path: string, refundId: string): FastifyReply {
  const { lang } = request.query as { lang?: unknown }
  const query = typeof lang === 'string' && /^[A-Za-z-]{2,20}$/.test(lang) ? `?lang=${lang}` : ''
  return reply.code(303).header('location', `${path}/refund/${refundId}${query}`).send()
}

function send(request: FastifyRequest, reply: FastifyReply, document: Document): FastifyReply {
  return sendCompressed(request, reply.code(document.status).headers(document.headers), document.text)
}

/** The link lives 14 days; after that the buyer may still come back to see the code, and whether the money was sent. */
const keptSeconds = 60 * 86_400
/** Another site can send a browser through many links. All cookies go with every request, whose size is limited. */
const cookiesMax = 10

/**
 * A browser that opens a link gets a cookie for that refund: the link's token, and a secret of the browser's own. Opening
 * the link again keeps the secret, so that the browser that named the address still sees the code.
 */
function keepOpened(
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
function readOpened(ctx: Context, request: FastifyRequest, refundId: string): Opened | null {
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

/** Browsers accept a cookie with this prefix only from exactly this host and over https. */
function nameOf(ctx: Context, refundId: string): string {
  return `${isSecure(ctx) ? '__Host-' : ''}address-request-${refundId}`
}

function isSecure(ctx: Context): boolean {
  return ctx.config.checkoutPageUrl.startsWith('https:')
}
