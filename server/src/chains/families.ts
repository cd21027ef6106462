import { auditNodesOf, nodesOf } from '../config/settings.ts'
import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import {
  type AnyFamily,
  type EvmNetwork,
  type Family,
  type Mode,
  type Network,
  networks,
} from '../networks.ts'
import type { AddressFault, ParsedAddress } from './address.ts'
import { parseEvmAddress, showEvmAddress } from './evm/address.ts'
import { batcher } from './evm/batcher.ts'
import { openChain } from './evm/chain.ts'
import { openEvmHistory } from './evm/history.ts'
import { multicall } from './evm/multicall.ts'
import { judgeText as judgeTextEvm } from './evm/signed-text.ts'
import { refusesToPay } from './evm/simulate.ts'
import type { Hex } from './hex.ts'
import { type History, transfersPerDayMax } from './history.ts'
import { isNodeError } from './rpc.ts'
import { parseSimulatedAddress, simulatedWallet } from './sim/address.ts'
import { parseSolanaAddress } from './svm/address.ts'
import { findReady, openSvmChain } from './svm/chain.ts'
import { openSvmHistory } from './svm/history.ts'
import { findHindrance } from './svm/refund-accounts.ts'
import { isTextSigned } from './svm/signed-text.ts'

/** Token contracts, not wallets: money sent to them is lost. Includes the tokens of every network, enabled or not. */
const tokenAddresses = new Set([
  ...networks.flatMap(({ assets }) => assets.map(({ address }) => address)),
  // USDC and USDT on Ethereum, whose addresses people paste by mistake.
  '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  '0xdAC17F958D2ee523a2206206994597C13D831ec7',
  // USDC and USDT on Solana, mainnet and devnet.
  'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
  'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB',
])

/** The contracts that settlements go through. Money paid to them is lost. */
const contracts: readonly string[] = [batcher, multicall]

/** The address in its family's canonical form, or the reason why it cannot be paid to. */
export function parseWalletAddress(family: AnyFamily, text: string): ParsedAddress {
  const parsed = parsers[family](text)
  if ('refusal' in parsed) return parsed
  if (tokenAddresses.has(parsed.address))
    return { refusal: 'This is the address of a token, not of a wallet.', fault: 'token' }
  return parsed
}

const parsers: Readonly<Record<AnyFamily, (text: string) => ParsedAddress>> = {
  EVM: parseEvmAddress,
  SOLANA: parseSolanaAddress,
  SIMULATED: parseSimulatedAddress,
}

/** The wallet that a network itself gives to each store; null where stores bring their own. */
export function ownWalletOn(network: Network, storeId: StoreId): string | null {
  return network.family === 'SIMULATED' ? simulatedWallet(storeId) : null
}

/** Whether nobody pays by a wallet there: what happens is chosen. */
export function isSimulated(caip2: string): boolean {
  return networks.some((network) => network.caip2 === caip2 && network.family === 'SIMULATED')
}

export type { AddressFault }

/** How people recognise an address of a family: what it begins with, and its number of characters. */
export function addressFormOf(family: Family): { readonly prefix: string; readonly length: string } {
  return addressForms[family]
}

const addressForms: Readonly<Record<Family, { readonly prefix: string; readonly length: string }>> = {
  EVM: { prefix: '0x', length: '42' },
  SOLANA: { prefix: '', length: '32–44' },
}

/**
 * Addresses are stored in one form, so that they can be compared, and shown in the form that people expect. Upper and
 * lower case mean the same in hex; base58 has only one spelling.
 */
export function toStored(caip2: string, address: string): string {
  return caip2.startsWith('eip155:') ? address.toLowerCase() : address
}

/** The same for an address or a transaction's hash whose network is not known. */
export function toStoredAnywhere(text: string): string {
  return /^0x[0-9a-f]+$/i.test(text) ? text.toLowerCase() : text
}

/** Six, as most tokens have, for a token that was removed from networks.ts. */
export function decimalsOf(network: string, asset: string): number {
  const assets = networks.find(({ caip2 }) => caip2 === network)?.assets ?? []
  return assets.find(({ address }) => toStored(network, address) === asset)?.decimals ?? 6
}

/** Whether this is the replacement for an erased payer's address. */
export function isErased(payer: string): boolean {
  return payer === erasedLike(payer)
}

/** An address of the same form without a known key. Not the zero address: minted tokens come from there. */
export function erasedLike(payer: string): string {
  return payer.startsWith('0x') ? `0x${'0'.repeat(32)}e2a5ed00` : '1'.repeat(32)
}

export function toShown(caip2: string, stored: string): string {
  return caip2.startsWith('eip155:') ? showEvmAddress(stored) : stored
}

/**
 * On Solana a wallet receives each token in a separate account, which must exist. Elsewhere there are no such accounts.
 */
export function needsTokenAccount(family: AnyFamily): boolean {
  return family === 'SOLANA'
}

/**
 * Which of a wallet's token accounts exist, on the networks that have nodes. A network whose nodes do not answer is
 * left out: background work checks the wallet again.
 */
export async function findTokenAccounts(ctx: Context, family: Family, address: string) {
  if (!needsTokenAccount(family)) return []
  const chains = networks
    .filter((network) => network.family === 'SOLANA')
    .map((network) => openSvmChain(network, nodesOf(ctx.config, network.id), ctx.now))
    .filter(({ rpc }) => rpc.providers.length > 0)
  const found = await Promise.all(
    chains.map(async (chain) =>
      Promise.all(
        chain.network.assets.map(async (asset) => {
          const [isReady = false] = await findReady(chain, [address], asset.address)
          return { network: chain.network.caip2, asset: asset.address, isReady }
        }),
      ).catch((error) => {
        if (!isNodeError(error)) throw error
        ctx.log.warn(
          { network: chain.network.id, err: error },
          'could not look up the token accounts of a wallet; the worker tries again within seconds',
        )
        return []
      }),
    ),
  )
  return found.flat()
}

/**
 * Why the chain would not pay a token to an address, or would lose it there; null if it would pay. Without configured
 * nodes it is null too, because then nothing could be sent anyway. Throws if the nodes do not answer.
 */
export async function findPayeeRefusal(
  ctx: Context,
  network: Network,
  asset: string,
  address: string,
): Promise<string | null> {
  switch (network.family) {
    case 'SIMULATED':
      return null
    case 'SOLANA': {
      const svm = openSvmChain(network, nodesOf(ctx.config, network.id), ctx.now)
      if (svm.rpc.providers.length === 0) return null
      return (await findHindrance(svm, { mint: asset, recipient: address }))?.says ?? null
    }
    case 'EVM':
      return await findEvmRefusal(ctx, network, asset, address)
  }
}

async function findEvmRefusal(
  ctx: Context,
  network: EvmNetwork,
  asset: string,
  address: string,
): Promise<string | null> {
  if (contracts.includes(address)) return 'This is the address of a contract, where money would be lost.'
  const chain = openChain(network, nodesOf(ctx.config, network.id), ctx.now)
  if (chain.rpc.providers.length === 0) return null
  return (await refusesToPay(chain, asset, address as Hex))
    ? 'The token’s issuer has blocked this address: nothing can be paid to it.'
    : null
}

/**
 * Whether a wallet signed this text. A contract wallet is asked on the enabled networks of a mode; if their nodes do
 * not answer, this throws. `undeployed`: only a contract could judge it, and none of these networks has one at the
 * address.
 */
export async function judgeText(
  ctx: Context,
  wallet: { readonly family: Family; readonly address: string; readonly mode: Mode },
  text: string,
  signature: string,
): Promise<'signed' | 'unsigned' | 'undeployed'> {
  switch (wallet.family) {
    case 'SOLANA':
      return isTextSigned(wallet.address, text, signature) ? 'signed' : 'unsigned'
    case 'EVM':
      return await judgeOnChains(ctx, wallet, text, signature)
  }
}

async function judgeOnChains(
  ctx: Context,
  wallet: { readonly address: string; readonly mode: Mode },
  text: string,
  signature: string,
): Promise<'signed' | 'unsigned' | 'undeployed'> {
  const chains = networks
    .filter((network) => network.family === 'EVM')
    .filter(({ id, mode }) => mode === wallet.mode && ctx.config.networks.includes(id))
    .map((network) => openChain(network, nodesOf(ctx.config, network.id), ctx.now))
    .filter(({ rpc }) => rpc.providers.length > 0)
  return await judgeTextEvm(chains, wallet.address, text, signature)
}

/** A network’s past, as the nodes of the audit tell it. Null if it has no nodes. */
export function openHistory(
  { config, now }: Pick<Context, 'config' | 'now'>,
  network: Network,
  transfersMax = transfersPerDayMax,
): History | null {
  const nodes = auditNodesOf(config, network.id)
  if (nodes.length === 0) return null
  switch (network.family) {
    case 'EVM':
      return openEvmHistory(openChain(network, nodes, now), transfersMax)
    case 'SOLANA':
      return openSvmHistory(openSvmChain(network, nodes, now), transfersMax)
    case 'SIMULATED':
      return null
  }
}
