import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { encodeFunctionData, parseAbi } from 'viem'
import { openSigner } from '../chains/evm/signer.ts'
import type { Hex } from '../chains/hex.ts'
import { forgetChain } from '../chains/rows.ts'
import type { Context } from '../context.ts'
import type { EvmNetwork } from '../networks.ts'
import { insertSettler, listSettlers, retireSettlers } from '../payments/settlers/rows.ts'
import { resetReserved } from '../payments/transfers/reserve.ts'
import { startLocalChain } from './local-chain.ts'

/**
 * The third account of the well-known test mnemonic. It pays in `dev`: on the page, where a script signs with it, and
 * on the command line. Anyone can spend its money, so never send anything of value there.
 */
export const testPayer = {
  address: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  key: '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a',
} as const

/** The fourth account of that mnemonic: the demo store's other buyers. */
export const demoBuyer = {
  address: '0x90F79bf6EB2c4f870365E785982E1f101E93b906',
  key: '0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6',
} as const

/** The tenth account of that mnemonic, which may mint. */
const faucet = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
/** What each payer gets at each start: 1,000 USDC. */
const allowance = 1_000_000_000n
const settlerWei = 100n * 10n ** 18n
/** Each block adds 1.8 KB, and one is mined per second, so this is about five hours. Every start reads all of it. */
const stateBytesMax = 32_000_000

type DevChain = {
  readonly url: string
  readonly keysFile: string
  /** Makes the database match the chain. */
  introduce(ctx: Context): Promise<void>
}

/**
 * The chain of `dev`, kept in a folder together with the key that pays gas on it. A new chain gets a new key, so a
 * database that has this key as a settler knows this chain; any other must forget what it knew.
 */
export async function openDevChain(
  folder: string,
  network: EvmNetwork,
  stops: (() => Promise<unknown>)[],
): Promise<DevChain> {
  const stateFile = join(folder, 'state.json')
  const keysFile = join(folder, 'settler.key')
  const size = (await stat(stateFile).catch(() => null))?.size ?? 0
  if (size === 0 || size > stateBytesMax) {
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true })
    await writeFile(keysFile, `0x${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  }
  const { url, stop } = await startLocalChain({
    chainId: chainIdOf(network),
    blockTimeSeconds: network.blockTimeMs / 1_000,
    assets: network.assets,
    stateFile,
  })
  stops.push(stop)
  // The first key is ours. `settler create` may have added others.
  const [key = ''] = (await readFile(keysFile, 'utf8')).trim().split('\n')
  const { address } = openSigner(key as Hex)
  await call(url, 'anvil_setBalance', [address, `0x${settlerWei.toString(16)}`])
  for (const { address: payer } of [testPayer, demoBuyer]) {
    const data = encodeFunctionData({
      abi: parseAbi(['function mint(address to, uint256 value) returns (bool)']),
      args: [payer, allowance],
    })
    for (const asset of network.assets)
      await call(url, 'eth_sendTransaction', [{ from: faucet, to: asset.address, data }])
  }
  return {
    url,
    keysFile,
    async introduce({ db }) {
      const settlers = await listSettlers(db, network.caip2)
      if (settlers.some((settler) => settler.address === address && settler.state === 'active')) return
      await forgetChain(db, network.caip2)
      await retireSettlers(db, network.caip2)
      await resetReserved(db, network.caip2)
      const nonce = await call(url, 'eth_getTransactionCount', [address, 'latest'])
      await insertSettler(db, network.caip2, address, Number.parseInt(nonce, 16))
    },
  }
}

export function chainIdOf({ caip2 }: EvmNetwork): number {
  return Number.parseInt(caip2.replace('eip155:', ''), 10)
}

async function call(url: string, method: string, params: readonly unknown[]): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const { result, error } = (await response.json()) as { result?: string; error?: { message: string } }
  assert(!error, `${method}: ${error?.message}`)
  return String(result)
}
