import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Abi, type Address, createTestClient, type Hex, http, pad, publicActions } from 'viem'
import { batcher } from '../chains/evm/batcher.ts'
import { networks } from '../networks.ts'
import { accountsOf, type LocalAsset } from './placement.ts'

/**
 * Stands in for the OP Stack's GasPriceOracle: answers every call with its argument (the size of a transaction, or its
 * gas) times the number in storage slot 0, which is 0 unless a test sets it.
 */
const oracleCode: Hex = '0x6004355f54025f5260205ff3'

/** A compiled contract, with the fields that solc, Hardhat and Foundry share. */
export type Artifact = { readonly abi: Abi; readonly bytecode: Hex; readonly deployedBytecode: Hex }
export type Artifacts = Readonly<Record<string, Artifact>>

export type LocalChainOptions = {
  readonly chainId: number
  /** null: blocks are mined only on request. */
  readonly blockTimeSeconds: number | null
  /** The tokens to place, as networks.ts describes them. */
  readonly assets: readonly LocalAsset[]
  readonly port?: number
  /** Where the chain is kept between runs; null to keep nothing. */
  readonly stateFile?: string
  /** If false, a transaction may use as much gas as a block. */
  readonly hasTransactionCap?: boolean
  /** Extra arguments for anvil. */
  readonly extraArgs?: readonly string[]
}

export type LocalChain = { readonly url: string; readonly stop: () => Promise<void> }

const multicallAddress = '0xcA11bde05977b3631167028862bE2a173976CA11'
const startTimeoutMs = 20_000
/** Room for the largest batches, far above a real block. */
const blockGasLimit = 300_000_000
/** `safe` is this many blocks behind the newest, `finalized` twice as many. */
const slotsInAnEpoch = 4
/**
 * Old states kept on disk, besides the newest in memory: how far back a reorg or a read at an old block can go. anvil's
 * default of 3,600 takes gigabytes, and with --prune-history it keeps them all in memory.
 */
const statesKept = 64

/**
 * A private chain in its own process: anvil, with our token behind a proxy at each asset's address, and Multicall3
 * and the batcher where public chains have them. For `dev` and tests. It listens on loopback only, its accounts are
 * those of the well-known test mnemonic, and it keeps nothing unless asked to. As on Base, a transaction may use at most
 * 16,777,216 gas (EIP-7825). Blocks are mined on a timer or on request, never instantly: instant mining leaves
 * transactions of parallel senders pending.
 */
export async function startLocalChain(options: LocalChainOptions): Promise<LocalChain> {
  const program = findAnvil()
  const folder = await mkdtemp(join(tmpdir(), 'farthing-chain-'))
  const anvil = spawn(program, anvilArguments(options, folder), {
    stdio: ['ignore', 'pipe', 'pipe'],
    // Not in our process group: Ctrl-C stops us, and we stop the chain once nothing needs it.
    detached: true,
  })
  // anvil saves its state only when it gets a stop signal.
  const signal = options.stateFile === undefined ? 'SIGKILL' : 'SIGTERM'
  const guard = guardAgainstOrphan(anvil, folder, signal)
  const stop = async () => {
    anvil.ref()
    if (anvil.pid && anvil.exitCode === null && anvil.signalCode === null) {
      anvil.kill(signal)
      await once(anvil, 'exit')
    }
    guard.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const url = await waitUntilListening(anvil)
    await place(url, options)
    return { url, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The contracts in server/contracts, compiled. */
export async function readArtifacts(): Promise<Artifacts> {
  return JSON.parse(await readFile(new URL('../../contracts/artifacts.json', import.meta.url), 'utf8'))
}

function anvilArguments(
  { chainId, blockTimeSeconds, port, stateFile, hasTransactionCap = true, extraArgs = [] }: LocalChainOptions,
  folder: string,
): string[] {
  return [
    ...['--host', '127.0.0.1', '--port', `${port ?? 0}`, '--chain-id', `${chainId}`],
    ...(blockTimeSeconds === null ? ['--no-mining'] : ['--block-time', `${blockTimeSeconds}`]),
    ...['--gas-limit', `${blockGasLimit}`],
    ...(hasTransactionCap ? ['--enable-tx-gas-limit'] : []),
    ...['--slots-in-an-epoch', `${slotsInAnEpoch}`],
    ...['--max-persisted-states', `${statesKept}`, '--cache-path', folder],
    ...(stateFile === undefined ? [] : ['--state', stateFile]),
    ...extraArgs,
  ]
}

/** The program itself, not the script in node_modules/.bin, which would be one more process to stop. */
function findAnvil(): string {
  const name = `@foundry-rs/anvil-${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`
  try {
    const installed = createRequire(import.meta.resolve('@foundry-rs/anvil/package.json'))
    return installed.resolve(`${name}/bin/anvil`)
  } catch (cause) {
    throw new Error(`A local chain needs ${name}, a development dependency: run npm install.`, { cause })
  }
}

/** Stops anvil when this process ends in any way: the shell waits on a pipe that this process holds open. */
function guardAgainstOrphan(
  anvil: ChildProcess,
  folder: string,
  signal: 'SIGKILL' | 'SIGTERM',
): ChildProcess {
  const script = `read _; kill -${signal.slice(3)} "$0"; rm -rf "$1"`
  const guard = spawn('/bin/sh', ['-c', script, `${anvil.pid}`, folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  // A chain that was not stopped must not keep this process alive either.
  for (const child of [guard, anvil]) {
    child.unref()
    for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as Socket | null)?.unref()
  }
  return guard
}

/** anvil picks a free port and prints it: one chosen in advance could be taken by another process. */
async function waitUntilListening(anvil: ChildProcess): Promise<string> {
  let output = ''
  anvil.stderr?.on('data', (chunk) => {
    output += chunk
  })
  return await new Promise((resolve, reject) => {
    const fail = (what: string) => reject(new Error(`anvil ${what}:\n${output}`))
    const timer = setTimeout(fail, startTimeoutMs, 'did not listen in time')
    anvil.once('error', reject)
    anvil.once('close', (code) => {
      clearTimeout(timer)
      fail(`exited with ${code}`)
    })
    createInterface({ input: anvil.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const [, address] = /^Listening on (127\.0\.0\.1:\d+)$/.exec(line) ?? []
      if (!address) return
      clearTimeout(timer)
      resolve(`http://${address}`)
    })
  })
}

/** Puts everything except accounts on a new local chain, which has anvil's methods. */
export async function place(url: string, { chainId, assets }: LocalChainOptions): Promise<void> {
  const client = createTestClient({ mode: 'anvil', transport: http(url) }).extend(publicActions)
  const answered = await client.getChainId()
  if (answered !== chainId) throw new Error(`${url} is chain ${answered}, not ${chainId}.`)
  await client.setLoggingEnabled(false)
  const { Token, TokenProxy, TokenSignatures, Multicall3, Batcher } = await readArtifacts()
  if (!Token || !TokenProxy || !TokenSignatures || !Multicall3 || !Batcher)
    throw new Error('server/contracts/artifacts.json lacks a contract.')
  await client.setCode({ address: multicallAddress, bytecode: Multicall3.deployedBytecode })
  await client.setCode({ address: batcher, bytecode: Batcher.deployedBytecode })
  const network = networks.find(({ caip2 }) => caip2 === `eip155:${chainId}`)
  const gasPriceOracle = network?.family === 'EVM' ? network.gasPriceOracle : undefined
  if (gasPriceOracle) await client.setCode({ address: gasPriceOracle, bytecode: oracleCode })
  for (const asset of assets) {
    const accounts = await accountsOf(asset, { Token, TokenProxy, TokenSignatures })
    for (const [key, { code, storage = {} }] of Object.entries(accounts)) {
      const address = key as Address
      await client.setCode({ address, bytecode: code })
      for (const [index, value] of Object.entries(storage))
        await client.setStorageAt({ address, index: index as Hex, value: pad(value) })
    }
  }
}
