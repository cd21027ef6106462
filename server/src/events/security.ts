import type { EventType } from '@farthing/sdk'

/**
 * Events that a thief with a stolen key would want to hide: where money goes, who may act for the store, who is notified.
 * They go to every endpoint of the store, whatever it subscribes to and whether or not it is enabled. A deleted endpoint,
 * the URL before a change and a secret before a roll still count for a day, so that a thief cannot silence them first and
 * act right afterwards. A change of an endpoint is itself such an event, so waiting longer does not help.
 */
export const securityTypes: readonly EventType[] = [
  'wallet.registered',
  'wallet.updated',
  'wallet.retired',
  'wallet.confirmed',
  'wallet.refused',
  'wallet.undone',
  'store.approved',
  'store.suspended',
  'store.resumed',
  'key.created',
  'key.revoked',
  'member.invited',
  'member.joined',
  'member.recovered',
  'member.removed',
  'member.role_changed',
  'member.operator_added',
  'member.operator_removed',
  'member.codes_made',
  'member.code_used',
  'member.passkey_added',
  'member.passkey_removed',
  'member.identity_added',
  'member.identity_removed',
  'member.email_changed',
  'member.signed_in',
  'member.session_moved',
  'webhook_endpoint.created',
  'webhook_endpoint.updated',
  'webhook_endpoint.deleted',
]

/** Long enough for people to notice, whatever their time zone. */
export const securityHours = 24
