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
 * A Solana transaction as bytes. The message is what is signed: who pays the fee (account 0), who else must sign, a
 * recent blockhash that limits its life, and the instructions. Only those whose signatures are missing can complete it,
 * so a payment that is waiting for a settler's signature cannot be sent without us.
 */
export type SvmTransaction = {
  readonly message: Uint8Array
  /** Of the accounts that must sign, in order; all zeros if missing. */
  readonly signatures: readonly Uint8Array[]
  readonly accounts: readonly Address[]
  /** Those of the accounts that its instructions may change. */
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

/** The size of a network packet: nodes accept nothing larger. */
const transactionBytesMax = 1_232

/** Null if the bytes are not a transaction, or are not its canonical encoding. */
export function decodeTransaction(bytes: Uint8Array): SvmTransaction | null {
  if (bytes.length > transactionBytesMax) return null
  try {
    const transaction = getTransactionDecoder().decode(bytes)
    if (!Buffer.from(getTransactionEncoder().encode(transaction)).equals(bytes)) return null
    const message = new Uint8Array(transaction.messageBytes)
    const read = getCompiledTransactionMessageDecoder().decode(message)
    if (read.version !== 0 && read.version !== 'legacy') return null
    // The decoder ignores bytes after the message. Nodes simulate such a transaction, but no leader accepts it.
    if (!Buffer.from(getCompiledTransactionMessageEncoder().encode(read)).equals(message)) return null
    const accounts = read.staticAccounts
    const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = read.header
    const isWritable = (place: number) =>
      place < numSignerAccounts
        ? place < numSignerAccounts - numReadonlySignerAccounts
        : place < accounts.length - numReadonlyNonSignerAccounts
    return {
      message,
      signatures: Object.values(transaction.signatures).map(
        (signature) => new Uint8Array(signature ?? new Uint8Array(64)),
      ),
      accounts,
      writable: accounts.filter((_, place) => isWritable(place)),
      blockhash: read.lifetimeToken,
      hasLookups: read.version === 0 && (read.addressTableLookups?.length ?? 0) > 0,
      instructions: read.instructions.map(({ programAddressIndex, accountIndices, data }) => ({
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
