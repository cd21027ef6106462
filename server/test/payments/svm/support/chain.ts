import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import type { PaymentRequired, PaymentRequirements } from '@farthing/sdk'
import {
  type AccountMeta,
  AccountRole,
  type Address,
  address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransaction,
  createKeyPairSignerFromBytes,
  createTransactionMessage,
  type Instruction,
  type KeyPairSigner,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  signBytes,
} from '@solana/kit'
import { encodeTransaction } from '../../../../src/chains/svm/message.ts'
import { openSvmSigner, type SvmSigner } from '../../../../src/chains/svm/signer.ts'
import { findTokenAccount, memoProgram, tokenProgram } from '../../../../src/chains/svm/transfer.ts'
import { networks } from '../../../../src/networks.ts'
import { atEnd } from '../../../support/at-end.ts'
import { startLocalSvm } from '../../../support/local-svm/start.ts'

/** The genesis hashes that public clusters have: stock clients know networks by them. */
const genesisHashes: Readonly<Record<string, string>> = {
  SOLANA_MAINNET: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
  SOLANA_DEVNET: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG',
}

export type TestSvm = Awaited<ReturnType<typeof openSvm>>

/** A Solana chain of this test file's own, stopped when the file is done. */
export async function openSvm(
  options: {
    readonly network?: 'SOLANA_LOCAL' | 'SOLANA_MAINNET' | 'SOLANA_DEVNET'
    readonly slotMs?: number | null
    readonly finalizedAfter?: number
  } = {},
) {
  const { network: name = 'SOLANA_LOCAL', slotMs = 100, finalizedAfter = 8 } = options
  const network = networks.find(({ id }) => id === name)
  assert(network?.family === 'SOLANA')
  const [asset] = network.assets
  assert(asset)
  const genesisHash = genesisHashes[name]
  const chain = await startLocalSvm({
    now: () => new Date(),
    slotMs,
    mints: network.assets,
    finalizedAfter,
    ...(genesisHash && { genesisHash }),
  })
  atEnd(() => chain.stop())
  const mint = asset.address
  return {
    ...chain,
    network,
    mint,
    /** A payer with money. */
    async payer(units = 1_000_000_000n): Promise<KeyPairSigner> {
      const signer = await createKeyPairSignerFromBytes(newSecret())
      await chain.fund(signer.address, { token: [mint, units] })
      return signer
    },
    async rpc<Result>(method: string, params: readonly unknown[] = []): Promise<Result> {
      const response = await fetch(chain.url, {
        method: 'POST',
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      })
      const { result, error } = (await response.json()) as { result: Result; error?: { message: string } }
      assert(!error, error?.message)
      return result
    },
  }
}

/** 64 bytes as key files hold them. */
function newSecret(): Uint8Array {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return Buffer.concat([
    privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32),
    publicKey.export({ format: 'der', type: 'spki' }).subarray(-32),
  ])
}

export type TestSettler = SvmSigner & { readonly secret: Uint8Array }

/** A settler with SOL to pay fees from. */
export async function newSettler(chain: TestSvm, lamports = 10_000_000_000n): Promise<TestSettler> {
  const secret = newSecret()
  const signer = openSvmSigner(secret)
  await chain.fund(signer.address, { lamports })
  return { ...signer, secret }
}

const computeProgram = address('ComputeBudget111111111111111111111111111111')

function compute(kind: 2 | 3, value: bigint): Instruction {
  const data = Buffer.alloc(kind === 2 ? 5 : 9)
  data[0] = kind
  if (kind === 2) data.writeUInt32LE(Number.parseInt(value.toString(), 10), 1)
  else data.writeBigUInt64LE(value, 1)
  return { programAddress: computeProgram, data }
}

/** How a transaction differs from the one that a stock client makes. */
export type Changes = {
  readonly feePayer?: string
  readonly mint?: string
  readonly payTo?: string
  readonly destination?: string
  readonly source?: string
  readonly authority?: string
  readonly amount?: bigint
  readonly decimals?: number
  readonly memo?: string | null
  readonly units?: bigint
  readonly price?: bigint
  readonly blockhash?: string
  readonly more?: readonly Instruction[]
  /** Whose signature stands in the payer's place. */
  readonly signedBy?: KeyPairSigner
  readonly accepted?: PaymentRequirements
}

/** The PAYMENT-SIGNATURE header that answers a 402 on Solana, in the form of the stock x402 client. */
export async function svmHeader(
  chain: TestSvm,
  required: PaymentRequired,
  payer: KeyPairSigner,
  changes: Changes = {},
): Promise<string> {
  const accepted = changes.accepted ?? required.accepts.find(({ network }) => network === chain.network.caip2)
  assert(accepted && 'feePayer' in accepted.extra)
  const blockhash = changes.blockhash ?? (await readBlockhash(chain))
  const transaction = await svmTransaction(accepted, payer, { ...changes, blockhash })
  const payload = { x402Version: 2, payload: { transaction }, resource: required.resource, accepted }
  return Buffer.from(JSON.stringify(payload)).toString('base64')
}

/** The transaction alone, in base64: signed by the payer, and by nobody else. */
export async function svmTransaction(
  accepted: PaymentRequirements,
  payer: KeyPairSigner,
  changes: Changes & { readonly blockhash: string },
): Promise<string> {
  assert('feePayer' in accepted.extra)
  const { feePayer, memo } = accepted.extra
  const mint = changes.mint ?? accepted.asset
  const data = Buffer.alloc(10)
  data[0] = 12
  data.writeBigUInt64LE(changes.amount ?? BigInt(accepted.amount), 1)
  data[9] = changes.decimals ?? 6
  const authority = address(changes.authority ?? payer.address)
  const accounts: AccountMeta[] = [
    meta(changes.source ?? (await findTokenAccount(authority, mint)), AccountRole.WRITABLE),
    meta(mint, AccountRole.READONLY),
    meta(
      changes.destination ?? (await findTokenAccount(changes.payTo ?? accepted.payTo, mint)),
      AccountRole.WRITABLE,
    ),
    meta(authority, AccountRole.READONLY_SIGNER),
  ]
  const memoText = changes.memo === undefined ? memo : changes.memo
  const instructions: Instruction[] = [
    compute(2, changes.units ?? 20_000n),
    compute(3, changes.price ?? 1n),
    { programAddress: tokenProgram, accounts, data },
    ...(memoText === null ? [] : [{ programAddress: memoProgram, data: Buffer.from(memoText) }]),
    ...(changes.more ?? []),
  ]
  const { messageBytes, signatures } = compileTransaction(
    pipe(
      createTransactionMessage({ version: 0 }),
      (message) => setTransactionMessageFeePayer(address(changes.feePayer ?? feePayer), message),
      (message) =>
        setTransactionMessageLifetimeUsingBlockhash(
          { blockhash: changes.blockhash as Blockhash, lastValidBlockHeight: 0n },
          message,
        ),
      (message) => appendTransactionMessageInstructions(instructions, message),
    ),
  )
  const message = new Uint8Array(messageBytes)
  const own = new Uint8Array(await signBytes((changes.signedBy ?? payer).keyPair.privateKey, message))
  const signed = Object.keys(signatures).map((account) =>
    account === payer.address ? own : new Uint8Array(64),
  )
  return Buffer.from(encodeTransaction({ message, signatures: signed })).toString('base64')
}

export async function readBlockhash(chain: TestSvm): Promise<string> {
  const { value } = await chain.rpc<{ value: { blockhash: string } }>('getLatestBlockhash', [
    { commitment: 'confirmed' },
  ])
  return value.blockhash
}

export function meta(account: string, role: AccountRole): AccountMeta<Address> {
  return { address: address(account), role }
}
