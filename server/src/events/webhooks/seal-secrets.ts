import type { EndpointId } from '../../ids.ts'
import type { SecretsKey } from '../../secrets/key-file.ts'
import { seal, unseal } from '../../secrets/seal.ts'
import type { Secret } from './endpoint.ts'

/** The secrets as they are stored: those that are not sealed yet are sealed with the first key, if there is one. */
export function sealSecrets(
  [key]: readonly SecretsKey[],
  endpointId: EndpointId,
  secrets: readonly Secret[],
): Secret[] {
  return secrets.map((one) => {
    if (!key || 'sealed' in one) return one
    const { secret, ...times } = one
    return { ...seal(key, placeOf(endpointId), secret), ...times }
  })
}

/** The same secrets sealed with the first key, whatever sealed them before, for the same or another endpoint. */
export function resealSecrets(
  keys: readonly SecretsKey[],
  from: EndpointId,
  to: EndpointId,
  secrets: readonly Secret[],
): Secret[] {
  const opened = secrets.map((one) => ({
    secret: openSecret(keys, from, one),
    expiresAt: one.expiresAt,
    ...(one.replacedAt !== undefined && { replacedAt: one.replacedAt }),
  }))
  return sealSecrets(keys, to, opened)
}

/** The text that signs, as the store has it. */
export function openSecret(keys: readonly SecretsKey[], endpointId: EndpointId, secret: Secret): string {
  return 'sealed' in secret ? unseal(keys, placeOf(endpointId), secret) : secret.secret
}

function placeOf(endpointId: EndpointId): string {
  return `webhook endpoint ${endpointId}`
}
