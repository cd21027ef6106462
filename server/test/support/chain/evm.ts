import assert from 'node:assert/strict'
import {
  type Address,
  concat,
  createTestClient,
  encodeDeployData,
  encodeFunctionData,
  getAddress,
  getCreate2Address,
  type Hex,
  http,
  parseAbi,
  publicActions,
  type TransactionReceipt,
  toHex,
  walletActions,
  zeroHash,
} from 'viem'
import { mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import { deployer } from '../../../src/chains/evm/batcher.ts'
import { readArtifacts, startLocalChain } from '../../../src/dev/local-chain.ts'
import { networks } from '../../../src/networks.ts'
import { atEnd } from '../at-end.ts'
import { faucet } from './faucet.ts'

export const multicallAddress: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'

/** Whether the chains of this run are EDR's. These have no transactions that delegate (EIP-7702). */
const isEdr = process.env.TEST_CHAIN === 'edr'

/** With 110,000 gas each, 150 calls stay below what one transaction may use: 16,777,216 (EIP-7825). */
const callsPerTransaction = 150

export const tokenAbi = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function symbol() view returns (string)',
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function balanceOf(address account) view returns (uint256)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function mint(address to, uint256 value) returns (bool)',
  'function pause()',
  'function unpause()',
  'function blacklist(address account)',
  'function unBlacklist(address account)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
])

export const multicallAbi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] returnData)',
])

export const attackerAbi = parseAbi([
  'struct Call { address target; bytes data; }',
  'function run(Call[] calls) payable',
])

export type Domain = {
  readonly name: string
  readonly version: string
  readonly chainId: number
  readonly verifyingContract: Address
}

type ContractName = 'Token' | 'Multicall3' | 'OwnedWallet' | 'PasskeyWallet' | 'BurningWallet' | 'Attacker'
type Call = {
  readonly to: Address
  readonly data: Hex
  readonly from?: Address
  readonly gas?: bigint
}

export type EvmOptions = {
  /** ELSEWHERE exists only if the test adds it to the table. */
  readonly network?: 'LOCAL' | 'BASE_MAINNET' | 'BASE_SEPOLIA' | 'ELSEWHERE'
  readonly blockTimeSeconds?: number | null
  readonly extraArgs?: readonly string[]
}

export type TestChain = Awaited<ReturnType<typeof openEvm>>

/**
 * A chain for this test file alone, stopped when the file is done: one of `networks` by its name, with its tokens.
 * Without `blockTimeSeconds`, only `mine` and the methods documented as mining mine blocks.
 */
export async function openEvm(options: EvmOptions = {}) {
  const network = networks.find(({ id }) => id === (options.network ?? 'LOCAL'))
  assert(network?.family === 'EVM')
  // Loaded only where it is wanted: it is large.
  const start = isEdr ? (await import('./edr.ts')).startEdr : startLocalChain
  const [asset] = network.assets
  assert(asset)
  const chainId = Number.parseInt(network.caip2.replace('eip155:', ''), 10)
  const { url, stop } = await start({
    chainId,
    blockTimeSeconds: options.blockTimeSeconds ?? null,
    assets: network.assets,
    ...(options.extraArgs && { extraArgs: options.extraArgs }),
  })
  atEnd(stop)
  const token = getAddress(asset.address)
  const domain: Domain = { ...asset.domain, chainId, verifyingContract: token }
  const client = connect(url)

  const mine = async (blocks = 1) => await client.mine({ blocks })

  /** Puts a transaction from one of the chain's accounts into the pool, unmined. It may be one that reverts. */
  const send = async ({ to, data, from = faucet, gas = 1_000_000n }: Call): Promise<Hex> =>
    await client.sendTransaction({ account: from, to, data, gas, chain: null })

  /** Sends a transaction and mines it. The receipt may say `reverted`. */
  const perform = async (call: Call): Promise<TransactionReceipt> => {
    const hash = await send(call)
    await mine()
    return await client.getTransactionReceipt({ hash })
  }

  /** Makes calls through Multicall3 in as few transactions as the gas cap allows, and mines them. None may fail. */
  const performAll = async (calls: readonly Call[]): Promise<TransactionReceipt[]> => {
    const hashes: Hex[] = []
    for (let i = 0; i < calls.length; i += callsPerTransaction) {
      const some = calls
        .slice(i, i + callsPerTransaction)
        .map(({ to, data }) => ({ target: to, allowFailure: false, callData: data }))
      const data = encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [some] })
      const gas = 200_000n + 110_000n * BigInt(some.length)
      hashes.push(await send({ to: multicallAddress, data, gas }))
    }
    await mine()
    const receipts = await Promise.all(hashes.map((hash) => client.getTransactionReceipt({ hash })))
    for (const { status } of receipts) assert.equal(status, 'success')
    return receipts
  }

  /** Mints units for one address or for many (a block holds about 2,500), and mines. Circle's token refuses to mint 0. */
  const mint = async (to: Address | readonly Address[], units: bigint): Promise<void> => {
    if (units === 0n) return
    await performAll(
      [to].flat().map((address) => ({
        to: token,
        data: encodeFunctionData({ abi: tokenAbi, functionName: 'mint', args: [address, units] }),
      })),
    )
  }

  /** Deploys a contract from server/contracts, and mines. */
  const deploy = async (name: ContractName, args: readonly unknown[] = []): Promise<Address> => {
    const { [name]: contract } = await readArtifacts()
    assert(contract)
    const data = encodeDeployData({ abi: contract.abi, bytecode: contract.bytecode, args })
    const hash = await client.sendTransaction({ account: faucet, data, gas: 10_000_000n, chain: null })
    await mine()
    const { contractAddress } = await client.getTransactionReceipt({ hash })
    assert(contractAddress)
    return getAddress(contractAddress)
  }

  /** A wallet that is not on the chain yet: its address, and the call that would put it there. */
  const foresee = async (
    owner: Address | readonly Hex[],
  ): Promise<{ address: Address; factory: Address; calldata: Hex }> => {
    const { OwnedWallet, PasskeyWallet } = await readArtifacts()
    const contract = typeof owner === 'string' ? OwnedWallet : PasskeyWallet
    assert(contract)
    const code = encodeDeployData({ abi: contract.abi, bytecode: contract.bytecode, args: [owner] })
    return {
      address: getCreate2Address({ from: deployer, salt: zeroHash, bytecode: code }),
      factory: getAddress(deployer),
      calldata: concat([zeroHash, code]),
    }
  }

  /** Gives an account the code of a wallet by EIP-7702, as a wallet app would. */
  const delegate = async ({ key, address }: { key: Hex; address: Address }, wallet: Address) => {
    const account = privateKeyToAccount(fundedKey(5))
    const signed = await privateKeyToAccount(key).signAuthorization({ address: wallet, chainId, nonce: 0 })
    const code = concat(['0xef0100', wallet])
    if (isEdr) await client.setCode({ address, bytecode: code })
    else {
      const gas = 200_000n
      await client.sendTransaction({ account, chain: null, to: address, gas, authorizationList: [signed] })
      await mine()
    }
    assert.equal(await client.getCode({ address }), code.toLowerCase())
  }

  return {
    url,
    network,
    token,
    domain,
    client,
    mine,
    send,
    perform,
    performAll,
    mint,
    deploy,
    foresee,
    delegate,
    stop,
    /** The newest block's time, in seconds. */
    time: async (): Promise<bigint> => (await client.getBlock()).timestamp,
    balance: async (account: Address): Promise<bigint> =>
      await client.readContract({
        address: token,
        abi: tokenAbi,
        functionName: 'balanceOf',
        args: [account],
      }),
    isNonceUsed: async (payer: Address, nonce: Hex): Promise<boolean> =>
      await client.readContract({
        address: token,
        abi: tokenAbi,
        functionName: 'authorizationState',
        args: [payer, nonce],
      }),
    /** Every Transfer of the token between these addresses on the canonical chain. */
    transferLogs: async (between: { readonly from?: Address; readonly to?: Address } = {}) =>
      await client.getContractEvents({
        address: token,
        abi: tokenAbi,
        eventName: 'Transfer',
        args: between,
        fromBlock: 0n,
        strict: true,
      }),
    /** Mines instantly. Only for a test with one sender: with several, some transactions stay in the pool. */
    setAutomine: async (on: boolean): Promise<void> => await client.setAutomine(on),
    setNextBlockTimestamp: async (seconds: bigint): Promise<void> =>
      await client.setNextBlockTimestamp({ timestamp: seconds }),
    /** Mines a block that is so many seconds younger than the newest one. */
    pass: async (seconds: number): Promise<void> => {
      const { timestamp } = await client.getBlock()
      await client.setNextBlockTimestamp({ timestamp: timestamp + BigInt(seconds) })
      await mine()
    },
    dropTransaction: async (hash: Hex): Promise<void> => await client.dropTransaction({ hash }),
    /**
     * Replaces the newest blocks with as many empty ones, at most 60 on a long chain. Their transactions are gone, even
     * from the pool, and so are changes made without a transaction (code, balances) since the block before them.
     */
    reorg: async (depth: number): Promise<void> => {
      // viem has no action for it.
      const request = client.request as (call: { method: string; params: unknown[] }) => Promise<unknown>
      await request({ method: 'anvil_reorg', params: [depth, []] })
    },
    snapshot: async (): Promise<Hex> => await client.snapshot(),
    revert: async (id: Hex): Promise<void> => await client.revert({ id }),
  }
}

function connect(url: string) {
  return createTestClient({
    mode: 'anvil',
    transport: http(url, { retryCount: 0 }),
    cacheTime: 0,
    pollingInterval: 20,
  })
    .extend(publicActions)
    .extend(walletActions)
}

/** The key of one of the accounts that have ether from the start, 0 to 8. */
export function fundedKey(index: number): Hex {
  const account = mnemonicToAccount('test test test test test test test test test test test junk', {
    addressIndex: index,
  })
  return toHex(account.getHdKey().privateKey ?? assert.fail())
}
