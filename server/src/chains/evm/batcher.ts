import assert from 'node:assert/strict'
import { keccak256 } from 'viem/utils'
import type { Hex } from '../hex.ts'
import type { Chain } from './chain.ts'
import type { Authorization } from './eip3009.ts'

/** Our batcher (server/contracts/Batcher.sol) has this address on every chain, because CREATE2 derives it from the code. */
export const batcher: Hex = '0x682de4ac8ec224ee64e6ac51160671c36e6d8913'
export const batcherCodeHash: Hex = '0xc99d8a7e13f1748828464767fca1562d6d63a4cc1055914c9e824ab2076d022e'
/** The deterministic deployer. Its calldata is a salt, here 0, and the code that creates the contract. */
export const deployer: Hex = '0x4e59b44847b379578588920ca78fbf26c0b4956c'
export const deployData: Hex = `0x${'0'.repeat(64)}${[
  '6080604052348015600e575f5ffd5b5061011b8061001c5f395ff3fe608060405234801561000f575f5ffd5b505f3560e01c',
  '6001603f6040610bb8840102040163e3ee160e5f5260045b36811015610119576014810135606090811c604052602a808301',
  '92803590921c91602881013560f01c609a02010136811115610067575f5ffd5b80831015610112578235606081811c602090',
  '81526bffffffffffffffffffffffff909216905283013560d881901c60805260b01c64ffffffffff1660a052603a83013560',
  'c052605a83013561010052601b607a84013560ff81901c9190910160e0527f7fffffffffffffffffffffffffffffffffffff',
  'ffffffffffffffffffffffffff1661012052835a10156100fb575f5ffd5b5f5f610124601c5f868af150609a830192506100',
  '67565b505061002d565b00',
].join('')}`

/** A payment in a batch. Its signature is the 65 bytes that recoverSigner returns. */
export type Packed = {
  readonly asset: string
  readonly authorization: Authorization
  readonly signature: Hex
  /** 16 bytes that name the checkout, or null. */
  readonly marker: Hex | null
}

const limitBytes = 4
const groupBytes = 20 + 20 + 2
const paymentBytes = 20 + 12 + 5 + 5 + 16 + 3 * 32
const groupMax = 2 ** 16 - 1
const noMarker = '00'.repeat(16)

/** Whether a transfer can be written in the batcher's form. If not, it can still be sent alone. */
export function isPackable({
  authorization,
  signature,
}: Pick<Packed, 'authorization' | 'signature'>): boolean {
  const { value, validAfter, validBefore } = authorization
  return (
    value < 2n ** 96n &&
    validAfter < 2n ** 40n &&
    validBefore < 2n ** 40n &&
    /^0x[0-9a-f]{64}[0-7][0-9a-f]{63}1[bc]$/.test(signature)
  )
}

/** Calldata for the batcher, in the form that Batcher.sol describes. `gasPerCall` is the most that one call may use. */
export function batchCalldata(payments: readonly Packed[], gasPerCall: bigint): Hex {
  const groups = Map.groupBy(payments, ({ asset, authorization }) => `${asset} ${authorization.to}`)
  let data = number(gasPerCall, limitBytes)
  for (const group of groups.values()) {
    assert(group[0] && group.length <= groupMax, 'a group is too large')
    const { asset, authorization } = group[0]
    data += bytes(asset, 20) + bytes(authorization.to, 20) + number(BigInt(group.length), 2)
    for (const payment of group) data += pack(payment)
  }
  return `0x${data}`
}

function pack({ authorization, signature, marker }: Packed): string {
  assert(isPackable({ authorization, signature }), 'the payment does not fit the batcher’s form')
  const { from, value, validAfter, validBefore, nonce } = authorization
  const r = signature.slice(2, 66)
  // The parity goes into the highest bit of s, which is 0 in a low s.
  const s = (BigInt(`0x${signature.slice(66, 130)}`) | (signature.endsWith('c') ? 1n << 255n : 0n)).toString(
    16,
  )
  return (
    bytes(from, 20) +
    number(value, 12) +
    number(validAfter, 5) +
    number(validBefore, 5) +
    (marker === null ? noMarker : bytes(marker, 16)) +
    bytes(nonce, 32) +
    r +
    s.padStart(64, '0')
  )
}

/** Reads what batchCalldata wrote. Null if it is not in that form. */
export function readBatchCalldata(calldata: Hex): Packed[] | null {
  const data = Buffer.from(calldata.slice(2), 'hex')
  const hex = (at: number, length: number): Hex => `0x${data.toString('hex', at, at + length)}`
  const payments: Packed[] = []
  let at = limitBytes
  while (at < data.length) {
    if (at + groupBytes > data.length) return null
    const asset = hex(at, 20)
    const to = hex(at + 20, 20)
    const end = at + groupBytes + data.readUInt16BE(at + 40) * paymentBytes
    if (end > data.length) return null
    for (at += groupBytes; at < end; at += paymentBytes) {
      const marker = hex(at + 42, 16)
      const s = BigInt(hex(at + 122, 32))
      payments.push({
        asset,
        authorization: {
          from: hex(at, 20),
          to,
          value: BigInt(hex(at + 20, 12)),
          validAfter: BigInt(hex(at + 32, 5)),
          validBefore: BigInt(hex(at + 37, 5)),
          nonce: hex(at + 58, 32),
        },
        signature: `${hex(at + 90, 32)}${number(BigInt.asUintN(255, s), 32)}${s >> 255n ? '1c' : '1b'}`,
        marker: marker.endsWith(noMarker) ? null : marker,
      })
    }
  }
  return data.length < limitBytes ? null : payments
}

/**
 * The gas limit of each call and the token of each payment; null unless the calldata has the batcher's form to the last
 * byte.
 */
export function readBatchGroups(calldata: Hex): { gasPerCall: bigint; tokens: string[] } | null {
  const data = Buffer.from(calldata.slice(2), 'hex')
  if (data.length < limitBytes) return null
  const tokens: string[] = []
  let at = limitBytes
  while (at < data.length) {
    if (at + groupBytes > data.length) return null
    const count = data.readUInt16BE(at + 40)
    const token = `0x${data.toString('hex', at, at + 20)}`
    for (let i = 0; i < count; i++) tokens.push(token)
    at += groupBytes + count * paymentBytes
    if (count === 0 || at > data.length) return null
  }
  return { gasPerCall: BigInt(data.readUInt32BE(0)), tokens }
}

/** Whether the batcher is on the chain, with exactly our code. */
export async function readHasBatcher(chain: Chain): Promise<boolean> {
  return keccak256(await chain.rpc.call<Hex>('eth_getCode', [batcher, 'latest'])) === batcherCodeHash
}

function number(value: bigint, length: number): string {
  const text = value.toString(16).padStart(2 * length, '0')
  assert(value >= 0n && text.length === 2 * length, 'the number does not fit')
  return text
}

function bytes(hex: string, length: number): string {
  assert(hex.length === 2 + 2 * length && /^0x[0-9a-f]+$/i.test(hex), 'the hex has the wrong length')
  return hex.slice(2).toLowerCase()
}
