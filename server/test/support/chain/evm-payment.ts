import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { PaymentRequired, PaymentRequirements } from '@farthing/sdk'
import {
  type Address,
  encodeFunctionData,
  getAddress,
  type Hex,
  serializeErc6492Signature,
  type TypedDataDefinition,
  toHex,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { type Domain, tokenAbi } from './evm.ts'

export type Payer = { readonly key: Hex; readonly address: Address }

export function newPayer(): Payer {
  const key = generatePrivateKey()
  return { key, address: privateKeyToAccount(key).address }
}

/** The form in a PAYMENT-SIGNATURE header. */
export type Authorization = {
  readonly from: Address
  readonly to: Address
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: Hex
}

export type Signed = { readonly authorization: Authorization; readonly signature: Hex }

type SignAuthorization = {
  readonly key: Hex
  readonly domain: Domain
  readonly to: Address
  readonly value: bigint
  readonly validBefore: bigint
  readonly validAfter?: bigint
  readonly nonce?: Hex
  /** The payer, if the key is not its own: a contract wallet. */
  readonly from?: Address
  readonly type?: 'TransferWithAuthorization' | 'ReceiveWithAuthorization'
  /** Signs in the payer's name, if the payer is a contract wallet with signatures of its own. */
  readonly signTyped?: SignTyped
}

export type SignTyped = (typed: TypedDataDefinition) => Promise<Hex>

const authorizationFields = [
  { name: 'from', type: 'address' },
  { name: 'to', type: 'address' },
  { name: 'value', type: 'uint256' },
  { name: 'validAfter', type: 'uint256' },
  { name: 'validBefore', type: 'uint256' },
  { name: 'nonce', type: 'bytes32' },
] as const

export async function signAuthorization(input: SignAuthorization): Promise<Signed> {
  const account = privateKeyToAccount(input.key)
  const { domain, to, value, validBefore, validAfter = 0n, type = 'TransferWithAuthorization' } = input
  const { from = account.address, nonce = newNonce() } = input
  const message = { from, to, value, validAfter, validBefore, nonce }
  const { signTyped = (typed) => account.signTypedData(typed) } = input
  const signature = await signTyped({
    domain,
    types: { TransferWithAuthorization: authorizationFields, ReceiveWithAuthorization: authorizationFields },
    primaryType: type,
    message,
  })
  return {
    authorization: {
      from,
      to,
      value: `${value}`,
      validAfter: `${validAfter}`,
      validBefore: `${validBefore}`,
      nonce,
    },
    signature,
  }
}

/** What deploys a wallet, as ERC-6492 puts it around the wallet's signature. */
export type Wrapper = { readonly factory: Address; readonly calldata: Hex }

/** Coinbase's factory of smart wallets, and the beginning of a call to it. */
const baseAppWrapper: Wrapper = {
  factory: '0xBA5ED110eFDBa3D005bfC882d75358ACBbB85842',
  calldata: '0x3ffba36f',
}

/** The signature as a smart wallet hands it out (ERC-6492). */
export function wrap(signature: Hex, { factory, calldata }: Wrapper = baseAppWrapper): Hex {
  return serializeErc6492Signature({ address: factory, data: calldata, signature })
}

export function newNonce(): Hex {
  return toHex(randomBytes(32))
}

export async function signCancellation(input: {
  readonly key: Hex
  readonly domain: Domain
  readonly nonce: Hex
}): Promise<Hex> {
  const account = privateKeyToAccount(input.key)
  return await account.signTypedData({
    domain: input.domain,
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce: input.nonce },
  })
}

/** Encodes the call that settles it, for the overload that takes signatures of any length. */
export function encodeTransfer({ authorization, signature }: Signed): Hex {
  return encodeFunctionData({
    abi: tokenAbi,
    functionName: 'transferWithAuthorization',
    args: [...authorizationArguments(authorization), signature],
  })
}

export function authorizationArguments({ from, to, value, validAfter, validBefore, nonce }: Authorization) {
  return [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce] as const
}

type PaymentOverrides = Partial<SignAuthorization> & {
  /** Replaces the first of `accepts`. */
  readonly accepted?: PaymentRequirements
  /** Replaces the right signature. */
  readonly signature?: Hex
}

/** The PAYMENT-SIGNATURE header that answers a 402, byte for byte as the stock x402 client builds it. */
export async function paymentHeader(
  required: PaymentRequired,
  key: Hex,
  overrides: PaymentOverrides = {},
): Promise<string> {
  const { accepted = required.accepts[0], signature, ...changes } = overrides
  assert(accepted && 'name' in accepted.extra)
  const signed = await signAuthorization({
    key,
    domain: {
      name: accepted.extra.name,
      version: accepted.extra.version,
      chainId: Number.parseInt(accepted.network.replace('eip155:', ''), 10),
      verifyingContract: getAddress(accepted.asset),
    },
    to: getAddress(accepted.payTo),
    value: BigInt(accepted.amount),
    validBefore: BigInt(Math.floor(Date.now() / 1000) + accepted.maxTimeoutSeconds),
    ...changes,
  })
  const payload = {
    x402Version: 2,
    payload: { authorization: signed.authorization, signature: signature ?? signed.signature },
    resource: required.resource,
    accepted,
  }
  return Buffer.from(JSON.stringify(payload)).toString('base64')
}
