import type { TestApp } from '../../support/app.ts'
import { creditByHand, payer, payFinally } from '../../support/by-hand.ts'
import type { StoreClient } from '../../support/store.ts'
import type { Call } from './call.ts'
import { completeSigned, type openSigning } from './signing.ts'

const missing = { paymentId: `pay_00${'0'.repeat(26)}`, refundId: `rf_00${'0'.repeat(26)}` }

/** Calls of every operation on refunds, with the statuses that the document lists. */
export function refundCalls(
  farthing: TestApp,
  shop: StoreClient,
  { sign }: Awaited<ReturnType<typeof openSigning>>,
): Readonly<Record<string, () => Promise<Call[]>>> {
  const pay = async () => await payFinally(farthing, (await shop.create()).id)
  const create = async (body: object = {}): Promise<string> =>
    (await shop.call('POST', `/api/v1/payments/${await pay()}/refunds`, body)).json().id
  const sent = { way: 'self-sent' }
  return {
    async createRefund() {
      const path = { paymentId: await pay() }
      const keyed = { 'idempotency-key': 'documented-refund' }
      const recent = await creditByHand(farthing, (await shop.create()).id)
      const reader = (await shop.call('POST', '/api/v1/keys', { preset: 'read' })).json()
      return [
        { status: 201, path, body: { amount: '1000000', reason: 'Too late' }, headers: keyed },
        { status: 201, path, body: { amount: '1000000', reason: 'Too late' }, headers: keyed },
        { status: 422, path, body: { amount: '2000000' }, headers: keyed },
        { status: 201, path, body: { amount: '1000000', recipient: payer, way: 'self-sent' } },
        { status: 403, path, body: { recipient: `0x${'ab'.repeat(20)}` } },
        { status: 403, path, body: {}, headers: { 'x-api-key': reader.key } },
        { status: 409, path, body: { amount: '99000000' } },
        { status: 201, path },
        { status: 409, path },
        { status: 409, path: { paymentId: recent }, body: {} },
        { status: 422, path, body: { amount: '1.5' } },
        { status: 422, path, body: { reason: '' } },
        { status: 422, path, body: { way: 'cash' } },
        { status: 400, path, body: '{' },
        { status: 404, path: missing, body: {} },
      ]
    },
    async listRefunds() {
      await create()
      return [
        { status: 200 },
        { status: 200, query: '?status=REQUESTED&limit=1' },
        { status: 200, query: `?paymentId=${missing.paymentId}` },
        { status: 422, query: '?cursor=x' },
        { status: 422, query: '?status=x' },
      ]
    },
    getRefund: async () => [
      { status: 200, path: { refundId: await create() } },
      { status: 404, path: missing },
      { status: 404, path: { refundId: 'x' } },
    ],
    async prepareRefund() {
      const [path, canceled] = [{ refundId: await create() }, { refundId: await create() }]
      await shop.call('POST', `/api/v1/refunds/${canceled.refundId}/cancel`)
      return [
        { status: 200, path },
        { status: 200, path, body: '' },
        { status: 409, path: canceled },
        { status: 409, path: { refundId: await create(sent) } },
        { status: 404, path: missing },
      ]
    },
    async signRefund() {
      const path = { refundId: await create() }
      const answer = await shop.call('POST', `/api/v1/refunds/${path.refundId}/prepare`)
      const body = { signature: await sign(answer.json().typedData) }
      void completeSigned(farthing, path.refundId)
      return [
        { status: 422, path, body: { signature: '0x00' } },
        { status: 422, path, body: {} },
        { status: 200, path, body },
        { status: 200, path, body },
        { status: 400, path, body: '{' },
        { status: 404, path: missing, body: { signature: '0x00' } },
      ]
    },
    async nameRefundTransaction() {
      const [named, declared, signed] = [await create(sent), await create(sent), await create()]
      const path = { refundId: declared }
      return [
        { status: 202, path: { refundId: named }, body: { transaction: `0x${'ab'.repeat(32)}` } },
        { status: 200, path, body: { reference: 'Withdrawal 4711' } },
        { status: 409, path, body: { reference: 'Another' } },
        { status: 422, path: { refundId: named }, body: { transaction: 'x' } },
        { status: 422, path: { refundId: signed }, body: { reference: 'x' } },
        { status: 422, path, body: { reference: 'x', transaction: '0x00' } },
        { status: 400, path, body: '{' },
        { status: 404, path: missing, body: { reference: 'x' } },
      ]
    },
    async createAddressRequest() {
      const plain = await creditByHand(farthing, (await shop.create()).id)
      await farthing.ctx.db.query(
        'update credits set finalized_at = clock(), safe_at = clock() where payment_id = $1',
        [plain],
      )
      const { id } = (await shop.call('POST', `/api/v1/payments/${plain}/refunds`, {})).json()
      return [
        { status: 201, path: { refundId: id } },
        { status: 201, path: { refundId: id } },
        { status: 409, path: { refundId: await create() } },
        { status: 404, path: missing },
      ]
    },
    async cancelRefund() {
      const path = { refundId: await create() }
      return [
        { status: 200, path },
        { status: 200, path, body: '' },
        { status: 400, path, body: '{' },
        { status: 404, path: missing },
      ]
    },
  }
}
