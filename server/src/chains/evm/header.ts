import { keccak_256 } from '@noble/hashes/sha3'
import { toRlp } from 'viem/utils'
import type { Hex } from '../hex.ts'

/** A block header as nodes return it. */
export type RawHeader = { readonly number: Hex; readonly hash: Hex; readonly parentHash: Hex } & Readonly<
  Record<string, unknown>
>

/** The header's fields in the order in which they are hashed. Later forks added fields at the end. */
const words = [
  'parentHash',
  'sha3Uncles',
  'miner',
  'stateRoot',
  'transactionsRoot',
  'receiptsRoot',
  'logsBloom',
]
const quantities = ['difficulty', 'number', 'gasLimit', 'gasUsed', 'timestamp']
const seals = ['extraData', 'mixHash', 'nonce']
const added: readonly { readonly name: string; readonly isQuantity: boolean }[] = [
  { name: 'baseFeePerGas', isQuantity: true },
  { name: 'withdrawalsRoot', isQuantity: false },
  { name: 'blobGasUsed', isQuantity: true },
  { name: 'excessBlobGas', isQuantity: true },
  { name: 'parentBeaconBlockRoot', isQuantity: false },
  { name: 'requestsHash', isQuantity: false },
]

/**
 * Whether a header hashes to the hash it claims. False may also mean that a newer fork added a field that we do not
 * know, so it proves a lie only where another provider's header of the same height does hash to its name.
 */
export function isGenuine(header: RawHeader): boolean {
  const hex = (name: string) => String(header[name] ?? '0x') as Hex
  const fields = [
    ...words.map(hex),
    ...quantities.map((name) => minimal(hex(name))),
    ...seals.map(hex),
    ...added
      .filter(({ name }) => header[name] !== undefined && header[name] !== null)
      .map(({ name, isQuantity }) => (isQuantity ? minimal(hex(name)) : hex(name))),
  ]
  try {
    return hash(Buffer.from(toRlp(fields).slice(2), 'hex')) === header.hash.toLowerCase()
  } catch {
    // Not hex: nothing that hashes to anything.
    return false
  }
}

const hashed = [...words, ...quantities, ...seals, ...added.map(({ name }) => name)]

/** How many of the fields that are hashed a header has. */
export function countHashed(header: RawHeader): number {
  return hashed.filter((name) => (header[name] ?? null) !== null).length
}

/** The fields that a header must have lost if it does not hash to its name; of those that came with forks, all it lacks. */
export function listLacking(header: RawHeader): string[] {
  const lacks = (name: string) => (header[name] ?? null) === null
  const lost = [...words, ...quantities, ...seals].filter(lacks)
  return lost.length > 0 ? lost : added.map(({ name }) => name).filter(lacks)
}

/** Whether a header is the other one, apart from fields that it lacks. */
export function isPartOf(header: RawHeader, whole: RawHeader): boolean {
  const text = (value: unknown) =>
    String(value)
      .toLowerCase()
      .replace(/^0x0+(?=.)/, '0x')
  return hashed.every(
    (name) => (header[name] ?? null) === null || text(header[name]) === text(whole[name] ?? ''),
  )
}

/** Whether a block with this bloom filter can contain a log with this address and these topics. */
export function canContain(header: RawHeader, log: { address: Hex; topics: readonly Hex[] }): boolean {
  const bloom = bloomOf(header)
  // A node that leaves the bloom out proves nothing.
  if (bloom.length !== bloomBytes) return true
  return isInBloom(bloom, log.address) && log.topics.every((value) => isInBloom(bloom, value))
}

const bloomBytes = 256
/** A full block has thousands of logs to compare with its bloom. */
const blooms = new WeakMap<RawHeader, Buffer>()

function bloomOf(header: RawHeader): Buffer {
  const bloom = blooms.get(header) ?? Buffer.from(String(header.logsBloom ?? '').slice(2), 'hex')
  blooms.set(header, bloom)
  return bloom
}

function isInBloom(bloom: Buffer, value: Hex): boolean {
  return bitsOf(value).every((bit) => {
    const byte = bloom[bloomBytes - 1 - (bit >> 3)] ?? 0
    return (byte & (1 << (bit & 7))) !== 0
  })
}

/**
 * The bits of values seen before. Every provider reports the same values, a block is read more than once, and a payment
 * has each of its values in two logs; hashing them each time would take a third of the worker's time.
 */
const remembered = new Map<Hex, readonly number[]>()
/** The values of some thirty full batches; 2 MB. */
const rememberedMax = 10_000

/** Each value sets three bits: the lowest 11 bits of the first three 16-bit words of its hash. */
function bitsOf(value: Hex): readonly number[] {
  const known = remembered.get(value)
  if (known) return known
  const digest = Buffer.from(keccak_256(Buffer.from(value.slice(2), 'hex')))
  const bits = [0, 2, 4].map((offset) => digest.readUInt16BE(offset) & 0x7ff)
  if (remembered.size >= rememberedMax) remembered.clear()
  remembered.set(value, bits)
  return bits
}

/** RLP has no leading zeros, and zero is empty. */
function minimal(quantity: Hex): Hex {
  const digits = quantity.slice(2).replace(/^0+/, '')
  return digits === '' ? '0x' : `0x${digits.length % 2 === 0 ? '' : '0'}${digits}`
}

function hash(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(keccak_256(bytes)).toString('hex')}`
}
