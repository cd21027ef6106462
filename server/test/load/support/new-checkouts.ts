import { randomUUID } from 'node:crypto'
import type { NewCheckout } from '../../../src/checkouts/create.ts'
import { newId, type StoreId } from '../../../src/ids.ts'

/** Checkouts as `create` writes them for the stores' keys, of stores drawn by lot out of those that `fill` made. */
export function newCheckouts(count: number, storeIds: readonly StoreId[]): NewCheckout[] {
  return Array.from({ length: count }, () => {
    const storeId = storeIds[Math.floor(Math.random() * storeIds.length)] as StoreId
    const at = new Date()
    const id = newId('ch', '00', at)
    const orderId = `order-${Math.floor(Math.random() * 10_000_000)}`
    const answer = {
      id,
      orderId,
      priceAmount: '12.50',
      priceCurrency: 'USD',
      status: 'OPEN',
      expiresAt: at.toISOString(),
      checkoutUrl: `https://farthing.example/pay/${id}`,
      createdAt: at.toISOString(),
      successRedirectUrl: 'https://shop.example/thanks?order=123456',
    }
    return {
      checkout: {
        id,
        storeId,
        linkId: null,
        orderId,
        priceAmount: '12.50',
        priceCurrency: 'USD',
        successRedirectUrl: answer.successRedirectUrl,
        cancelUrl: null,
        description: null,
        metadata: null,
        rate: null,
        options: [
          {
            network: 'eip155:8453',
            asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
            amount: '12500000',
            payTo: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
          },
        ],
        finality: 'included',
        status: 'OPEN',
        version: 1,
        createdAt: at,
        expiresAt: new Date(at.getTime() + 86_400_000),
      },
      revision: 1,
      eventId: newId('evt', '00', at),
      actor: { type: 'key', id: keyOf(storeId), name: 'shop server' },
      idempotency: {
        route: 'POST /api/v1/checkouts',
        key: randomUUID(),
        bodyHash: Buffer.alloc(32).toString('base64'),
      },
      answer: JSON.stringify(answer),
    }
  })
}

/** The id of the key that `fill` made for a store. */
function keyOf(storeId: StoreId): string {
  return `00${storeId.slice(-16)}`
}
