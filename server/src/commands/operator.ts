import { parseWalletAddress, toStored } from '../chains/families.ts'
import type { Context } from '../context.ts'
import { isId, type StoreId } from '../ids.ts'
import { families } from '../networks.ts'
import { listConnected, openRails } from '../payments/rails.ts'
import { drainSettler, insertSettler, listSettlers } from '../payments/settlers/rows.ts'
import type { Mistake } from '../problems.ts'
import { createKey, revokeKey, rotateKey } from '../stores/api-keys.ts'
import { checkText } from '../stores/check-text.ts'
import { createStore } from '../stores/create.ts'
import { listKeys, listStores } from '../stores/rows.ts'
import type { Key } from '../stores/store.ts'
import { registerWallet } from '../stores/wallets.ts'

/** What an operator does at the command line. Each command returns the text to print. */
type Options = Readonly<Record<string, string | boolean | undefined>>

/** A command that cannot be understood; the message says what was missing. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The option that registers a wallet of each family. */
const wallets = families.map((family) => [`${family.toLowerCase()}-wallet`, family] as const)

function refuse(mistakes: readonly Mistake[]): void {
  const [mistake] = mistakes
  if (mistake) throw new UsageError(`${mistake.pointer}: ${mistake.detail}`)
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
  refuse(checkText('--name', options.name, 100))
  for (const [option, family] of wallets) {
    const address = options[option]
    const parsed = typeof address === 'string' ? parseWalletAddress(family, address) : {}
    if ('refusal' in parsed) throw new UsageError(`--${option}: ${parsed.refusal}`)
  }
  const store = await createStore(ctx, { name: options.name, mode: options.test ? 'test' : 'live' }, now)
  const lines = [`Store  ${store.id} (${store.mode})`]
  for (const [option, family] of wallets) {
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

export async function settlerCommand(ctx: Context, [verb, ...subjects]: readonly string[]): Promise<string> {
  switch (verb) {
    case 'add': {
      const [id, address] = subjects
      const rail = listConnected(openRails(ctx)).find(({ network }) => network.id === id)
      if (!rail)
        throw new UsageError(
          `Say: settler add NETWORK ADDRESS, with a network that is in NETWORKS and has nodes (${id ?? 'none'} has not).`,
        )
      const { caip2, family, name } = rail.network
      const parsed = parseWalletAddress(family, address ?? '')
      if ('refusal' in parsed) throw new UsageError(parsed.refusal)
      const settler = toStored(caip2, parsed.address)
      const isNew = await insertSettler(ctx.db, caip2, settler, await rail.readNonce(settler))
      return isNew
        ? `${parsed.address} settles on ${name}. Put its key into SETTLER_KEYS_FILE of work.`
        : 'It is a settler already.'
    }
    case 'list': {
      const settlers = await listSettlers(ctx.db, null)
      const lines = settlers.map(
        ({ network, address, state, nextNonce, minedNonce, balanceWei }) =>
          `${network}  ${address}  ${state}  nonce ${nextNonce}, mined ${minedNonce}  ${balanceWei === null ? 'balance not known' : `${balanceWei} wei`}`,
      )
      return lines.join('\n') || 'There are no settlers yet.'
    }
    case 'drain': {
      const [subject = ''] = subjects
      const settlers = await listSettlers(ctx.db, null)
      const known = settlers.find(({ network, address }) => toStored(network, subject) === address)
      if (!known || (await drainSettler(ctx.db, known.address)) === 0)
        throw new UsageError('There is no active settler with this address. See: settler list.')
      return 'It takes no new payments. It is retired when all it has sent is mined; keep its key until then.'
    }
    default:
      throw new UsageError('Say: settler add NETWORK ADDRESS, settler list or settler drain ADDRESS.')
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
