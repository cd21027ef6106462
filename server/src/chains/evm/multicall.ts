import type { Hex } from '../hex.ts'
import { RpcUnavailableError } from '../rpc.ts'

/**
 * Many calls in one, through Multicall3's aggregate3. Each may fail without the others. Every payment is checked
 * through it several times, so encoding and decoding are written by hand: a general ABI library takes twenty times as
 * long.
 */
export const multicall: Hex = '0xca11bde05977b3631167028862be2a173976ca11'

export type Call = { readonly target: string; readonly callData: Hex }
export type CallResult = { readonly success: boolean; readonly returnData: Hex }

/** Generous for a simulation, and below the limit of common nodes. */
export const readGas = '0x2625a00'

/** Parameters for many reads in one eth_call, at a block tag or, by hash, at exactly one block. */
export function readManyParams(
  calls: readonly Call[],
  from: string,
  at: string | { blockHash: Hex },
): readonly unknown[] {
  return [{ from, to: multicall, data: aggregateCalldata(calls), gas: readGas }, at]
}

/** aggregate3((address target, bool allowFailure, bytes callData)[]) */
const selector = '82ad56cb'
const wordBytes = 32
const wordDigits = 2 * wordBytes

/**
 * An array of tuples with a dynamic member: its length, the offset of each tuple counted from after the length, and the
 * tuples. A tuple is target, allowFailure, the offset of its calldata, and the calldata: its length, and its bytes
 * padded to whole words.
 */
export function aggregateCalldata(calls: readonly Call[]): Hex {
  const places: string[] = []
  const tuples: string[] = []
  let place = calls.length * wordBytes
  for (const { target, callData } of calls) {
    const digits = callData.length - 2
    const words = Math.ceil(digits / wordDigits)
    places.push(word(place))
    tuples.push(
      target.slice(2).toLowerCase().padStart(wordDigits, '0'),
      word(1),
      word(3 * wordBytes),
      word(digits / 2),
      callData.slice(2).padEnd(words * wordDigits, '0'),
    )
    place += (4 + words) * wordBytes
  }
  return `0x${selector}${word(wordBytes)}${word(calls.length)}${places.join('')}${tuples.join('')}`
}

/** Reads what aggregateCalldata wrote. Null unless writing it again gives the same bytes. */
export function readAggregateCalldata(data: Hex): readonly Call[] | null {
  const hex = data.slice(2 + selector.length)
  const numberAt = (offset: number) => {
    const digits = hex.slice(2 * offset, 2 * offset + wordDigits)
    // Lengths and offsets fit into 6 digits, because no transaction is larger.
    return /^0{58}[0-9a-f]{6}$/.test(digits) ? Number.parseInt(digits, 16) : Number.NaN
  }
  if (!data.startsWith(`0x${selector}`)) return null
  const list = 2 * wordBytes
  const count = numberAt(wordBytes)
  if (!(2 * (list + count * wordBytes) <= hex.length)) return null
  const calls: Call[] = []
  for (let i = 0; i < count; i++) {
    const tuple = list + numberAt(list + i * wordBytes)
    const start = 2 * (tuple + 4 * wordBytes)
    const length = 2 * numberAt(tuple + 3 * wordBytes)
    if (!(start + length <= hex.length)) return null
    const target = hex.slice(2 * tuple + 24, 2 * tuple + wordDigits)
    calls.push({ target: `0x${target}`, callData: `0x${hex.slice(start, start + length)}` })
  }
  return calls
}

/**
 * Reads (bool success, bytes returnData)[]. A node may answer anything, so an answer that does not fit its own lengths
 * is refused.
 */
export function decodeAggregate(data: Hex): readonly CallResult[] {
  if (!isWords.test(data)) throw notMulticall()
  const hex = data.slice(2).toLowerCase()
  /** The offset or length at this byte, checked to be within the answer. */
  const numberAt = (offset: number): number => {
    const digits = hex.slice(2 * offset, 2 * offset + wordDigits)
    const number = digits.length === wordDigits ? Number.parseInt(digits, 16) : Number.NaN
    if (!(number <= hex.length)) throw notMulticall()
    return number
  }
  const list = numberAt(0) + wordBytes
  const count = numberAt(list - wordBytes)
  if (2 * (list + count * wordBytes) > hex.length) throw notMulticall()
  return Array.from({ length: count }, (_, i) => {
    const tuple = list + numberAt(list + i * wordBytes)
    const success = numberAt(tuple)
    const bytes = tuple + numberAt(tuple + wordBytes)
    const length = numberAt(bytes)
    const start = 2 * (bytes + wordBytes)
    if (success > 1 || start + 2 * length > hex.length) throw notMulticall()
    return { success: success === 1, returnData: `0x${hex.slice(start, start + 2 * length)}` as const }
  })
}

const isWords = /^0x(?:[0-9a-f]{64})+$/i

function word(number: number): string {
  return number.toString(16).padStart(wordDigits, '0')
}

function notMulticall(): Error {
  return new RpcUnavailableError('A node returned something that is not a Multicall3 result.')
}
