import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { assignWaitingSequences } from '../../../src/events/assign-sequence.ts'
import type { TestApp } from '../../support/app.ts'
import { creditByHand, payFinally } from '../../support/by-hand.ts'
import { openStore, registerWallet, type StoreClient, solanaWallets } from '../../support/store.ts'

/** A store that has one of everything that an operation of the API can name. */
export type Tenant = {
  readonly shop: StoreClient
  readonly number: number
  readonly checkoutId: string
  readonly linkId: string
  readonly invoiceNumber: string
  readonly walletId: string
  readonly paymentId: string
  readonly refundId: string
  readonly endpointId: string
  readonly deliveryId: string
  readonly eventId: string
  readonly orderId: string
}

/** As many as get a connection in time on a busy machine. */
const atOnce = 10

export async function openTenants(farthing: TestApp, count: number): Promise<readonly Tenant[]> {
  const open = async (number: number) => await withRefund(farthing, await openDraft(farthing, number))
  const drafts: Awaited<ReturnType<typeof open>>[] = []
  while (drafts.length < count) {
    const length = Math.min(atOnce, count - drafts.length)
    const first = drafts.length
    drafts.push(...(await Promise.all(Array.from({ length }, (_, i) => open(first + i)))))
  }
  while ((await assignWaitingSequences(farthing.ctx)) > 0);
  return await Promise.all(drafts.map(withDelivery))
}

function linkOf(number: string) {
  const lines = [{ text: 'Tea', quantity: '1', unitAmount: '5', taxRate: '21' }]
  const until = new Date(Date.now() + 86_400_000).toISOString()
  return { title: 'Tea', priceCurrency: 'USD', until, invoice: { number, taxIncluded: true, lines } }
}

type Draft = Omit<Tenant, 'refundId' | 'deliveryId' | 'eventId'>

async function openDraft(farthing: TestApp, number: number): Promise<Draft> {
  const shop = await openStore(farthing, { evmWallet: `0x${randomBytes(20).toString('hex')}` })
  const orderId = `order-of-store-${number}`
  const url = `https://hooks.example/${number}`
  const { id: endpointId } = (await shop.call('POST', '/api/v1/webhook-endpoints', { url })).json()
  const made = await Promise.all(Array.from({ length: 3 }, () => shop.create({ orderId })))
  const { id: walletId } = await registerWallet(shop, String(solanaWallets[number % 3]), 'solana')
  const invoiceNumber = `invoice-of-store-${number}`
  const { id: linkId } = (await shop.call('POST', '/api/v1/links', linkOf(invoiceNumber))).json()
  const [first, canceled] = made
  assert(first && canceled)
  await shop.call('POST', `/api/v1/checkouts/${canceled.id}/cancel`)
  const paymentId = await creditByHand(farthing, first.id)
  return {
    shop,
    number,
    checkoutId: first.id,
    linkId,
    invoiceNumber,
    walletId,
    paymentId,
    orderId,
    endpointId,
  }
}

async function withRefund(farthing: TestApp, tenant: Draft): Promise<Draft & Pick<Tenant, 'refundId'>> {
  const { shop, orderId } = tenant
  const paymentId = await payFinally(farthing, (await shop.create({ orderId })).id)
  const { id: refundId } = (await shop.call('POST', `/api/v1/payments/${paymentId}/refunds`, {})).json()
  return { ...tenant, refundId }
}

async function withDelivery(tenant: Draft & Pick<Tenant, 'refundId'>): Promise<Tenant> {
  const log = await tenant.shop.call('GET', `/api/v1/webhook-endpoints/${tenant.endpointId}/deliveries`)
  const [{ id: deliveryId, eventId }] = log.json().data
  return { ...tenant, deliveryId, eventId }
}

/** What a tenant has for each parameter of a path or a query. */
export const named: Readonly<Record<string, (tenant: Tenant) => string>> = {
  storeId: ({ shop }) => shop.id,
  checkoutId: ({ checkoutId }) => checkoutId,
  linkId: ({ linkId }) => linkId,
  invoiceNumber: ({ invoiceNumber }) => invoiceNumber,
  walletId: ({ walletId }) => walletId,
  paymentId: ({ paymentId }) => paymentId,
  refundId: ({ refundId }) => refundId,
  endpointId: ({ endpointId }) => endpointId,
  deliveryId: ({ deliveryId }) => deliveryId,
  eventId: ({ eventId }) => eventId,
  orderId: ({ orderId }) => orderId,
  keyId: ({ shop }) => shop.key.split('_')[2] ?? '',
  actor: ({ shop }) => shop.key.split('_')[2] ?? '',
}

/** For each operation that takes a body, one that it takes. */
export const bodies: Readonly<Record<string, unknown>> = {
  createCheckout: { orderId: 'x', priceAmount: '1', priceCurrency: 'USD' },
  createLink: linkOf('x'),
  updateLink: { metadata: { mine: 'yes' } },
  updateStore: { name: 'Taken over' },
  updateWallet: { sharedElsewhere: true },
  proveWallet: { signature: '0x00' },
  acceptPayment: {},
  dismissPayment: {},
  notePayment: { note: 'mine' },
  createRefund: {},
  signRefund: { signature: '0x00' },
  nameRefundTransaction: { reference: 'x' },
  simulate: { checkoutId: 'x', case: 'payment.paid' },
  createWebhookEndpoint: { url: 'https://hooks.example/x' },
  updateWebhookEndpoint: { status: 'disabled' },
  rollWebhookSecret: {},
  createKey: {},
  rotateKey: {},
  redeliverSince: { after: '1-0', include: 'all' },
  registerEvmWallet: { walletAddress: `0x${'ab'.repeat(20)}`, custodialType: 'CUSTODIAL' },
  registerSolanaWallet: { walletAddress: solanaWallets[0], custodialType: 'CUSTODIAL' },
}
