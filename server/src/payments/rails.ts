import { makeKey, openRemoteSigner, openSigner } from '../chains/evm/signer.ts'
import type { Hex } from '../chains/hex.ts'
import type { SignerClient } from '../chains/signers/connect.ts'
import type { Guard } from '../chains/signers/signing.ts'
import { makeSvmKey, openRemoteSvmSigner, openSvmSigner } from '../chains/svm/signer.ts'
import type { Context } from '../context.ts'
import { type Network, networks } from '../networks.ts'
import { openEvmRail } from './evm/rail.ts'
import type { AnySigner, Rail, Rails } from './rail.ts'
import { openSimulatedRail } from './sim/rail.ts'
import { openSvmRail } from './svm/rail.ts'

/** One rail per network, enabled or not: a checkout outlives the settings it was created under. */
export function openRails(ctx: Context): Rails {
  return new Map(networks.map((network) => [network.caip2, openRail(ctx, network)]))
}

/** The rails that have at least one configured node. */
export function listConnected(rails: Rails): Rail[] {
  return [...rails.values()].filter(({ providers }) => providers > 0)
}

function openRail(ctx: Context, network: Network): Rail {
  switch (network.family) {
    case 'EVM':
      return openEvmRail(ctx, network)
    case 'SOLANA':
      return openSvmRail(ctx, network)
    case 'SIMULATED':
      return openSimulatedRail(ctx, network)
  }
}

/** A new settler's key for a network, as SETTLER_KEYS_FILE holds it; null where nothing is settled. */
export function makeSettlerKey({ family }: Network): string | null {
  switch (family) {
    case 'EVM':
      return makeKey()
    case 'SOLANA':
      return makeSvmKey()
    case 'SIMULATED':
      return null
  }
}

/** Parses a settler's key as written in SETTLER_KEYS_FILE; null if it is not a key. */
export function readSigner(text: string, guard?: Guard) {
  if (/^0x[0-9a-fA-F]{64}$/.test(text)) return openSigner(text as Hex, guard)
  const numbers = text.slice(1, -1).split(',')
  if (!/^\[[\d\s,]+\]$/.test(text) || numbers.length !== 64) return null
  return openSvmSigner(
    Uint8Array.from(numbers, (number) => Number.parseInt(number, 10)),
    guard,
  )
}

/** An account whose key is in the process at the other end. */
export function openRemote({ ask, isAway }: SignerClient, address: string): AnySigner {
  return /^0x[0-9a-f]{40}$/.test(address)
    ? openRemoteSigner(address as Hex, ask, isAway)
    : openRemoteSvmSigner(address, ask, isAway)
}
