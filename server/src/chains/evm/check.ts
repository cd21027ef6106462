import type { Hex } from '../hex.ts'
import { type Chain, multicall } from './chain.ts'
import { domainSeparator } from './eip3009.ts'

const domainSeparatorCall: Hex = '0x3644e515'
const decimalsCall: Hex = '0x313ce567'

/**
 * Checks a chain against networks.ts: every token has the EIP-712 domain that payers will sign and the decimals that we
 * price with, and Multicall3 is deployed. Returns one sentence per mistake. With a wrong domain, every payment would
 * fail in the token after it was claimed; with wrong decimals, a dollar would be asked for as a million, or as nothing.
 */
export async function checkChain(chain: Chain): Promise<string[]> {
  const mistakes: string[] = []
  for (const { symbol, address, decimals, domain } of chain.network.assets) {
    const read = (data: Hex) => chain.rpc.call<Hex>('eth_call', [{ to: address, data }, 'latest'])
    const found = await read(domainSeparatorCall)
    const verifyingContract = address.toLowerCase() as Hex
    const expected = domainSeparator({ ...domain, chainId: chain.chainId, verifyingContract })
    if (found.toLowerCase() !== `0x${Buffer.from(expected).toString('hex')}`) {
      mistakes.push(
        `${symbol} at ${address} on ${chain.network.name} does not have the domain ${domain.name} / ${domain.version}.`,
      )
    }
    const foundDecimals = await read(decimalsCall)
    if (foundDecimals === '0x' || BigInt(foundDecimals) !== BigInt(decimals)) {
      mistakes.push(`${symbol} at ${address} on ${chain.network.name} does not have ${decimals} decimals.`)
    }
  }
  if ((await chain.rpc.call<Hex>('eth_getCode', [multicall, 'latest'])) === '0x') {
    mistakes.push(`Multicall3 is not deployed at ${multicall} on ${chain.network.name}.`)
  }
  return mistakes
}
