import type { TestApp } from '../../support/app.ts'
import { openStore, type StoreClient } from '../../support/store.ts'
import type { Call } from './call.ts'

const dayMs = 86_400_000

/** What creates a link. */
export function newLink(change: object = {}): object {
  const until = new Date(Date.now() + 7 * dayMs).toISOString()
  return { title: 'Two tickets', priceAmount: '25.00', priceCurrency: 'USD', until, ...change }
}

/** What creates an invoice with this number. */
export function newInvoice(number: string): object {
  const lines = [
    { text: 'Teapot', quantity: '1', unitAmount: '40.00', taxRate: '21' },
    { text: 'Tea, 100 g', quantity: '3', unitAmount: '4.95', taxRate: '10' },
  ]
  const buyer = { buyerName: 'Ana Díaz', buyerAddress: 'Calle Mayor 1\n28013 Madrid' }
  const invoice = { number, dueDate: '2026-12-31', taxIncluded: false, ...buyer, lines }
  return newLink({ title: 'Tea', priceAmount: undefined, invoice })
}

/** Calls of every operation on links, with the statuses that the document lists. */
export function linkCalls(
  farthing: TestApp,
  shop: StoreClient,
): Readonly<Record<string, () => Promise<Call[]>>> {
  const create = async (body: object): Promise<{ linkId: string }> => ({
    linkId: (await shop.call('POST', '/api/v1/links', body)).json().id,
  })
  const missing = { linkId: `lnk_00${'0'.repeat(26)}` }
  return {
    async createLink() {
      const walletless = await openStore(farthing, { evmWallet: null })
      const keyed = { 'idempotency-key': 'documented-link' }
      const body = newLink()
      return [
        { status: 201, body, headers: keyed },
        { status: 201, body, headers: keyed },
        { status: 201, body: newLink({ kind: 'many', description: 'Row 7', metadata: { row: '7' } }) },
        { status: 201, body: newLink({ priceAmount: undefined, minAmount: '1', maxAmount: '50' }) },
        { status: 201, body: newInvoice('17') },
        { status: 409, body: newInvoice('17') },
        { status: 409, by: walletless, body },
        { status: 422, body: newLink({ title: 'Other' }), headers: keyed },
        { status: 422, body: {} },
        { status: 400, body: '{' },
        { status: 415, body: '{}', headers: { 'content-type': 'text/plain' } },
      ]
    },
    async listLinks() {
      await create(newLink())
      return [
        { status: 200 },
        { status: 200, query: '?status=ACTIVE&limit=1' },
        { status: 200, query: '?invoiceNumber=17' },
        { status: 422, query: '?cursor=x' },
      ]
    },
    async getLink() {
      const [one, invoice] = [await create(newLink()), await create(newInvoice('18'))]
      return [
        { status: 200, path: one },
        { status: 200, path: invoice },
        { status: 404, path: missing },
      ]
    },
    async updateLink() {
      const [one, invoice] = [await create(newLink()), await create(newInvoice('19'))]
      return [
        { status: 200, path: one, body: { title: 'Three tickets', priceAmount: '37.50' } },
        { status: 200, path: one, body: { status: 'CLOSED' } },
        { status: 200, path: invoice, body: { metadata: { sent: 'yes' } } },
        { status: 422, path: invoice, body: { title: 'Other' } },
        { status: 422, path: one, body: {} },
        { status: 404, path: missing, body: { status: 'CLOSED' } },
        { status: 400, path: one, body: '{' },
        { status: 415, path: one, body: 'x', headers: { 'content-type': 'text/plain' } },
      ]
    },
  }
}
