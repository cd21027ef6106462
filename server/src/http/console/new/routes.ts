import { hash } from 'node:crypto'
import type { CreateCheckout } from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import { type Creator, openCreateCheckout } from '../../../checkouts/create.ts'
import { readCheckout } from '../../../checkouts/rows.ts'
import { type CheckoutId, isId, randomText } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import { invalid, Problem } from '../../../problems.ts'
import { listCurrencies } from '../../../rates/list.ts'
import { listCurrent, readStore } from '../../../stores/rows.ts'
import { networksFor, walletFor } from '../../../stores/store.ts'
import { html } from '../../page/html.ts'
import { currencyDecimals, isAmbiguous, withPoint } from '../fields.ts'
import { renderApiLine } from '../parts.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { renderStanding } from '../standing.ts'
import { hasText, type Texts } from '../texts/choose.ts'
import { type Entered, type EntryFault, renderForm, renderMade, renderNoWallet } from './view.ts'

const path = '/new'
const config = 'checkouts:write'
const keyLength = 26
/** Keys of the API are other routes'. */
const route = 'console new'
const keyForm = /^[0-9a-z]{26}$/

/** An amount makes a link and its code, to be sent or shown, and watched until it is paid. */
export function mountNew({ get, post }: StoreRoutes): void {
  get(path, config, (screen) => sendForm(screen, null, null))

  post(path, config, async (screen) => {
    const { field, texts } = screen
    const entered: Entered = {
      key: field('key'),
      amount: field('amount').trim(),
      currency: field('currency'),
      description: field('description').trim(),
      order: field('order').trim(),
    }
    try {
      const id = await make(screen, entered)
      return screen.go(`/new/${id}`)
    } catch (error) {
      const fault = error instanceof Problem ? faultOf(error, texts.newPayment.faults) : undefined
      if (fault === undefined) throw error
      return sendForm(screen, entered, fault)
    }
  })

  get(`${path}/:checkoutId`, config, async (screen) => {
    const id = screen.part('checkoutId')
    const row = isId('ch', id) ? await readCheckout(screen.ctx.db, screen.storeId, id) : null
    if (!row) throw new Refusal('not_found')
    return screen.send({
      screen: 'payments',
      title: screen.texts.newPayment.title,
      isLive: true,
      main: html`${renderMade(screen, row.checkout)}${renderApiLine(screen, { path: `/checkouts/${id}` })}`,
    })
  })
}

/** By the verb of the API. The context sees one store, so creates of different stores share no commit. */
async function make({ memberCtx: ctx, storeId, actor, now }: Screen, entered: Entered): Promise<CheckoutId> {
  if (!keyForm.test(entered.key)) throw new Refusal('invalid')
  if (isAmbiguous(entered.amount, currencyDecimals(entered.currency)))
    throw invalid({ pointer: '/priceAmount', code: 'ambiguous', detail: 'Thousands or decimals?' })
  const read = async (): Promise<Creator> => {
    const [store, wallets] = await Promise.all([readStore(ctx.db, storeId), listCurrent(ctx.db, storeId)])
    if (!store) throw new Refusal('not_found')
    return { actor, holder: { store, wallets } }
  }
  const create = openCreateCheckout<Creator>(ctx, { refresh: read })
  const input = inputOf(entered)
  const bodyHash = hash('sha256', JSON.stringify(input), 'base64')
  const { id } = await create(await read(), input, { route, key: entered.key, bodyHash }, now)
  return id
}

/** Without an order number it gets one from the form's key, which is the same if the form is submitted again. */
function inputOf({ key, amount, currency, description, order }: Entered): CreateCheckout {
  return {
    orderId: order === '' ? `link-${key.slice(0, 8)}` : order,
    priceAmount: withPoint(amount),
    priceCurrency: currency,
    ...(description !== '' && { description }),
  }
}

/** Which sentence to show for what the verb refused. */
function faultOf({ code, extras }: Problem, texts: Texts['newPayment']['faults']): EntryFault | undefined {
  if (code === 'idempotency_key_reused') return 'used'
  if (code !== 'invalid_request') return hasText(texts, code) ? code : undefined
  const [{ pointer, code: mistake } = { pointer: '', code: '' }] = extras.errors ?? []
  if (mistake === 'ambiguous') return 'ambiguous'
  if (pointer === '/priceAmount') return 'amount'
  if (pointer === '/priceCurrency') return 'currency'
  return pointer === '/description' ? 'description' : 'order'
}

async function sendForm(
  screen: Screen,
  entered: Entered | null,
  fault: EntryFault | null,
): Promise<FastifyReply> {
  const { ctx, storeId, store, now } = screen
  const [own, wallets, currencies] = await Promise.all([
    readStore(ctx.db, storeId),
    listCurrent(ctx.db, storeId),
    listCurrencies(ctx, now),
  ])
  if (!own) throw new Refusal('not_found')
  const isPayable = networksFor(ctx, store.mode).some((network) => walletFor(network, wallets))
  const page = { screen: 'payments', title: screen.texts.newPayment.title } as const
  if (!isPayable) return screen.send({ ...page, main: renderNoWallet(screen) })
  // One that was used is not offered again.
  const key = fault !== null && fault !== 'used' && entered ? entered.key : randomText(keyLength)
  const values = { amount: '', currency: 'USD', description: '', order: '', ...entered, key }
  const amount = values.amount === '' || fault === 'ambiguous' ? '12.50' : values.amount
  const body = inputOf({ ...values, amount, order: values.order || 'order-1' })
  const line = renderApiLine(screen, { method: 'POST', path: '/checkouts', body })
  return screen.send({
    ...page,
    ...(fault && { status: 422 }),
    main: html`${renderStanding(screen, own)}${renderForm(screen, values, currencies, fault)}${line}`,
  })
}
