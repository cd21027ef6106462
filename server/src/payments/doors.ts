import { type Chain, type Hex, openChain, readHasCode } from '../chains/chain.ts'
import { networks } from '../chains/networks.ts'
import { openSimulate } from '../chains/simulate.ts'
import type { Context } from '../context.ts'
import { groupCommit } from '../db.ts'
import type { ChainDoor } from './verify.ts'

/** Simulations are run as nobody: a settler adds nothing to what the token decides. */
const nobody = '0x0000000000000000000000000000000000000001'
/** An address gets code when its owner says so, which is rare; a stale answer costs a lone simulation, no money. */
const codeRememberedMs = 30_000
const entriesMax = 50_000

/** The enabled EVM networks that have nodes. */
export function openChains(ctx: Context): Chain[] {
  const { config } = ctx
  const urls: Readonly<Record<string, readonly string[]>> = {
    BASE_MAINNET: config.baseMainnetRpcUrls,
    BASE_SEPOLIA: config.baseSepoliaRpcUrls,
    LOCAL: config.localRpcUrls,
  }
  return networks
    .filter((network) => network.family === 'EVM')
    .filter(({ chainId }) => config.networks.includes(chainId) && (urls[chainId]?.length ?? 0) > 0)
    .map((network) => openChain(network, urls[network.chainId] ?? [], ctx.now))
}

/** What `serve` asks a chain. */
export function openDoor(ctx: Context, chain: Chain): ChainDoor {
  return { chain, simulate: openSimulate(chain, nobody), hasCode: openHasCode(ctx, chain) }
}

function openHasCode(ctx: Context, chain: Chain): (address: Hex) => Promise<boolean> {
  const remembered = new Map<Hex, { at: number; hasCode: boolean }>()
  const ask = groupCommit<Hex, boolean>({
    write: (addresses) => readHasCode(chain, addresses),
    writeAgain: async (address) => (await readHasCode(chain, [address]))[0] ?? false,
    batchRowsMax: 100,
    batchesInFlightMax: 4,
  })
  return async (address) => {
    const now = ctx.now().getTime()
    const known = remembered.get(address)
    if (known && now - known.at < codeRememberedMs) return known.hasCode
    const hasCode = await ask(address)
    remembered.delete(address)
    remembered.set(address, { at: now, hasCode })
    if (remembered.size > entriesMax) remembered.delete(remembered.keys().next().value as Hex)
    return hasCode
  }
}
