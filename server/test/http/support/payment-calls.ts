import assert from 'node:assert/strict'
import type { TestApp } from '../../support/app.ts'
import { completeByHand, creditByHand, setStatus } from '../../support/by-hand.ts'
import type { StoreClient } from '../../support/store.ts'
import type { Call } from './call.ts'

const missing = { paymentId: `pay_00${'0'.repeat(26)}` }

/** Calls of every operation on payments, with the statuses that the document lists. */
export function paymentCalls(
  farthing: TestApp,
  shop: StoreClient,
): Readonly<Record<string, () => Promise<Call[]>>> {
  return {
    async listPayments() {
      const { id } = await shop.create()
      await completeByHand(farthing, id)
      await creditByHand(farthing, id)
      return [
        { status: 200 },
        { status: 200, query: `?checkoutId=${id}&disposition=exact` },
        { status: 200, query: '?disposition=unmatched&limit=1' },
        {
          status: 200,
          query: '?network=eip155:84532&minAmount=1&payer=0x1&createdFrom=2026-01-01T00:00:00Z',
        },
        { status: 200, query: '?transaction=0xAB' },
        { status: 422, query: '?minAmount=1.5' },
        { status: 422, query: '?cursor=x' },
        { status: 422, query: '?disposition=x' },
      ]
    },
    async acceptPayment() {
      const [open, paid, processing] = await Promise.all(Array.from({ length: 3 }, () => shop.create()))
      assert(open && paid && processing)
      await completeByHand(farthing, paid.id)
      await setStatus(farthing, processing.id, 'PROCESSING')
      const paymentId = await creditByHand(farthing, open.id)
      return [
        { status: 409, path: { paymentId }, body: { checkoutId: paid.id } },
        { status: 409, path: { paymentId }, body: { checkoutId: processing.id } },
        { status: 422, path: { paymentId }, body: {} },
        { status: 422, path: { paymentId }, body: { checkoutId: 1 } },
        { status: 400, path: { paymentId }, body: '{' },
        { status: 200, path: { paymentId }, body: { checkoutId: open.id } },
        { status: 200, path: { paymentId }, body: {} },
        { status: 404, path: missing, body: {} },
      ]
    },
    async getPayment() {
      const paymentId = await creditByHand(farthing, (await shop.create()).id)
      return [
        { status: 200, path: { paymentId } },
        { status: 404, path: missing },
      ]
    },
    async notePayment() {
      const paymentId = await creditByHand(farthing, (await shop.create()).id)
      return [
        { status: 200, path: { paymentId }, body: { note: 'Ask Ana' } },
        { status: 200, path: { paymentId }, body: { note: null } },
        { status: 422, path: { paymentId }, body: { note: '' } },
        { status: 422, path: { paymentId }, body: {} },
        { status: 400, path: { paymentId }, body: '{' },
        { status: 404, path: missing, body: { note: 'x' } },
      ]
    },
    async dismissPayment() {
      const paymentId = await creditByHand(farthing, (await shop.create()).id)
      return [
        { status: 200, path: { paymentId } },
        { status: 200, path: { paymentId }, body: { note: 'Sent back' } },
        { status: 422, path: { paymentId }, body: { note: 1 } },
        { status: 400, path: { paymentId }, body: '{' },
        { status: 404, path: missing },
      ]
    },
  }
}
