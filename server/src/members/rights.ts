import type { Role } from './member.ts'
import { Refusal } from './refusal.ts'

/**
 * What each role may do in a store. Every route of the console that names a store names one right, and whatever changes
 * something asks again in its transaction. An operator who is no member of a store has no right in it.
 */
const holders = {
  'members:read': ['owner', 'manager', 'developer'],
  'members:write': ['owner'],
  'wallets:read': ['owner', 'manager', 'developer'],
  'wallets:write': ['owner'],
} as const satisfies Readonly<Record<string, readonly Role[]>>

export type Right = keyof typeof holders

export function mayAct(role: Role, right: Right): boolean {
  return (holders[right] as readonly Role[]).includes(role)
}

export function requireRight(role: Role, right: Right): void {
  if (!mayAct(role, right)) throw new Refusal('role')
}
