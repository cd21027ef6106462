import { hash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import type { Checkout } from '../../../checkouts/checkout.ts'
import { requirePayable } from '../../../checkouts/create.ts'
import { readCheckout } from '../../../checkouts/rows.ts'
import { isId, randomText } from '../../../ids.ts'
import { createLink } from '../../../links/create.ts'
import { Refusal } from '../../../members/refusal.ts'
import { Problem } from '../../../problems.ts'
import { listCurrencies } from '../../../rates/list.ts'
import { listCurrent, readStore } from '../../../stores/rows.ts'
import { networksFor, payToOn } from '../../../stores/store.ts'
import { html } from '../../page/html.ts'
import { renderApiLine } from '../parts.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { renderStanding } from '../standing.ts'
import {
  type Entered,
  type EntryFault,
  emptyEntry,
  faultOf,
  hasInvoice,
  readEntered,
  toCreateLink,
} from './entered.ts'
import { renderForm, renderNoWallet } from './view.ts'

const path = '/new'
const config = 'checkouts:write'
const keyLength = 26
const keyForm = /^[0-9a-z]{26}$/

/** What for, how much and until when: makes a link, to be shown or sent, and watched until it is paid. */
export function mountNew({ get, post }: StoreRoutes): void {
  get(path, config, async (screen) => {
    const again = screen.asked('again')
    const row = isId('ch', again) ? await readCheckout(screen.ctx.db, screen.storeId, again) : null
    return await sendForm(screen, row && entryOf(row.checkout), null)
  })

  post(path, config, async (screen) => {
    const entered = readEntered(screen.field)
    try {
      return screen.go(`/links/${await make(screen, entered)}`)
    } catch (error) {
      const fault = error instanceof Problem ? faultOf(error, screen.texts.newPayment.faults) : null
      if (fault === null) throw error
      return await sendForm(screen, entered, fault)
    }
  })
}

/** The same again, for what was not paid in time. */
function entryOf({ description, orderId, priceAmount, priceCurrency }: Checkout): Omit<Entered, 'key'> {
  return { ...emptyEntry, title: description ?? orderId, amount: priceAmount, currency: priceCurrency }
}

/** Creates the link as the API does. Idempotency keys of the API have no spaces, so they never equal a form's. */
async function make(
  { memberCtx: ctx, storeId, actor, locale, now }: Screen,
  entered: Entered,
): Promise<string> {
  if (!keyForm.test(entered.key)) throw new Refusal('invalid')
  const input = toCreateLink(entered, locale.timeZone, now)
  const [store, wallets] = await Promise.all([readStore(ctx.db, storeId), listCurrent(ctx.db, storeId)])
  if (!store) throw new Refusal('not_found')
  requirePayable(ctx, { store, wallets })
  const bodyHash = hash('sha256', JSON.stringify(entered), 'base64')
  const idempotency = { key: `console ${entered.key}`, bodyHash }
  const { link } = await createLink(ctx, storeId, actor, { input, idempotency }, now)
  return link.id
}

async function sendForm(
  screen: Screen,
  entered: Omit<Entered, 'key'> | Entered | null,
  fault: EntryFault | null,
): Promise<FastifyReply> {
  const { ctx, storeId, store, now } = screen
  const [own, wallets, currencies] = await Promise.all([
    readStore(ctx.db, storeId),
    listCurrent(ctx.db, storeId),
    listCurrencies(ctx, now),
  ])
  if (!own) throw new Refusal('not_found')
  const isPayable = networksFor(ctx, store.mode).some((network) => payToOn(network, { store: own, wallets }))
  const page = { screen: 'payments', title: screen.texts.newPayment.title } as const
  if (!isPayable) return screen.send({ ...page, main: renderNoWallet(screen) })
  // One that was used is not offered again.
  const kept = fault !== null && fault !== 'used' && entered && 'key' in entered ? entered.key : null
  const values: Entered = { ...emptyEntry, ...entered, key: kept ?? randomText(keyLength) }
  return screen.send({
    ...page,
    ...(fault && { status: 422 }),
    main: html`${renderStanding(screen, own)}${renderForm(screen, values, currencies, fault)}${renderLine(
      screen,
      values,
      fault,
    )}`,
  })
}

/** The API's request for the same, with an example for what is missing. */
function renderLine(screen: Screen, values: Entered, fault: EntryFault | null) {
  const isPlain = fault === null && !hasInvoice(values)
  const shown = isPlain ? values : { ...values, ...emptyEntry, currency: values.currency }
  const example = { ...shown, title: shown.title || 'Two tickets', amount: shown.amount || '12.50' }
  const body = toCreateLink(example, screen.locale.timeZone, screen.now)
  return renderApiLine(screen, { method: 'POST', path: '/links', body })
}
