import type { Context } from './context.ts'
import { isId, type StoreId } from './ids.ts'
import { createKey, revokeKey, rotateKey } from './stores/api-keys.ts'
import { createStore } from './stores/create.ts'
import { listKeys, listStores } from './stores/rows.ts'
import type { Key } from './stores/store.ts'
import { registerWallet } from './stores/wallets.ts'

/** What an operator does at the command line. Each command returns the text to print. */
type Options = Readonly<Record<string, string | boolean | undefined>>

/** A command that cannot be understood; the message says what was missing. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export async function storeCommand(
  ctx: Context,
  [verb]: readonly string[],
  options: Options,
): Promise<string> {
  if (verb === 'list') {
    const stores = await listStores(ctx.db)
    return (
      stores.map(({ id, mode, name }) => `${id}  ${mode}  ${name}`).join('\n') || 'There are no stores yet.'
    )
  }
  if (verb !== 'create') throw new UsageError('Say: store create --name NAME [--test], or store list.')
  if (typeof options.name !== 'string' || options.name === '')
    throw new UsageError('A store needs --name NAME.')
  const now = ctx.now()
  const store = await createStore(ctx, { name: options.name, mode: options.test ? 'test' : 'live' }, now)
  const lines = [`Store  ${store.id} (${store.mode})`]
  for (const [option, family] of [
    ['evm-wallet', 'EVM'],
    ['solana-wallet', 'SOLANA'],
  ] as const) {
    const walletAddress = options[option]
    if (typeof walletAddress !== 'string') continue
    const wallet = await registerWallet(
      ctx,
      store.id,
      family,
      { walletAddress, custodialType: 'NON_CUSTODIAL' },
      now,
    )
    lines.push(
      `Wallet ${wallet.walletAddress}${wallet.payable ? '' : ' (cannot be paid on this deployment yet)'}`,
    )
  }
  const { text } = await createKey(ctx, store.id, now)
  lines.push(`Key    ${text}`, 'The key is shown this once. Keep it secret.')
  return lines.join('\n')
}

export async function keyCommand(
  ctx: Context,
  [verb, subject]: readonly string[],
  options: Options,
): Promise<string> {
  if (!subject)
    throw new UsageError('Say: key create STORE, key list STORE, key rotate KEY or key revoke KEY.')
  switch (verb) {
    case 'create': {
      const { text } = await createKey(ctx, parseStore(subject), ctx.now())
      return `${text}\nThe key is shown this once. Keep it secret.`
    }
    case 'list': {
      const keys = await listKeys(ctx.db, parseStore(subject))
      return keys.map((key) => `${key.id}  ${describe(key)}`).join('\n') || 'The store has no keys.'
    }
    case 'rotate': {
      const hours = options['overlap-hours'] ?? '24'
      if (typeof hours !== 'string' || !/^\d{1,4}$/.test(hours))
        throw new UsageError('--overlap-hours takes a whole number of hours.')
      const { text } = await rotateKey(
        ctx,
        parseKeyId(subject),
        Number.parseInt(hours, 10) * 3_600,
        ctx.now(),
      )
      return `${text}\nThe key is shown this once. The old key ends in ${hours} hours.`
    }
    case 'revoke':
      await revokeKey(ctx, parseKeyId(subject), ctx.now())
      return 'Revoked.'
    default:
      throw new UsageError(`There is no command key ${verb ?? ''}.`)
  }
}

function parseStore(text: string): StoreId {
  if (!isId('st', text))
    throw new UsageError(`${text} is not a store's id: it begins with st_. See: store list.`)
  return text
}

/** Takes a key's id, or the whole key, of which only the id is used. */
function parseKeyId(text: string): string {
  return /^sk_(?:live|test)_([^_]+)_/.exec(text)?.[1] ?? text
}

function describe(key: Key): string {
  if (key.revokedAt) return `revoked ${key.revokedAt.toISOString()}`
  if (key.expiresAt) return `ends ${key.expiresAt.toISOString()}`
  return `made ${key.createdAt.toISOString()}`
}
