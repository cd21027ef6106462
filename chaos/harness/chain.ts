import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { encodeFunctionData, type Hex, pad, parseAbi } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { accountsOf } from '../../server/src/dev/placement.ts'
import type { Mined } from '../checker/history.ts'
import { ask, readNewest } from '../checker/read-chain.ts'
import { freePort } from '../database/database.ts'

/** Networks, as their documentation describes them. */
export const places = {
  LOCAL: placeOf('LOCAL', 31_337, '0x036cbd53842c5426634e7929541ec2318f3dcf7e', 'USDC'),
  BASE_MAINNET: placeOf('BASE_MAINNET', 8_453, '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', 'USD Coin'),
}
type Place = ReturnType<typeof placeOf>

function placeOf(id: string, chainId: number, token: Hex, name: string) {
  const domain = { name, version: '2', chainId, verifyingContract: token }
  return { id, network: `eip155:${chainId}`, chainId, token, domain }
}

const multicall = '0xca11bde05977b3631167028862be2a173976ca11'
const batcher = '0x682de4ac8ec224ee64e6ac51160671c36e6d8913'
const contracts = new URL('../../server/contracts/artifacts.json', import.meta.url)
/** More blocks than any reorganisation is deep, so that the payers' initial funds are never taken back. */
const blocksBefore = 70
/** The account from which the harness itself sends: the tenth of the chain's accounts, for which the node signs. */
const hand = mnemonicToAccount('test test test test test test test test test test test junk', {
  addressIndex: 9,
}).address

const abi = parseAbi([
  'function mint(address to, uint256 value) returns (bool)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
])

export type ChaosChain = Awaited<ReturnType<typeof openChain>>

/** Shorter than the server's configured block time, so that a run sees more blocks, payments and reorganisations. */
const blockMs = 500

/**
 * How many block states anvil keeps, all in memory: more than any reorganisation is deep. By default it moves states to
 * disk after some hundred blocks, and reads them back without the contracts' code.
 */
const statesKept = 256

/** Starts anvil with our token, or with the one that TOKEN_ARTIFACT names. */
export async function openChain(folder: string, place: Place = places.LOCAL) {
  const { token, chainId } = place
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const anvil = spawn(
    findAnvil(),
    [
      ...['--host', '127.0.0.1', '--port', `${port}`, '--chain-id', `${chainId}`, '--no-mining', '--quiet'],
      ...['--gas-limit', '300000000', '--enable-tx-gas-limit', '--slots-in-an-epoch', '4'],
      ...['--prune-history', `${statesKept}`, '--cache-path', join(folder, 'chain')],
    ],
    { stdio: 'ignore' },
  )
  const call = async <Result>(method: string, ...params: unknown[]): Promise<Result> => {
    const [result] = await ask<Result>(url, [[method, ...params]])
    return result as Result
  }
  let last: Promise<unknown> = Promise.resolve()
  /** Changes the chain one at a time: anvil loses blocks if two reorganisations overlap. */
  const alone = <Result>(change: () => Promise<Result>): Promise<Result> => {
    const mine = last.then(change)
    last = mine.catch(() => {})
    return mine
  }
  await untilListening(anvil, () => call('eth_chainId'))
  await placeContracts(call, place)
  /** When the chain first had a block of this number, or a little before. */
  const reachedAt = new Map<number, number>()
  const noteLength = async (at: number) => {
    const length = Number.parseInt(await call<string>('eth_blockNumber'), 16)
    for (let number = length; number >= 0 && !reachedAt.has(number); number--) reachedAt.set(number, at)
  }
  const countSent = async () =>
    Number.parseInt(await call<string>('eth_getTransactionCount', hand, 'pending'), 16)
  /** How many transactions the hand had sent before a reorganisation took some of them back. */
  let sentMax = 0
  /** The transactions in blocks that a reorganisation has replaced. */
  const replaced: Mined[] = []
  let isHalted = false
  let isMining = false
  const mining = setInterval(async () => {
    if (isHalted || isMining) return
    isMining = true
    // With our clock: anvil's own falls behind with every reorganised block.
    await alone(async () => {
      const at = Date.now()
      await call('evm_mine', Math.floor(at / 1_000))
      await noteLength(at)
    }).catch(() => {})
    isMining = false
  }, blockMs)

  return {
    url,
    place,
    call,
    reachedAt,
    replaced,
    async mint(accounts: readonly string[], units: bigint): Promise<void> {
      for (const account of [...accounts, hand]) {
        const data = encodeFunctionData({ abi, functionName: 'mint', args: [account as Hex, units] })
        await call('eth_sendTransaction', { from: hand, to: token, data, gas: '0x30d40' })
      }
      await call('anvil_mine', `0x${blocksBefore.toString(16)}`)
    },
    /** Mints units to an account and waits for three block times. */
    async fund(account: string, units: bigint): Promise<void> {
      const data = encodeFunctionData({ abi, functionName: 'mint', args: [account as Hex, units] })
      await call('eth_sendTransaction', { from: hand, to: token, data, gas: '0x30d40' })
      await wait(3 * blockMs)
    },
    /** Sends tokens without an authorization, from an account for which the node signs. Returns the transaction's hash. */
    async transfer(from: string | null, to: string, units: bigint): Promise<string> {
      const data = encodeFunctionData({ abi, functionName: 'transfer', args: [to as Hex, units] })
      return await call('eth_sendTransaction', { from: from ?? hand, to: token, data, gas: '0x30d40' })
    },
    /** A third party submits a payment to the chain, before or after we do. */
    async frontRun(authorized: Authorized, signature: Hex): Promise<void> {
      const { from, to, value, validAfter, validBefore, nonce } = authorized
      const args = [
        from,
        to,
        BigInt(value),
        BigInt(validAfter),
        BigInt(validBefore),
        nonce,
        signature,
      ] as const
      const data = encodeFunctionData({ abi, functionName: 'transferWithAuthorization', args })
      await call('eth_sendTransaction', { from: hand, to: token, data, gas: '0x30d40' })
    },
    /** Replaces the newest blocks with empty ones; the node forgets their transactions. */
    reorg: (depth: number) =>
      alone(async () => {
        sentMax = Math.max(sentMax, await countSent())
        replaced.push(...(await readNewest(url, depth)))
        await call('anvil_reorg', depth, [])
      }),
    /**
     * Uses the account nonces of transfers that a reorganisation took back. Until then they may still return, so a
     * payment by such a transfer would stay undecided for half an hour.
     */
    async replaceLost(): Promise<void> {
      const data = encodeFunctionData({ abi, functionName: 'mint', args: [hand as Hex, 1n] })
      while ((await countSent()) < sentMax)
        await call('eth_sendTransaction', { from: hand, to: token, data, gas: '0x30d40' })
    },
    /** Stops mining for a while. Returns false if it is already stopped. */
    async halt(ms: number): Promise<boolean> {
      if (isHalted) return false
      isHalted = true
      await wait(ms)
      isHalted = false
      return true
    },
    /** Stops mining for good, once the last block is done. */
    async end(): Promise<void> {
      clearInterval(mining)
      await last
    },
    async stop(): Promise<void> {
      clearInterval(mining)
      if (anvil.exitCode !== null || anvil.signalCode !== null) return
      anvil.kill('SIGKILL')
      await once(anvil, 'exit')
    },
  }
}

/** An authorization as it appears in a PAYMENT-SIGNATURE header. */
export type Authorized = {
  readonly from: Hex
  readonly to: Hex
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: Hex
}

/** Key and address of one of the accounts that have ether from the start. */
export function settlerKey(index: number): { key: Hex; address: string } {
  const account = mnemonicToAccount('test test test test test test test test test test test junk', {
    addressIndex: index,
  })
  const key = account.getHdKey().privateKey
  if (!key) throw new Error('the account has no key')
  return { key: `0x${Buffer.from(key).toString('hex')}`, address: account.address.toLowerCase() }
}

function findAnvil(): string {
  const name = `@foundry-rs/anvil-${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`
  const installed = createRequire(import.meta.resolve('@foundry-rs/anvil/package.json'))
  return installed.resolve(`${name}/bin/anvil`)
}

async function untilListening(anvil: ChildProcess, look: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (anvil.exitCode !== null) throw new Error(`anvil exited with ${anvil.exitCode}`)
    if (await look().catch(() => null)) return
    await wait(100)
  }
  throw new Error('anvil does not answer')
}

/** The token is behind a proxy contract at its address, as USDC is. */
async function placeContracts(
  call: <Result>(method: string, ...params: unknown[]) => Promise<Result>,
  { token, domain }: Place,
) {
  const artifacts = JSON.parse(await readFile(contracts, 'utf8')) as Record<string, { deployedBytecode: Hex }>
  const { Token, TokenProxy, TokenSignatures, Multicall3, Batcher } = artifacts
  if (!Token || !TokenProxy || !TokenSignatures || !Multicall3 || !Batcher)
    throw new Error('a contract is missing')
  await call('anvil_setCode', multicall, Multicall3.deployedBytecode)
  await call('anvil_setCode', batcher, Batcher.deployedBytecode)
  // Where Base has its GasPriceOracle: it answers every call with 0.
  await call('anvil_setCode', '0x420000000000000000000000000000000000000f', '0x5f5f5260205ff3')
  const { name, version } = domain
  const asset = { symbol: 'USDC', address: token, decimals: 6, domain: { name, version } }
  const accounts = await accountsOf(asset, { Token, TokenProxy, TokenSignatures })
  for (const [address, { code, storage = {} }] of Object.entries(accounts)) {
    await call('anvil_setCode', address, code)
    for (const [slot, value] of Object.entries(storage))
      await call('anvil_setStorageAt', address, slot, pad(value))
  }
}
