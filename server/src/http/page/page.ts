import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { restoringProblem } from '../../checkouts/pay.ts'
import { awaitsTransfer, isPayable, payableOn, readView } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { noteLook } from '../../payments/looks.ts'
import { type Rails, toTerms } from '../../payments/rail.ts'
import { expectTransfers } from '../../payments/transfers/expect.ts'
import { Problem } from '../../problems.ts'
import { imageForm } from '../../stores/check-text.ts'
import { readLogo } from '../../stores/rows.ts'
import { pagePathOf } from '../api/pay.ts'
import type { Route } from '../route.ts'
import { sendCompressed, wantsPage } from './accept.ts'
import { mountAssets, openAssets } from './assets.ts'
import { type Asked, ways } from './choice.ts'
import type { Document, PageHost } from './document.ts'
import { chooseLanguage } from './languages/choose.ts'
import { english } from './languages/en.ts'
import type { Notice } from './languages/language.ts'
import { renderNotFound, renderPage, renderUnavailable } from './render.ts'

/**
 * The buyer's page: GET on checkoutUrl. A browser gets the page. Any other client, and any request with a payment, gets
 * the same answer as from POST, because the stock x402 clients start with GET: people and programs share one URL.
 */
export function mountPage(scope: FastifyInstance, ctx: Context, pay: Route, rails: Rails): void {
  const place: PageHost = {
    url: ctx.config.checkoutPageUrl,
    path: pagePathOf(ctx),
    assets: openAssets(),
    cell: ctx.config.cell,
  }
  mountAssets(scope, place.path, place.assets)
  mountLogo(scope, ctx, place.path)
  scope.get(pay.path, {
    async handler(request, reply) {
      if (!wantsPage(request)) return await pay.handle(ctx, request, reply.header('vary', 'accept'))
      const { checkoutId } = request.params as { checkoutId: string }
      const asked = readAsked(request)
      const view = await readView(ctx, checkoutId)
      if (view?.isRestoring && isPayable(view)) throw restoringProblem()
      noteLook(ctx, payableOn(view))
      if (view && awaitsTransfer(view)) expectTransfers(ctx, [checkoutId])
      const accepts = view && isPayable(view) ? await toTerms(rails, checkoutId, view.checkout.options) : []
      return sendDocument(
        request,
        reply,
        view
          ? renderPage(ctx, place, { view, accepts, asked, now: ctx.now() })
          : renderNotFound(place, asked.language),
      )
    },
    // People can't use a problem's JSON, so browsers get a page instead. The problem is logged and counted as usual.
    async onSend(request, reply, payload) {
      const isProblem = String(reply.getHeader('content-type')).startsWith('application/problem+json')
      if (!isProblem || !wantsPage(request)) return payload
      const { headers, text } = renderUnavailable(place, readAsked(request).language, reply.statusCode)
      reply.headers(headers)
      return text
    },
  })
}

function readAsked(request: FastifyRequest): Asked {
  const { lang, notice, way, option, unsent } = request.query as Record<string, unknown>
  const language = chooseLanguage(lang, request.headers['accept-language'])
  return {
    language,
    isLanguageNamed: lang === language.tag,
    notice:
      typeof notice === 'string' && Object.hasOwn(english.texts.notices, notice) ? (notice as Notice) : null,
    way: ways.find((each) => each === way) ?? null,
    place: typeof option === 'string' && /^\d{1,2}$/.test(option) ? Number.parseInt(option, 10) : null,
    isUnsent: unsent !== undefined,
  }
}

function sendDocument(request: FastifyRequest, reply: FastifyReply, document: Document): FastifyReply {
  return sendCompressed(request, reply.code(document.status).headers(document.headers), document.text)
}

/** Serves the store's logo, because the page loads nothing from other hosts. */
function mountLogo(scope: FastifyInstance, ctx: Context, path: string): void {
  scope.get(`${path}/:checkoutId/logo`, async (request, reply) => {
    const { checkoutId } = request.params as { checkoutId: string }
    const view = await readView(ctx, checkoutId)
    return sendLogo(reply, view?.store.hasLogo ? await readLogo(ctx.db, view.checkout.storeId) : null)
  })
}

/** How long a browser may show an old logo. */
const keptSeconds = 300

/** An SVG opened on its own can do nothing. */
export function sendLogo(reply: FastifyReply, logo: string | null): FastifyReply {
  const [, type, base64] = imageForm.exec(logo ?? '') ?? []
  if (!type || !base64) throw new Problem('not_found', 'This store has no logo.')
  return reply
    .headers({
      'content-type': type,
      'cache-control': `public, max-age=${keptSeconds}`,
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      'cross-origin-resource-policy': 'same-origin',
    })
    .send(Buffer.from(base64, 'base64'))
}
