import { settings } from '../config/settings.ts'
import type { Context } from '../context.ts'
import { replaceRates } from './rows.ts'
import type { Source } from './sources.ts'

/** Well under the shortest refresh interval, so that runs never pile up. */
const fetchTimeoutMs = 10_000
/** Real files are 2 to 40 kB. */
const fileBytesMax = 1_048_576

type Limits = { readonly timeoutMs: number; readonly bytesMax: number }

/**
 * Fetches a source's rates and stores all of them or none. Throws an Error with a sentence for the operator; stored
 * rates stay in use until they are too old.
 */
export async function refreshRates(
  ctx: Context,
  source: Source,
  now: Date,
  limits: Limits = { timeoutMs: fetchTimeoutMs, bytesMax: fileBytesMax },
): Promise<void> {
  // The URL may contain the operator's API key, so messages name its setting instead.
  const place = `${source.name} rates (${settings[source.setting].name})`
  const text = await fetchText(ctx.config[source.setting], limits).catch((cause) => {
    throw new Error(`The ${place} could not be fetched: ${reason(cause)}.`, { cause })
  })
  const newest = await replaceRates(ctx.db, source, parse(source, text, now, place), now)
  ctx.metrics.rateAge.set({ source: source.name }, (now.getTime() - newest.getTime()) / 1000)
}

function parse(source: Source, text: string, now: Date, place: string) {
  try {
    return source.parse(text, now)
  } catch (cause) {
    throw new Error(`The ${place} were rejected: the file ${reason(cause)}.`, { cause })
  }
}

/** The limits apply to the whole response: a body that trickles in or never ends is cut off while it arrives. */
async function fetchText(url: string, limits: Limits): Promise<string> {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(limits.timeoutMs) })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`the server answered ${response.status}`)
  }
  const body: AsyncIterable<Uint8Array> | null = response.body
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > limits.bytesMax) throw new Error(`the response is larger than ${limits.bytesMax} bytes`)
    chunks.push(chunk)
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
}

/** fetch says only "fetch failed"; what happened is in its cause, sometimes without a message. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return 'the response took too long'
  if (error.cause instanceof Error && error.message === 'fetch failed') return reason(error.cause)
  return error.message || ('code' in error ? String(error.code) : error.name)
}
