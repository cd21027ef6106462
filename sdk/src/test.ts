import { createClient } from './client.ts'
import type { ClientOptions } from './request.ts'
import type { Checkout, CreateCheckout, Event, EventType, Simulated, SimulatedCase } from './wire.ts'

/**
 * Helpers for a shop's own tests, against `npm run dev` or any deployment with the network `SIMULATED`, with the key of a
 * test store. Every unhappy path takes seconds, and no wallet, chain or clock.
 */
export type ShopTest = {
  readonly checkout: Checkout
  /** Makes something happen to the checkout. */
  simulate(what: SimulatedCase): Promise<Simulated>
  readonly events: {
    /**
     * The next event of this type about the checkout: each call continues after the event that the last one returned.
     * Rejects with what came instead.
     */
    expect(type: EventType): Promise<Event>
  }
}

/** Twice what the slowest case takes. */
const patienceMs = 20_000
const lookSeconds = 1

/** Opens tests of a store's checkouts. `follow` takes one that your shop made, `create` makes one. */
export function openTests(options: ClientOptions): {
  follow(checkoutId: string): Promise<ShopTest>
  create(order?: Partial<CreateCheckout>): Promise<ShopTest>
} {
  const client = createClient(options)
  const follow = async (checkoutId: string): Promise<ShopTest> => {
    const checkout = await client.checkouts.get(checkoutId)
    let after: string | undefined
    const seen: string[] = []
    const expect = async (type: EventType): Promise<Event> => {
      const end = Date.now() + patienceMs
      while (Date.now() < end) {
        const query = { limit: 100, waitSeconds: lookSeconds, ...(after !== undefined && { after }) }
        const { data, cursor } = await client.events.list(query)
        for (const event of data) {
          if (!isAbout(event, checkoutId)) continue
          after = cursor.replace(/\d+$/, String(event.sequence))
          if (event.type === type) return event
          seen.push(event.type)
        }
        if (!data.some((event) => isAbout(event, checkoutId))) after = cursor
      }
      throw new Error(`${type} of ${checkoutId} did not come; these did: ${seen.join(', ') || 'none'}`)
    }
    return {
      checkout,
      simulate: (what) => client.test.simulate(checkoutId, what),
      events: { expect },
    }
  }
  return {
    follow,
    async create(order = {}) {
      const { id } = await client.checkouts.create({
        ...{ orderId: `test-${crypto.randomUUID()}`, priceAmount: '10.00', priceCurrency: 'USD' },
        ...order,
      })
      return await follow(id)
    },
  }
}

/** Also money that belongs to no checkout, but was probably meant for this one. */
function isAbout({ checkoutId, data }: Event, id: string): boolean {
  if (checkoutId === id) return true
  return (
    'payment' in data && 'hints' in data.payment && data.payment.hints.some((hint) => hint.checkoutId === id)
  )
}
