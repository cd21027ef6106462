import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import type { SolanaNetwork } from '../../networks.ts'
import { encodeTransaction, type SvmTransaction, toBase58 } from './message.ts'
import { readExact } from './transfer.ts'

/** A settler's key. It pays fees and cannot redirect money: it only completes transactions that payers have signed. */
export type SvmSigner = {
  readonly family: 'SOLANA'
  readonly address: string
  /** The whole transaction, and its first signature, which identifies it on the chain. */
  complete(network: SolanaNetwork, transaction: SvmTransaction): { hash: string; bytes: Uint8Array }
  /** Only for messages that we wrote ourselves. */
  signOwn(message: Uint8Array): { hash: string; bytes: Uint8Array }
}

const privateKeyHead = Buffer.from('302e020100300506032b657004220420', 'hex')

/** A new key, as SETTLER_KEYS_FILE and Solana's own key files hold it. */
export function makeSvmKey(): string {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const secret = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
  const open = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  return `[${[...secret, ...open].join(',')}]`
}

/** From 64 bytes, as in key files: the secret, then the public key. */
export function openSvmSigner(secret: Uint8Array): SvmSigner {
  assert.equal(secret.length, 64, 'a key must be 64 bytes')
  const key = createPrivateKey({
    key: Buffer.concat([privateKeyHead, secret.subarray(0, 32)]),
    format: 'der',
    type: 'pkcs8',
  })
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)
  assert(publicKey.equals(secret.subarray(32)), 'the two halves of a key do not match')
  const address = toBase58(publicKey)
  return {
    family: 'SOLANA',
    address,
    complete(network, transaction) {
      const exact = readExact(transaction, network)
      // Checked again here, whoever calls: a settler may only ever complete exact transfers.
      assert(!('refusal' in exact), 'a settler may only sign exact transfers')
      assert.equal(exact.feePayer, address)
      const { message, signatures } = transaction
      const own = sign(null, message, key)
      return {
        hash: toBase58(own),
        bytes: encodeTransaction({ message, signatures: [own, ...signatures.slice(1)] }),
      }
    },
    signOwn(message) {
      const own = sign(null, message, key)
      return { hash: toBase58(own), bytes: encodeTransaction({ message, signatures: [own] }) }
    },
  }
}
