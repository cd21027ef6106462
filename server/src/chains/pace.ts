import type { RpcCall } from './rpc.ts'

/**
 * Keeps to the rate that a provider allows. Calls wait only after the provider has refused some because of its limit.
 * From then on they go out at a rate learned from refusals, which grows while there are none. Waiting calls go in order
 * of importance: those that send money, then those that find payments, then those that accept new payments.
 */
export type Pace = {
  /**
   * Resolves to true when `count` calls may be made, or to false if that takes longer than `waitMs`, or once nobody
   * waits for the answers.
   */
  enter(question: readonly RpcCall[], count: number, waitMs: number, over?: AbortSignal): Promise<boolean>
  /** The provider refused because of too many calls. */
  slowDown(retryAfterMs: number | null): void
  /** Calls per second; null as long as no limit is known. */
  readonly perSecond: number | null
}

const ranks: readonly ReadonlySet<string>[] = [
  new Set(['eth_sendRawTransaction', 'sendTransaction']),
  new Set([
    ...['eth_blockNumber', 'eth_getBlockByNumber', 'eth_getBlockByHash', 'eth_getLogs'],
    ...['getSignatureStatuses', 'getSignaturesForAddress', 'getSlot', 'getBlockHeight'],
  ]),
  new Set([
    ...['eth_call', 'eth_getTransactionCount', 'eth_getBalance', 'simulateTransaction'],
    ...['getLatestBlockhash', 'getMultipleAccounts', 'getAccountInfo'],
  ]),
]

/** How long a provider is not called after a refusal that names no time. */
const restMs = 1_000
const restMsMax = 10_000
/**
 * After a refusal the rate falls to this share of what it was, or of the last second's calls if there was no rate yet.
 */
const slowerBy = 0.7
/**
 * What each call adds to the rate: a quarter of a call per second. Nodes also refuse for reasons that have nothing to
 * do with the rate.
 */
const fasterBy = 0.25
/**
 * The same from this share of the rate that was refused last. Each refusal costs a rest, so the rate stays just below
 * it for as long as possible.
 */
const nearRefused = 0.85
const fasterNearBy = 0.02
/** No provider allows less. */
const perSecondMin = 5
/** No provider limits clients to more than this, so a rate that reaches it is dropped. */
const perSecondMax = 500

type Waiting = { readonly rank: number; readonly count: number; readonly go: (isAllowed: boolean) => void }

export function openPace(): Pace {
  let perSecond: number | null = null
  /** The rate that was refused last. */
  let refused = Number.POSITIVE_INFINITY
  /** Calls of the last second. */
  let recent = 0
  let resting: NodeJS.Timeout | null = null
  let isRefused = false
  let waiting: Waiting[] = []

  function note(count: number): void {
    recent += count
    setTimeout(() => (recent -= count), 1_000).unref()
    if (perSecond === null) return
    perSecond += (perSecond < nearRefused * refused ? fasterBy : fasterNearBy) * count
    if (perSecond > perSecondMax) perSecond = null
  }

  function restFor(ms: number): void {
    if (resting) clearTimeout(resting)
    resting = setTimeout(release, ms)
  }

  /** Lets the most urgent waiting call go, and the next one as soon as the rate allows. */
  function release(): void {
    resting = null
    isRefused = false
    while (!resting && waiting.length > 0) {
      const next = waiting.reduce((most, one) => (one.rank < most.rank ? one : most))
      waiting = waiting.filter((one) => one !== next)
      take(next.count)
      next.go(true)
    }
  }

  function take(count: number): void {
    note(count)
    if (perSecond !== null) restFor((count * 1_000) / perSecond)
  }

  return {
    async enter(question, count, waitMs, over) {
      if (over?.aborted) return false
      if (!resting && waiting.length === 0) {
        take(count)
        return true
      }
      const { promise, resolve } = Promise.withResolvers<boolean>()
      const giveUp = () => one.go(false)
      const timer = setTimeout(giveUp, waitMs)
      over?.addEventListener('abort', giveUp)
      const one: Waiting = {
        rank: Math.min(...question.map(rankOf)),
        count,
        go(isAllowed) {
          clearTimeout(timer)
          over?.removeEventListener('abort', giveUp)
          waiting = waiting.filter((other) => other !== one)
          resolve(isAllowed)
        },
      }
      waiting.push(one)
      return await promise
    },
    slowDown(retryAfterMs) {
      // Requests that were in flight together are refused together, so only the first refusal lowers the rate.
      if (!isRefused) {
        const rate = perSecond ?? recent
        perSecond = Math.max(perSecondMin, rate * slowerBy)
        // A provider that refuses at such a rate has another reason.
        refused = perSecond === perSecondMin ? Number.POSITIVE_INFINITY : rate
      }
      isRefused = true
      restFor(Math.min(retryAfterMs ?? restMs, restMsMax))
    },
    get perSecond() {
      return perSecond
    },
  }
}

function rankOf({ method }: RpcCall): number {
  const rank = ranks.findIndex((methods) => methods.has(method))
  return rank === -1 ? ranks.length : rank
}
