import type { PaymentRequirements } from '../wire.ts'

/** EIP-3009 transfers, which move USDC with nothing but a signature: this is what an agent signs on EVM chains. */

/** A wallet that signs EIP-712 typed data, such as a viem account. */
export type EvmSigner = {
  readonly address: string
  signTypedData(typedData: TransferTypedData): Promise<string>
}

type Hex = `0x${string}`

export type TransferTypedData = {
  readonly domain: {
    readonly name: string
    readonly version: string
    readonly chainId: number
    readonly verifyingContract: Hex
  }
  readonly types: typeof transferTypes
  readonly primaryType: 'TransferWithAuthorization'
  readonly message: {
    readonly from: Hex
    readonly to: Hex
    readonly value: bigint
    readonly validAfter: bigint
    readonly validBefore: bigint
    readonly nonce: Hex
  }
}

export const transferTypes = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

/** The typed data to sign for this way to pay. It is valid until `now` (in milliseconds) plus the offered time. */
export function makeTypedData(
  accepted: PaymentRequirements,
  { name, version }: { readonly name: string; readonly version: string },
  from: string,
  nonce: Hex,
  now: number,
): TransferTypedData {
  return {
    domain: {
      name,
      version,
      chainId: Number.parseInt(accepted.network.replace('eip155:', ''), 10),
      verifyingContract: accepted.asset as Hex,
    },
    types: transferTypes,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: from as Hex,
      to: accepted.payTo as Hex,
      value: BigInt(accepted.amount),
      validAfter: 0n,
      validBefore: BigInt(Math.floor(now / 1_000) + accepted.maxTimeoutSeconds),
      nonce,
    },
  }
}

/** The payload of x402's `exact` scheme. */
export function encodeAuthorization({ message }: TransferTypedData, signature: string) {
  const authorization = {
    ...message,
    value: String(message.value),
    validAfter: String(message.validAfter),
    validBefore: String(message.validBefore),
  }
  return { signature, authorization }
}

/**
 * A nonce that only this checkout can claim, so that the signature is worthless anywhere else: "fthg" in ASCII, 12
 * random bytes, and the first 16 bytes of SHA-256(checkout id, those 12 bytes).
 */
export async function makeBoundNonce(checkoutId: string): Promise<Hex> {
  const random = crypto.getRandomValues(new Uint8Array(12))
  const content = new Uint8Array([...new TextEncoder().encode(checkoutId), ...random])
  const proof = new Uint8Array(await crypto.subtle.digest('SHA-256', content)).subarray(0, 16)
  return `0x66746867${toHex([...random, ...proof])}`
}

/** A nonce for a payment to a server that binds signatures to nothing. */
export function makeNonce(): Hex {
  return `0x${toHex([...crypto.getRandomValues(new Uint8Array(32))])}`
}

export function toHex(bytes: readonly number[]): string {
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
