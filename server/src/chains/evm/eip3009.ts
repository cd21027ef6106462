import assert from 'node:assert/strict'
import { keccak_256 } from '@noble/hashes/sha3'
import type { Hex } from 'viem'
import type { ChainLog } from './chain.ts'

/** What a payer signs under EIP-3009. Hex is lower case; the window is in seconds and excludes both ends. */
export type Authorization = {
  readonly from: Hex
  readonly to: Hex
  readonly value: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
}

/** A token's EIP-712 domain. */
export type Domain = {
  readonly name: string
  readonly version: string
  readonly chainId: bigint | number
  readonly verifyingContract: Hex
}

const domainTypeHash = hashText(
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
)
const transferTypeHash = hashText(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
)
const transferSelector = selectorOf(
  'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
)
const stateSelector = selectorOf('authorizationState(address,bytes32)')

const uint64Max = 2n ** 64n - 1n
const markerBytes = 16
/** A bound on memory: far more tokens than a server knows. */
const domainsMax = 256
const separators = new Map<string, Uint8Array>()

// Both buffers are filled again by every call, and no call yields in between. The bytes between the fields stay as they
// are: the type hash, the zeros before addresses, and the two bytes that EIP-712 puts first.
const struct = Buffer.alloc(7 * 32)
struct.set(transferTypeHash)
const envelope = Buffer.alloc(2 + 2 * 32)
envelope.set([0x19, 0x01])

/** The EIP-712 digest of TransferWithAuthorization, which the payer's key signs. Throws if a field does not fit. */
export function digest(domain: Domain, authorization: Authorization): Uint8Array {
  writeAuthorization(struct, 32, authorization)
  envelope.set(domainSeparator(domain), 2)
  envelope.set(keccak_256(struct), 34)
  return keccak_256(envelope)
}

/** The hash of a token's domain, equal to the token's own `DOMAIN_SEPARATOR()`. Callers must not modify it. */
export function domainSeparator(domain: Domain): Uint8Array {
  const { name, version, chainId, verifyingContract } = domain
  const key = `${chainId}:${verifyingContract}:${version.length}:${version}:${name}`
  const known = separators.get(key)
  if (known) return known
  const words = Buffer.alloc(5 * 32)
  words.set(domainTypeHash)
  words.set(hashText(name), 32)
  words.set(hashText(version), 64)
  writeUint(words, 96, BigInt(chainId))
  writeAddress(words, 128, verifyingContract)
  const separator = keccak_256(words)
  if (separators.size >= domainsMax) separators.clear()
  separators.set(key, separator)
  return separator
}

/**
 * Calldata of `transferWithAuthorization` with `bytes signature`, which works for ordinary and contract wallets. The
 * marker, 16 bytes, follows the encoding: the token ignores it, and it tells anyone who reads the chain which checkout
 * was paid.
 */
export function transferCalldata(authorization: Authorization, signature: Hex, marker: Hex = '0x'): Hex {
  const signatureBytes = bytesOf(signature)
  const suffix = bytesOf(marker)
  assert(suffix.length === 0 || suffix.length === markerBytes, 'a marker must be 16 bytes')
  const paddedLength = Math.ceil(signatureBytes.length / 32) * 32
  const data = Buffer.alloc(4 + 8 * 32 + paddedLength + suffix.length)
  data.set(transferSelector)
  writeAuthorization(data, 4, authorization)
  writeUint(data, 4 + 6 * 32, 7n * 32n)
  writeUint(data, 4 + 7 * 32, BigInt(signatureBytes.length))
  data.set(signatureBytes, 4 + 8 * 32)
  data.set(suffix, 4 + 8 * 32 + paddedLength)
  return `0x${data.toString('hex')}`
}

/** Reads what transferCalldata wrote: payer, nonce, signature, and the marker, if there is one. */
export function readTransferCalldata(
  calldata: Hex,
): { readonly payer: Hex; readonly nonce: Hex; readonly signature: Hex; readonly marker: Hex | null } | null {
  const read = decodeTransfer(calldata)
  if (!read) return null
  const { authorization, signature, marker } = read
  return { payer: authorization.from, nonce: authorization.nonce, signature, marker }
}

/** Reads everything that transferCalldata wrote. It is the same call only if writing it again gives the same bytes. */
export function decodeTransfer(
  calldata: Hex,
): { readonly authorization: Authorization; readonly signature: Hex; readonly marker: Hex | null } | null {
  const data = Buffer.from(calldata.slice(2), 'hex')
  if (data.length < 4 + 8 * 32 || !data.subarray(0, 4).equals(transferSelector)) return null
  const signatureLength = data.readUInt32BE(4 + 8 * 32 - 4)
  const end = 4 + 8 * 32 + Math.ceil(signatureLength / 32) * 32
  if (end > data.length) return null
  const hex = (from: number, to: number): Hex => `0x${data.subarray(from, to).toString('hex')}`
  const uint = (word: number) => BigInt(hex(4 + word * 32, 4 + (word + 1) * 32))
  return {
    authorization: {
      from: hex(4 + 12, 4 + 32),
      to: hex(4 + 32 + 12, 4 + 2 * 32),
      value: uint(2),
      validAfter: uint(3),
      validBefore: uint(4),
      nonce: hex(4 + 5 * 32, 4 + 6 * 32),
    },
    signature: hex(4 + 8 * 32, 4 + 8 * 32 + signatureLength),
    marker: data.length === end + markerBytes ? hex(end, end + markerBytes) : null,
  }
}

/**
 * Calldata of `authorizationState`. It returns true for a nonce that was used or canceled, so true does not mean
 * "paid".
 */
export function authorizationStateCalldata(payer: Hex, nonce: Hex): Hex {
  const data = Buffer.alloc(4 + 2 * 32)
  data.set(stateSelector)
  writeAddress(data, 4, payer)
  writeHex(data, 36, nonce, 32)
  return `0x${data.toString('hex')}`
}

/** First topics of the events that decide an authorization's outcome. */
export const topics = {
  authorizationUsed: topicOf('AuthorizationUsed(address,bytes32)'),
  authorizationCanceled: topicOf('AuthorizationCanceled(address,bytes32)'),
  transfer: topicOf('Transfer(address,address,uint256)'),
} as const

type Place = { readonly transactionHash: Hex; readonly logIndex: number }

/** An event about a payer's nonce, with its place. */
export type NonceEvent = Place & { readonly payer: Hex; readonly nonce: Hex }

/**
 * Money that moved. `position` counts, from 0, the Transfers of the transaction with the same token, payer, recipient
 * and amount. Unlike `logIndex`, it does not change when the transaction is included in another block behind other
 * transactions, and does not depend on which other events were read.
 */
type PlainTransfer = Place & {
  readonly payer: Hex
  readonly to: Hex
  readonly value: bigint
  readonly position: number
}

/** Money that moved by an authorization, with the place of its Transfer. */
type AuthorizedTransfer = PlainTransfer & { readonly nonce: Hex }

type Transfers = {
  /** AuthorizationUsed, directly followed by the same payer's Transfer. */
  readonly authorized: AuthorizedTransfer[]
  /** AuthorizationUsed without such a Transfer: the nonce is spent, but it is not known to have moved money. */
  readonly usedOnly: NonceEvent[]
  readonly canceled: NonceEvent[]
  /** Every other Transfer. */
  readonly plain: PlainTransfer[]
}

/**
 * Reads the logs of tokens, block by block. An authorization paid the amount in the very next log, if that is a
 * Transfer from the same payer, of the same token, in the same transaction. A Transfer that merely shares the
 * transaction may belong to another payment. Every Transfer is in exactly one list. Malformed and repeated logs are
 * ignored, and logs are sorted first: a pair that arrived out of order would read as a nonce spent on something else.
 */
export function readTransfers(logs: readonly ChainLog[]): Transfers {
  const transfers: Transfers = { authorized: [], usedOnly: [], canceled: [], plain: [] }
  const parsed = logs.map(parseLog).filter((log) => log !== undefined)
  for (const block of Map.groupBy(parsed, ({ blockHash }) => blockHash).values()) readBlock(block, transfers)
  return transfers
}

function readBlock(unordered: readonly Parsed[], { authorized, usedOnly, canceled, plain }: Transfers): void {
  const logs = unordered
    .toSorted((a, b) => a.logIndex - b.logIndex)
    .filter((log, i, all) => log.logIndex !== all[i - 1]?.logIndex)
  const positions = new Map<string, number>()
  for (const [i, log] of logs.entries()) {
    const { transactionHash, logIndex, payer } = log
    if (log.event === 'canceled') canceled.push({ payer, nonce: log.nonce, transactionHash, logIndex })
    if (log.event === 'used' && !isPair(log, logs[i + 1]))
      usedOnly.push({ payer, nonce: log.nonce, transactionHash, logIndex })
    if (log.event !== 'transfer') continue
    const group = [transactionHash, log.address, payer, log.to, log.value].join()
    const position = positions.get(group) ?? 0
    positions.set(group, position + 1)
    const transfer = { payer, to: log.to, value: log.value, transactionHash, logIndex, position }
    const before = logs[i - 1]
    if (before?.event === 'used' && isPair(before, log)) authorized.push({ ...transfer, nonce: before.nonce })
    else plain.push(transfer)
  }
}

function isPair(used: Parsed, next: Parsed | undefined): boolean {
  return (
    next?.event === 'transfer' &&
    next.logIndex === used.logIndex + 1 &&
    next.transactionHash === used.transactionHash &&
    next.address === used.address &&
    next.payer === used.payer
  )
}

type Parsed = Place & { readonly address: string; readonly blockHash: string; readonly payer: Hex } & (
    | { readonly event: 'used' | 'canceled'; readonly nonce: Hex }
    | { readonly event: 'transfer'; readonly to: Hex; readonly value: bigint }
  )

const addressForm = /^0x[0-9a-f]{40}$/
const wordForm = /^0x[0-9a-f]{64}$/
const addressWordForm = /^0x0{24}[0-9a-f]{40}$/

function parseLog(log: ChainLog): Parsed | undefined {
  if (!Array.isArray(log?.topics) || !Number.isSafeInteger(log.logIndex) || log.logIndex < 0) return undefined
  const [topic, payerWord = '0x', second = '0x', ...more] = log.topics.map(lower)
  const address = lower(log.address)
  const blockHash = lower(log.blockHash)
  const transactionHash = lower(log.transactionHash)
  const data = lower(log.data)
  const isPlaced = addressForm.test(address) && wordForm.test(blockHash) && wordForm.test(transactionHash)
  if (!isPlaced || !addressWordForm.test(payerWord) || more.length > 0) return undefined
  const place = { address, blockHash, transactionHash, logIndex: log.logIndex, payer: addressIn(payerWord) }
  if (topic === topics.transfer) {
    if (!addressWordForm.test(second) || !wordForm.test(data)) return undefined
    return { ...place, event: 'transfer', to: addressIn(second), value: BigInt(data) }
  }
  if (!wordForm.test(second) || data !== '0x') return undefined
  if (topic === topics.authorizationUsed) return { ...place, event: 'used', nonce: second }
  if (topic === topics.authorizationCanceled) return { ...place, event: 'canceled', nonce: second }
  return undefined
}

/** Nodes write hex in lower case, but comparisons must not depend on it. Anything but text becomes invalid hex. */
function lower(text: Hex): Hex {
  return typeof text === 'string' ? (text.toLowerCase() as Hex) : '0x?'
}

function addressIn(word: string): Hex {
  return `0x${word.slice(26)}`
}

/** The six fields as words, in the order that the signed struct and the call share. */
function writeAuthorization(words: Buffer, offset: number, authorization: Authorization): void {
  writeAddress(words, offset, authorization.from)
  writeAddress(words, offset + 32, authorization.to)
  writeUint(words, offset + 64, authorization.value)
  writeUint(words, offset + 96, authorization.validAfter)
  writeUint(words, offset + 128, authorization.validBefore)
  writeHex(words, offset + 160, authorization.nonce, 32)
}

function writeAddress(words: Buffer, offset: number, address: Hex): void {
  writeHex(words, offset + 12, address, 20)
}

/** Buffer.write stops at the first character that is not hex, which would leave bytes of an earlier call in place. */
function writeHex(words: Buffer, offset: number, hex: Hex, length: number): void {
  assert(hex.length === 2 + 2 * length && hex.startsWith('0x'), 'the hex has the wrong length')
  assert.equal(words.write(hex.slice(2), offset, length, 'hex'), length, 'not hex')
}

/** Throws a RangeError if the value is not a uint256. */
function writeUint(words: Buffer, offset: number, value: bigint): void {
  words.writeBigUInt64BE(value >> 192n, offset)
  words.writeBigUInt64BE((value >> 128n) & uint64Max, offset + 8)
  words.writeBigUInt64BE((value >> 64n) & uint64Max, offset + 16)
  words.writeBigUInt64BE(value & uint64Max, offset + 24)
}

function bytesOf(hex: Hex): Buffer {
  assert(/^0x(?:[0-9a-f]{2})*$/i.test(hex), 'not hex')
  return Buffer.from(hex.slice(2), 'hex')
}

function hashText(text: string): Uint8Array {
  return keccak_256(Buffer.from(text, 'utf8'))
}

function topicOf(event: string): Hex {
  return `0x${Buffer.from(hashText(event)).toString('hex')}`
}

function selectorOf(signature: string): Uint8Array {
  return hashText(signature).subarray(0, 4)
}
