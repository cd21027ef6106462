import { BlockList, isIP } from 'node:net'
import type { Config } from '../../config/settings.ts'
import type { Mistake } from '../../problems.ts'

/**
 * Which addresses webhooks may be sent to. Stores choose the URL, so it must not lead into our own network: any address
 * that is not clearly public is refused. For IPv6 only global unicast counts as public, minus its special ranges
 * (documentation, tunnels to IPv4); mapped, translated, local and multicast addresses are outside it.
 */
const refused4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]
const public6 = ['2000::/3']
const refused6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20']
/** Receivers use TLS on these. Other ports would let stores use us to scan other people's machines. */
const ports = ['', '443', '8443']

const notPublic4 = toList(refused4)
const global6 = toList(public6)
const special6 = toList(refused6)
const loopback = toList(['127.0.0.0/8', '::1/128'])

export type Reach = {
  /** Whether such a store's deliveries may connect to this address and port. As in a URL, '' is the default port. */
  allows(address: string, port: string): boolean
  /** What is wrong with a URL, as far as that is known before its name is looked up. */
  check(pointer: string, url: URL): Mistake[]
}

/**
 * What the stores of one mode may reach. Loopback is only for test stores, and only if the deployment's own URL is a
 * loopback address, as in `dev`: anywhere else a stranger's store would reach the operator's machine.
 */
export function reachOf(config: Config, mode: 'live' | 'test'): Reach {
  const allowed = toList(config.webhookPrivateNetworks)
  const own = new URL(config.baseUrl).hostname
  const mayLoop = mode === 'test' && isLocalName(own)

  /** The operator's own receivers may listen on any port. */
  function isExempt(address: string): boolean {
    return isIn(allowed, address) || (mayLoop && isIn(loopback, address))
  }

  return {
    allows: (address, port) => isExempt(address) || (isPublic(address) && ports.includes(port)),
    check(pointer, url) {
      const mistake = (detail: string) => [{ pointer, code: 'url', detail }]
      const host = literalOf(url) ?? (isLocalName(url.hostname) ? '127.0.0.1' : null)
      if (host !== null && !isExempt(host) && !isPublic(host))
        return mistake('Must not be a private, local or reserved address.')
      // Where private ranges are allowed, only the lookup tells whether a name leads into one.
      const mayBeExempt = host === null ? config.webhookPrivateNetworks.length > 0 : isExempt(host)
      return mayBeExempt || ports.includes(url.port) ? [] : mistake('Must use port 443 or 8443.')
    },
  }
}

function isPublic(address: string): boolean {
  return isIP(address) === 4 ? !isIn(notPublic4, address) : isIn(global6, address) && !isIn(special6, address)
}

/** The IP address in a URL that has one instead of a name. */
export function literalOf(url: URL): string | null {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(host) === 0 ? null : host
}

/** Whether a name means this machine, whatever DNS says. */
export function isLocalName(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
  return host === 'localhost' || host.endsWith('.localhost') || isIn(loopback, host)
}

function isIn(list: BlockList, address: string): boolean {
  const family = isIP(address)
  // Node's list treats ::ffff:10.0.0.1 as 10.0.0.1, like a socket does.
  return family !== 0 && list.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

function toList(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits = ''] = range.split('/')
    list.addSubnet(address, Number.parseInt(bits, 10), isIP(address) === 4 ? 'ipv4' : 'ipv6')
  }
  return list
}
