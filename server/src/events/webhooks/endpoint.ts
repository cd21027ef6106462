import { randomBytes } from 'node:crypto'
import type { EventType, WebhookEndpoint } from '@farthing/sdk'
import type { EndpointId, StoreId } from '../../ids.ts'

/** Where a store wants events delivered. */
export type Endpoint = {
  readonly id: EndpointId
  readonly storeId: StoreId
  readonly url: string
  /** Empty: every type. */
  readonly types: readonly EventType[]
  readonly isOrdered: boolean
  readonly secrets: readonly Secret[]
  readonly createdAt: Date
  readonly disabledAt: Date | null
  readonly disabledReason: 'store' | 'gone' | 'failing' | null
  readonly failingSince: Date | null
}

/** The newest never expires. A replaced one keeps signing alongside it until it expires. */
export type Secret = { readonly secret: string; readonly expiresAt: string | null }

/** HMAC-SHA256 gains nothing from more. */
const secretBytes = 32

export function newSecret(): Secret {
  return { secret: `whsec_${randomBytes(secretBytes).toString('base64')}`, expiresAt: null }
}

export function secretsAt(secrets: readonly Secret[], now: Date): string[] {
  return secrets
    .filter(({ expiresAt }) => expiresAt === null || new Date(expiresAt) > now)
    .map(({ secret }) => secret)
}

export function endpointToWire(endpoint: Endpoint): WebhookEndpoint {
  return {
    id: endpoint.id,
    url: endpoint.url,
    types: [...endpoint.types],
    ordered: endpoint.isOrdered,
    status: endpoint.disabledAt === null ? 'enabled' : 'disabled',
    disabledReason: endpoint.disabledReason,
    failingSince: endpoint.failingSince?.toISOString() ?? null,
    createdAt: endpoint.createdAt.toISOString(),
  }
}
