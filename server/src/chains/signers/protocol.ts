/**
 * How `work` asks `signer` for signatures, over a Unix socket: one JSON object per line, in both directions.
 *
 *   {"id":1,"list":true}
 *     → {"id":1,"addresses":["0x…","…"]}                 the accounts whose keys signer holds
 *   {"id":2,"network":"eip155:8453","address":"0x…","sign":{…}}
 *     → {"id":2,"signature":"…"}                          of exactly this transaction
 *     → {"id":2,"refusal":"a settler must not call 0x…"}  the policy does not allow it; the same will be refused again
 *
 * `sign` is the transaction, as the family of the network writes it (chains/evm/signer.ts, chains/svm/signer.ts). The
 * signer judges the transaction itself: it relies on nothing else that `work` says, has no database and asks no node.
 * It answers in order. Any other line, or one longer than `lineBytesMax`, gets a refusal with a null id, and the
 * connection ends. The answer is only a signature: the asking process puts it into the transaction it asked about, so a
 * signer can't change what is sent.
 *
 * Signatures are deterministic. A question whose answer was lost is asked again, and gets the same answer.
 */
export type Question = { readonly id: number } & (
  | { readonly list: true }
  | { readonly network: string; readonly address: string; readonly sign: unknown }
)

export type Answer =
  | { readonly id: number; readonly addresses: readonly string[] }
  | { readonly id: number; readonly signature: string }
  | { readonly id: number | null; readonly refusal: string }

/** A full batch through Multicall3 has about 170 KB. */
export const lineBytesMax = 512 * 1_024

/** Null if the line is not a question. */
export function readQuestion(line: string): Question | null {
  const read = parse(line)
  const { id, list, network, address, sign, ...more } = read ?? {}
  if (!Number.isSafeInteger(id) || Object.keys(more).length > 0) return null
  if (list === true) return (network ?? address ?? sign) ? null : { id: id as number, list }
  if (typeof network !== 'string' || typeof address !== 'string' || typeof sign !== 'object') return null
  return list === undefined && sign !== null ? { id: id as number, network, address, sign } : null
}

/** Null if the line is not an answer. */
export function readAnswer(line: string): Answer | null {
  const { id, addresses, signature, refusal } = parse(line) ?? {}
  if (typeof refusal === 'string') return { id: typeof id === 'number' ? id : null, refusal }
  if (typeof id !== 'number') return null
  if (typeof signature === 'string') return { id, signature }
  return Array.isArray(addresses) && addresses.every((one) => typeof one === 'string')
    ? { id, addresses }
    : null
}

/** Cuts what arrives into lines. Throws if a line is too long. */
export function openLines(): (chunk: Buffer) => string[] {
  let rest = ''
  const decoder = new TextDecoder()
  return (chunk) => {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if ([rest, ...lines].some(({ length }) => length > lineBytesMax)) throw new LineError()
    return lines
  }
}

export class LineError extends Error {
  override readonly name = 'LineError'
  override readonly message = `a line must not be longer than ${lineBytesMax} bytes`
}

function parse(line: string): Record<string, unknown> | null {
  try {
    const read: unknown = JSON.parse(line)
    return typeof read === 'object' && read !== null && !Array.isArray(read) ? { ...read } : null
  } catch {
    return null
  }
}
