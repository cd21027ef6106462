import type { CreateApiKey, KeyPreset, Scope } from '@farthing/sdk'

/**
 * What a key may do. Every operation of the API names one scope. A key without any scopes stored is `full`: it may do
 * everything, also what is added later.
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

/** The scopes that were asked for, in a fixed order. Whoever may change something may read it. */
export function scopesOf({ preset, scopes: asked }: Pick<CreateApiKey, 'preset' | 'scopes'>) {
  if (!asked) return presets[preset ?? 'full']
  return scopes.filter(
    (scope) => asked.includes(scope) || asked.includes(scope.replace(':read', ':write') as Scope),
  )
}

export function mayDo(granted: readonly Scope[] | null, scope: Scope): boolean {
  return granted === null || granted.includes(scope)
}

/** What a key may do and where from: all that decides whether one key is wider than another. */
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
