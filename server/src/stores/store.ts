import { hash } from 'node:crypto'
import type {
  ApiKey,
  FinalityRule,
  Scope,
  StoreStanding,
  WalletChanges,
  Store as WireStore,
  Wallet as WireWallet,
} from '@farthing/sdk'
import { needsTokenAccount, ownWalletOn } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { StoreId, WalletId } from '../ids.ts'
import { type Family, families, type Mode, type Network, networks } from '../networks.ts'
import { scopes } from './scopes.ts'

export type Store = {
  readonly id: StoreId
  readonly mode: Mode
  readonly name: string
  readonly logoUrl: string | null
  readonly accentColor: string | null
  /** How buyers reach the store. */
  readonly supportEmail: string | null
  readonly supportUrl: string | null
  /** The seller as the law knows it. */
  readonly legalName: string | null
  /** Up to six lines. */
  readonly legalAddress: string | null
  readonly taxId: string | null
  readonly finalityPolicy: readonly FinalityRule[]
  /** Who must approve a change of the current wallet: the owners' choice, or the default. */
  readonly walletChanges: WalletChanges
  /** How much each manager may refund within 24 hours, in whole tokens. */
  readonly managerRefundLimit: string
  /** An IANA name. */
  readonly timeZone: string
  /** ISO 4217. */
  readonly reportCurrency: string
  readonly standing: StoreStanding
  readonly suspendedReason: string | null
  /** A stranger signed up for it and it has not proven a wallet, so its checkouts and fees are limited. */
  readonly isLimited: boolean
  /** Increases with every change that a new checkout depends on. */
  readonly revision: number
  readonly createdAt: Date
}

export type Wallet = {
  readonly id: WalletId
  readonly storeId: StoreId
  readonly family: Family
  readonly address: string
  readonly custodialType: 'CUSTODIAL' | 'NON_CUSTODIAL'
  readonly isCurrent: boolean
  /** It is or was current. */
  readonly isConfirmed: boolean
  /** A change to this wallet waits for an owner. */
  readonly isWaiting: boolean
  /** This cell does not own the wallet in the directory, so it must not be paid here. */
  readonly isUnowned: boolean
  /** Another cell owns the wallet, but a restored database has forgotten that. */
  readonly isElsewhere: boolean
  /** The networks (CAIP-2) on which it has the token account it needs. Empty if it needs none. */
  readonly readyOn: readonly string[]
  readonly createdAt: Date
  readonly retiredAt: Date | null
  /** When a signature proved that its holder controls it for this store. */
  readonly provenAt: Date | null
  /** It is also paid outside this deployment. */
  readonly isSharedElsewhere: boolean
}

export type Key = {
  readonly id: string
  readonly storeId: StoreId
  readonly label: string | null
  /** Null means that it may do everything. */
  readonly scopes: readonly Scope[] | null
  /** Where it may be used from: blocks of addresses; empty means anywhere. */
  readonly addresses: readonly string[]
  readonly lastUsedAt: Date | null
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
}

export const defaultFinalityPolicy: readonly FinalityRule[] = [{ minAmount: '0', finality: 'included' }]

/** The networks of this deployment that a store of this mode may use. */
export function networksFor(ctx: Context, mode: Mode): Network[] {
  return networks.filter((network) => network.mode === mode && ctx.config.networks.includes(network.id))
}

/**
 * The wallet that is paid on a network. A wallet without the token account it needs cannot be paid. A wallet that
 * another cell owns must not be paid here, because both cells would count one transfer.
 */
export function walletFor<One extends Pick<Wallet, 'family' | 'isElsewhere' | 'readyOn'>>(
  network: Network,
  wallets: readonly One[],
): One | undefined {
  return wallets.find(
    ({ family, isElsewhere, readyOn }) =>
      family === network.family &&
      !isElsewhere &&
      (!needsTokenAccount(family) || readyOn.includes(network.caip2)),
  )
}

/** Where a store is paid on a network; null if it has nothing to be paid at there. */
export function payToOn(
  network: Network,
  { store, wallets }: { readonly store: Pick<Store, 'id'>; readonly wallets: readonly PayableWallet[] },
): string | null {
  return ownWalletOn(network, store.id) ?? walletFor(network, wallets)?.address ?? null
}

type PayableWallet = Pick<Wallet, 'family' | 'isElsewhere' | 'readyOn' | 'address'>

/** The last path segment for registering a store's first wallet. */
export function walletSegment(offered: readonly Network[]): string {
  const family = families.find((each) => each === offered[0]?.family) ?? families[0]
  return family.toLowerCase()
}

export function storeToWire(store: Store): WireStore {
  return {
    id: store.id,
    mode: store.mode,
    name: store.name,
    logoUrl: store.logoUrl,
    accentColor: store.accentColor,
    supportEmail: store.supportEmail,
    supportUrl: store.supportUrl,
    legalName: store.legalName,
    legalAddress: store.legalAddress,
    taxId: store.taxId,
    finalityPolicy: [...store.finalityPolicy],
    walletChanges: store.walletChanges,
    managerRefundLimit: store.managerRefundLimit,
    timeZone: store.timeZone,
    reportCurrency: store.reportCurrency,
    standing: store.standing,
    suspendedReason: store.suspendedReason,
    createdAt: store.createdAt.toISOString(),
  }
}

/**
 * A store as its events show it. The log is kept forever, so it contains the hash of an image instead of the image. A
 * new hash shows a receiver that the logo changed.
 */
export function storeToEvent(store: Store): WireStore {
  const { logoUrl } = store
  const isImage = logoUrl?.startsWith('data:') ?? false
  return { ...storeToWire(store), ...(isImage && { logoUrl: `sha256:${hash('sha256', logoUrl ?? '')}` }) }
}

export function walletToWire(ctx: Context, mode: Mode, wallet: Wallet): WireWallet {
  const isActive = wallet.retiredAt === null
  const reason = findObstacle(ctx, mode, wallet)
  return {
    id: wallet.id,
    storeId: wallet.storeId,
    family: wallet.family,
    walletAddress: wallet.address,
    custodialType: wallet.custodialType,
    payable: reason === null,
    unpayableReason: reason,
    current: isActive && wallet.isCurrent,
    confirmationRequired: isActive && wallet.isWaiting,
    proofRequired: isActive && needsProof(wallet),
    provenAt: wallet.provenAt?.toISOString() ?? null,
    sharedElsewhere: wallet.isSharedElsewhere,
    createdAt: wallet.createdAt.toISOString(),
  }
}

/**
 * Whether the wallet still needs its holder's signature. A custodial wallet does not: its holder signs for many stores.
 */
export function needsProof({ isUnowned, custodialType }: Wallet): boolean {
  return isUnowned && custodialType === 'NON_CUSTODIAL'
}

/** Why a wallet cannot be paid; null if it can. */
function findObstacle(ctx: Context, mode: Mode, wallet: Wallet): string | null {
  if (wallet.retiredAt !== null) return 'The wallet was retired.'
  if (wallet.isUnowned)
    return needsProof(wallet)
      ? 'The wallet’s holder has not proven it yet: get a challenge, sign it with the wallet and present the signature.'
      : 'The operator has to make this cell the owner of a custodial wallet first. Then register it again.'
  if (wallet.isElsewhere)
    return 'The wallet is in use in another cell of this deployment, and is paid there only. Retire it here and register another, or ask the operator.'
  if (!wallet.isConfirmed) return 'No owner of the store has confirmed the wallet in the console yet.'
  const offered = networksFor(ctx, mode).filter(({ family }) => family === wallet.family)
  if (offered.length === 0) return 'This deployment does not accept payments to wallets of this family.'
  if (offered.some((network) => walletFor(network, [wallet]))) return null
  return 'The wallet has no USDC account on Solana yet. Receiving USDC once creates it. We check for it every few seconds.'
}

export function keyToWire(key: Key): ApiKey {
  return {
    id: key.id,
    label: key.label,
    scopes: [...(key.scopes ?? scopes)],
    addresses: [...key.addresses],
    createdAt: key.createdAt.toISOString(),
    lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
    expiresAt: key.expiresAt?.toISOString() ?? null,
    revokedAt: key.revokedAt?.toISOString() ?? null,
  }
}
