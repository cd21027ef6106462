import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Opening, type OpenLink, quoteLink, readOpening } from '../../checkouts/links/open.ts'
import type { Context } from '../../context.ts'
import { linkPathOf, statusOf } from '../../links/link.ts'
import { Problem } from '../../problems.ts'
import { crossOrigin } from '../api/pay.ts'
import { fieldOf, refuseCrossSite, takeForms } from '../buyer/forms.ts'
import { addressBucket, openLimiter } from '../limits.ts'
import { sendCompressed, wantsPage } from '../page/accept.ts'
import { openAssets } from '../page/assets.ts'
import type { PageHost } from '../page/document.ts'
import { chooseLanguage } from '../page/languages/choose.ts'
import type { Language } from '../page/languages/language.ts'
import { sendLogo } from '../page/page.ts'
import { renderNotFound, renderUnavailable } from '../page/render.ts'
import type { Route } from '../route.ts'
import { type LinkPageState, type Mistaken, renderLink } from './render.ts'

/** Each makes a checkout. As many as people who pay by a code on a wall, behind one address. */
const opensPerHour = 200
const hourSeconds = 3_600

/** Refusals about the store, which a buyer is told in a sentence. */
const unpayable: ReadonlySet<string> = new Set(['store_inactive', 'wallet_required'])

/**
 * The page of a link, without script. Opening it writes nothing, because mail scanners and previews open it too. Its one
 * button sends the quote back, and leads to the checkout that is made of it. Programs pay at the same address (`pay`).
 */
export function mountLinks(
  app: FastifyInstance,
  ctx: Context,
  { path, openLink, pay }: { readonly path: string; readonly openLink: OpenLink; readonly pay: Route },
): void {
  const { checkoutPageUrl: url, cell } = ctx.config
  const place: PageHost = { url, path, assets: openAssets(), cell }
  const opens = openLimiter('open', opensPerHour, ctx.now, hourSeconds)
  void app.register(async (scope) => {
    takeForms(scope)
    scope.addHook('onSend', async (request, reply, payload) => {
      const isProblem = String(reply.getHeader('content-type')).startsWith('application/problem+json')
      if (!isProblem || !wantsPage(request)) return payload
      const { headers, text } = renderUnavailable(place, languageOf(request), reply.statusCode)
      reply.headers(headers)
      return text
    })

    scope.get(pay.path, async (request, reply) => {
      if (!wantsPage(request))
        return await pay.handle(ctx, request, reply.headers({ vary: 'accept', ...crossOrigin }))
      const opening = await find(ctx, request)
      return await send(request, reply, opening, null)
    })

    scope.get(`${path}/${linkPathOf(':linkId')}/logo`, async (request, reply) => {
      const opening = await find(ctx, request)
      return sendLogo(reply, opening?.seller.store.logoUrl ?? null)
    })

    scope.post(`${path}/${linkPathOf(':linkId')}/open`, async (request, reply) => {
      refuseCrossSite(ctx, request)
      const opening = await find(ctx, request)
      if (!opening) return await send(request, reply, null, null)
      if (!opens.tryTake(addressBucket(request.ip)))
        throw new Problem('rate_limited', 'Too many links were opened from this address.', {
          retryAfterSeconds: hourSeconds / opensPerHour,
        })
      const amount = fieldOf(request, 'amount')?.trim().replace(',', '.') ?? null
      const asked = { quote: fieldOf(request, 'quote') ?? '', amount }
      const opened = await openLink(opening, asked, ctx.now())
      if (opened.kind === 'checkout')
        return reply
          .code(303)
          .header('location', `${path}/${opened.checkoutId}${langOf(request)}`)
          .send()
      const mistake = opened.kind === 'over' ? null : opened.kind
      return await send(request, reply, await find(ctx, request), mistake && { mistake, amount })
    })

    async function send(
      request: FastifyRequest,
      reply: FastifyReply,
      opening: Opening | null,
      mistaken: Mistaken | null,
    ): Promise<FastifyReply> {
      const language = languageOf(request)
      const document = opening
        ? renderLink({ place, language, opening, state: await stateOf(ctx, opening), mistaken })
        : renderNotFound(place, language)
      return sendCompressed(request, reply.code(document.status).headers(document.headers), document.text)
    }
  })
}

async function find(ctx: Context, { params }: FastifyRequest): Promise<Opening | null> {
  return await readOpening(ctx, (params as { linkId: string }).linkId)
}

async function stateOf(ctx: Context, opening: Opening): Promise<LinkPageState> {
  const status = statusOf(opening.link)
  if (status !== 'ACTIVE') return { status }
  try {
    return { status, quote: await quoteLink(ctx, opening, null, ctx.now()) }
  } catch (error) {
    if (error instanceof Problem && unpayable.has(error.code)) return { status: 'UNPAYABLE' }
    throw error
  }
}

function languageOf(request: FastifyRequest): Language {
  const { lang } = request.query as { lang?: unknown }
  return chooseLanguage(lang, request.headers['accept-language'])
}

/** The query that keeps the language that the URL names. */
function langOf(request: FastifyRequest): string {
  const { lang } = request.query as { lang?: unknown }
  return typeof lang === 'string' && /^[A-Za-z-]{2,20}$/.test(lang) ? `?lang=${lang}` : ''
}
