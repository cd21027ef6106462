/**
 * Contract wallets as people have them, each with the signatures that its own clients make: Safe 1.4.1, in the bytecode
 * that public chains have, and a wallet that takes the signatures of Coinbase's.
 */
import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  type Address,
  concat,
  createPublicClient,
  decodeFunctionResult,
  defineChain,
  encodeFunctionData,
  getCreate2Address,
  type Hex,
  hashMessage,
  hashTypedData,
  http,
  pad,
  parseAbi,
  zeroAddress,
  zeroHash,
} from 'viem'
import { toCoinbaseSmartAccount, toWebAuthnAccount } from 'viem/account-abstraction'
import { privateKeyToAccount } from 'viem/accounts'
import { deployer } from '../../../src/chains/evm/batcher.ts'
import type { Artifact } from '../../../src/dev/local-chain.ts'
import type { TestChain } from './evm.ts'
import type { Payer, SignTyped, Wrapper } from './evm-payment.ts'
import { faucet } from './faucet.ts'

export type SmartWallet = {
  readonly address: Address
  readonly signTyped: SignTyped
  /** With `personal_sign`. */
  readonly signText: (text: string) => Promise<Hex>
  /** The call that puts it on the chain. */
  readonly creation: Wrapper
}

const safeArtifacts = import.meta.resolve('@safe-global/safe-contracts/package.json')
/** Where public chains have Safe's own deployer, and what it has deployed. */
const safeDeployer: Address = '0x914d7Fec6aaC8cd542e72Bca78B30650d45643d7'
const [singleton, factory, handler] = [
  '0x41675C099F32341bf84BFc5382aF534df5C7461a',
  '0x4e1DCf7AD4e460CfD30791CCC4F9c8a4f820ec67',
  '0xfd0732Dc9E303f09fCEf3a7388Ad10A83459Ec99',
] as const
const safeContracts = [
  ['Safe.sol/Safe', singleton],
  ['proxies/SafeProxyFactory.sol/SafeProxyFactory', factory],
  ['handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler', handler],
] as const

const safeAbi = parseAbi([
  'function setup(address[] owners, uint256 threshold, address to, bytes data, address fallbackHandler, address paymentToken, uint256 payment, address paymentReceiver)',
  'function createProxyWithNonce(address singleton, bytes initializer, uint256 saltNonce) returns (address proxy)',
])

/** Puts Safe's contracts on the chain. Their addresses follow from their bytecode, so it is that of public chains. */
export async function deploySafe(chain: TestChain): Promise<void> {
  const code = await chain.client.getCode({ address: deployer })
  await chain.client.setCode({ address: safeDeployer, bytecode: code ?? assert.fail() })
  for (const [path, address] of safeContracts) {
    const file = new URL(`build/artifacts/contracts/${path}.json`, safeArtifacts)
    const { bytecode }: Artifact = JSON.parse(readFileSync(file, 'utf8'))
    assert.equal(getCreate2Address({ from: safeDeployer, salt: zeroHash, bytecode }), address)
    const data = concat([zeroHash, bytecode])
    assert.equal((await chain.perform({ to: safeDeployer, data, gas: 10_000_000n })).status, 'success')
  }
}

/** A Safe that is not on the chain yet. The first `threshold` of its owners sign. */
export async function foreseeSafe(
  chain: TestChain,
  owners: readonly Payer[],
  threshold: number,
): Promise<SmartWallet> {
  const accounts = owners.map(({ address }) => address)
  const setup = encodeFunctionData({
    abi: safeAbi,
    functionName: 'setup',
    args: [accounts, BigInt(threshold), zeroAddress, '0x', handler, zeroAddress, 0n, zeroAddress],
  })
  const calldata = encodeFunctionData({
    abi: safeAbi,
    functionName: 'createProxyWithNonce',
    args: [singleton, setup, 0n],
  })
  const { data = '0x' } = await chain.client.call({ account: faucet, to: factory, data: calldata })
  const address = decodeFunctionResult({ abi: safeAbi, functionName: 'createProxyWithNonce', data })
  const signHash = async (hash: Hex): Promise<Hex> => {
    const signers = owners.slice(0, threshold).map(({ key }) => privateKeyToAccount(key))
    // A Safe reads its owners' signatures in the order of their addresses.
    const sorted = signers.sort((a, b) => (a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1))
    const signatures = sorted.map((owner) =>
      owner.signTypedData({
        domain: { chainId: chain.domain.chainId, verifyingContract: address },
        types: { SafeMessage: [{ name: 'message', type: 'bytes' }] },
        primaryType: 'SafeMessage',
        message: { message: hash },
      }),
    )
    return concat(await Promise.all(signatures))
  }
  return {
    address,
    signTyped: (typed) => signHash(hashTypedData(typed)),
    signText: (text) => signHash(hashMessage(text)),
    creation: { factory, calldata },
  }
}

/** Puts a wallet on the chain, as its first transaction does. */
export async function deployWallet(chain: TestChain, { address, creation }: SmartWallet): Promise<void> {
  const { factory: to, calldata: data } = creation
  assert.equal((await chain.perform({ to, data, gas: 5_000_000n })).status, 'success')
  assert(await chain.client.getCode({ address }))
}

/**
 * A wallet that is not on the chain yet, with Coinbase's signatures as viem makes them: wrapped by ERC-6492 until the
 * wallet is deployed. Its owners are `others` and, as the last, the one that signs: a key or a passkey.
 */
export async function foreseePasskeyWallet(
  chain: TestChain,
  signer: Payer | 'passkey',
  others: readonly Address[] = [],
): Promise<SmartWallet> {
  const owner = signer === 'passkey' ? newPasskey() : privateKeyToAccount(signer.key)
  const ownerBytes = owner.type === 'webAuthn' ? owner.publicKey : pad(owner.address)
  const { address, ...creation } = await chain.foresee([...others.map((one) => pad(one)), ownerBytes])
  const { chainId: id } = chain.domain
  const account = await toCoinbaseSmartAccount({
    client: createPublicClient({
      chain: defineChain({
        id,
        name: chain.network.name,
        nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
        rpcUrls: { default: { http: [chain.url] } },
      }),
      transport: http(chain.url),
      cacheTime: 0,
    }),
    owners: [...others, owner],
    ownerIndex: others.length,
    version: '1.1',
    address,
  })
  return {
    address,
    signTyped: (typed) => account.signTypedData(typed),
    signText: (message) => account.signMessage({ message }),
    creation,
  }
}

/** A passkey whose authenticator is this process. */
function newPasskey() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const id = 'passkey'
  const host = 'wallet.example'
  // Whose passkey it is, that the user was present and verified, and how often it has signed.
  const authenticatorData = Buffer.concat([
    createHash('sha256').update(host).digest(),
    Buffer.of(0b101),
    Buffer.alloc(4),
  ])
  return toWebAuthnAccount({
    rpId: host,
    credential: {
      id,
      publicKey: concat([x, y].map((part): Hex => `0x${Buffer.from(part, 'base64url').toString('hex')}`)),
    },
    getFn: async (options) => {
      const challenge = Buffer.from(options?.publicKey?.challenge as Uint8Array).toString('base64url')
      const clientDataJSON = Buffer.from(
        JSON.stringify({
          type: 'webauthn.get',
          challenge,
          origin: `https://${host}`,
          crossOrigin: false,
        }),
      )
      const signed = Buffer.concat([authenticatorData, createHash('sha256').update(clientDataJSON).digest()])
      const signature = sign('sha256', signed, privateKey)
      return { id, type: 'public-key', response: { authenticatorData, clientDataJSON, signature } } as never
    },
  })
}
