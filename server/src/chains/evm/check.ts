import type { Hex } from '../hex.ts'
import { batcher, readHasBatcher } from './batcher.ts'
import type { Chain } from './chain.ts'
import { domainSeparator } from './eip3009.ts'
import { multicall } from './multicall.ts'

const domainSeparatorCall: Hex = '0x3644e515'
const decimalsCall: Hex = '0x313ce567'

/**
 * Checks a chain against networks.ts: every token has the EIP-712 domain that payers sign and the decimals that prices
 * use; Multicall3 and, on a live network, our batcher are deployed. Returns the differences, and how to fix each one.
 * With a wrong domain, every claimed payment would fail in the token. With wrong decimals, a dollar would be charged as
 * a million, or as nothing.
 */
export async function checkChain(chain: Chain): Promise<{ says: string; fix: string }[]> {
  const { id, name, mode, assets } = chain.network
  const differences: { says: string; fix: string }[] = []
  const useRealNodes = `Use nodes of the real ${name}.`
  for (const { symbol, address, decimals, domain } of assets) {
    const read = (data: Hex) => chain.rpc.call<Hex>('eth_call', [{ to: address, data }, 'latest'])
    const found = await read(domainSeparatorCall)
    const verifyingContract = address.toLowerCase() as Hex
    const expected = domainSeparator({ ...domain, chainId: chain.chainId, verifyingContract })
    if (found.toLowerCase() !== `0x${Buffer.from(expected).toString('hex')}`)
      differences.push({
        says: `${symbol} at ${address} on ${name} does not have the domain ${domain.name} / ${domain.version}.`,
        fix: useRealNodes,
      })
    const foundDecimals = await read(decimalsCall)
    if (foundDecimals === '0x' || BigInt(foundDecimals) !== BigInt(decimals))
      differences.push({
        says: `${symbol} at ${address} on ${name} does not have ${decimals} decimals.`,
        fix: useRealNodes,
      })
  }
  if ((await chain.rpc.call<Hex>('eth_getCode', [multicall, 'latest'])) === '0x')
    differences.push({ says: `Multicall3 is not deployed at ${multicall} on ${name}.`, fix: useRealNodes })
  // Through Multicall3, one payment can use up the gas of the others. Test networks may use it all the same.
  if (mode === 'live' && !(await readHasBatcher(chain)))
    differences.push({
      says: `The batcher is not deployed at ${batcher} on ${name}.`,
      fix: `Deploy it: farthing-admin settler deploy ${id}`,
    })
  return differences
}
