import assert from 'node:assert/strict'
import type {
  CreateWebhookEndpoint,
  Delivery,
  Event,
  EventPage,
  Page,
  WebhookEndpointSecret,
} from '@farthing/sdk'
import type { Context } from '../../../../src/context.ts'
import { openDatabase } from '../../../../src/database/db.ts'
import { assignWaitingSequences } from '../../../../src/events/assign-sequence.ts'
import { openDeliverer } from '../../../../src/events/webhooks/deliver.ts'
import { openTestApp, type TestApp } from '../../../support/app.ts'
import { atEnd } from '../../../support/at-end.ts'
import { openStore, type StoreClient } from '../../../support/store.ts'

/** A deployment at a loopback address, so its test stores may have receivers on this machine. */
export async function openLocalApp(settings: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  return await openTestApp({ BASE_URL: 'http://127.0.0.1:8402', ...settings })
}

export type HookShop = StoreClient & {
  register(input: CreateWebhookEndpoint): Promise<WebhookEndpointSecret>
  deliveries(endpointId: string, query?: string): Promise<Delivery[]>
  log(): Promise<Event[]>
}

export async function openHookShop(test: TestApp, mode: 'live' | 'test' = 'test'): Promise<HookShop> {
  const shop = await openStore(test, { mode })
  return {
    ...shop,
    async register(input) {
      // Earlier events get their numbers first, as they would with a worker running.
      while ((await assignWaitingSequences(test.ctx)) > 0);
      const answer = await shop.call('POST', '/api/v1/webhook-endpoints', input)
      assert.equal(answer.statusCode, 201, answer.body)
      return answer.json()
    },
    async deliveries(endpointId, query = '?limit=100') {
      const answer = await shop.call('GET', `/api/v1/webhook-endpoints/${endpointId}/deliveries${query}`)
      assert.equal(answer.statusCode, 200, answer.body)
      return answer.json<Page<Delivery>>().data
    },
    async log() {
      await assignWaitingSequences(test.ctx)
      const events: Event[] = []
      let after = ''
      for (;;) {
        const answer = await shop.call('GET', `/api/v1/events?limit=100${after}`)
        const page = answer.json<EventPage>()
        events.push(...page.data)
        if (!page.hasMore) return events
        after = `&after=${page.cursor}`
      }
    },
  }
}

/** Tries every delivery that is due by the clock of the context's database, until none is. */
export async function deliverDue(ctx: Context): Promise<void> {
  while ((await assignWaitingSequences(ctx)) > 0);
  const deliverer = openDeliverer(ctx)
  do {
    while (await deliverer.step(() => {}));
    await deliverer.idle()
  } while (await deliverer.step(() => {}))
  await deliverer.idle()
}

/** The same deployment this many seconds later, by the clocks of the database and of the process. */
export function later(test: TestApp, seconds: number): Context & { close(): Promise<void> } {
  const db = openDatabase({
    url: test.databaseUrl,
    connections: 4,
    name: 'later',
    clockOffset: `${Math.round(seconds)}s`,
  })
  let isOpen = true
  const close = async () => {
    if (isOpen) await db.close()
    isOpen = false
  }
  atEnd(close)
  return { ...test.ctx, db, now: () => new Date(Date.now() + seconds * 1_000), close }
}
