/** Checkouts of one store, created over HTTP, and the payments that their payers sign. */
import assert from 'node:assert/strict'
import type { PaymentRequired } from '@farthing/sdk'
import { network, type Payer, paymentHeader, units } from './pay-chain.ts'
import type { Ready } from './pay-load.ts'

type Terms = PaymentRequired['accepts'][number]

const createsAtOnce = 64

/** Returns a function that creates a checkout for each payer and signs its payment. */
export function openTill(address: string, apiKey: string): (payers: readonly Payer[]) => Promise<Ready[]> {
  let accepted: Terms | undefined

  async function create(): Promise<string> {
    const response = await fetch(`${address}/api/v1/checkouts`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ orderId: 'order-1', priceAmount: '0.10', priceCurrency: 'USD' }),
    })
    const text = await response.text()
    assert.equal(response.status, 201, text)
    return `${address}/api/v1/checkouts/${JSON.parse(text).id}`
  }

  return async (payers) => {
    const urls: string[] = []
    while (urls.length < payers.length) {
      const count = Math.min(createsAtOnce, payers.length - urls.length)
      urls.push(...(await Promise.all(Array.from({ length: count }, create))))
    }
    const [first] = urls
    if (!accepted && first) accepted = await readTerms(first)
    const terms = accepted
    assert(terms)
    return payers.map((payer, i) => ready(payer, terms, urls[i] ?? ''))
  }
}

export function ready(payer: Payer, accepted: { payTo: string }, url: string): Ready {
  return { payer, url, header: paymentHeader(payer, accepted, url) }
}

/** The first way to pay that a 402 offers. */
export async function readTerms(url: string): Promise<Terms> {
  const response = await fetch(url, { method: 'POST' })
  assert.equal(response.status, 402)
  const [accepted] = ((await response.json()) as PaymentRequired).accepts
  assert(accepted && accepted.amount === `${units}` && accepted.network === network)
  return accepted
}
