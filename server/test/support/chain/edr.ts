/**
 * EDR, the client of Hardhat: another implementation of the EVM and of the nodes' API than anvil, with the rules of the
 * OP Stack. A chain of it has the same methods as one of anvil, whatever EDR calls them. EDR runs in this process.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import {
  ContractDecoder,
  EdrContext,
  MineOrdering,
  OP_CHAIN_TYPE,
  OpHardfork,
  opGenesisState,
  opHardforkToString,
  opProviderFactory,
} from '@nomicfoundation/edr'
import {
  formatTransaction,
  type Hex,
  hexToBytes,
  parseEther,
  type RpcTransaction,
  serializeTransaction,
  toHex,
  zeroAddress,
} from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { deployer } from '../../../src/chains/evm/batcher.ts'
import { type LocalChain, type LocalChainOptions, place } from '../../../src/dev/local-chain.ts'
import { networks } from '../../../src/networks.ts'

const oracles = new Set<string>(
  networks.flatMap((one) => (one.family === 'EVM' ? (one.gasPriceOracle?.toLowerCase() ?? []) : [])),
)
const blockGasLimit = 300_000_000n
/** EIP-7825. */
const transactionGasCap = 16_777_216n
/** `safe` is this many blocks behind the newest, `finalized` twice as many, as on our other local chains. */
const slotsInAnEpoch = 4
/** The contract at `deployer`, which public chains and anvil have from the start. */
const deployerCode: Hex = `0x${'7f'}${'ff'.repeat(31)}e03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3`
/** How many blocks back a reorganisation can go. */
const statesKept = 64

type Call = { readonly id: unknown; readonly method: string; readonly params?: readonly unknown[] }
type Answer = {
  readonly result?: unknown
  readonly error?: { code: number; message: string; data?: unknown }
}
type Waiting = { readonly hash: Hex; readonly from: Hex; readonly nonce: Hex }
/** Transactions by sender and nonce. */
type Pool = Record<Hex, Record<number, Waiting>>
type Ask = (method: string, params?: readonly unknown[]) => Promise<unknown>

let context: Promise<EdrContext> | undefined

/** A process may have only one. */
async function openContext(): Promise<EdrContext> {
  const opened = new EdrContext()
  await opened.registerProviderFactory(OP_CHAIN_TYPE, opProviderFactory())
  return opened
}

/** Starts a chain as `startLocalChain` does. Nothing is kept on disk. */
export async function startEdr(options: LocalChainOptions): Promise<LocalChain> {
  context ??= openContext()
  const node = await openNode(await context, options)
  const server = createServer(async (request, response) => {
    const asked: Call | readonly Call[] = JSON.parse(await text(request))
    const answered = Array.isArray(asked)
      ? await Promise.all(asked.map(node.answer))
      : node.answer(asked as Call)
    response.setHeader('content-type', 'application/json').end(JSON.stringify(await answered))
  })
  // A connection that is closed while a request is on its way would look like a node that fails.
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await node.answer({ id: 0, method: 'hardhat_setCode', params: [deployer, deployerCode] })
  await place(url, options)
  const { blockTimeSeconds } = options
  node.mineEvery(blockTimeSeconds ?? 0)
  const stop = async () => {
    node.mineEvery(0)
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url, stop }
}

async function openProvider(
  edr: EdrContext,
  { chainId, hasTransactionCap = true }: LocalChainOptions,
): Promise<Ask> {
  const accounts = Array.from({ length: 10 }, (_, addressIndex) =>
    mnemonicToAccount('test test test test test test test test test test test junk', { addressIndex }),
  )
  const hardfork = OpHardfork.Isthmus
  const provider = await edr.createProvider(
    OP_CHAIN_TYPE,
    {
      allowBlocksWithSameTimestamp: false,
      allowUnlimitedContractSize: false,
      bailOnCallFailure: true,
      bailOnTransactionFailure: false,
      chainId: BigInt(chainId),
      coinbase: new Uint8Array(20),
      defaultTransactionGasLimit: transactionGasCap,
      genesisState: [
        // `place` puts a stand-in there, which reads this storage in its own way.
        ...opGenesisState(hardfork).filter(({ address }) => !oracles.has(toHex(address))),
        ...accounts.map(({ address }) => ({ address: hexToBytes(address), balance: parseEther('10000') })),
      ],
      hardfork: opHardforkToString(hardfork),
      initialBaseFeePerGas: 1_000_000_000n,
      minGasPrice: 0n,
      mining: { autoMine: false, blockGasLimit, memPool: { order: MineOrdering.Priority } },
      network: {
        genesisBlockGasLimit: blockGasLimit,
        genesisBlockTime: BigInt(Math.floor(Date.now() / 1_000)),
      },
      networkId: BigInt(chainId),
      observability: {},
      ownedAccounts: accounts.map((account) => toHex(account.getHdKey().privateKey ?? new Uint8Array())),
      precompileOverrides: [],
      transactionGasCap: hasTransactionCap && transactionGasCap,
    },
    { enable: false, decodeConsoleLogInputsCallback: () => [], printLineCallback: () => {} },
    { subscriptionCallback: () => {} },
    new ContractDecoder(),
  )
  return async (method, params = []) => {
    const { data } = await provider.handleRequest(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
    const { result, error }: Answer = typeof data === 'string' ? JSON.parse(data) : data
    if (error) throw error
    return result
  }
}

/**
 * A call as nodes of public chains take it: from the zero address if it names none, and with no more gas than they allow.
 * EDR takes its first account, and refuses more gas than a transaction may use.
 */
function readCall(given: unknown): unknown {
  if (!(given instanceof Object)) return given
  const { from = zeroAddress, gas, ...call } = given as { from?: Hex; gas?: Hex }
  const isAbove = gas !== undefined && BigInt(gas) > transactionGasCap
  return { ...call, from, ...(gas && { gas: isAbove ? toHex(transactionGasCap) : gas }) }
}

async function openNode(edr: EdrContext, options: LocalChainOptions) {
  const ask = await openProvider(edr, options)
  const readHead = async () => Number(await ask('eth_blockNumber'))
  /** The state after each of the newest blocks, which is what a reorganisation goes back to. */
  const states = new Map<number, unknown>()
  let timer: NodeJS.Timeout | undefined

  const keep = async () => {
    states.set(await readHead(), await ask('evm_snapshot'))
    for (const number of states.keys()) if (states.size > statesKept) states.delete(number)
  }
  const mine = async (blocks = 1) => {
    if (blocks > statesKept) await ask('hardhat_mine', [toHex(blocks - statesKept)])
    for (let i = 0; i < Math.min(blocks, statesKept); i++) {
      await keep()
      await ask('evm_mine')
    }
  }
  const mineEvery = (seconds: number) => {
    clearInterval(timer)
    if (seconds > 0) timer = setInterval(() => void mine(), 1_000 * seconds).unref()
  }
  const drop = async () => {
    for (const { hash } of (await ask('eth_pendingTransactions')) as Waiting[])
      await ask('hardhat_dropTransaction', [hash])
  }
  /** Pending is what the next block may take; queued is what follows a gap in a sender's nonces. */
  const readPool = async () => {
    const waiting = (await ask('eth_pendingTransactions')) as Waiting[]
    const pool: Record<'pending' | 'queued', Pool> = { pending: {}, queued: {} }
    for (const [from, theirs] of Map.groupBy(waiting, (one) => one.from)) {
      let next = Number(await ask('eth_getTransactionCount', [from, 'latest']))
      for (const one of theirs.sort((a, b) => Number(a.nonce) - Number(b.nonce))) {
        const nonce = Number(one.nonce)
        const { [nonce === next ? 'pending' : 'queued']: part } = pool
        part[from] = { ...part[from], [nonce]: one }
        if (nonce === next) next++
      }
    }
    return pool
  }

  /** What EDR calls by another name, or does not have. */
  const own: Readonly<Record<string, (...params: never[]) => Promise<unknown>>> = {
    anvil_mine: async (blocks: Hex = '0x1') => await mine(Number(blocks)),
    evm_mine: async () => await mine(),
    evm_setIntervalMining: async (seconds: number) => mineEvery(seconds),
    anvil_setLoggingEnabled: async () => null,
    anvil_setStorageAt: async (address: Hex, index: Hex, value: Hex) =>
      await ask('hardhat_setStorageAt', [address, toHex(BigInt(index)), value]),
    anvil_reorg: async (depth: number) => {
      const head = await readHead()
      const before = states.get(head - depth)
      if (before === undefined) throw { code: -32000, message: `There is no state ${depth} blocks back.` }
      await ask('evm_revert', [before])
      for (const number of states.keys()) if (number >= head - depth) states.delete(number)
      await drop()
      // Otherwise an empty block in place of an empty one would be the same.
      await ask('hardhat_setPrevRandao', [toHex(crypto.getRandomValues(new Uint8Array(32)))])
      await mine(depth)
    },
    eth_getRawTransactionByHash: async (hash: Hex) => {
      const found = (await ask('eth_getTransactionByHash', [hash])) as RpcTransaction | null
      if (found === null) return null
      const { r = '0x', s = '0x', yParity, ...transaction } = formatTransaction(found)
      return serializeTransaction({ ...transaction, data: found.input } as never, {
        r,
        s,
        yParity: yParity ?? 0,
      })
    },
    txpool_content: readPool,
    txpool_status: async () => {
      const { pending, queued } = await readPool()
      const count = (part: Pool) => toHex(Object.values(part).flatMap((one) => Object.keys(one)).length)
      return { pending: count(pending), queued: count(queued) }
    },
  }

  const perform = async ({ method, params = [] }: Call): Promise<unknown> => {
    const ours = own[method]
    if (ours) return await ours(...(params as never[]))
    const head = params.some((one) => one === 'safe' || one === 'finalized') ? await readHead() : 0
    const behind: Readonly<Record<string, number>> = { safe: slotsInAnEpoch, finalized: 2 * slotsInAnEpoch }
    const given = params.map((one, i) => {
      const blocks = typeof one === 'string' ? behind[one] : undefined
      if (blocks !== undefined) return toHex(Math.max(0, head - blocks))
      return method === 'eth_call' && i === 0 ? readCall(one) : one
    })
    return await ask(method.replace(/^anvil_/, 'hardhat_'), given)
  }
  const answer = async (call: Call): Promise<unknown> => {
    const { id } = call
    try {
      return { jsonrpc: '2.0', id, result: (await perform(call)) ?? null }
    } catch (error) {
      return { jsonrpc: '2.0', id, error }
    }
  }
  return { answer, mineEvery }
}
