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
 * recent blockhash that ends its life, and the instructions. Whoever's signature is missing can complete it, and nobody
 * else: so a payment that waits for a settler's signature cannot be sent without us.
 */
export type SvmTransaction = {
  readonly message: Uint8Array
  /** Of the accounts that must sign, in order; all zeros where it is missing. */
  readonly signatures: readonly Uint8Array[]
  readonly accounts: readonly Address[]
  readonly blockhash: string
  readonly hasLookups: boolean
  readonly instructions: readonly Instruction[]
}

type Instruction = {
  readonly program: Address | undefined
  readonly accounts: readonly (Address | undefined)[]
  readonly data: Uint8Array
}

/** What fits into a packet of the network: nodes take nothing larger. */
const transactionBytesMax = 1_232

/** Null for what is no transaction, or is written in another way than it would be written again. */
export function decodeTransaction(bytes: Uint8Array): SvmTransaction | null {
  if (bytes.length > transactionBytesMax) return null
  try {
    const transaction = getTransactionDecoder().decode(bytes)
    if (!Buffer.from(getTransactionEncoder().encode(transaction)).equals(bytes)) return null
    const message = new Uint8Array(transaction.messageBytes)
    const read = getCompiledTransactionMessageDecoder().decode(message)
    if (read.version !== 0 && read.version !== 'legacy') return null
    // The decoder leaves bytes after the message unread. Nodes simulate such a transaction, and no leader takes it.
    if (!Buffer.from(getCompiledTransactionMessageEncoder().encode(read)).equals(message)) return null
    const accounts = read.staticAccounts
    return {
      message,
      signatures: Object.values(transaction.signatures).map(
        (signature) => new Uint8Array(signature ?? new Uint8Array(64)),
      ),
      accounts,
      blockhash: read.lifetimeToken,
      hasLookups: read.version === 0 && (read.addressTableLookups?.length ?? 0) > 0,
      instructions: read.instructions.map(({ programAddressIndex, accountIndices, data }) => ({
        program: accounts[programAddressIndex],
        accounts: (accountIndices ?? []).map((index) => accounts[index]),
        data: new Uint8Array(data ?? []),
      })),
    }
  } catch {
    // The decoders throw on whatever they cannot read.
    return null
  }
}

/** With the signatures in the order of the accounts. */
export function encodeTransaction({
  message,
  signatures,
}: Pick<SvmTransaction, 'message' | 'signatures'>): Uint8Array {
  assert(signatures.length < 128, 'the count is one byte')
  return Buffer.concat([Buffer.of(signatures.length), ...signatures, message])
}

/** What a payment is known by: any signature of the same message would do the same. */
export function hashMessage(message: Uint8Array): Hex {
  return `0x${createHash('sha256').update(message).digest('hex')}`
}

/** Ed25519 keys in the form that the platform reads: a fixed head and the 32 bytes. */
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
