import { createHash } from 'node:crypto'
import {
  getBase58Decoder,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  type ReadonlyUint8Array,
} from '@solana/kit'

/** The parts of a Solana transaction that payments need, read without server code. */
export type Decoded = {
  /** The first signature, by which it is known. */
  readonly signature: string
  /** SHA-256 of the message, which all signatures of one payment share. */
  readonly nonce: string
  readonly message: string
  readonly feePayer: string
  readonly accounts: readonly string[]
  readonly transfer: {
    readonly mint: string
    /** The token account that receives. */
    readonly destination: string
    /** The wallet that authorised it. */
    readonly by: string
    readonly units: bigint
  } | null
}

const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const transferChecked = 12

/** Reads a transaction with at most one TransferChecked, as buyers here sign it. */
export function decode(bytes: Uint8Array): Decoded {
  const { messageBytes, signatures } = getTransactionDecoder().decode(bytes)
  const message = Buffer.from(messageBytes as ReadonlyUint8Array as Uint8Array)
  const read = getCompiledTransactionMessageDecoder().decode(message)
  if (read.version === 1) throw new Error('a transaction of a version that is not used here')
  const accounts = read.staticAccounts.map(String)
  const found = read.instructions.find(
    ({ programAddressIndex, data }) =>
      accounts[programAddressIndex] === tokenProgram && data?.[0] === transferChecked,
  )
  const [, mint = '', destination = '', by = ''] = (found?.accountIndices ?? []).map((i) => accounts[i] ?? '')
  const [first] = Object.values(signatures)
  return {
    signature: getBase58Decoder().decode(first ?? new Uint8Array(64)),
    nonce: `0x${createHash('sha256').update(message).digest('hex')}`,
    message: message.toString('base64'),
    feePayer: accounts[0] ?? '',
    accounts,
    transfer: found?.data
      ? { mint, destination, by, units: Buffer.from(found.data).readBigUInt64LE(1) }
      : null,
  }
}
