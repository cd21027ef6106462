import type { Hex } from '../hex.ts'
import { type Chain, multicall } from './chain.ts'
import { domainSeparator } from './eip3009.ts'

const domainSeparatorCall: Hex = '0x3644e515'

/**
 * Checks a chain against networks.ts: every token's EIP-712 domain is the one that payers will sign, and Multicall3 is
 * deployed. Returns one sentence per mistake. With a wrong domain, every payment would fail in the token after it was
 * claimed.
 */
export async function checkChain(chain: Chain): Promise<string[]> {
  const mistakes: string[] = []
  for (const { symbol, address, domain } of chain.network.assets) {
    const found = await chain.rpc.call<Hex>('eth_call', [
      { to: address, data: domainSeparatorCall },
      'latest',
    ])
    const verifyingContract = address.toLowerCase() as Hex
    const expected = domainSeparator({ ...domain, chainId: chain.chainId, verifyingContract })
    if (found.toLowerCase() !== `0x${Buffer.from(expected).toString('hex')}`) {
      mistakes.push(
        `${symbol} at ${address} on ${chain.network.name} does not have the domain ${domain.name} / ${domain.version}.`,
      )
    }
  }
  if ((await chain.rpc.call<Hex>('eth_getCode', [multicall, 'latest'])) === '0x') {
    mistakes.push(`Multicall3 is not deployed at ${multicall} on ${chain.network.name}.`)
  }
  return mistakes
}
