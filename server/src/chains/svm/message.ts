import assert from 'node:assert/strict'
import { createHash, createPublicKey, verify } from 'node:crypto'
import {
  type Address,
  getBase58Decoder,
  getBase58Encoder,
  getCompiledTransactionMessageDecoder,
  getCompiledTransactionMessageEncoder,
  getTransactionDecoder,
  getTransactionEncoder,
} from '@solana/kit'
import type { Hex } from '../hex.ts'

/**
 * A Solana transaction as bytes. The signed part, the message, contains the account that pays the fee (account 0), the
 * others that must sign, a recent blockhash that limits its life, and the instructions. Every signature is required, so
 * a payment that lacks the settler's can't be sent without us.
 */
export type SvmTransaction = {
  /** Settlers don't sign version 1, which sets its compute budget in another place. */
  readonly version: 'legacy' | 0 | 1
  readonly message: Uint8Array
  /** One per account that must sign, in order; all zeros if missing. */
  readonly signatures: readonly Uint8Array[]
  readonly accounts: readonly Address[]
  /** The accounts that its instructions may change. */
  readonly writable: readonly Address[]
  readonly blockhash: string
  readonly hasLookups: boolean
  readonly instructions: readonly Instruction[]
}

type Instruction = {
  readonly program: Address | undefined
  readonly accounts: readonly (Address | undefined)[]
  readonly data: Uint8Array
}

/** Nodes accept nothing larger: a network packet, and for version 1 three of them. */
const bytesMax = { legacy: 1_232, 0: 1_232, 1: 4_096 } as const

/** Null if the bytes are not a transaction of a version that we sign, or are not its canonical encoding. */
export function decodeTransaction(bytes: Uint8Array): SvmTransaction | null {
  const transaction = decodeAnyTransaction(bytes)
  return transaction?.version === 1 ? null : transaction
}

/** Null if the bytes are not a transaction of any version, or are not its canonical encoding. */
export function decodeAnyTransaction(bytes: Uint8Array): SvmTransaction | null {
  if (bytes.length > bytesMax[1]) return null
  try {
    const transaction = getTransactionDecoder().decode(bytes)
    if (!Buffer.from(getTransactionEncoder().encode(transaction)).equals(bytes)) return null
    const message = new Uint8Array(transaction.messageBytes)
    const read = getCompiledTransactionMessageDecoder().decode(message)
    if (bytes.length > bytesMax[read.version]) return null
    // The decoder ignores bytes after the message. Nodes simulate such a transaction, but no leader accepts it.
    if (!Buffer.from(getCompiledTransactionMessageEncoder().encode(read)).equals(message)) return null
    const accounts = read.staticAccounts
    return {
      version: read.version,
      message,
      signatures: Object.values(transaction.signatures).map(
        (signature) => new Uint8Array(signature ?? new Uint8Array(64)),
      ),
      accounts,
      writable: accounts.filter((_, place) => isWritable(read, place)),
      blockhash: read.lifetimeToken,
      hasLookups: read.version === 0 && (read.addressTableLookups?.length ?? 0) > 0,
      instructions: instructionsOf(read).map(({ programAddressIndex, accountIndices, data }) => ({
        program: accounts[programAddressIndex],
        accounts: (accountIndices ?? []).map((index) => accounts[index]),
        data: new Uint8Array(data ?? []),
      })),
    }
  } catch {
    // The decoders throw on anything they cannot read.
    return null
  }
}

type Compiled = ReturnType<ReturnType<typeof getCompiledTransactionMessageDecoder>['decode']>

function isWritable({ header, staticAccounts }: Compiled, place: number): boolean {
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = header
  return place < numSignerAccounts
    ? place < numSignerAccounts - numReadonlySignerAccounts
    : place < staticAccounts.length - numReadonlyNonSignerAccounts
}

/** Version 1 writes the lengths of all instructions before their contents. */
function instructionsOf(read: Compiled) {
  if (read.version !== 1) return read.instructions
  return read.instructionHeaders.map(({ programAccountIndex }, i) => ({
    programAddressIndex: programAccountIndex,
    accountIndices: read.instructionPayloads[i]?.instructionAccountIndices,
    data: read.instructionPayloads[i]?.instructionData,
  }))
}

/** Writes the signatures in the order of the accounts. */
export function encodeTransaction({
  message,
  signatures,
}: Pick<SvmTransaction, 'message' | 'signatures'>): Uint8Array {
  assert(signatures.length < 128, 'the count must fit in one byte')
  return Buffer.concat([Buffer.of(signatures.length), ...signatures, message])
}

/** Identifies a payment: every signature of the same message has the same effect. */
export function hashMessage(message: Uint8Array): Hex {
  return `0x${createHash('sha256').update(message).digest('hex')}`
}

/** The DER header of an Ed25519 public key; the 32 bytes of the key follow. */
const publicKeyHead = Buffer.from('302a300506032b6570032100', 'hex')

export function isSignedBy(account: string, message: Uint8Array, signature: Uint8Array): boolean {
  const key = createPublicKey({
    key: Buffer.concat([publicKeyHead, toBytes(account)]),
    format: 'der',
    type: 'spki',
  })
  return verify(null, message, key, signature)
}

function toBytes(base58: string): Uint8Array {
  return new Uint8Array(getBase58Encoder().encode(base58))
}

export function toBase58(bytes: Uint8Array): string {
  return getBase58Decoder().decode(bytes)
}
