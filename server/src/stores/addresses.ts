import { BlockList, isIP } from 'node:net'

/** A key's allow-list is for a store's own servers, not for its customers' networks. */
export const addressesMax = 20

/** An address or block as it is stored, or null if it is none: 192.0.2.7, 192.0.2.0/24, 2001:db8::/48. */
export function parseAddress(text: string): string | null {
  const [address = '', prefix, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || address.includes('%')) return null
  const bits = version === 4 ? 32 : 128
  if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number.parseInt(prefix, 10) > bits)) return null
  return `${address.toLowerCase()}/${prefix === undefined ? bits : Number.parseInt(prefix, 10)}`
}

/** Whether an address is in one of the stored blocks. */
export function isInside(blocks: readonly string[], address: string): boolean {
  const list = new BlockList()
  for (const block of blocks) {
    const [network = '', prefix = ''] = block.split('/')
    list.addSubnet(network, Number.parseInt(prefix, 10), network.includes(':') ? 'ipv6' : 'ipv4')
  }
  // A socket that listens for both kinds shows IPv4 addresses in their IPv6 form, which the list understands.
  return list.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
}
