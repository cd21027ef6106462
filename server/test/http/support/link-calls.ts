import type { Link } from '@farthing/sdk'
import type { TestApp } from '../../support/app.ts'
import { openStore, type StoreClient } from '../../support/store.ts'
import { payLinkByHand } from '../links/support/buyer.ts'
import type { Call } from './call.ts'
import { newInvoice, newLink } from './new-link.ts'

/** Calls of every operation on links, with the statuses that the document lists. */
export function linkCalls(
  farthing: TestApp,
  shop: StoreClient,
): Readonly<Record<string, () => Promise<Call[]>>> {
  const create = async (body: object): Promise<{ linkId: string }> => ({
    linkId: (await shop.call('POST', '/api/v1/links', body)).json().id,
  })
  const missing = { linkId: `lnk_00${'0'.repeat(26)}` }
  const payCalls = async (): Promise<Call[]> => {
    const make = async (change: object = {}) =>
      (await shop.call('POST', '/api/v1/links', newLink({ kind: 'many', ...change }))).json<Link>()
    const [open, once, closed] = [await make(), await make({ kind: 'once' }), await make()]
    const chosen = await make({ priceAmount: undefined, minAmount: '1', maxAmount: '50' })
    await shop.call('PATCH', `/api/v1/links/${closed.id}`, { status: 'CLOSED' })
    await farthing.ctx.db.query('update links set paid_at = clock() where id = $1', [once.id])
    const at = ({ id }: Link) => ({ by: null, path: { linkId: id } })
    return [
      { ...at(open), status: 200, headers: { 'payment-signature': await payLinkByHand(farthing, open) } },
      { ...at(open), status: 402 },
      { ...at(chosen), status: 402, query: '?amount=12.50' },
      { ...at(chosen), status: 422, query: '?amount=0.50' },
      { ...at(open), status: 402, body: 'x', headers: { 'content-type': 'text/plain' } },
      { ...at(open), status: 400, headers: { 'payment-signature': '!' } },
      { by: null, path: missing, status: 404 },
      { ...at(once), status: 409 },
      { ...at(closed), status: 410 },
      { ...at(open), status: 413, body: 'x'.repeat(65_537) },
    ]
  }
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
    payLink: payCalls,
    openLinkPage: async () => (await payCalls()).filter(({ body }) => body === undefined),
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
