import { isIPv6 } from 'node:net'
import type { FastifyReply } from 'fastify'
import { Problem } from '../problems.ts'

/**
 * Token buckets in memory. Each process counts for itself, so n processes allow n times the setting. That is enough to
 * protect a process; a quota across processes would need a second data store, and no money depends on it.
 */
export type Limiter = {
  /** Takes one token from a bucket and sets the RateLimit headers. Throws a Problem if the bucket is empty. */
  take(bucket: string, reply: FastifyReply): void
}

/** Limits memory. Beyond it the oldest bucket is dropped; if its key returns, it starts full. */
const bucketsMax = 100_000

export function openLimiter(name: string, perSecond: number, now: () => Date): Limiter {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const policy = `"${name}";q=${perSecond};w=1`

  return {
    take(key, reply) {
      const at = now().getTime()
      let bucket = buckets.get(key)
      if (!bucket) {
        bucket = { tokens: perSecond, at }
        buckets.set(key, bucket)
        if (buckets.size > bucketsMax) buckets.delete(buckets.keys().next().value as string)
      }
      const elapsed = Math.max(0, at - bucket.at) / 1_000
      bucket.tokens = Math.min(perSecond, bucket.tokens + elapsed * perSecond)
      bucket.at = at
      const isAllowed = bucket.tokens >= 1
      if (isAllowed) bucket.tokens -= 1
      const remaining = Math.floor(bucket.tokens)
      reply.header('ratelimit-policy', policy)
      reply.header('ratelimit', `"${name}";r=${remaining};t=1`)
      if (!isAllowed) {
        throw new Problem('rate_limited', `At most ${perSecond} requests per second are allowed here.`, {
          retryAfterSeconds: 1,
        })
      }
    },
  }
}

/** What counts as one address: in IPv6 a whole /64, because a single host can use all of it. */
export function addressBucket(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped?.[1]) return mapped[1]
  if (!isIPv6(address)) return address
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
