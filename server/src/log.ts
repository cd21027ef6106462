import { type DestinationStream, destination, type Logger, pino } from 'pino'

export type Log = Logger

/**
 * JSON lines on standard output. Secrets are redacted from the final text of every line: API keys, webhook secrets,
 * signatures, payment headers, private keys, and the credentials in a URL.
 */
export function openLog(level: string, stream: DestinationStream = destination({ fd: 1, sync: false })): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: redact },
    },
    stream,
  )
}

const secrets: readonly [RegExp, string][] = [
  [/\bsk_(live|test)_([0-9a-z]+)_[0-9a-z]+/g, 'sk_$1_$2_[redacted]'],
  [/\bwhsec_[A-Za-z0-9+/=_-]+/g, 'whsec_[redacted]'],
  // 64 hex digits or more: a private key, a signature, raw transaction bytes. A transaction hash has exactly 64 and is
  // public, so it is logged as txHash and kept.
  [/(?<!"txHash":")\b0x[0-9a-fA-F]{64,}/g, '0x[redacted]'],
  // A base64 header value: x402 payloads are JSON, so they all begin with the encoding of '{"'.
  [/\beyJ[A-Za-z0-9+/_-]{40,}={0,2}/g, '[redacted]'],
  [/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@"]+@/gi, '$1[redacted]@'],
  // RPC providers put the key in the path or the query.
  [/\b(https?:\/\/[^\s"/]+\/(?:v\d+\/|rpc\/)?)(?!ch_)[A-Za-z0-9_-]{24,}/g, '$1[redacted]'],
  [/([?&](?:key|apikey|api_key|token|secret)=)[^&\s"]+/gi, '$1[redacted]'],
]

function redact(text: string): string {
  let clean = text
  for (const [pattern, replacement] of secrets) clean = clean.replace(pattern, replacement)
  return clean
}
