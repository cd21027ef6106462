import { BlockList, isIP } from 'node:net'
import type { CreateApiKey, KeyPreset, Scope } from '@farthing/sdk'

/**
 * What a key may do. Every operation of the API names one scope. A key without stored scopes is `full`: it may do
 * everything, including operations that are added later.
 */
export const subjects = [
  'checkouts',
  'payments',
  'refunds',
  'wallets',
  'webhooks',
  'reports',
  'keys',
] as const

export const scopes: readonly Scope[] = subjects.flatMap((subject) => [
  `${subject}:read` as const,
  `${subject}:write` as const,
])

/** Null means full. */
const presets: Readonly<Record<KeyPreset, readonly Scope[] | null>> = {
  full: null,
  create: ['checkouts:read', 'checkouts:write'],
  read: scopes.filter((scope) => scope.endsWith(':read')),
}
export const presetNames = Object.keys(presets) as readonly KeyPreset[]

/** The requested scopes, in a fixed order. A write scope includes its read scope. */
export function scopesOf({ preset, scopes: asked }: Pick<CreateApiKey, 'preset' | 'scopes'>) {
  if (!asked) return presets[preset ?? 'full']
  return scopes.filter(
    (scope) => asked.includes(scope) || asked.includes(scope.replace(':read', ':write') as Scope),
  )
}

export function mayDo(granted: readonly Scope[] | null, scope: Scope): boolean {
  return granted === null || granted.includes(scope)
}

/** What a key may do and where from. This decides whether one key is wider than another. */
export type Grant = { readonly scopes: readonly Scope[] | null; readonly addresses: readonly string[] }

/** Whether `inner` allows nothing that `outer` doesn't. */
export function isWithin(inner: Grant, outer: Grant): boolean {
  const isAllowed =
    outer.scopes === null || (inner.scopes?.every((scope) => mayDo(outer.scopes, scope)) ?? false)
  const isPlaced =
    outer.addresses.length === 0 ||
    (inner.addresses.length > 0 && inner.addresses.every((address) => outer.addresses.includes(address)))
  return isAllowed && isPlaced
}

/** A key's allow-list is for a store's own servers, not for its customers' networks. */
export const addressesMax = 20

/** An address or block in its stored form, or null if it is neither: 192.0.2.7, 192.0.2.0/24, 2001:db8::/48. */
export function parseAddress(text: string): string | null {
  const [address = '', prefix, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || address.includes('%')) return null
  const bits = version === 4 ? 32 : 128
  if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number.parseInt(prefix, 10) > bits)) return null
  return `${address.toLowerCase()}/${prefix === undefined ? bits : Number.parseInt(prefix, 10)}`
}

/** Whether an address is in one of the stored blocks. */
export function isInside(blocks: readonly string[], address: string): boolean {
  const list = new BlockList()
  for (const block of blocks) {
    const [network = '', prefix = ''] = block.split('/')
    list.addSubnet(network, Number.parseInt(prefix, 10), network.includes(':') ? 'ipv6' : 'ipv4')
  }
  // A socket that listens for both kinds shows IPv4 addresses in their IPv6 form, which the list understands.
  return list.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
}
