import type { Actor, CreateApiKey } from '@farthing/sdk'
import { parseWalletAddress, toStored } from '../chains/families.ts'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { checkCellJoined } from '../directory/adopt.ts'
import { settlerOwnership } from '../directory/directory.ts'
import { keepHold } from '../directory/own.ts'
import { isId, type StoreId } from '../ids.ts'
import { unitsToText } from '../money.ts'
import { families, idOfNetwork, type Mode, networks } from '../networks.ts'
import type { AnySigner, Rail } from '../payments/rail.ts'
import { listConnected, openRails } from '../payments/rails.ts'
import { drainSettler, insertSettler, listSettlers } from '../payments/settlers/rows.ts'
import { describeRunway, readRunways } from '../payments/settlers/runway.ts'
import type { Mistake } from '../problems.ts'
import { createKey, listKeys, revokeKey, rotateKey } from '../stores/api-keys.ts'
import { checkEmail, checkText, checkWebUrl } from '../stores/check-text.ts'
import { createStore } from '../stores/create.ts'
import { listStores } from '../stores/rows.ts'
import { presetNames, scopes } from '../stores/scopes.ts'
import { decideStanding, reasonBytesMax } from '../stores/standing.ts'
import type { Key } from '../stores/store.ts'
import { setWalletChanges } from '../stores/update.ts'
import { registerWallet } from '../stores/wallets.ts'
import { createSettler } from './create-settler.ts'
import { findPlaceRefusal, ownFor } from './own-for.ts'
import { type Options, UsageError } from './usage.ts'

/** The option that registers a wallet, for each family. */
const wallets = families.map((family) => [`${family.toLowerCase()}-wallet`, family] as const)

export function refuse(mistakes: readonly Mistake[]): void {
  const [mistake] = mistakes
  if (mistake) throw new UsageError(`${mistake.pointer}: ${mistake.detail}`)
}

export async function storeCommand(
  ctx: Context,
  actor: Actor,
  [verb, subject = '']: readonly string[],
  options: Options,
): Promise<string> {
  if (verb === 'list') {
    const stores = await listStores(ctx.db)
    return (
      stores
        .map(
          ({ id, mode, name, standing }) =>
            `${id}  ${mode}  ${name}${standing === 'approved' ? '' : `  ${standing}`}`,
        )
        .join('\n') || 'There are no stores yet.'
    )
  }
  if (verb === 'set') return await setStore(ctx, actor, subject, options)
  if (verb === 'approve' || verb === 'suspend' || verb === 'resume')
    return await decideStore(ctx, actor, verb, parseStore(subject), options)
  if (verb !== 'create')
    throw new UsageError(
      'Usage: store create --name NAME [--test], store list, store approve STORE, store suspend STORE --reason TEXT, store resume STORE, or store set STORE --wallet-changes key|member.',
    )
  if (typeof options.name !== 'string' || options.name === '')
    throw new UsageError('store create requires --name NAME.')
  const now = ctx.now()
  refuse(checkText('--name', options.name, 100))
  const named = wallets.flatMap(([option, family]) => {
    const address = options[option]
    const parsed = typeof address === 'string' ? parseWalletAddress(family, address) : null
    if (parsed && 'refusal' in parsed) throw new UsageError(`--${option}: ${parsed.refusal}`)
    return parsed ? [{ family, address: parsed.address }] : []
  })
  const mode = options.test ? 'test' : 'live'
  refuseUnpayable(ctx, mode)
  const { 'support-email': supportEmail, 'support-url': supportUrl } = options
  if (typeof supportEmail === 'string') refuse(checkEmail('--support-email', supportEmail))
  if (typeof supportUrl === 'string') refuse(checkWebUrl('--support-url', supportUrl, mode))
  const contact = {
    ...(typeof supportEmail === 'string' && { supportEmail }),
    ...(typeof supportUrl === 'string' && { supportUrl }),
  }
  const refusal = await findPlaceRefusal(ctx, mode, named)
  if (refusal !== null) throw new UsageError(refusal)
  const store = await createStore(ctx, { name: options.name, mode, ...contact }, now)
  const lines = [`Store  ${store.id} (${store.mode})`]
  for (const { family, address: walletAddress } of named) {
    const wallet = await registerWallet(
      ctx,
      store.id,
      actor,
      { family, walletAddress, custodialType: 'NON_CUSTODIAL' },
      now,
    )
    lines.push(
      `Wallet ${wallet.walletAddress}${wallet.payable ? '' : ' (cannot be paid on this deployment yet)'}`,
    )
  }
  const { text } = await createKey(ctx, store.id, { actor, limit: null }, {}, now)
  lines.push(`Key    ${text}`, 'The key is shown only once. Keep it secret.')
  return lines.join('\n')
}

async function setStore(ctx: Context, actor: Actor, subject: string, options: Options): Promise<string> {
  const storeId = parseStore(subject)
  const { 'wallet-changes': walletChanges } = options
  if (walletChanges !== 'key' && walletChanges !== 'member')
    throw new UsageError('store set requires --wallet-changes key or --wallet-changes member.')
  await ctx.db.transaction((tx) =>
    setWalletChanges(ctx, tx, { storeId, actor, walletChanges, now: ctx.now() }),
  )
  return walletChanges === 'member'
    ? 'From now on an owner confirms in the console what a key asks for.'
    : 'From now on a key changes wallets by itself.'
}

async function decideStore(
  ctx: Context,
  actor: Actor,
  verb: 'approve' | 'suspend' | 'resume',
  storeId: StoreId,
  { reason }: Options,
): Promise<string> {
  if (verb === 'suspend' && typeof reason !== 'string')
    throw new UsageError('store suspend requires --reason TEXT, which the store’s owners read.')
  if (verb === 'suspend') refuse(checkText('--reason', `${reason}`, reasonBytesMax))
  const decision = verb === 'suspend' ? { verb, reason: `${reason}` } : { verb }
  const { store, isChanged } = await ctx.db.transaction((tx) =>
    decideStanding(ctx, tx, { storeId, actor, decision, now: ctx.now() }),
  )
  if (verb === 'approve' && store.standing === 'suspended')
    throw new UsageError(`${store.name} is suspended. To lift that: store resume ${storeId}`)
  const says = {
    waiting: `${store.name} creates no checkouts until you approve it: store approve ${storeId}`,
    unproven: `${store.name} creates no checkouts until it has proven its wallet, or you approve it: store approve ${storeId}`,
    approved: `${store.name} can create checkouts.`,
    suspended: `${store.name} creates no checkouts. Those it has can still be paid. To lift this: store resume ${storeId}`,
  }
  return `${says[store.standing]}${isChanged ? ' The store’s log says so.' : ' Nothing had to be changed.'}`
}

/** A store that no network of this deployment serves could never be paid, and its mode cannot be changed. */
function refuseUnpayable({ config }: Context, mode: Mode): void {
  if (networks.some((network) => network.mode === mode && config.networks.includes(network.id))) return
  const fitting = networks.filter((network) => network.mode === mode).map(({ id }) => id)
  const other = mode === 'live' ? 'Add --test for a test store' : 'Leave out --test for a live store'
  throw new UsageError(
    `A ${mode} store cannot be paid here: NETWORKS is ${config.networks.join(',')}. ${other}, or add one of ${fitting.join(', ')} to NETWORKS.`,
  )
}

export async function keyCommand(
  ctx: Context,
  actor: Actor,
  [verb, subject]: readonly string[],
  options: Options,
): Promise<string> {
  if (!subject)
    throw new UsageError('Usage: key create STORE, key list STORE, key rotate KEY or key revoke KEY.')
  const maker = { actor, limit: null }
  switch (verb) {
    case 'create': {
      const { text } = await createKey(ctx, parseStore(subject), maker, parseKeyOptions(options), ctx.now())
      return `${text}\nThe key is shown only once. Keep it secret.`
    }
    case 'list': {
      const keys = await listKeys(ctx.db, parseStore(subject))
      return keys.map((key) => `${key.id}  ${describe(key)}`).join('\n') || 'The store has no keys.'
    }
    case 'rotate': {
      const hours = options['overlap-hours'] ?? '24'
      if (typeof hours !== 'string' || !/^\d{1,4}$/.test(hours))
        throw new UsageError('--overlap-hours must be a whole number from 0 to 9999.')
      const { text } = await rotateKey(
        ctx,
        null,
        maker,
        { keyId: parseKeyId(subject), overlapSeconds: Number.parseInt(hours, 10) * 3_600 },
        ctx.now(),
      )
      return `${text}\nThe new key is shown only once. The old key expires in ${hours} hours.`
    }
    case 'revoke':
      await revokeKey(ctx, null, maker, parseKeyId(subject), ctx.now())
      return 'Revoked.'
    default:
      throw new UsageError(`Unknown command: key ${verb ?? ''}.`)
  }
}

export async function settlerCommand(
  ctx: Context,
  [verb, ...subjects]: readonly string[],
  options: Options,
  readSigners: () => Promise<readonly AnySigner[]>,
): Promise<string> {
  switch (verb) {
    case 'create': {
      const network = networks.find(({ id }) => id === subjects[0])
      if (!network)
        throw new UsageError(
          `Usage: settler create NETWORK [--out FILE]. NETWORK must be one of ${networks.map(({ id }) => id).join(', ')}.`,
        )
      const file = options.out ?? ctx.config.settlerKeysFile
      if (typeof file !== 'string' || file === '')
        throw new UsageError('Say which file to keep the key in: --out FILE, or set SETTLER_KEYS_FILE.')
      const created = await createSettler(network, file)
      if ('refusal' in created) throw new UsageError(created.refusal)
      return created.says
    }
    case 'add': {
      const [id, address] = subjects
      const rail = findRail(ctx, id, 'settler add NETWORK ADDRESS')
      const { caip2, family, name } = rail.network
      const parsed = parseWalletAddress(family, address ?? '')
      if ('refusal' in parsed) throw new UsageError(parsed.refusal)
      const settler = toStored(caip2, parsed.address)
      const nonce = await rail.readNonce(settler)
      await checkCellJoined(ctx)
      const held = await ownFor(ctx, settlerOwnership(caip2, settler))
      if ('refusal' in held)
        throw new UsageError(
          `${parsed.address} ${held.refusal} Two cells that send from one account block each other: make another with settler create.`,
        )
      const isNew = await ctx.db.transaction(async (tx) => {
        await keepHold(tx, held.hold)
        const isInserted = await insertSettler(tx, caip2, settler, nonce)
        crashPoint(ctx, 'hold-before-commit')
        return isInserted
      })
      crashPoint(ctx, 'hold-after-commit')
      return isNew
        ? `${parsed.address} now settles on ${name}. Put its key into the SETTLER_KEYS_FILE of work and restart work.`
        : `${parsed.address} is already a settler on ${name}.`
    }
    case 'deploy': {
      const [id] = subjects
      const { network, deploy } = findRail(ctx, id, 'settler deploy NETWORK')
      if (!deploy) return `${network.name} needs no contract.`
      const { isDone, says } = await deploy(await readSigners())
      if (!isDone) throw new UsageError(says)
      return says
    }
    case 'list': {
      const left = new Map<string, string>()
      for (const rail of openRails(ctx).values())
        for (const runway of await readRunways(ctx, rail))
          left.set(`${rail.network.caip2} ${runway.address}`, `  ${describeRunway(rail.network, runway)}`)
      const lines = (await listSettlers(ctx.db, null)).map(
        ({ network, address, state, stoppedAt, nextNonce, minedNonce, balanceWei }) =>
          `${network}  ${address}  ${state}${stoppedAt === null ? '' : ', stopped: its key was used elsewhere'}  nonce ${nextNonce}, mined ${minedNonce}  balance ${describeBalance(network, balanceWei)}${left.get(`${network} ${address}`) ?? ''}`,
      )
      return lines.join('\n') || 'There are no settlers yet.'
    }
    case 'drain':
      return await drain(ctx, subjects[0] ?? '', options.network)
    default:
      throw new UsageError(
        'Usage: settler create NETWORK [--out FILE], settler deploy NETWORK, settler add NETWORK ADDRESS, settler list or settler drain ADDRESS [--network NETWORK].',
      )
  }
}

/** One network at a time: the same account may have to go on settling on another. */
async function drain(ctx: Context, subject: string, wanted: Options[string]): Promise<string> {
  const found = networks.find(({ id }) => id === wanted)
  if (wanted !== undefined && !found)
    throw new UsageError(`--network must be one of ${networks.map(({ id }) => id).join(', ')}.`)
  const active = (await listSettlers(ctx.db, found?.caip2 ?? null)).filter(
    ({ network, address, state, stoppedAt }) =>
      (state === 'active' || (state === 'draining' && stoppedAt !== null)) &&
      toStored(network, subject) === address,
  )
  const [settler, another] = active
  if (another) {
    const ids = active.map(({ network }) => idOfNetwork(network)).join(', ')
    throw new UsageError(`This account is active on ${ids}. Say which to drain, with --network.`)
  }
  if (!settler || !(await drainSettler(ctx.db, settler.network, settler.address)))
    throw new UsageError('There is no active settler with this address. Run: settler list')
  if (settler.stoppedAt !== null)
    return `It was stopped and is now retired on ${idOfNetwork(settler.network)}: nothing more is sent from it. Remove its key.`
  return `It gets no new payments on ${idOfNetwork(settler.network)}. It is retired once everything it has sent is mined; keep its key until then.`
}

function findRail(ctx: Context, id: string | undefined, usage: string): Rail {
  const rail = listConnected(openRails(ctx)).find(({ network }) => network.id === id)
  if (rail) return rail
  throw new UsageError(
    `Usage: ${usage}. ${id ?? 'NETWORK'} must be in NETWORKS and have nodes in its _RPC_URLS setting.`,
  )
}

export function parseStore(text: string): StoreId {
  if (!isId('st', text))
    throw new UsageError(`${text} is not a store id, which begins with st_. Run: store list`)
  return text
}

/** Accepts a key's id, or the whole key, and uses only the id. */
function parseKeyId(text: string): string {
  return /^sk_(?:live|test)_([^_]+)_/.exec(text)?.[1] ?? text
}

/** What a new key may do: --preset or --scopes; --label and --addresses, both with commas. */
function parseKeyOptions(options: Options): CreateApiKey {
  const { preset, label, scopes: asked, addresses } = options
  const found = presetNames.find((name) => name === preset)
  if (preset !== undefined && !found)
    throw new UsageError(`--preset must be one of ${presetNames.join(', ')}.`)
  const names = typeof asked === 'string' ? asked.split(',') : []
  const unknown = names.filter((name) => !scopes.some((scope) => scope === name))
  if (unknown.length > 0)
    throw new UsageError(`--scopes: ${unknown.join(', ')} is none of ${scopes.join(', ')}.`)
  return {
    ...(found && { preset: found }),
    ...(names.length > 0 && { scopes: scopes.filter((scope) => names.includes(scope)) }),
    ...(typeof label === 'string' && { label }),
    ...(typeof addresses === 'string' && { addresses: addresses.split(',') }),
  }
}

function describe(key: Key): string {
  const rest = [
    key.label ?? '(no label)',
    key.scopes === null ? 'full' : key.scopes.join(' '),
    ...(key.addresses.length > 0 ? [`from ${key.addresses.join(' ')}`] : []),
    key.lastUsedAt ? `last used ${key.lastUsedAt.toISOString()}` : 'never used',
  ]
  return [describeLife(key), ...rest].join('  ')
}

function describeLife(key: Key): string {
  if (key.revokedAt) return `revoked ${key.revokedAt.toISOString()}`
  if (key.expiresAt) return `expires ${key.expiresAt.toISOString()}`
  return `created ${key.createdAt.toISOString()}`
}

/** In the network's native currency; `balance` is in its smallest unit. */
function describeBalance(network: string, balance: bigint | null): string {
  if (balance === null) return 'unknown'
  const found = networks.find(({ caip2 }) => caip2 === network)
  if (!found) return `${balance} (smallest units)`
  const { decimals, symbol } = found.nativeCurrency
  return `${unitsToText(balance, decimals)} ${symbol}`
}
