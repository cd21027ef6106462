import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import type { Network, SolanaNetwork } from '../../networks.ts'
import { type Ask, type Guard, SignRefusedError, unlimited } from '../signers/signing.ts'
import { decodeTransaction, encodeTransaction, isSignedBy, type SvmTransaction, toBase58 } from './message.ts'
import { findCreationRefusal, findTransferRefusal } from './policy.ts'

/**
 * A settler's account. It pays fees and cannot redirect money: it only completes transactions that payers have signed.
 * Its key is in this process, or in `signer`, which is asked for every signature.
 */
export type SvmSigner = {
  readonly family: 'SOLANA'
  readonly address: string
  /** The whole transaction, and its first signature, which identifies it on the chain. */
  complete(network: SolanaNetwork, transaction: SvmTransaction): Promise<Completed>
  /** Only for messages that we wrote ourselves. */
  signOwn(network: SolanaNetwork, message: Uint8Array): Promise<Completed>
  /** While this is true, nothing can be signed. */
  readonly isAway: () => boolean
}

type Completed = { readonly hash: string; readonly bytes: Uint8Array }

const privateKeyHead = Buffer.from('302e020100300506032b657004220420', 'hex')

/** A new key, as SETTLER_KEYS_FILE and Solana's own key files hold it. */
export function makeSvmKey(): string {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const secret = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
  const open = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  return `[${[...secret, ...open].join(',')}]`
}

/**
 * From 64 bytes, as in key files: the secret, then the public key. `answer` serves another process: it takes the
 * question that `openRemoteSvmSigner` sends from there.
 */
export function openSvmSigner(secret: Uint8Array, guard: Guard = unlimited) {
  assert.equal(secret.length, 64, 'a key must be 64 bytes')
  const key = createPrivateKey({
    key: Buffer.concat([privateKeyHead, secret.subarray(0, 32)]),
    format: 'der',
    type: 'pkcs8',
  })
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)
  assert(publicKey.equals(secret.subarray(32)), 'the two halves of a key do not match')
  const address = toBase58(publicKey)
  const signTransfer = (network: SolanaNetwork, transaction: SvmTransaction): Buffer => {
    const refusal = findTransferRefusal(network, address, transaction, guard)
    if (refusal !== null) throw new SignRefusedError(refusal)
    return sign(null, transaction.message, key)
  }
  const signCreation = async (network: SolanaNetwork, message: Uint8Array): Promise<Buffer> => {
    const refusal = await findCreationRefusal(network, address, message, guard)
    if (refusal !== null) throw new SignRefusedError(refusal)
    return sign(null, message, key)
  }
  return {
    family: 'SOLANA',
    address,
    isAway: () => false,
    complete: async (network: SolanaNetwork, transaction: SvmTransaction) =>
      assemble(transaction.message, signTransfer(network, transaction), transaction.signatures.slice(1)),
    signOwn: async (network: SolanaNetwork, message: Uint8Array) =>
      assemble(message, await signCreation(network, message)),
    async answer(network: Network, asked: unknown): Promise<string> {
      const { transfer, creation } = (asked ?? {}) as Record<string, unknown>
      const bytes = readBytes(transfer ?? creation)
      if (network.family !== 'SOLANA' || !bytes) throw new SignRefusedError('it is not a transaction')
      if (transfer === undefined) return (await signCreation(network, bytes)).toString('base64')
      const transaction = decodeTransaction(bytes)
      if (!transaction) throw new SignRefusedError('it is not a transaction')
      return signTransfer(network, transaction).toString('base64')
    },
  } as const satisfies SvmSigner & { answer: unknown }
}

/** With the key in another process. Its signature is checked, because it names the transaction. */
export function openRemoteSvmSigner(address: string, ask: Ask, isAway: () => boolean): SvmSigner {
  const request = async (network: SolanaNetwork, message: Uint8Array, asked: object): Promise<Buffer> => {
    const signature = readBytes(await ask(address, network.caip2, asked))
    if (signature?.length !== 64 || !isSignedBy(address, message, signature))
      throw new SignRefusedError('the signer answered with a signature that is not this account’s')
    return signature
  }
  return {
    family: 'SOLANA',
    address,
    isAway,
    async complete(network, transaction) {
      const { message, signatures } = transaction
      const transfer = Buffer.from(encodeTransaction(transaction)).toString('base64')
      return assemble(message, await request(network, message, { transfer }), signatures.slice(1))
    },
    async signOwn(network, message) {
      const creation = Buffer.from(message).toString('base64')
      return assemble(message, await request(network, message, { creation }))
    },
  }
}

function assemble(message: Uint8Array, own: Uint8Array, others: readonly Uint8Array[] = []): Completed {
  return { hash: toBase58(own), bytes: encodeTransaction({ message, signatures: [own, ...others] }) }
}

/** Bytes from base64; null unless the text is their canonical encoding. */
function readBytes(text: unknown): Buffer | null {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'base64') : null
  return bytes?.toString('base64') === text ? bytes : null
}
