import type { ApiKey, FinalityRule, Store as WireStore, Wallet as WireWallet } from '@farthing/sdk'
import { type Family, type Mode, type Network, networks } from '../chains/networks.ts'
import type { Context } from '../context.ts'
import type { StoreId, WalletId } from '../ids.ts'

export type Store = {
  readonly id: StoreId
  readonly mode: Mode
  readonly name: string
  readonly logoUrl: string | null
  readonly accentColor: string | null
  readonly finalityPolicy: readonly FinalityRule[]
  /** Rises with every change that a new checkout depends on. */
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
  readonly createdAt: Date
  readonly retiredAt: Date | null
}

export type Key = {
  readonly id: string
  readonly storeId: StoreId
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
}

export const defaultFinalityPolicy: readonly FinalityRule[] = [{ minAmount: '0', finality: 'included' }]

/** The networks this deployment settles on that a store of this mode may be offered. */
export function networksFor(ctx: Context, mode: Mode): Network[] {
  return networks.filter((network) => network.mode === mode && ctx.config.networks.includes(network.chainId))
}

export function storeToWire(store: Store): WireStore {
  return {
    id: store.id,
    mode: store.mode,
    name: store.name,
    logoUrl: store.logoUrl,
    accentColor: store.accentColor,
    finalityPolicy: [...store.finalityPolicy],
    createdAt: store.createdAt.toISOString(),
  }
}

export function walletToWire(ctx: Context, mode: Mode, wallet: Wallet): WireWallet {
  const isActive = wallet.retiredAt === null
  return {
    id: wallet.id,
    storeId: wallet.storeId,
    family: wallet.family,
    walletAddress: wallet.address,
    custodialType: wallet.custodialType,
    payable: isActive && networksFor(ctx, mode).some(({ family }) => family === wallet.family),
    current: isActive && wallet.isCurrent,
    createdAt: wallet.createdAt.toISOString(),
  }
}

export function keyToWire(key: Key): ApiKey {
  return {
    id: key.id,
    createdAt: key.createdAt.toISOString(),
    expiresAt: key.expiresAt?.toISOString() ?? null,
    revokedAt: key.revokedAt?.toISOString() ?? null,
  }
}
