import type { Role } from './member.ts'
import { Refusal } from './refusal.ts'

/**
 * The rights of each role in a store. Every route of the console that names a store names one right, and every change
 * checks it again in its transaction. An operator who is not a member of a store has no rights in it.
 */
const holders = {
  'payments:read': ['owner', 'manager', 'developer', 'viewer'],
  /** Accepting, dismissing, notes, canceling a checkout. */
  'payments:write': ['owner', 'manager'],
  'refunds:read': ['owner', 'manager', 'developer', 'viewer'],
  /** A manager's refunds are limited per day. */
  'refunds:write': ['owner', 'manager'],
  /** Making a checkout by hand. */
  'checkouts:write': ['owner', 'manager'],
  /** Keys, endpoints, deliveries, the event log. */
  'developers:read': ['owner', 'manager', 'developer'],
  'keys:write': ['owner', 'developer'],
  'webhooks:write': ['owner', 'developer'],
  /** Resending events that an endpoint did not accept. */
  'webhooks:resend': ['owner', 'manager', 'developer'],
  'branding:read': ['owner', 'manager', 'developer'],
  'branding:write': ['owner'],
  'activity:read': ['owner', 'manager', 'developer'],
  'members:read': ['owner', 'manager', 'developer'],
  'members:write': ['owner'],
  'wallets:read': ['owner', 'manager', 'developer'],
  'wallets:write': ['owner'],
} as const satisfies Readonly<Record<string, readonly Role[]>>

export type Right = keyof typeof holders

export function mayAct(role: Role, right: Right): boolean {
  return (holders[right] as readonly Role[]).includes(role)
}

/**
 * In a live store owners make the keys, and give them to developers, who see all keys and may revoke them. In a test
 * store developers make their own.
 */
export function mayMakeKeys(role: Role, mode: 'live' | 'test'): boolean {
  return mode === 'test' ? mayAct(role, 'keys:write') : role === 'owner'
}

export function requireRight(role: Role, right: Right): void {
  if (!mayAct(role, right)) throw new Refusal('role')
}
