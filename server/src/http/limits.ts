import { isIPv6 } from 'node:net'
import type { FastifyReply } from 'fastify'
import { Problem } from '../problems.ts'

/**
 * Token buckets in memory. Each process counts for itself, so n processes allow n times the setting. That is enough to
 * protect a process, and no money depends on it. The proxy for several cells (ops/haproxy) counts once for all of them:
 * it learns from RateLimit-Policy that a key is valid.
 */
export type Limiter = {
  /** Takes one token from a bucket and sets the RateLimit headers. Throws a Problem if the bucket is empty. */
  take(bucket: string, reply: FastifyReply): void
  /** Takes one token from a bucket, unless it is empty. */
  tryTake(bucket: string): boolean
}

/** Limits memory. Beyond it the oldest bucket is dropped; if its key returns, it starts full. */
const bucketsMax = 100_000

/** Each bucket holds `count` tokens and gets as many per window. `take` is for windows of a second. */
export function openLimiter(name: string, count: number, now: () => Date, windowSeconds = 1): Limiter {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const policy = `"${name}";q=${count};w=1`

  function tryTake(key: string): { readonly isTaken: boolean; readonly left: number } {
    const at = now().getTime()
    let bucket = buckets.get(key)
    if (!bucket) {
      bucket = { tokens: count, at }
      buckets.set(key, bucket)
      if (buckets.size > bucketsMax) buckets.delete(buckets.keys().next().value as string)
    }
    const elapsed = Math.max(0, at - bucket.at) / 1_000
    bucket.tokens = Math.min(count, bucket.tokens + (elapsed * count) / windowSeconds)
    bucket.at = at
    const isTaken = bucket.tokens >= 1
    if (isTaken) bucket.tokens -= 1
    return { isTaken, left: Math.floor(bucket.tokens) }
  }

  return {
    tryTake: (key) => tryTake(key).isTaken,
    take(key, reply) {
      const { isTaken, left } = tryTake(key)
      reply.header('ratelimit-policy', policy)
      reply.header('ratelimit', `"${name}";r=${left};t=1`)
      if (!isTaken) {
        throw new Problem('rate_limited', `At most ${count} requests per second are allowed here.`, {
          retryAfterSeconds: 1,
        })
      }
    },
  }
}

/** What counts as one address: in IPv6 a whole /64, because a single host can use all of it. */
export function addressBucket(address: string): string {
  if (!isIPv6(address)) return address
  const mapped = mappedIpv4(address)
  if (mapped !== null) return mapped
  const [head = '', tail] = address.split('::')
  const left = head.split(':').filter((part) => part !== '')
  const right = (tail ?? '').split(':').filter((part) => part !== '')
  const missing = tail === undefined ? 0 : 8 - left.length - right.length
  const groups = [...left, ...Array<string>(Math.max(0, missing)).fill('0'), ...right]
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}

/** The addresses that one customer of a provider can have: an IPv4 /24 or an IPv6 /48. */
export function addressBlock(address: string): string {
  return firstParts(address, 3)
}

/** Roughly the addresses of one provider in one region, among which its customers move: an IPv4 /16 or an IPv6 /32. */
export function addressNetwork(address: string): string {
  return firstParts(address, 2)
}

function firstParts(address: string, count: number): string {
  const bucket = addressBucket(address)
  const separator = bucket.includes('.') ? '.' : ':'
  return bucket.split(separator).slice(0, count).join(separator)
}

/** The IPv4 address inside an IPv4-mapped one, whether it is written ::ffff:192.0.2.7 or ::ffff:c000:207. */
function mappedIpv4(address: string): string | null {
  // A URL writes an IPv6 address in its shortest form, with hexadecimal groups only.
  const host = URL.parse(`http://[${address.split('%')[0]}]`)?.hostname ?? ''
  const [, high, low] = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(host) ?? []
  if (high === undefined || low === undefined) return null
  const [upper, lower] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
  return [upper >> 8, upper & 255, lower >> 8, lower & 255].join('.')
}
