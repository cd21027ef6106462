import { readFile } from 'node:fs/promises'
import { type Address, concat, type Hex, isAddressEqual, keccak256, pad, slice, toBytes, toHex } from 'viem'
import { readTokenArtifact } from '../config/read.ts'
import type { EvmNetwork } from '../networks.ts'

export type LocalAsset = EvmNetwork['assets'][number]

/** What is at each address, in the form of a genesis file's `alloc`. */
type Accounts = Readonly<
  Record<Address, { readonly code: Hex; readonly storage?: Readonly<Record<Hex, Hex>> }>
>

/**
 * The environment variable TOKEN_ARTIFACT may name a placement file, so that every local chain of tests, bench, dev and
 * chaos runs another build of the token, say Circle's own. It is JSON: a list with one of these for each token.
 * - `domain` is the token's EIP-712 domain without the chain's id. A token takes the entry with its own domain and
 *   decimals; one without an entry stays ours.
 * - `accounts` is all that the token consists of: its proxy at `verifyingContract`, its implementation, its libraries.
 *
 * The storage is that of a token in use: initialized, with its own address on the blacklist, and with these rights. The
 * tenth account of the test mnemonic, 0xa0Ee7A142d267C1f36714E4a8F75612F20a79720, may pause and blacklist; it and
 * Multicall3 may mint without limit.
 */
export type TokenPlacement = {
  readonly domain: LocalAsset['domain'] & { readonly verifyingContract: Address }
  readonly decimals: number
  readonly accounts: Accounts
}

type Contracts = Readonly<
  Record<'Token' | 'TokenProxy' | 'TokenSignatures', { readonly deployedBytecode: Hex }>
>

/** Where the token's library is. The address is part of the token's code. Any address without a known key will do. */
export const signaturesAddress = slice(keccak256(toBytes('farthing: TokenSignatures')), 0, 20)

/** The code and storage that put a token on a local chain. */
export async function accountsOf(asset: LocalAsset, contracts: Contracts): Promise<Accounts> {
  const file = readTokenArtifact()
  const placements: readonly TokenPlacement[] = file ? JSON.parse(await readFile(file, 'utf8')) : []
  const placement = placements.find(
    ({ domain: { name, version, verifyingContract }, decimals }) =>
      isAddressEqual(verifyingContract, asset.address as Address) &&
      decimals === asset.decimals &&
      name === asset.domain.name &&
      version === asset.domain.version,
  )
  return placement?.accounts ?? ownAccounts(asset, contracts)
}

function ownAccounts({ address, symbol, decimals, domain }: LocalAsset, contracts: Contracts): Accounts {
  const token = address.toLowerCase() as Address
  // Any address without a known key will do.
  const implementation = slice(keccak256(token), 0, 20)
  if (domain.version.length !== 1) throw new Error(`${symbol}: a local token's version is one character.`)
  const smallValues = concat([toHex(domain.version), toHex(false, { size: 1 }), toHex(decimals, { size: 1 })])
  // The order of Token.sol's variables.
  const slots = [shortText(domain.name), shortText(symbol), smallValues]
  const states = slots.length
  const blacklisted = pad('0x80', { dir: 'right' })
  return {
    [signaturesAddress]: { code: contracts.TokenSignatures.deployedBytecode },
    [implementation]: { code: contracts.Token.deployedBytecode },
    [token]: {
      code: contracts.TokenProxy.deployedBytecode,
      storage: {
        ...Object.fromEntries(slots.map((value, slot) => [pad(toHex(slot)), pad(value)])),
        [keccak256(concat([pad(token), pad(toHex(states))]))]: blacklisted,
        [keccak256(toBytes('org.zeppelinos.proxy.implementation'))]: pad(implementation),
        // The proxy's admin cannot call the token. Left empty, it would be the zero address, the sender of every call
        // without one.
        [keccak256(toBytes('org.zeppelinos.proxy.admin'))]: pad(implementation),
      },
    },
  }
}

/** A string of at most 31 bytes as Solidity stores it: the text, and twice its length in the last byte. */
function shortText(text: string): Hex {
  const bytes = toBytes(text)
  if (bytes.length > 31) throw new Error(`"${text}" is too long for the token of local chains.`)
  return concat([pad(toHex(bytes), { dir: 'right', size: 31 }), toHex(2 * bytes.length, { size: 1 })])
}
