import type { RpcCall } from './rpc.ts'

/** A request for the logs of a range of blocks. Each provider has its own limit for the size of the range. */
type LogRange = { readonly first: number; readonly last: number }

/** Null for any other call, including one for the logs of a single block by its hash. */
function rangeOf({ method, params }: RpcCall): LogRange | null {
  if (method !== 'eth_getLogs') return null
  const { fromBlock, toBlock } = params[0] as { fromBlock?: unknown; toBlock?: unknown }
  const [first, last] = [fromBlock, toBlock].map((block) => Number.parseInt(String(block), 16))
  return first !== undefined && last !== undefined && first <= last ? { first, last } : null
}

/** The number of blocks in a request for logs; 0 if the call has no range. */
export function countBlocks(call: RpcCall): number {
  const range = rangeOf(call)
  return range ? range.last - range.first + 1 : 0
}

/** The same request, divided into ranges of at most this many blocks. */
export function divideRange(call: RpcCall, blocksMax: number): RpcCall[] {
  const range = rangeOf(call)
  if (!range || countBlocks(call) <= blocksMax) return [call]
  const [filter] = call.params
  const parts: RpcCall[] = []
  for (let from = range.first; from <= range.last; from += blocksMax) {
    const to = Math.min(range.last, from + blocksMax - 1)
    const part = { ...(filter as object), fromBlock: toHex(from), toBlock: toHex(to) }
    parts.push({ ...call, params: [part] })
  }
  return parts
}

function toHex(number: number): string {
  return `0x${number.toString(16)}`
}
