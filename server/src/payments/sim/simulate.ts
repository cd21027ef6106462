import { randomBytes } from 'node:crypto'
import type { SimulatedCase } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { SimulatedNetwork } from '../../networks.ts'
import type { Payment } from '../payload.ts'
import type { Offer, Scenario } from '../rail.ts'
import { insertPasted, pasteLimits } from '../transfers/paste.ts'
import { cases, isSigned, isTransfer, type TransferCase } from './cases.ts'
import * as rows from './rows.ts'
import { newHash, stepMs } from './step.ts'

/** What a case takes: a payment to present, transfers to send, or nothing but the end of the checkout's time. */
export function planCase(network: SimulatedNetwork, offer: Offer, name: SimulatedCase): Scenario {
  const ends = name === 'payment.late' || name === 'checkout.expired'
  return {
    payment: isSigned(name) ? signAs(network, offer, name) : null,
    isExpiring: ends,
    send: isTransfer(name) ? (ctx, to) => send(ctx, network, offer, to, name) : null,
  }
}

function signAs(
  { caip2, family }: SimulatedNetwork,
  { asset }: Offer,
  what: Extract<Payment, { family: 'SIMULATED' }>['what'],
): Payment {
  return {
    ...{ family, scheme: 'exact', network: caip2, asset, identifier: null, what },
    payer: newPayer(),
    nonce: newHash(),
  }
}

/** Every payer is another one, so that no budget of a payer's applies. */
function newPayer(): string {
  return `sim_payer_${randomBytes(8).toString('hex')}`
}

/** The second transfer comes once the first is final, so that what they lead to is always in one order. */
const secondMs = (cases['payment.twice'].steps.length + 1) * stepMs

/** Sends what a buyer would, from an exchange. */
async function send(
  ctx: Context,
  { caip2 }: SimulatedNetwork,
  { asset, payTo, amount }: Offer,
  { checkoutId, storeId }: { readonly checkoutId: string; readonly storeId: string },
  name: TransferCase,
): Promise<void> {
  const reserved = await rows.readReserved(ctx.db, caip2, checkoutId)
  const exact = reserved ?? BigInt(amount)
  const price = BigInt(amount)
  // Neither is an amount that is reserved for another checkout: those end between two cents.
  const units = {
    'payment.underpaid': price / 2n || 1n,
    'payment.overpaid': price * 2n,
    'payment.late': exact,
    'payment.twice': exact,
  }[name]
  const { steps } = cases[name]
  // An amount that fits no checkout does not say whose it is. Its buyer does, by naming the transaction.
  const isNamed = units !== exact
  const transfer = (): rows.NewTransfer => ({
    ...{ hash: newHash(), storeId, checkoutId: isNamed ? checkoutId : null },
    ...{ asset, payer: newPayer(), payTo, amount: units, nonce: null, steps },
  })
  const transfers = name === 'payment.twice' ? [transfer(), transfer()] : [transfer()]
  await rows.insertTransfers(ctx.db, transfers, secondMs)
  if (isNamed)
    for (const { hash } of transfers) await insertPasted(ctx.db, checkoutId, [caip2], hash, pasteLimits)
  ctx.db.wakeUps.send('claims')
}
