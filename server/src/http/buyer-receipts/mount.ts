import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { mailReceipt, offersMail } from '../../checkouts/buyer-receipts/mail.ts'
import { readReceipt } from '../../checkouts/buyer-receipts/read.ts'
import { receiptPathOf } from '../../checkouts/buyer-receipts/receipt.ts'
import { readView } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { emailForm } from '../../stores/check-text.ts'
import { fieldOf, refuseCrossSite, takeForms } from '../buyer/forms.ts'
import { addressBucket, openLimiter } from '../limits.ts'
import { sendCompressed } from '../page/accept.ts'
import { openAssets } from '../page/assets.ts'
import type { Document, PageHost } from '../page/document.ts'
import { chooseLanguage } from '../page/languages/choose.ts'
import { english } from '../page/languages/en.ts'
import type { Language } from '../page/languages/language.ts'
import { renderNotFound, renderUnavailable } from '../page/render.ts'
import { writeLetter } from './letter.ts'
import { renderBuyerReceipt, renderWaiting, type Said } from './render.ts'

/** Per IP address. A family that shares one orders less than this in a day. */
const mailsPerHour = 20
const hourSeconds = 3_600
/** As long as an address can be. */
const addressCharactersMax = 254

/** A paid checkout's receipt, to print, to save or to have mailed. It works without the script. */
export function mountBuyerReceipts(app: FastifyInstance, ctx: Context, path: string): void {
  const { checkoutPageUrl: url, cell } = ctx.config
  const place: PageHost = { url, path, assets: openAssets(), cell }
  const mails = openLimiter('mail', mailsPerHour, ctx.now, hourSeconds)
  const receiptPath = receiptPathOf(path, ':checkoutId')
  void app.register(async (scope) => {
    takeForms(scope)
    scope.addHook('onSend', async (request, reply, payload) => {
      const isProblem = String(reply.getHeader('content-type')).startsWith('application/problem+json')
      if (!isProblem) return payload
      const { headers, text } = renderUnavailable(place, languageOf(request), reply.statusCode)
      reply.headers(headers)
      return text
    })

    scope.get(receiptPath, async (request, reply) => {
      const language = languageOf(request)
      const { checkoutId } = request.params as { checkoutId: string }
      const found = await find(ctx, checkoutId)
      if (!found) return send(request, reply, renderNotFound(place, language))
      const { view, receipt } = found
      const isPaid = view.checkout.status === 'COMPLETED'
      if (receipt && (isPaid || receipt.voidAt))
        return send(
          request,
          reply,
          renderBuyerReceipt(place, language, {
            view,
            receipt,
            isMailed: offersMail(ctx, view),
            said: saidIn(request),
          }),
        )
      if (isPaid) return send(request, reply, renderWaiting(place, language))
      // Not paid, or the network is still deciding whether it is: the page says which.
      return reply
        .code(303)
        .header('location', `${path}/${checkoutId}${queryOf(request)}`)
        .send()
    })

    scope.post(receiptPath, async (request, reply) => {
      refuseCrossSite(ctx, request)
      const { checkoutId } = request.params as { checkoutId: string }
      const said = await take(request, checkoutId)
      if (said === null) return send(request, reply, renderNotFound(place, languageOf(request)))
      const location = `${receiptPathOf(path, checkoutId)}${queryOf(request, { said })}#mail`
      return reply.code(303).header('location', location).send()
    })

    async function take(request: FastifyRequest, checkoutId: string): Promise<Said | null> {
      const found = await find(ctx, checkoutId)
      if (!found) return null
      const { view, receipt } = found
      const to = (fieldOf(request, 'email') ?? '').trim()
      if (to.length > addressCharactersMax || !emailForm.test(to)) return 'wrong'
      const { payment, checkout } = view
      if (!receipt || receipt.voidAt || !payment || !offersMail(ctx, view)) return 'unavailable'
      if (!mails.tryTake(addressBucket(request.ip))) return 'unavailable'
      const letter = writeLetter(languageOf(request), {
        receipt,
        orderId: checkout.orderId,
        transaction: payment.transaction,
        url: `${receiptPathOf(url, checkoutId)}${queryOf(request)}`,
      })
      return await mailReceipt(ctx, checkout.storeId, receipt, { to, ...letter }, ctx.now())
    }
  })
}

async function find(ctx: Context, checkoutId: string) {
  const view = await readView(ctx, checkoutId)
  return view && { view, receipt: await readReceipt(ctx.db, view.checkout.storeId, view.checkout.id) }
}

function send(request: FastifyRequest, reply: FastifyReply, document: Document): FastifyReply {
  // Whoever has the address may see the receipt; caches between may not.
  const headers = { ...document.headers, 'cache-control': 'no-store' }
  return sendCompressed(request, reply.code(document.status).headers(headers), document.text)
}

function languageOf(request: FastifyRequest): Language {
  const { lang } = request.query as { lang?: unknown }
  return chooseLanguage(lang, request.headers['accept-language'])
}

function saidIn(request: FastifyRequest): Said | null {
  const { said } = request.query as { said?: unknown }
  const known = english.texts.buyerReceipt.said
  return typeof said === 'string' && Object.hasOwn(known, said) ? (said as Said) : null
}

/** Keeps the language that the URL names. */
function queryOf(request: FastifyRequest, more: Readonly<Record<string, string>> = {}): string {
  const { lang } = request.query as { lang?: unknown }
  const query = new URLSearchParams(more)
  if (typeof lang === 'string' && /^[A-Za-z-]{2,20}$/.test(lang)) query.set('lang', lang)
  return query.size > 0 ? `?${query}` : ''
}
