import { hash } from 'node:crypto'
import type { Actor, CreateCheckout } from '@farthing/sdk'
import { type Creator, openCreateCheckout } from '../../../checkouts/create.ts'
import type { Context } from '../../../context.ts'
import type { CheckoutId, StoreId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import { invalid } from '../../../problems.ts'
import { listCurrent, readStore } from '../../../stores/rows.ts'
import { currencyDecimals, isAmbiguous, withPoint } from '../amount.ts'

/** What somebody entered. A form has a key of its own, so that submitting it twice makes one checkout. */
export type Entered = {
  readonly key: string
  readonly amount: string
  readonly currency: string
  readonly description: string
  readonly order: string
}

/** Keys of the API are other routes'. */
const route = 'console new'
const keyForm = /^[0-9a-z]{26}$/

/** By the verb of the API. The context sees one store, so creates of different stores share no commit. */
export async function make(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  entered: Entered,
  now: Date,
): Promise<CheckoutId> {
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
export function inputOf({ key, amount, currency, description, order }: Entered): CreateCheckout {
  return {
    orderId: order === '' ? `link-${key.slice(0, 8)}` : order,
    priceAmount: withPoint(amount),
    priceCurrency: currency,
    ...(description !== '' && { description }),
  }
}
