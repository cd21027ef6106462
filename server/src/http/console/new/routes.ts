import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { readCheckout } from '../../../checkouts/rows.ts'
import type { Context } from '../../../context.ts'
import { isId, randomText } from '../../../ids.ts'
import { actorOfSession } from '../../../members/announce.ts'
import { Refusal } from '../../../members/refusal.ts'
import { Problem } from '../../../problems.ts'
import { listCurrencies } from '../../../rates/list.ts'
import { listCurrent } from '../../../stores/rows.ts'
import { networksFor, walletFor } from '../../../stores/store.ts'
import { html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { fieldsOf, textOf } from '../fields.ts'
import { formField } from '../form-field.ts'
import { localeOf } from '../formats.ts'
import { renderApiLine } from '../parts.ts'
import { hasText, type Texts, textsOf } from '../texts/choose.ts'
import { forMember, forStore, giveFormToken, sessionOf, storeOf } from '../visitor.ts'
import { type Entered, inputOf, make } from './make.ts'
import { type Fault, renderForm, renderMade, renderNoWallet } from './render.ts'

const path = '/stores/:storeId/new'
const config = { config: { right: 'checkouts:write' } } as const
const keyLength = 26

/** An amount makes a link and its code, to be sent or shown, and watched until it is paid. */
export function mountNew(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, config, (request, reply) => sendForm(ctx, request, reply, null, null))

  scope.post(path, config, async (request, reply) => {
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const entered: Entered = {
      key: textOf(fields, 'key'),
      amount: textOf(fields, 'amount').trim(),
      currency: textOf(fields, 'currency'),
      description: textOf(fields, 'description').trim(),
      order: textOf(fields, 'order').trim(),
    }
    try {
      const id = await make(
        forMember(ctx, request),
        storeId,
        actorOfSession(sessionOf(request)),
        entered,
        ctx.now(),
      )
      return reply.code(303).header('location', `/stores/${storeId}/new/${id}`).send()
    } catch (error) {
      const fault = error instanceof Problem ? faultOf(error, textsOf(request).newPayment.faults) : undefined
      if (fault === undefined) throw error
      return sendForm(ctx, request, reply, entered, fault)
    }
  })

  scope.get(`${path}/:checkoutId`, config, async (request, reply) => {
    const { storeId } = storeOf(request)
    const { checkoutId } = request.params as { checkoutId: string }
    const row = isId('ch', checkoutId)
      ? await readCheckout(forStore(ctx, storeId).db, storeId, checkoutId)
      : null
    if (!row) throw new Refusal('not_found')
    const field = formField(giveFormToken(ctx, request, reply))
    const main = renderMade(ctx, request, row.checkout, localeOf(request), field)
    return sendPage(ctx, request, reply, {
      screen: 'payments',
      title: textsOf(request).newPayment.title,
      isLive: true,
      main: html`${main}${renderApiLine({ ctx, texts: textsOf(request) }, { path: `/checkouts/${checkoutId}` })}`,
    })
  })
}

/** Which sentence to show for what the verb refused. */
function faultOf({ code, extras }: Problem, texts: Texts['newPayment']['faults']): Fault | undefined {
  if (code === 'idempotency_key_reused') return 'used'
  if (code !== 'invalid_request') return hasText(texts, code) ? code : undefined
  const [{ pointer, code: mistake } = { pointer: '', code: '' }] = extras.errors ?? []
  if (mistake === 'ambiguous') return 'ambiguous'
  if (pointer === '/priceAmount') return 'amount'
  if (pointer === '/priceCurrency') return 'currency'
  return pointer === '/description' ? 'description' : 'order'
}

async function sendForm(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  entered: Entered | null,
  fault: Fault | null,
): Promise<FastifyReply> {
  const { storeId, mode } = storeOf(request)
  const mine = forStore(ctx, storeId)
  const [wallets, currencies] = await Promise.all([
    listCurrent(mine.db, storeId),
    listCurrencies(mine, ctx.now()),
  ])
  const isPayable = networksFor(ctx, mode).some((network) => walletFor(network, wallets))
  const title = textsOf(request).newPayment.title
  if (!isPayable)
    return sendPage(ctx, request, reply, { screen: 'payments', title, main: renderNoWallet(request) })
  // One that was used is not offered again.
  const key = fault !== null && fault !== 'used' && entered ? entered.key : randomText(keyLength)
  const values = { amount: '', currency: 'USD', description: '', order: '', ...entered, key }
  const field = formField(giveFormToken(ctx, request, reply))
  const amount = values.amount === '' || fault === 'ambiguous' ? '12.50' : values.amount
  const example = inputOf({ ...values, amount, order: values.order || 'order-1' })
  return sendPage(ctx, request, reply, {
    screen: 'payments',
    title,
    ...(fault && { status: 422 }),
    main: html`${renderForm(request, values, currencies, fault, field)}${renderApiLine({ ctx, texts: textsOf(request) }, { method: 'POST', path: '/checkouts', body: example })}`,
  })
}
