import type { ApiKey, ApiKeySecret, KeyPreset, Scope } from '@farthing/sdk'
import { type Call, type Command, clientOf, countOf, take, textOf } from '../command.ts'
import { good, type Terminal, timeOf } from '../terminal.ts'

/** The store's API keys. A key is named by its id, or by its whole text; only the id is used. */
export const keyCommands: readonly Command[] = [
  {
    name: 'key create',
    arguments: '',
    summary: 'Create an API key; it is shown only once',
    options: {
      label: { type: 'string', value: 'name', about: 'what you call it, for example "shop server"' },
      preset: { type: 'string', value: 'preset', about: 'full (default), create or read' },
      scope: { type: 'string', multiple: true, value: 'scope', about: 'instead: one scope; repeat for more' },
      address: {
        type: 'string',
        multiple: true,
        value: 'ip',
        about: 'may be used only from here; repeat for more',
      },
    },
    fields: { scopes: '--scope', addresses: '--address' },
    notes: [
      'A key can do no more than the key that creates it.',
      'Scopes: checkouts, payments, refunds, wallets, webhooks, reports, keys,',
      'each with :read or :write.',
    ],
    async run(call) {
      const label = textOf(call, 'label')
      const preset = textOf(call, 'preset')
      const scopes = listOf(call, 'scope')
      const addresses = listOf(call, 'address')
      const made = await clientOf(call.settings).keys.create({
        ...(label !== undefined && { label }),
        // The server rejects unknown ones and lists those that exist.
        ...(preset !== undefined && { preset: preset as KeyPreset }),
        ...(scopes && { scopes: scopes as Scope[] }),
        ...(addresses && { addresses }),
      })
      showSecret(call.terminal, made)
      return undefined
    },
  },
  {
    name: 'key list',
    arguments: '',
    summary: 'List the store’s API keys, newest first',
    options: {},
    async run({ terminal, settings }) {
      const keys = await take(clientOf(settings).keys.list(), Number.POSITIVE_INFINITY)
      terminal.showAll(keys, 'No keys.', [
        { title: 'ID', cell: ({ id }) => id },
        { title: 'LABEL', cell: ({ label }) => label ?? '' },
        { title: 'MAY', cell: describeScopes },
        { title: 'FROM', cell: ({ addresses }) => addresses.join(' ') || 'anywhere' },
        { title: 'LAST USED', cell: ({ lastUsedAt }) => (lastUsedAt ? timeOf(lastUsedAt) : 'never') },
        { title: 'STATE', cell: describeState, style: ({ revokedAt }) => (revokedAt ? 'dim' : 'green') },
      ])
      return undefined
    },
  },
  {
    name: 'key rotate',
    arguments: '<key>',
    summary: 'Replace an API key by one that may do the same',
    options: {
      'overlap-hours': { type: 'string', value: 'n', about: 'how long the old one stays valid; default 24' },
    },
    async run(call) {
      const hours = countOf(call, 'overlap-hours', 0, 168)
      const [named = ''] = call.positionals
      const made = await clientOf(call.settings).keys.rotate(
        idOf(named),
        hours === undefined ? {} : { overlapSeconds: hours * 3_600 },
      )
      showSecret(call.terminal, made)
      return undefined
    },
  },
  {
    name: 'key revoke',
    arguments: '<key>',
    summary: 'Revoke an API key now',
    options: {},
    async run({ terminal, settings, positionals: [named = ''] }) {
      const revoked = await clientOf(settings).keys.revoke(idOf(named))
      terminal.show(revoked, () => [good(`${revoked.id} is revoked`)])
      return undefined
    },
  },
]

function listOf({ values }: Call, name: string): string[] | undefined {
  const list = values[name]
  return Array.isArray(list) && list.length > 0 ? list.map(String) : undefined
}

function idOf(named: string): string {
  return /^sk_(?:live|test)_([^_]+)_/.exec(named)?.[1] ?? named
}

function showSecret(terminal: Terminal, made: ApiKeySecret): void {
  terminal.show(made, () => [
    good('Key created. It is shown only once; keep it secret.'),
    '',
    ...terminal.facts([
      ['key', made.key],
      ['id', made.id],
      ['may', describeScopes(made)],
      ['from', made.addresses.join(' ') || 'anywhere'],
    ]),
  ])
}

/** `checkouts:write payments:read`: the right to write includes the right to read. */
function describeScopes({ scopes }: Pick<ApiKey, 'scopes'>): string {
  return scopes
    .filter(
      (scope) => scope.endsWith(':write') || !scopes.includes(scope.replace(':read', ':write') as Scope),
    )
    .join(' ')
}

function describeState({ revokedAt, expiresAt }: ApiKey): string {
  if (revokedAt) return `revoked ${timeOf(revokedAt)}`
  return expiresAt ? `until ${timeOf(expiresAt)}` : 'valid'
}
