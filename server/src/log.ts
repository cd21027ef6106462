import { type DestinationStream, destination, type Logger, pino } from 'pino'

export type Log = Logger

/**
 * JSON lines on standard output. Secrets are redacted from the final text of every line: API keys, webhook secrets,
 * signatures, payment headers, private keys, the credentials in a URL, the tokens of address request links, and e-mail
 * addresses.
 */
export function openLog(level: string, stream: DestinationStream = openStandardOutput()): Log {
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

/** For commands, whose standard output is their answer. */
export function openStandardError(): DestinationStream {
  return destination({ fd: 2, sync: true })
}

function openStandardOutput(): DestinationStream {
  // Written by this thread: a write on another thread may still be under way when the process exits, and would then
  // come after the lines written at the exit, or between them.
  const output = destination({ fd: 1, sync: true })
  const blocks = openBlocks(output)
  // Before pino's own listeners, which write what the output holds.
  process.prependListener('beforeExit', blocks.leave)
  process.prependListener('exit', blocks.leave)
  return blocks
}

/** A write for every line takes about a twentieth of the processor time of a busy `serve`. */
const blockCharacters = 8_192
/** How long a line may wait for others. A process that is killed loses the lines that wait, and nothing else does. */
const blockMs = 200

/**
 * Collects lines that follow each other closely, and writes them together. A line after a pause leaves at once, and so
 * does an error, with everything before it. The order stays.
 */
export function openBlocks(output: DestinationStream): DestinationStream & { readonly leave: () => void } {
  let block = ''
  let timer: NodeJS.Timeout | null = null

  function leave(): void {
    if (block === '') return
    const lines = block
    block = ''
    output.write(lines)
  }

  function wait(): void {
    timer = setTimeout(() => {
      timer = null
      if (block === '') return
      leave()
      wait()
    }, blockMs)
    // Lines that wait don't keep a process alive: they leave when it ends.
    timer.unref()
  }

  return {
    leave,
    write(line) {
      block += line
      if (timer === null || block.length >= blockCharacters || isError(line)) leave()
      if (timer === null) wait()
    },
  }
}

function isError(line: string): boolean {
  return line.startsWith('{"level":"error"') || line.startsWith('{"level":"fatal"')
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
  // The link of an address request has its cell and token in the path. The page behind it has the refund's id there.
  [/(\/refund\/)(?!rf_|:key)[^\s"?#\\]+/g, '$1[redacted]'],
  // In the address of the sign-in that leads back to the link, it is encoded.
  [/((?:\/stop-mails\/|(?:\/|%2F)account(?:\/|%2F)email(?:\/|%2F)))(?!:token)[^\s"?#\\]+/g, '$1[redacted]'],
  // Whoever knows these can write into a store's channel.
  [/(\bhooks\.slack\.com\/|\/api\/webhooks\/)(?!\*\*\*)[^\s"?#\\]+/g, '$1[redacted]'],
  [/\b([0-9a-z]{2}_)[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/g, '$1[redacted]'],
  // A mail server names the recipient when it refuses a mail.
  [/(?:\\"[^"\\]{1,64}\\"|[^\s"<>,;:@\\/()]{1,64})@[\p{L}\p{N}.-]+\.\p{L}{2,}/gu, '[address]'],
  [/([?&](?:key|apikey|api_key|token|secret)=)[^&\s"]+/gi, '$1[redacted]'],
]

/** Every text that a pattern above matches contains one of these. Most lines contain none. */
const signs =
  /sk_|whsec_|0x|eyJ|:\/\/|\/(?:refund|stop-mails|api\/webhooks)\/|account(?:\/|%2F)email|slack\.com\/|[?&@]|[0-9a-z]{2}_[A-Za-z0-9_-]{43}/

function redact(text: string): string {
  if (!signs.test(text)) return text
  let clean = text
  for (const [pattern, replacement] of secrets) clean = clean.replace(pattern, replacement)
  return clean
}
