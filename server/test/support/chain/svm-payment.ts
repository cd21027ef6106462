import assert from 'node:assert/strict'
import type { PaymentRequired, PaymentRequirements } from '@farthing/sdk'
import {
  type AccountMeta,
  AccountRole,
  type Address,
  address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransaction,
  createSolanaRpc,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  getU64Encoder,
  type Instruction,
  type KeyPairSigner,
  partiallySignTransactionMessageWithSigners,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signBytes,
} from '@solana/kit'
import { encodeTransaction } from '../../../src/chains/svm/message.ts'
import { findTokenAccount, memoProgram, tokenProgram } from '../../../src/chains/svm/transfer.ts'
import type { TestSvm } from './svm.ts'

/** USDC's mint on devnet and on the local chain. */
export const usdc = address('4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU')

const computeProgram = address('ComputeBudget111111111111111111111111111111')

export function compute(kind: 2 | 3, value: bigint): Instruction {
  const data = Buffer.alloc(kind === 2 ? 5 : 9)
  data[0] = kind
  if (kind === 2) data.writeUInt32LE(Number.parseInt(value.toString(), 10), 1)
  else data.writeBigUInt64LE(value, 1)
  return { programAddress: computeProgram, data }
}

/** How a transaction differs from the one that a stock client builds. */
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
  /** Puts the instructions in another order, or others between them. */
  readonly arrange?: (parts: Parts) => readonly Instruction[]
  /** Whose signature takes the payer's place. */
  readonly signedBy?: KeyPairSigner
  readonly accepted?: PaymentRequirements
}

/** What a payment is made of, and the accounts that it names. */
export type Parts = {
  readonly limit: Instruction
  readonly price: Instruction
  readonly transfer: Instruction
  readonly memo: Instruction
  readonly feePayer: string
  readonly source: string
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

export async function readBlockhash(chain: TestSvm): Promise<string> {
  const { value } = await chain.rpc<{ value: { blockhash: string } }>('getLatestBlockhash', [
    { commitment: 'confirmed' },
  ])
  return value.blockhash
}

/** The transaction alone, in base64, signed only by the payer. */
export async function svmTransaction(
  accepted: PaymentRequirements,
  payer: KeyPairSigner,
  changes: Changes & { readonly blockhash: string },
): Promise<string> {
  assert('feePayer' in accepted.extra)
  const { feePayer, memo: checkoutId } = accepted.extra
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
  const memoText = changes.memo === undefined ? checkoutId : changes.memo
  const limit = compute(2, changes.units ?? 20_000n)
  const price = compute(3, changes.price ?? 1n)
  const transfer = { programAddress: tokenProgram, accounts, data }
  const memo = { programAddress: memoProgram, data: Buffer.from(memoText ?? '') }
  const usual = [limit, price, transfer, ...(memoText === null ? [] : [memo]), ...(changes.more ?? [])]
  const parts = { limit, price, transfer, memo, feePayer, source: `${accounts[0]?.address}` }
  const instructions = changes.arrange?.(parts) ?? usual
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

export function meta(account: string, role: AccountRole): AccountMeta<Address> {
  return { address: address(account), role }
}

/** The instructions as a signed transaction on the newest blockhash; the payer pays the fee unless `feePayer` does. */
export async function signInstructions(
  { url }: { readonly url: string },
  payer: KeyPairSigner,
  instructions: readonly Instruction[],
  feePayer?: Address,
) {
  const { value } = await createSolanaRpc(url).getLatestBlockhash({ commitment: 'processed' }).send()
  const transaction = await pipe(
    createTransactionMessage({ version: 0 }),
    (message) =>
      feePayer
        ? setTransactionMessageFeePayer(feePayer, message)
        : setTransactionMessageFeePayerSigner(payer, message),
    (message) => setTransactionMessageLifetimeUsingBlockhash(value, message),
    (message) => appendTransactionMessageInstructions(instructions, message),
    partiallySignTransactionMessageWithSigners,
  )
  return {
    wire: getBase64EncodedWireTransaction(transaction),
    get signature() {
      return getSignatureFromTransaction(transaction)
    },
  }
}

/** A plain transfer, signed and ready to send. */
export async function transferWire(
  chain: { readonly url: string },
  from: KeyPairSigner,
  to: string,
  units: bigint,
  references: readonly string[] = [],
  mint: string = usdc,
): Promise<string> {
  const instruction = await transferTokens(from, to, units, references.map(address), mint)
  return (await signInstructions(chain, from, [instruction])).wire
}

/** A plain transfer as wallets build it, with the references added as Solana Pay requires. */
export async function transferTokens(
  from: KeyPairSigner,
  to: string,
  units: bigint,
  references: readonly Address[] = [],
  mint: string = usdc,
): Promise<Instruction> {
  const [source, destination] = [await findTokenAccount(from.address, mint), await findTokenAccount(to, mint)]
  const authority = { address: from.address, role: AccountRole.READONLY_SIGNER as const, signer: from }
  return {
    programAddress: tokenProgram,
    accounts: [
      meta(source, AccountRole.WRITABLE),
      meta(mint, AccountRole.READONLY),
      meta(destination, AccountRole.WRITABLE),
      authority,
      ...references.map((reference) => meta(reference, AccountRole.READONLY)),
    ],
    data: new Uint8Array([12, ...getU64Encoder().encode(units), 6]),
  }
}

export function memo(text: string): Instruction {
  return { programAddress: memoProgram, accounts: [], data: new TextEncoder().encode(text) }
}
