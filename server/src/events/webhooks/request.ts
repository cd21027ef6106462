import type { Event } from '@farthing/sdk'

/** What is sent with every webhook, beside the three headers that sign it. */
export const webhookHeaders = {
  'content-type': 'application/json',
  'user-agent': 'Farthing-Webhooks/1',
} as const

/** The body of a webhook: what is signed, byte for byte. */
export function bodyOf(event: Event): string {
  return JSON.stringify(event)
}
