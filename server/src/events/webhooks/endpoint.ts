import { randomBytes } from 'node:crypto'
import type { EventType, WebhookEndpoint, WebhookFormat } from '@farthing/sdk'
import type { EndpointId, StoreId } from '../../ids.ts'
import type { Sealed } from '../../secrets/seal.ts'
import { securityHours } from '../security.ts'

/** Where a store wants events delivered. */
export type Endpoint = {
  readonly id: EndpointId
  readonly storeId: StoreId
  /** Masked unless the format is json: `secrets` has the URL itself then, instead of one that signs. */
  readonly url: string
  readonly format: WebhookFormat
  /** Empty: every type. */
  readonly types: readonly EventType[]
  readonly isOrdered: boolean
  readonly secrets: readonly Secret[]
  readonly createdAt: Date
  readonly disabledAt: Date | null
  readonly disabledReason: 'store' | 'gone' | 'failing' | null
  readonly failingSince: Date | null
}

/** An endpoint without its secrets, for callers that do not sign. */
export type EndpointFacts = Omit<Endpoint, 'secrets'>

/**
 * The newest never expires. A replaced one keeps signing alongside it until it expires, and security events for a day
 * after it was replaced: a receiver that has the old one must still be able to check them.
 */
export type Secret = (Sealed | Unsealed) & {
  readonly expiresAt: string | null
  readonly replacedAt?: string
}

/** A secret before it is stored, or stored while no key was set. */
type Unsealed = { readonly secret: string }

/** HMAC-SHA256 gains nothing from more. */
const secretBytes = 32
/** Bounds the number of signatures of a delivery. */
const keptSecretsMax = 4

export function newSecret(): Secret & Unsealed {
  return { secret: `whsec_${randomBytes(secretBytes).toString('base64')}`, expiresAt: null }
}

/** A URL that nobody else may know, before it is stored. */
export function secretUrl(url: string): Secret & Unsealed {
  return { secret: url, expiresAt: null }
}

export function secretsAt(secrets: readonly Secret[], now: Date, isSecurity: boolean): Secret[] {
  return secrets.filter(
    (one) => one.expiresAt === null || new Date(one.expiresAt) > now || (isSecurity && isRecent(one, now)),
  )
}

function isRecent({ replacedAt }: Secret, now: Date): boolean {
  return replacedAt !== undefined && now.getTime() - Date.parse(replacedAt) < securityHours * 3_600_000
}

/**
 * The secrets after a roll. The previous one signs until `end`; one that was already being replaced stops at once. If
 * several were replaced within a day, the first ones are kept for security events, because later rolls may be a thief's.
 */
export function rollTo(next: Secret, secrets: readonly Secret[], end: Date, now: Date): Secret[] {
  const kept = secrets
    .filter((one) => isRecent(one, now))
    .map((one) => ({ ...one, expiresAt: now.toISOString() }))
  const hasRoom = kept.length < keptSecretsMax
  const previous = secrets
    .filter(({ expiresAt }) => expiresAt === null)
    .map((one) => ({
      ...one,
      expiresAt: end.toISOString(),
      ...(hasRoom && { replacedAt: now.toISOString() }),
    }))
  return [next, ...(end > now || hasRoom ? previous : []), ...kept]
}

export function endpointToWire(endpoint: EndpointFacts): WebhookEndpoint {
  return {
    id: endpoint.id,
    url: endpoint.url,
    format: endpoint.format,
    types: [...endpoint.types],
    ordered: endpoint.isOrdered,
    status: endpoint.disabledAt === null ? 'enabled' : 'disabled',
    disabledReason: endpoint.disabledReason,
    failingSince: endpoint.failingSince?.toISOString() ?? null,
    createdAt: endpoint.createdAt.toISOString(),
  }
}
